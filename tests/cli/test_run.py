"""`pyrnnx run`: the arrays are those of Python, in one call and push by push."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import quantized_models
from command import in_terminal, pyrnnx
from onnx import TensorProto, helper
from onnx_models import make_model
from onnx_streams import H, I, gru, stack, stepwise

from pyrnnx import load
from pyrnnx.cli import main
from pyrnnx.cli.arrays import seconds, summary
from pyrnnx.comparison.random_inputs import OPEN_SIZES
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import write_model
from pyrnnx.testing.numbers import Array

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX, XML = (str(EXAMPLES / f"small_rnn.{suffix}") for suffix in ("onnx", "xml"))
RNG = np.random.default_rng(7)
GIVEN: dict[str, Any] = {
    "X": RNG.normal(size=(6, 2, 4)).astype(np.float32),
    "sequence_lens": np.array([3, 6], np.int32),
    "initial_h": RNG.normal(size=(2, 2, 8)).astype(np.float32),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models, and with arrays for them."""
    folder = tmp_path_factory.mktemp("files")
    onnx.save(stepwise(), folder / "step.onnx")
    onnx.save(stack(["LSTM", "GRU"]), folder / "stack.onnx")
    write_model(read_model(stack(["LSTM", "GRU"])), folder / "stack.xml")
    onnx.save(gru("", ([], {})), folder / "gru.onnx")
    onnx.save(table(), folder / "table.onnx")
    np.savez(folder / "all.npz", **GIVEN)
    for name, array in {**GIVEN, "long": RNG.normal(size=(7, 3, I)).astype(np.float32)}.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.savez(folder / "objects.npz", X=np.array([{}], object))
    (folder / "broken.npy").write_bytes(b"\x93NUMPY\n\x00")
    (folder / "broken.npz").write_bytes(b"PK\x03\x04\n\x00")
    return folder


def table() -> onnx.ModelProto:
    """x [B, 2], n -> rows of x of any number, scaled."""
    value = [
        helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["B", 2]),
        helper.make_tensor_value_info("factor", TensorProto.FLOAT, []),
        helper.make_tensor_value_info("out", TensorProto.FLOAT, ["B", 2]),
    ]
    node = helper.make_node("Mul", ["rows", "factor"], ["out"])
    return make_model(helper.make_graph([node], "g", value[:2], value[2:]))


