"""A model in pyrnnx and in other runtimes: agreement, distance to the oracle, and crashes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import quantized_models
from hidden_layers import loop, scan, unrolled
from layers import random_layer
from onnx_models import branches
from rows import each_row
from two_layers import two_layers

from pyrnnx import OPENVINO_SEQUENCE, ArgumentError, Direction, RecurrentOp, load
from pyrnnx.frontends.onnx import write_model as write_onnx
from pyrnnx.frontends.openvino import write_layer, write_model
from pyrnnx.testing.models import Judged, LayerCheck, check_model, checked
from pyrnnx.testing.models.calls import timed_call
from pyrnnx.testing.models.layer_runs import layer_runs
from pyrnnx.testing.runtimes.models import MODEL_RUNTIMES

EXAMPLES = Path(__file__).parents[3] / "examples"
BOTH = ["ONNX Runtime", "OpenVINO"]

pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")


def saved(folder: Path, **options: Any) -> Path:
    path = folder / "model.onnx"
    onnx.save(two_layers(**options), path)
    return path


@pytest.mark.e2e
def test_all_agree(tmp_path: Path) -> None:
    path = saved(tmp_path, cell="LSTM", lengths=True, static=True)
    found = check_model(path, dims={}, seed=2)
    assert [one.name for one in found.runtimes] == BOTH
    assert [one.verdict for one in found.runtimes] == ["agrees", "agrees"]
    assert found.input_shapes == {"X": (6, 3, 4), "lens": (3,)}
    assert not found.failed
    for layer in found.layers:
        assert list(layer.judged) == ["pyrnnx", *BOTH]
        assert all(one.right and one.largest < 1e-5 for one in layer.judged.values())
        assert list(layer.judged["ONNX Runtime"].differences) == ["Y", "Y_h", "Y_c"]
    assert list(found.layers[0].judged["pyrnnx"].differences) == ["Y"]  # what the node gives in the model
    json.dumps(found.to_dict())


@pytest.mark.e2e
@each_row("make", [loop, unrolled, scan])
def test_recognised_layers_are_judged(make: Callable[[str], onnx.ModelProto], tmp_path: Path) -> None:
    """Their X and outputs may have names that the file does not have."""
    onnx.save(make("GRU"), tmp_path / "hidden.onnx")
    (layer,) = check_model(tmp_path / "hidden.onnx", ["onnxruntime"]).layers
    assert not layer.problem
    assert list(layer.judged) == ["pyrnnx", "ONNX Runtime"]
    assert all(judged.right for judged in layer.judged.values())


@pytest.mark.e2e
def test_a_runtime_that_aborts(tmp_path: Path) -> None:
    """ONNX Runtime's GRU does without time steps."""
    write_onnx(random_layer(RecurrentOp("GRU", 5), 4), tmp_path / "model.onnx")
    found = check_model(tmp_path / "model.onnx", ["onnxruntime"], {"X": np.ones((0, 3, 4), "f4")})
    (runtime,) = found.runtimes
    assert runtime.outputs.status == "crashed"
    assert runtime.verdict.startswith("crashed: ")
    assert found.failed
    assert all(layer.judged["pyrnnx"].right for layer in found.layers)


@pytest.mark.e2e
def test_an_ir(tmp_path: Path) -> None:
    write_model(load(saved(tmp_path, cell="GRU")), tmp_path / "model.xml")
    found = check_model(tmp_path / "model.xml")
    assert [one.verdict for one in found.runtimes] == ["agrees", "agrees"]
    assert all(one.right for layer in found.layers for one in layer.judged.values())


@pytest.mark.e2e
def test_a_layer(tmp_path: Path) -> None:
    layer = random_layer(RecurrentOp("LSTM", 5, Direction.BIDIRECTIONAL), 4, convention=OPENVINO_SEQUENCE)
    (tmp_path / "layer.xml").write_text(write_layer(layer, id=1))
    found = check_model(tmp_path / "layer.xml", inputs={"X": np.ones((3, 2, 4), "f4")})
    assert found.model.startswith("LSTMSequence")
    assert [one.verdict for one in found.runtimes] == ["agrees", "agrees"]
    assert next(iter(found.input_shapes.values())) == (2, 3, 4)
    assert all(one.right for layer in found.layers for one in layer.judged.values())
    with pytest.raises(ArgumentError, match=r"check: dims is set for .*, a single layer; expected a whole model"):
        check_model(tmp_path / "layer.xml", dims={"T": 3})


def test_given_inputs(tmp_path: Path) -> None:
    path, X = saved(tmp_path, cell="RNN"), np.ones((2, 3, 4), "f4")
    assert check_model(path, [], {"X": X}).input_shapes == {"X": (2, 3, 4)}
    for inputs in ({"x": X}, {"X": X[:, :, :3]}):
        with pytest.raises(ArgumentError, match="check: "):
            check_model(path, ["onnxruntime"], inputs)


