"""Layers as OpenVINO itself writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_arrays
from lxml import etree
from openvino_layers import DEFAULTS, H, I, N, assert_same, function, make_arrays, shapes_of

from pyrnnx import OPENVINO_CELL, PyrnnxError, RecurrentOp
from pyrnnx.frontends.openvino import OPERATIONS, IRLayer, read_layer, read_model


def saved(kind: str, folder: Path, **attributes: Any) -> tuple[str, Any]:
    """The `<layer>` that openvino.save_model writes for an operation, and the compiled model."""
    openvino = pytest.importorskip("openvino")
    operations = pytest.importorskip("openvino.opset13")
    cell, sequence = kind.removesuffix("Sequence").removesuffix("Cell"), kind.endswith("Sequence")
    D = 2 if attributes.get("direction") == "bidirectional" else 1
    inputs, _ = shapes_of(kind, D, bool(attributes.get("linear_before_reset")))
    types: list[Any] = [np.float32] * len(inputs)
    attributes = {"hidden_size": H, "activations": DEFAULTS[cell], **attributes}
    if sequence:
        types[-4] = np.int32
    else:
        attributes = {"activations_alpha": [], "activations_beta": [], **attributes}
    parameters = [operations.parameter(list(shape), dtype) for shape, dtype in zip(inputs, types, strict=True)]
    node = getattr(operations, f"{cell.lower()}_{'sequence' if sequence else 'cell'}")(*parameters, **attributes)
    node.set_friendly_name("the layer")
    model = openvino.Model([operations.result(output) for output in node.outputs()], parameters, "one")
    openvino.save_model(model, folder / "model.xml")
    return (folder / "model.xml").read_text(), openvino.Core().compile_model(
        model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )


WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    "RNNSequence": ("RNNSequence", {"direction": "reverse", "activations": ["relu"]}),
    "GRUSequence": ("GRUSequence", {"direction": "bidirectional", "clip": 0.4}),
    "GRUSequence linear_before_reset": ("GRUSequence", {"direction": "reverse", "linear_before_reset": True}),
    "LSTMSequence": ("LSTMSequence", {"direction": "bidirectional"}),
    "LSTMSequence clip": ("LSTMSequence", {"direction": "forward", "clip": float("inf")}),
    "RNNCell": ("RNNCell", {"clip": 0.4}),
    "GRUCell": ("GRUCell", {"activations": ["sigmoid", "relu"]}),
    "GRUCell linear_before_reset": ("GRUCell", {"linear_before_reset": True}),
    "LSTMCell": ("LSTMCell", {"clip": 0.4}),
}


@pytest.mark.parametrize(("kind", "attributes"), WRITTEN.values(), ids=WRITTEN)
def test_layers_as_openvino_writes_them(kind: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    text, compiled = saved(kind, tmp_path, **attributes)
    (element,) = (one for one in etree.fromstring(text.encode()).iter("layer") if one.get("type") == kind)
    layer = read_layer(element)
    assert (layer.type, layer.name, layer.dtype) == (kind, "the layer", "float32")
    arrays = make_arrays(layer)
    results = compiled(arrays)
    outputs = layer(*arrays)
    assert len(outputs) == len(compiled.outputs)
    for k, y in enumerate(outputs):
        np.testing.assert_allclose(y, results[k], rtol=0, atol=5e-6)  # float32 on both sides, over 5 steps
    assert_same(read_layer(etree.tostring(element))(*arrays), outputs)


def test_openvino_rejects_the_attributes_of_the_specifications_own_example(tmp_path: Path) -> None:
    """`<data hidden_size="..."/>` alone: an error there, the specification's defaults here."""
    text, _ = saved("RNNSequence", tmp_path, direction="forward")
    element = etree.fromstring(text.encode())
    (layer,) = (one for one in element.iter("layer") if one.get("type") == "RNNSequence")
    (data,) = layer.findall("data")
    for key in [key for key in data.attrib if key != "hidden_size"]:
        del data.attrib[key]
    openvino = pytest.importorskip("openvino")
    model = openvino.Core().read_model(etree.tostring(element), b"")
    with pytest.raises(RuntimeError):
        openvino.Core().compile_model(model, "CPU")
    read = read_layer(layer)
    arrays = make_arrays(read)
    assert_same(read(*arrays), function("RNNSequence", *arrays))


# Version 1 of LSTMCell, which OpenVINO still writes and runs


