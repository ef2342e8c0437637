"""`pyrnnx run --stream`: the arrays equal those of pushes in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_streams import H, I, stack, stepwise
from run_files import RNG, facts, make_files, outputs, same

from pyrnnx import load
from pyrnnx.cli import main
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import write_model


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("files"))


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


def test_random_inputs_are_cut_along_time(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = [files / "gru.onnx", "--layer", "gru", "--seed", "0", "--stream", "--chunk", "2"]
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
    assert "expected --input h=FILE.npy for the first push, or --seed SEED" in told
    found = facts(capsys, *arguments[1:], "--seed", "0")
    assert found["inputs"]["h"]["max"] > 0
    assert found["outputs"]["hn"]["shape"] == [1, 3, H]
