"""`pyrnnx convert`: output and exit status; the written model runs and computes the same."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import verdicts
from command import pyrnnx
from keras_files import groups, layer_config, model_config, serialized, weights_file, write
from keras_weights import Case, random_weights
from openvino_irs import save
from rows import each_row
from two_layers import two_layers

from pyrnnx import Layer, compare, load
from pyrnnx.cli import main, verification
from pyrnnx.frontends.openvino import write_model

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = str(EXAMPLES / "small_rnn.onnx")


@pytest.fixture(scope="module")
def ragged(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "ragged.onnx"
    onnx.save(two_layers("LSTM", lengths=True), path)
    return str(path)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of weights: nn.GRU(3, 4, num_layers=2) under "enc.", nn.RNN(3, 4) under "out."."""
    safetensors = pytest.importorskip("safetensors.numpy")
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("weights") / "w.safetensors"
    shapes = {"enc.": [(12, 3), (12, 4)], "out.": [(4, 3)]}
    arrays: dict[str, Any] = {}
    for prefix, layers in shapes.items():
        for k, (rows, size) in enumerate(layers):
            for name, shape in {
                "weight_ih": (rows, size),
                "weight_hh": (rows, 4),
                "bias_ih": (rows,),
                "bias_hh": (rows,),
            }.items():
                arrays[f"{prefix}{name}_l{k}"] = rng.uniform(-0.5, 0.5, shape).astype("f4")
    safetensors.save_file(arrays, path)
    return str(path)


def converted(a: str, b: Path, *options: str) -> dict[str, Any]:
    done = pyrnnx("convert", a, str(b), *options, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["verified"] is True
    assert {name: os.path.getsize(name) for name in found["files"]} == found["files"]
    assert all(value < 1e-5 for value in found["differences"].values())
    assert done.stderr == "".join(f"pyrnnx: warning: convert: {text}\n" for text in found["warnings"])
    return found


def test_a_model_to_ir_and_back(ragged: str, tmp_path: Path) -> None:
    found = converted(ragged, tmp_path / "m.xml")
    assert list(found["files"]) == [str(tmp_path / "m.xml"), str(tmp_path / "m.bin")]
    assert found["warnings"] == [
        "OpenVINO's CPU plugin ignores sequence_lengths if a dimension of X is dynamic: fix the shapes"
    ]
    found = converted(str(tmp_path / "m.xml"), tmp_path / "m.onnx")
    assert list(found["differences"]) == ["Y", "Y_h"]
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)
    assert compare(ragged, tmp_path / "m.onnx").equal()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.bin", "m.onnx", "m.xml"]


def test_inputs_and_opset_of_a_layer(ragged: str, tmp_path: Path) -> None:
    converted(ragged, tmp_path / "l.onnx", "--layer", "first", "--opset", "14", "--optional-input", "sequence_lens")
    model = onnx.load(tmp_path / "l.onnx")
    assert [value.name for value in model.graph.input] == ["X", "sequence_lens"]
    assert [entry.version for entry in model.opset_import] == [14]


@each_row("suffix", [".onnx", ".xml"])
def test_a_layer_of_a_model(ragged: str, suffix: str, tmp_path: Path) -> None:
    write_model(load(ragged), tmp_path / "m.xml")
    for source, name in ((ragged, "second"), (str(tmp_path / "m.xml"), "-1")):
        converted(source, tmp_path / f"layer{suffix}", "--layer", name, "--force")
        (layer,) = load(tmp_path / f"layer{suffix}").layers.values()
        assert compare(load(source).layers["second"], layer).equal()


@each_row("suffix", [".onnx", ".xml"])
def test_weights_of_pytorch(weights: str, suffix: str, tmp_path: Path) -> None:
    """The one open dimension of the GRU is that of rows, which is not the first of X."""
    names = ["sequence_lens", "initial_h"]
    options = [word for name in names for word in ("--optional-input", name)]
    found = converted(weights, tmp_path / f"gru{suffix}", "--prefix", "enc", "--batch-first", *options)
    assert list(found["differences"]) == ["Y", "Y_h"]
    assert len(found["warnings"]) == (suffix == ".xml")
    assert [info.name for info in load(tmp_path / f"gru{suffix}").inputs] == ["X", *names]
    relu = converted(weights, tmp_path / f"rnn{suffix}", "--prefix", "out.", "--nonlinearity", "relu")
    assert (relu["what"], relu["warnings"]) == ("Stack 'out'", [])
    (layer,) = load(tmp_path / f"rnn{suffix}").layers.values()
    assert layer.op is not None
    assert layer.op.activations[0][0].name == "Relu"