def saved_lstm_cell_1(folder: Path) -> tuple[str, list[Any]]:
    """The net that openvino.save_model writes, and arrays for it."""
    openvino, operations = pytest.importorskip("openvino"), pytest.importorskip("openvino.opset1")
    inputs, _ = shapes_of("LSTMCell-4")
    parameters = [operations.parameter(list(shape), np.float32) for shape in inputs]
    cell = operations.lstm_cell(
        *parameters, H, activations=DEFAULTS["LSTM"], activations_alpha=[], activations_beta=[], clip=0.4
    )
    model = openvino.Model([operations.result(output) for output in cell.outputs()], parameters, "one")
    openvino.save_model(model, folder / "model.xml", compress_to_fp16=False)
    arrays = random_arrays(RecurrentOp("LSTM", H), (1, N, I), convention=OPENVINO_CELL)
    return (folder / "model.xml").read_text(), [*arrays.values()]


def run_there(text: str, folder: Path, arrays: list[Any]) -> list[Any]:
    openvino = pytest.importorskip("openvino")
    (folder / "changed.xml").write_text(text)
    model = openvino.Core().read_model(folder / "changed.xml", folder / "model.bin")
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(arrays)
    return [np.array(results[k]) for k in range(len(compiled.outputs))]


def element_of(text: str) -> Any:
    (element,) = (one for one in etree.fromstring(text.encode()).iter("layer") if one.get("type") == "LSTMCell")
    return element


def test_lstm_cell_1_as_openvino_writes_it(tmp_path: Path) -> None:
    """With input_forget and weights_format; the port of P is left out."""
    text, arrays = saved_lstm_cell_1(tmp_path)
    layer = read_layer(element_of(text))
    assert layer.operation is OPERATIONS["LSTMCell-1"]
    assert [port.name for port in layer.inputs] == ["X", "H", "C", "W", "R", "B"]
    for ours, theirs in zip(layer(*arrays), run_there(text, tmp_path, arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)  # float32 on both sides, one step
    assert_same(layer(*arrays), function("LSTMCell-1", *arrays, clip=layer.op.clip))


@pytest.mark.parametrize(
    "change", [('input_forget="false"', 'input_forget="true"'), ('weights_format="fico"', 'weights_format="ifco"')]
)
def test_there_attributes_of_lstm_cell_1_are_ignored(change: tuple[str, str], tmp_path: Path) -> None:
    """It reads them and computes the same; here input_forget is honoured, and another order of gates an error."""
    text, arrays = saved_lstm_cell_1(tmp_path)
    assert change[0] in text
    changed = text.replace(*change)
    assert_same(tuple(run_there(changed, tmp_path, arrays)), tuple(run_there(text, tmp_path, arrays)))
    if "ifco" in change[1]:
        with pytest.raises(PyrnnxError, match="weights_format is 'ifco'; expected 'fico'"):
            read_layer(element_of(changed))
    else:
        plain, coupled = (read_layer(element_of(one))(*arrays)[0] for one in (text, changed))
        assert np.abs(plain - coupled).max() > 0.01


def test_lstm_sequence_1_is_no_operation_of_openvino(tmp_path: Path) -> None:
    text, _ = saved("LSTMSequence", tmp_path, direction="forward")
    openvino = pytest.importorskip("openvino")
    with pytest.raises(RuntimeError, match="doesn't contain the operation with type: LSTMSequence"):
        openvino.Core().read_model(text.replace('version="opset5"', 'version="opset1"').encode(), b"")


def test_dynamic_rank_as_openvino_writes_it(tmp_path: Path) -> None:
    """A port without a single <dim>."""
    openvino, operations = pytest.importorskip("openvino"), pytest.importorskip("openvino.opset13")
    (_, *others), _ = shapes_of("RNNSequence")
    parameters = [operations.parameter(openvino.PartialShape.dynamic(), np.float32)]
    parameters += [operations.parameter(list(one), np.int32 if k == 1 else np.float32) for k, one in enumerate(others)]
    node = operations.rnn_sequence(*parameters, H, "forward", DEFAULTS["RNN"])
    model = openvino.Model([operations.result(output) for output in node.outputs()], parameters, "one")
    openvino.save_model(model, tmp_path / "model.xml")
    (layer,) = read_model(tmp_path / "model.xml").layers.values()
    assert isinstance(layer, IRLayer)
    assert layer.inputs[0].shape == (None, None, None)
    assert read_model(tmp_path / "model.xml").inputs[0].shape is None