def test_runtimes_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    path = EXAMPLES / "small_rnn.onnx"
    with pytest.raises(ArgumentError, match="against has 'torch'; expected names out of onnxruntime, openvino"):
        check_model(path, ["torch"])
    monkeypatch.setattr(type(MODEL_RUNTIMES["openvino"]), "installed", lambda self: False)
    with pytest.raises(ArgumentError, match="openvino is not installed; `python -m pip install openvino` adds it"):
        check_model(path, ["openvino"])
    found = check_model(path)
    assert [(one.name, one.verdict) for one in found.runtimes] == [("ONNX Runtime", "agrees")]
    assert all(judged.right for layer in found.layers for judged in layer.judged.values())


def test_what_layers_took_and_gave(tmp_path: Path) -> None:
    model = load(saved(tmp_path, cell="LSTM", lengths=True))
    X, lens = np.random.default_rng(0).normal(size=(6, 3, 4)).astype("f4"), np.array([6, 1, 4], "i4")
    first, second = layer_runs(model, {"X": X, "lens": lens})
    assert first.arrays is not None
    assert second.arrays is not None
    assert first.outputs is not None
    np.testing.assert_array_equal(first.arrays["X"], X)
    np.testing.assert_array_equal(second.arrays["X"], first.outputs["Y"][:, 0])
    np.testing.assert_array_equal(second.arrays["sequence_lens"], lens)


@pytest.mark.e2e
def test_layers_in_bodies_run_alone(tmp_path: Path) -> None:
    proto, inputs = branches()
    onnx.save(proto, tmp_path / "model.onnx")
    found = check_model(tmp_path / "model.onnx", ["onnxruntime"], inputs)
    assert not found.failed
    alone = {layer.name: layer.alone for layer in found.layers}
    assert [name for name in alone if not alone[name]] == ["own", "V"]
    assert all(list(layer.judged) == ["pyrnnx", "ONNX Runtime"] for layer in found.layers)
    assert all(judged.right for layer in found.layers for judged in layer.judged.values())


@pytest.mark.e2e
def test_a_quantized_model(tmp_path: Path) -> None:
    """Codes of 7 bits, which ONNX Runtime multiplies exactly on any processor."""
    case = dataclasses.replace(quantized_models.CASES[6], dtype="int8")
    proto, inputs = quantized_models.make_case(case)
    onnx.save(proto, tmp_path / "model.onnx")
    inputs["sequence_lens"] = np.array([7, 0, 3, 7, 1], np.int32)
    for row, length in enumerate(inputs["sequence_lens"]):
        inputs["X"][length:, row] = 0  # has a part in ONNX Runtime's range of X
    found = check_model(tmp_path / "model.onnx", ["onnxruntime"], inputs)
    (layer,) = found.layers
    assert (found.failed, found.tolerance) == (False, "0.02")
    assert list(layer.judged["pyrnnx"].differences) == ["Y", "Y_h", "Y_c"]
    assert all(judged.largest < 2e-3 for judged in layer.judged.values())


def test_sizes_that_are_guessed(tmp_path: Path) -> None:
    """A call that is timed has many steps of one row, unless a model does not run on them."""
    model = load(saved(tmp_path, cell="RNN", lengths=True))
    names = {size for info in model.inputs for size in info.shape or () if isinstance(size, str)}
    inputs, guessed = timed_call(model, None, 0, {}, "check")
    assert (inputs["X"].shape, guessed) == ((50, 1, 4), {"T": 50, "N": 1})
    assert names == {"T", "N"}
    assert timed_call(model, None, 0, {"T": 2, "N": 3}, "check")[1] == {}
    inputs, guessed = timed_call(model, {"X": np.ones((2, 3, 4), "f4")}, 0, {}, "check")
    assert (inputs["lens"].shape, guessed) == ((3,), {})
    assert check_model(tmp_path / "model.onnx", []).guessed == {"T": 3, "N": 3}


R, W, N = Judged("agrees", 0.0), Judged("differs", 1.0, "Y"), Judged("refuses", detail="no")
VERDICTS = {
    "agrees": (R, [(R, R)], "agrees"),
    "a layer alone differs": (R, [(R, R), (R, W)], "agrees, but alone its layer '1', Y is away from the oracle"),
    "it differs": (W, [(R, R), (R, W)], "differs: the oracle agrees with pyrnnx (layer '1', Y)"),
    "pyrnnx differs": (W, [(W, R)], "differs: the oracle agrees with it (layer '0', Y)"),
    "both differ": (
        W,
        [(W, R), (R, W)],
        "differs: the oracle agrees with neither (layer '1', Y, and of pyrnnx layer '0', Y)",
    ),
    "no layer differs": (
        W,
        [(R, R)],
        "differs, but on random inputs each recurrent layer alone agrees with the oracle",
    ),
    "no layers": (W, [], "differs; none of its layers can be compared with the oracle"),
    "refused": (N, [(R, N)], "refuses: no"),
}


@each_row("name", VERDICTS)
def test_verdicts(name: str) -> None:
    judged, pairs, expected = VERDICTS[name]
    layers = [LayerCheck(str(place), "", {"pyrnnx": ours, "it": theirs}) for place, (ours, theirs) in enumerate(pairs)]
    assert checked._verdict("it", judged, layers) == expected