def test_variables_become_inputs_and_outputs(tmp_path: Path) -> None:
    """First values that the model computes leave inputs that the model itself has not."""
    states = pytest.importorskip("openvino_states")
    model, _ = states.read_and_assign(initial=False)
    done = pyrnnx("convert", str(save(model, tmp_path)), str(tmp_path / "m.onnx"), "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verified"], found["different"]) == (1, False, False)
    (reason,) = found["not_decided"]
    assert reason.endswith(" is constant in 5 calls")  # it counts calls
    text = "its variables (count, state/h) are inputs and outputs now: pass the outputs to the next call"
    assert found["warnings"] == [text]
    model, _ = states.read_and_assign(initial=True)
    done = pyrnnx("convert", str(save(model, tmp_path)), str(tmp_path / "m.onnx"), "--force", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["verified"] is None
    assert "was written but not compared" in done.stderr


@pytest.mark.e2e
def test_a_layer_of_keras(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    case = Case("LSTM", 5, random_weights("LSTM", 3, 5), {"direction": "forward"})
    config = model_config(layer_config(case, "first"), serialized("Dense", {"name": "dense"}))
    path = write(tmp_path / "m.keras", config, weights_file(groups(case, "first", "layers/lstm")))
    found = converted(str(path), tmp_path / "m.onnx", "--layer", "first", "--optional-input", "initial_h")
    assert (found["what"], found["warnings"]) == ("Stack 'first'", [])
    (warning,) = converted(str(path), tmp_path / "all.onnx")["warnings"]
    assert warning == f"only Stack 'first' of {str(path)!r} is written, and no other layers that it may have"


def test_files_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "s.bin").write_text("mine", encoding="utf-8")
    done = pyrnnx("convert", SMALL, str(tmp_path / "s.xml"))
    assert done.returncode == 2
    assert "s.bin' exists already; --force replaces it" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.bin"]
    assert (tmp_path / "s.bin").read_text(encoding="utf-8") == "mine"
    done = pyrnnx("convert", SMALL, str(tmp_path / "s.xml"), "--force")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Read back and run  the same as the source\n" in done.stdout


def test_what_it_reads_is_never_replaced(tmp_path: Path) -> None:
    """Neither weights in another file of a model, nor those of a name that an IR needs, nor links to them."""
    model = onnx.load(SMALL)
    onnx.save(model, tmp_path / "e.onnx", save_as_external_data=True, location="e.bin", size_threshold=0)
    write_model(SMALL, tmp_path / "s.xml")
    os.link(tmp_path / "s.bin", tmp_path / "hard.onnx")
    (tmp_path / "soft.onnx").symlink_to("s.xml")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for source, target, words in (
        ("e.onnx", "e.xml", "'e.bin' is the same file as 'e.bin', which is read"),
        ("s.xml", "hard.onnx", "'hard.onnx' is the same file as 's.bin', which is read"),
        ("s.xml", "soft.onnx", "'soft.onnx' is the same file as 's.xml', which is read"),
    ):
        done = pyrnnx("convert", source, target, "--force", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert converted(str(tmp_path / "e.onnx"), tmp_path / "other.xml")


def test_what_is_not_the_same_is_told(tmp_path: Path) -> None:
    write_model(SMALL, tmp_path / "s.xml")
    data = bytearray((tmp_path / "s.bin").read_bytes())
    layer = load(SMALL).layers[0]
    assert isinstance(layer, Layer)
    first = data.index(layer.weights["W"].tobytes()[:16])
    data[first + 3] ^= 0x40  # the highest bit of the exponent
    (tmp_path / "s.bin").write_bytes(data)
    found = verification.verify(load(SMALL), tmp_path / "s.xml", {}, {})
    assert found["different"]
    assert max(found["differences"].values()) > 0.01


def test_a_constant_output_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(verdicts.dropped(0, 0), tmp_path / "zero.onnx")
    assert main(["convert", str(tmp_path / "zero.onnx"), str(tmp_path / "m.xml")]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "not decided whether the same as the source: output 'y' is constant in 5 calls" in text


def test_what_the_check_does_not_run_on_names_the_option(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> m (float[7] x, int64[3] sizes) => (y) { y = Reshape (x, sizes) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    np.save(tmp_path / "sizes.npy", np.array([7, 1, 1]))
    done = pyrnnx("convert", str(tmp_path / "m.onnx"), str(tmp_path / "m.xml"), "--json")
    assert done.returncode == 2
    assert "was written but not compared" in done.stderr
    facts = json.loads(done.stdout)
    assert facts["verified"] is None
    assert "pass others as inputs=... (" in facts["not_verified"]
    converted(str(tmp_path / "m.onnx"), tmp_path / "m.xml", "--force", "--input", f"sizes={tmp_path / 'sizes.npy'}")