def facts(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    assert main(["run", *map(str, arguments), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    return found


def outputs(capsys: pytest.CaptureFixture[str], path: Path, *arguments: Any) -> dict[str, Array]:
    facts(capsys, *arguments, "--output", path)
    with np.load(path) as found:
        return dict(found)


def same(found: dict[str, Array], expected: dict[str, Any], rtol: float = 0) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol, rtol, err_msg=name)


def test_the_command(files: Path, tmp_path: Path) -> None:
    done = pyrnnx("run", ONNX, "--input", f"{files}/all.npz", "--output", f"{tmp_path}/out.npz")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    expected = load(ONNX)(GIVEN)
    with np.load(tmp_path / "out.npz") as found:
        same(dict(found), expected)
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith("Y_h"))
    Y_h = expected["Y_h"]
    assert line.split() == [
        *("Y_h", "float32", "[2,", "2,", "8]"),
        *(f"{value:.4g}" for value in (Y_h.min(), Y_h.mean(dtype=np.float64), Y_h.max())),
        "0",
    ]


def test_arrays_one_by_one(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [word for name in GIVEN for word in ("--input", f"{name}={files}/{name}.npy")]
    same(outputs(capsys, tmp_path / "o.npz", ONNX, *given), load(ONNX)(GIVEN))


def test_random_inputs_are_seeded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (outputs(capsys, tmp_path / "o.npz", ONNX, "--random", seed) for seed in (3, 3, 4))
    same(first, again)
    assert np.abs(first["Y"] - other["Y"]).max() > 0.1


def test_what_is_not_given_is_random(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [files / "table.onnx", "--input", "factor=2.5", "--random", "1", "--dim", "B=7"]
    found = facts(capsys, *arguments)
    assert {name: (one["shape"], one["random"]) for name, one in found["inputs"].items()} == {
        "rows": ([7, 2], True),
        "factor": ([], False),
    }
    assert found["outputs"]["out"]["max"] == pytest.approx(2.5 * found["inputs"]["rows"]["max"])
    found = facts(capsys, *arguments[:-2])
    assert found["inputs"]["rows"]["shape"] == [OPEN_SIZES[0][0], 2]


def test_shapes_of_what_is_given_are_those_of_the_rest(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(files / "five.npy", np.zeros((1, 5, I), np.float32))
    found = facts(capsys, files / "step.onnx", "--input", f"x={files}/five.npy", "--random", "0")
    assert [one["shape"] for one in found["inputs"].values()] == [[1, 5, I], [1, 5, H], [1, 5, H]]


def test_a_layer_alone(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for layer in ("layer1", "1", "-1"):
        X = RNG.normal(size=(4, 3, H)).astype(np.float32)
        np.save(tmp_path / "X.npy", X)
        arguments = ["--layer", layer, "--input", f"X={tmp_path}/X.npy"]
        found = outputs(capsys, tmp_path / "o.npz", files / "stack.onnx", *arguments)
        same(found, dict(zip(("Y", "Y_h"), load(files / "stack.onnx").layers["layer1"](X), strict=True)))
    found_facts = facts(
        capsys, files / "stack.xml", "--layer", "0", "--random", "0", "--dim", "seq_length=9", "--dim", "batch_size=2"
    )
    assert {name: one["shape"] for name, one in found_facts["outputs"].items()} == {
        "Y": [2, 1, 9, H],
        "Ho": [2, 1, H],
        "Co": [2, 1, H],
    }


def test_a_layer_of_an_xml_file(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.ascontiguousarray(GIVEN["X"].swapaxes(0, 1))
    np.save(tmp_path / "X.npy", X)
    found = facts(capsys, XML, "--input", f"X={tmp_path}/X.npy", "--random", "0")
    assert found["inputs"]["X"]["random"] is False
    assert found["outputs"]["Y"]["shape"] == [2, 2, 6, 8]


@pytest.mark.parametrize("suffix", ["onnx", "xml"])
@pytest.mark.parametrize("chunk", ["1", "3"])
def test_a_stream_of_a_model(
    suffix: str, chunk: str, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Layers begin inside the model, whose input is cut along time; no sizes but those of a push are tried."""
    model = stack(["LSTM", "GRU"])
    for one, size in ((model.graph.input[0], I), (model.graph.output[0], H)):
        one.CopyFrom(helper.make_tensor_value_info(one.name, TensorProto.FLOAT, ["T", "N", size]))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    if suffix == "xml":
        write_model(read_model(model), tmp_path / "m.xml")
        path = tmp_path / "m.xml"
    (name,) = (info.name for info in load(path).inputs)
    long = np.load(files / "long.npy")
    given = ["--input", f"{name}={files}/long.npy"]
    stream = ["--stream", "--chunk", chunk, "--time-axis", "0"]
    found = outputs(capsys, tmp_path / "o.npz", path, *given, *stream)
    (output,) = load(path)({name: long}).values()
    (joined,) = found.values()
    np.testing.assert_allclose(joined, output, 1e-5, 1e-5)


def test_a_stream_of_a_model_that_is_called_step_by_step(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its states are fed back; an axis more than is declared is that of pushes."""
    steps = RNG.normal(size=(5, 1, 3, I)).astype(np.float32)
    np.save(tmp_path / "steps.npy", steps)
    h = RNG.normal(size=(1, 3, H)).astype(np.float32)
    np.save(tmp_path / "h.npy", h)
    model = load(files / "step.onnx")
    for more, initial in ([], {}), (["--input", f"h={tmp_path}/h.npy"], {"h": h}):
        stream = model.stream(initial=initial)
        expected = [stream.push(x=x) for x in steps]
        given = ["--input", f"x={tmp_path}/steps.npy", *more, "--stream"]
        found = outputs(capsys, tmp_path / "o.npz", files / "step.onnx", *given)
        Y = (
            np.stack([one["y"] for one in expected])
            if found["y"].ndim == 5
            else np.concatenate([one["y"] for one in expected])
        )
        same(found, {"y": Y, "hn": expected[-1]["hn"], "cn": expected[-1]["cn"]})


def test_a_stream_of_a_layer(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer = load(files / "gru.onnx").layers[0]
    given = ["--layer", "gru", "--input", f"X={files}/long.npy", "--stream", "--chunk", "2"]
    found = outputs(capsys, tmp_path / "o.npz", files / "gru.onnx", *given)
    same(found, dict(zip(("Y", "Y_h"), layer(np.load(files / "long.npy")), strict=True)), 1e-6)


def test_random_inputs_are_cut_along_time(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So many pushes of so many steps, or as many as --dim says."""
    stream = [files / "gru.onnx", "--layer", "gru", "--random", "0", "--stream", "--chunk", "2"]
    found = facts(capsys, *stream, "--pushes", "4")
    assert (found["inputs"]["X"]["shape"][0], found["outputs"]["Y"]["shape"][0]) == (8, 8)
    found = facts(capsys, *stream, "--dim", "seq_length=5")
    assert (found["inputs"]["X"]["shape"][0], found["outputs"]["Y"]["shape"][0]) == (5, 5)


def test_states_whose_sizes_nothing_tells(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = stepwise()
    for info in (*model.graph.input[1:], *model.graph.output[1:]):
        info.type.tensor_type.shape.dim[1].Clear()
    onnx.save(model, tmp_path / "m.onnx")
    arguments = ["run", str(tmp_path / "m.onnx"), "--stream"]
    np.save(tmp_path / "x.npy", np.ones((4, 1, 3, I), np.float32))
    assert main([*arguments, "--input", f"x={tmp_path}/x.npy"]) == 2
    told = capsys.readouterr().err
    assert "the sizes of the state 'h' are not declared" in told
    assert "expected --input h=FILE.npy for the first push, or --random SEED" in told
    found = facts(capsys, *arguments[1:], "--random", "0")
    assert found["inputs"]["h"]["max"] > 0
    assert found["outputs"]["hn"]["shape"] == [1, 3, H]


def test_times(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = facts(capsys, ONNX, "--random", "0", "--repeat", "5")["seconds"]
    assert list(found) == ["load", "first call", "call, least of 5", "call, median"]
    assert all(value > 0 for value in found.values())
    arguments = ["--layer", "gru", "--random", "0", "--stream", "--pushes", "4", "--repeat", "2"]
    found = facts(capsys, files / "gru.onnx", *arguments)["seconds"]
    assert list(found) == ["load", "first push", "push, least of 11", "push, median"]


@pytest.mark.skipif(not hasattr(__import__("os"), "openpty"), reason="pseudo-terminals")
def test_a_bar_shows_how_far_it_is(files: Path) -> None:
    status, text = in_terminal("run", str(files / "gru.onnx"), "--layer", "gru", "--random", "0", "--stream")
    assert status == 0
    assert "pushes" in text
    assert "10/10" in text
    last = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", text.rpartition("\x1b[2K")[2])
    assert last.startswith("Run  GRU 'gru'")


REJECTED: dict[str, tuple[list[str], str]] = {
    "inputs that are missing": ([ONNX], "no array for 'X', 'sequence_lens', 'initial_h'; expected --input"),
    "one that is missing": (
        [ONNX, "--input", "X={}/X.npy", "--input", "sequence_lens={}/sequence_lens.npy"],
        "no array for 'initial_h'",
    ),
    "an unknown name": (
        [ONNX, "--input", "sequence_len={}/X.npy"],
        "'sequence_len' is unknown; expected one of X, sequence_lens, initial_h; did you mean 'sequence_lens'?",
    ),
    "a name twice": ([ONNX, "--input", "{}/all.npz", "--input", "X={}/X.npy"], "run: --input: 'X' is given twice"),
    "an archive by a name": ([ONNX, "--input", "X={}/all.npz"], "all.npz alone, without a name: an .npz file"),
    "weights": (["lstm.pt", "--random", "0"], "ends in '.pt'; expected .onnx or .xml (pyrnnx convert makes"),
    "a folder": (["{}", "--random", "0"], "is a folder; expected a file that ends in .onnx or .xml"),
    "another shape": (
        [ONNX, "--random", "0", "--input", "X={}/long.npy"],
        "input 'X' has shape (7, 3, 4); expected [6, 2, 4]",
    ),
    "another dtype": (
        [ONNX, "--random", "0", "--input", "X={}/sequence_lens.npy"],
        "input 'X' has dtype int32; expected float32",
    ),
    "no such file": ([ONNX, "--input", "X=missing.npy"], "run: --input: 'missing.npy' cannot be read ([Errno 2]"),
    "no such archive": ([ONNX, "--input", "missing.npz"], "run: --input: 'missing.npz' cannot be read ([Errno 2]"),
    "objects": ([ONNX, "--input", "X={}/objects.npy"], "objects.npy' cannot be read (Object arrays cannot be loaded"),
    "objects in an archive": ([ONNX, "--input", "{}/objects.npz"], "cannot be read (Object arrays cannot be loaded"),
    "a broken file": ([ONNX, "--input", "X={}/broken.npy"], "broken.npy' cannot be read"),
    "a broken archive": ([ONNX, "--input", "{}/broken.npz"], "broken.npz' cannot be read"),
    "a text": ([ONNX, "--input", "X"], "run: --input: 'X'; expected NAME=FILE.npy, NAME=NUMBER or FILE.npz"),
    "no number": (
        ["{}/table.onnx", "--input", "factor=much"],
        "'factor' is 'much'; expected an .npy file, or a number",
    ),
    "a number for open sizes": (["{}/table.onnx", "--input", "rows=1"], "'rows' is '1'; expected an .npy file"),
    "a number beyond the type": ([ONNX, "--input", "sequence_lens=1e9"], "expected an .npy file, or a number of type"),
    "no seed": ([ONNX, "--random", "-1"], "run: --random is -1; expected an integer, 0 or above"),
    "no integer": ([ONNX, "--random", "x"], "run: --random: 'x' is no integer"),
    "a dimension": (
        ["{}/table.onnx", "--random", "0", "--dim", "C=3"],
        "run: dims has 'C'; expected symbolic dimensions of the inputs: B",
    ),
    "a dimension without a size": ([ONNX, "--random", "0", "--dim", "B"], "run: --dim: 'B'; expected NAME=SIZE"),
    "a dimension twice": ([ONNX, "--random", "0", "--dim", "B=1", "--dim", "B=2"], "run: --dim: 'B' is given twice"),
    "a size": ([ONNX, "--random", "0", "--dim", "B=-1"], "run: --dim: 'B' is -1; expected an integer, 0 or above"),
    "sizes without random inputs": (["{}/table.onnx", "--dim", "B=3"], "expected --random SEED, too"),
    "a layer": ([ONNX, "--layer", "small", "--random", "0"], "layers has no 'small'; expected one of 'small_rnn'"),
    "a place": ([ONNX, "--layer", "3", "--random", "0"], "layers has no 3"),
    "a layer of a layer": ([XML, "--layer", "0", "--random", "0"], "is a layer itself; expected a model"),
    "a layer's axes": (
        ["{}/gru.onnx", "--layer", "gru", "--input", "X={}/sequence_lens.npy"],
        "input 'X' has shape (2,); expected 3 axes",
    ),
    "a stream of two directions": ([ONNX, "--layer", "0", "--random", "0", "--stream"], "expected forward"),
    "a stream that keeps nothing": (
        ["{}/table.onnx", "--random", "0", "--stream"],
        "nothing is kept from call to call",
    ),
    "no chunk": ([ONNX, "--random", "0", "--stream", "--chunk", "0"], "run: --chunk is 0; expected an integer, 1"),
    "a chunk without a stream": ([ONNX, "--random", "0", "--chunk", "2"], "run: --chunk was given; it is of --stream"),
    "an axis without a stream": ([ONNX, "--random", "0", "--time-axis", "0"], "--time-axis was given; it is of"),
    "pushes without a stream": ([ONNX, "--random", "0", "--pushes", "2"], "--pushes was given; it is of --stream"),
    "no such axis": (
        ["{}/silent.onnx", "--input", "x0={}/long.npy", "--stream", "--time-axis", "9"],
        "run: --time-axis is 9; 'x0' has 3 axes",
    ),
    "another axis than the layer's": (
        ["{}/gru.onnx", "--layer", "gru", "--input", "X={}/long.npy", "--stream", "--time-axis", "1"],
        "run: --time-axis is 1; the model tells that time is axis 0 of 'X'",
    ),
    "no time": (
        ["{}/silent.onnx", "--input", "x0={}/long.npy", "--stream"],
        "the time axis of 'x0' is not known; expected --time-axis K",
    ),
    "an output file": ([ONNX, "--random", "0", "--output", "out.npy"], "expected the name of an .npz file"),
    "an output folder": ([ONNX, "--random", "0", "--output", "/nowhere/out.npz"], "'/nowhere/out.npz' cannot be"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, words = REJECTED[name]
    silent = files / "silent.onnx"
    if not silent.exists():
        model = stack(["GRU"])
        model.graph.node.insert(0, helper.make_node("Relu", ["x0"], ["r0"]))
        model.graph.node[1].input[0] = "r0"
        for axis in range(2):
            model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"d{axis}"
        model.graph.output[0].type.tensor_type.ClearField("shape")
        onnx.save(model, silent)
    assert main(["run", *(one.replace("{}", str(files)) for one in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.startswith("pyrnnx: ")
    assert captured.err.count("\n") == 1


def test_what_runs_with_no_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in ("X", "Y")]
    node = helper.make_node("Reshape", ["X", "s"], ["Y"])
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [7, 3])
    onnx.save(make_model(helper.make_graph([node], "g", value[:1], value[1:], [shape])), tmp_path / "m.onnx")
    assert main(["run", str(tmp_path / "m.onnx"), "--random", "0"]) == 2
    assert "does not run on random inputs of the sizes that it declares; --dim and --input" in capsys.readouterr().err
    assert facts(capsys, tmp_path / "m.onnx", "--random", "0", "--dim", "N=7")["outputs"]["Y"]["shape"] == [7, 3]


def test_sizes_that_a_layer_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model declares none."""
    case = next(one for one in quantized_models.CASES if one.name == "both")
    onnx.save(quantized_models.make_case(case)[0], tmp_path / "m.onnx")
    assert facts(capsys, tmp_path / "m.onnx", "--random", "0")["inputs"]["X"]["shape"] == [3, 3, case.I]


def test_summaries() -> None:
    array = np.array([1, np.nan, np.inf, -2], np.float32)
    assert summary(array) == {
        "dtype": "float32",
        "shape": [4],
        "min": -2.0,
        "mean": np.inf,
        "max": np.inf,
        "nan": 1,
    }
    assert summary(np.zeros((0, 2))) == {"dtype": "float64", "shape": [0, 2], "nan": 0}
    assert summary(np.array(["a"])) == {"dtype": "str32", "shape": [1]}
    assert summary(np.array([True, False]))["mean"] == 0.5
    assert summary([array]) == {"kind": "list", "length": 1}
    assert [seconds(value) for value in (1.5, 2e-3, 3.21e-6, 4e-9, 0.0)] == ["1.5 s", "2 ms", "3.21 us", "4 ns", "0 s"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_outputs_go_to_a_regular_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before the model is read, which here is not there."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe.npz").symlink_to("pipe")
    assert main(["run", "missing.onnx", "--output", str(tmp_path / "pipe.npz")]) == 2
    assert "cannot be written (it is no regular file" in capsys.readouterr().err
