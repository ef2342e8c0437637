"""Layers read from XML: the specification's example, every spelling that is allowed."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_arrays, random_layer
from lxml import etree
from openvino_layers import H, I, N, T, assert_same, function, make_arrays, number_of_weights, shapes_of, write

from pyrnnx import OPENVINO_SEQUENCE, Direction, PyrnnxError, RecurrentOp, compare
from pyrnnx.frontends.openvino import OPERATIONS, BoundLayer, read_layer

each_type = pytest.mark.parametrize("kind", OPERATIONS)

# RNNSequence-5 of OpenVINO's specification; its "..." hold no attribute that is needed.
EXAMPLE = """
<layer id="7" name="rnn" type="RNNSequence">
    <data hidden_size="128"/>
    <input>
        <port id="0">
            <dim>1</dim>
            <dim>4</dim>
            <dim>16</dim>
        </port>
        <port id="1">
            <dim>1</dim>
            <dim>1</dim>
            <dim>128</dim>
        </port>
        <port id="2">
            <dim>1</dim>
        </port>
         <port id="3">
            <dim>1</dim>
            <dim>128</dim>
            <dim>16</dim>
        </port>
         <port id="4">
            <dim>1</dim>
            <dim>128</dim>
            <dim>128</dim>
        </port>
         <port id="5">
            <dim>1</dim>
            <dim>128</dim>
        </port>
    </input>
    <output>
        <port id="6">
            <dim>1</dim>
            <dim>1</dim>
            <dim>4</dim>
            <dim>128</dim>
        </port>
        <port id="7">
            <dim>1</dim>
            <dim>1</dim>
            <dim>128</dim>
        </port>
    </output>
</layer>
"""


# The specification's example


def test_example_of_the_specification() -> None:
    layer = read_layer(EXAMPLE)
    assert (layer.type, layer.name, layer.id) == ("RNNSequence", "rnn", "7")
    assert (layer.op.cell, layer.op.hidden_size, layer.op.direction) == ("RNN", 128, Direction.FORWARD)
    assert [str(one) for one in layer.op.activations[0]] == ["Tanh"]
    assert layer.op.clip is None
    assert [port.name for port in layer.inputs] == ["X", "H", "sequence_lengths", "W", "R", "B"]
    assert [port.name for port in layer.outputs] == ["Y", "Ho"]
    assert [port.id for port in (*layer.inputs, *layer.outputs)] == list(range(8))
    assert layer.inputs[0].shape == (1, 4, 16)
    assert layer.outputs[0].shape == (1, 1, 4, 128)
    assert {port.precision for port in layer.inputs} == {None}

    X, Hx, _, W, R, B = random_arrays(RecurrentOp("RNN", 128), (4, 1, 16), convention=OPENVINO_SEQUENCE).values()
    Y, Ho = layer(X, Hx, np.array([4]), W, R, B)
    assert (Y.shape, Ho.shape) == ((1, 1, 4, 128), (1, 1, 128))
    assert Y.dtype == Ho.dtype == np.float32
    h = Hx[0, 0].astype(np.float64)
    for t in range(4):
        h = np.tanh(W[0].astype(np.float64) @ X[0, t] + R[0].astype(np.float64) @ h + B[0])
        np.testing.assert_allclose(Y[0, 0, t], h, rtol=0, atol=1e-6)  # float32 sums of 144 terms of 0.02
    np.testing.assert_array_equal(Ho[0, 0], Y[0, 0, 3])
    assert_same(layer.bind(W, R, B)(X, Hx, [4]), (Y, Ho))


def test_example_as_the_text_prints_it() -> None:
    """Without its dots, and so without id and name."""
    layer = read_layer(EXAMPLE.replace('id="7" name="rnn" ', ""))
    assert (layer.name, layer.id, layer.label) == ("", "", "RNNSequence")
    assert layer.op == read_layer(EXAMPLE).op


# What may be given


def _path(text: str, folder: Path) -> Path:
    path = folder / "layer.xml"
    path.write_text(text, encoding="utf-8")
    return path


GIVEN: dict[str, Callable[[str, Path], Any]] = {
    "text": lambda text, folder: text,
    "text after a byte order mark": lambda text, folder: "\ufeff" + text,
    "text with a declaration": lambda text, folder: '<?xml version="1.0"?>' + text.lstrip(),
    "text with another encoding declared": lambda text, folder: (
        '<?xml version="1.0" encoding="UTF-16"?>' + text.lstrip()
    ),
    "text with comments": lambda text, folder: text.replace("<input>", "<!-- a --><input><!-- b -->"),
    "bytes": lambda text, folder: text.encode(),
    "bytes in UTF-16": lambda text, folder: text.strip().encode("utf-16"),
    "bytes with an encoding": lambda text, folder: (
        '<?xml version="1.0" encoding="ISO-8859-1"?>' + text.strip()
    ).encode("latin-1"),
    "bytearray": lambda text, folder: bytearray(text.encode()),
    "memoryview": lambda text, folder: memoryview(text.encode()),
    "path": _path,
    "path as text": lambda text, folder: str(_path(text, folder)),
    "element": lambda text, folder: etree.fromstring(text),
    "element inside a document": lambda text, folder: etree.fromstring(f"<net><layers>{text}</layers></net>")[0][0],
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_what_may_be_given(given: Callable[[str, Path], Any], tmp_path: Path) -> None:
    text = EXAMPLE.replace('name="rnn"', 'name="säule"')
    layer = read_layer(given(text, tmp_path))
    assert layer.name == "säule"
    assert layer == read_layer(text)


# Each operation


@each_type
@pytest.mark.parametrize("precision", ["", "FP32", "FP64", "FP16"])
def test_call_is_the_function(kind: str, precision: str) -> None:
    data: dict[str, Any] = {"clip": "0.5"}
    attributes: dict[str, Any] = {"clip": 0.5}
    if "Sequence" in kind:
        data["direction"] = attributes["direction"] = "bidirectional"
    if kind.startswith("GRU"):
        data["linear_before_reset"], attributes["linear_before_reset"] = "true", True
    layer = read_layer(write(kind, data, precision=precision))
    assert (layer.type, layer.operation) == (kind.partition("-")[0], OPERATIONS[kind])
    dtype = {"FP64": np.float64, "FP16": np.float16}.get(precision, np.float32)
    assert layer.dtype == (np.dtype(dtype).name if precision else None)
    arrays = make_arrays(layer, dtype)
    outputs = layer(*arrays)
    assert_same(outputs, function(kind, *arrays, **attributes))
    assert [y.shape for y in outputs] == [port.shape for port in layer.outputs]
    assert {y.dtype for y in outputs} == {np.dtype(dtype)}


@each_type
def test_bound_layer(kind: str) -> None:
    layer = read_layer(write(kind))
    arrays = make_arrays(layer)
    count = number_of_weights(kind)
    bound = layer.bind(*arrays[-count:])
    assert isinstance(bound, BoundLayer)
    assert (bound.name, bound.label, bound.op) == ("one", layer.label, layer.op)
    wanted = layer(*arrays)
    for seed in (0, 1, 0):
        others = make_arrays(layer, seed=seed)
        assert_same(bound(*others[:-count]), layer(*others[:-count], *arrays[-count:]))
    assert_same(pickle.loads(pickle.dumps(bound))(*arrays[:-count]), wanted)
    arrays[-count][...] = np.nan  # its weights are copies
    assert_same(bound(*arrays[:-count]), wanted)


def test_a_layer_can_be_a_key_and_is_shown_in_a_line() -> None:
    layer = read_layer(EXAMPLE)
    assert {layer: 1}[pickle.loads(pickle.dumps(layer))] == 1
    assert len(set(OPERATIONS.values())) == len(OPERATIONS)
    assert repr(layer) == (
        "<IRLayer RNNSequence 'rnn' (id 7): forward, input_size=16, hidden_size=128, any dtype, OpenVINO sequence>"
    )


@each_type
def test_read_layer_is_pickled(kind: str) -> None:
    layer = read_layer(write(kind))
    again = pickle.loads(pickle.dumps(layer))
    assert (again.op, again.inputs, again.outputs, again.label) == (layer.op, layer.inputs, layer.outputs, layer.label)
    arrays = make_arrays(layer)
    assert_same(again(*arrays), layer(*arrays))


# Attributes in every allowed spelling

SPELLINGS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {  # type, <data>, the same as arguments
    "defaults": ("LSTMSequence", {}, {}),
    "empty lists": ("GRUSequence", {"activations": "", "activations_alpha": "", "activations_beta": " "}, {}),
    "blanks": (
        "LSTMSequence",
        {"hidden_size": " 6 ", "direction": " reverse\n", "activations": " tanh ,relu,  sigmoid ", "clip": " 0.5 "},
        {"direction": "reverse", "activations": ["tanh", "relu", "sigmoid"], "clip": 0.5},
    ),
    "any case": (
        "GRUSequence",
        {"direction": "ReVerse", "activations": "SIGMOID,ReLU", "linear_before_reset": "True"},
        {"direction": "reverse", "activations": ["sigmoid", "relu"], "linear_before_reset": True},
    ),
    "type in another case": ("gruSEQUENCE", {}, {}),
    "linear_before_reset false": ("GRUCell", {"linear_before_reset": "false"}, {}),
    "linear_before_reset 0": ("GRUCell", {"linear_before_reset": "0"}, {}),
    "linear_before_reset 1": ("GRUCell", {"linear_before_reset": "1"}, {"linear_before_reset": True}),
    "clip 0": ("RNNSequence", {"clip": "0"}, {}),
    "clip 0.0": ("RNNSequence", {"clip": "0.000000"}, {}),
    "clip inf": ("RNNSequence", {"clip": "inf"}, {}),
    "clip as it prints": ("RNNCell", {"clip": "0.40000000596046448"}, {"clip": float(np.float32(0.4))}),
    "clip with an exponent": ("RNNCell", {"clip": "4e-1"}, {"clip": 0.4}),
    "parameters": (
        "LSTMCell",
        {"activations": "hardsigmoid,elu,tanh", "activations_alpha": "0.25, 0.5", "activations_beta": "0.375"},
        {"activations": ["hardsigmoid", "elu", "tanh"], "activations_alpha": [0.25, 0.5], "activations_beta": [0.375]},
    ),
}


@pytest.mark.parametrize(("kind", "data", "attributes"), SPELLINGS.values(), ids=SPELLINGS)
def test_spellings_of_attributes(kind: str, data: dict[str, str], attributes: dict[str, Any]) -> None:
    (canonical,) = {row.type for row in OPERATIONS.values() if row.type.lower() == kind.lower()}
    shapes = shapes_of(canonical, 1, bool(attributes.get("linear_before_reset")))
    layer = read_layer(write(kind, data, shapes=shapes))
    assert layer.type == canonical
    arrays = make_arrays(layer)
    assert_same(layer(*arrays), function(canonical, *arrays, **attributes))


@pytest.mark.parametrize("version", ["opset5", "opset6", "opset13", "opset16"])
def test_versions(version: str) -> None:
    attributes = f'id="3" name="one" version="{version}"'
    assert read_layer(write("GRUSequence", attributes=attributes)).type == "GRUSequence"


@pytest.mark.parametrize(("kind", "version"), [("RNNCell", "opset1"), ("GRUCell", "opset3"), ("LSTMCell", "opset4")])
def test_first_versions_of_cells(kind: str, version: str) -> None:
    assert read_layer(write(kind, attributes=f'version="{version}"')).type == kind


@pytest.mark.parametrize("opset", range(1, 17))
@pytest.mark.parametrize("kind", ["LSTMCell", "LSTMSequence"])
def test_versions_of_lstm(kind: str, opset: int) -> None:
    row = read_layer(write(kind, attributes=f'version="opset{opset}"')).operation
    newer = OPERATIONS["LSTMCell-4" if kind == "LSTMCell" else "LSTMSequence-5"]
    assert row == (newer if opset >= newer.first_opset else OPERATIONS[f"{kind}-1"])


# Ports


@each_type
def test_port_ids_are_resolved_by_number(kind: str) -> None:
    """Neither contiguous nor in the order of the text."""
    plain, text = read_layer(write(kind)), write(kind, ids=lambda k: 100 - 7 * (9 - k))
    element = etree.fromstring(text)
    for parent in element.findall("input") + element.findall("output"):
        parent[:] = reversed(parent)
    layer = read_layer(element)
    count = len(plain.inputs)
    assert [port.id for port in layer.inputs] == [100 - 7 * (9 - k) for k in range(count)]
    assert [port.shape for port in layer.inputs] == [port.shape for port in plain.inputs]
    arrays = make_arrays(plain)
    assert_same(layer(*arrays), plain(*arrays))


@each_type
def test_dynamic_dimensions(kind: str) -> None:
    count = number_of_weights(kind)
    inputs, outputs = shapes_of(kind)
    D_inputs = [tuple(-1 if size in (N, T) else size for size in shape) for shape in inputs[:-count]] + inputs[-count:]
    D_outputs = [tuple(-1 if size in (N, T) else size for size in shape) for shape in outputs]
    layer = read_layer(write(kind, shapes=(D_inputs, D_outputs)))
    assert layer.inputs[0].shape == ((None, None, I) if "Sequence" in kind else (None, I))
    assert layer.sizes == {"I": I}
    arrays = make_arrays(read_layer(write(kind)))
    wanted = function(kind, *arrays)
    assert_same(layer(*arrays), wanted)
    fewer = [a if k >= len(arrays) - count else a[:2] for k, a in enumerate(arrays)]
    assert_same(layer(*fewer), tuple(y[:2] for y in wanted))


@each_type
def test_ports_without_dimensions_are_of_any_rank(kind: str) -> None:
    """As OpenVINO writes them: no input of a recurrent operation is a scalar."""
    layer = read_layer(re.sub(r"<dim>\d+</dim>", "", write(kind)))
    plain = read_layer(write(kind))
    assert [port.shape for port in layer.inputs] == [(None,) * len(port.shape) for port in plain.inputs]
    assert layer.sizes == {}
    arrays = make_arrays(plain)
    assert_same(layer(*arrays), plain(*arrays))


def test_everything_dynamic() -> None:
    inputs, outputs = shapes_of("GRUSequence")
    open_shapes = [[tuple(-1 for _ in shape) for shape in shapes] for shapes in (inputs, outputs)]
    layer = read_layer(write("GRUSequence", shapes=(open_shapes[0], open_shapes[1])))
    assert all(set(port.shape) == {None} for port in layer.inputs)
    arrays = make_arrays(read_layer(write("GRUSequence")))
    assert_same(layer(*arrays), function("GRUSequence", *arrays))


def test_precision_of_ports() -> None:
    layer = read_layer(write("LSTMSequence", precision="BF16"))
    assert layer.dtype == "bfloat16"
    assert [port.precision for port in layer.inputs] == ["BF16", "BF16", "BF16", "I32", "BF16", "BF16", "BF16"]
    assert str(layer.inputs[3]) == "port 3 (sequence_lengths)"
    with pytest.raises(PyrnnxError, match=r"port 0 \(X\) was given dtype float32; the layer declares BF16"):
        layer(*make_arrays(layer))


@pytest.mark.parametrize(("said", "dtype"), [("I8", "int8"), ("I64", "int64"), ("U8", "uint8"), ("U64", "uint64")])
def test_precision_of_lengths(said: str, dtype: str) -> None:
    layer = read_layer(write("RNNSequence", precision="FP32").replace('"I32"', f'"{said}"'))
    arrays = make_arrays(layer)
    with pytest.raises(
        PyrnnxError, match=rf"port 2 \(sequence_lengths\) was given dtype int32; the layer declares {said}"
    ):
        layer(*arrays)
    wanted = function("RNNSequence", *arrays)
    arrays[2] = arrays[2].astype(dtype)
    assert_same(layer(*arrays), wanted)
    assert_same(layer(*arrays[:2], arrays[2].tolist(), *arrays[3:]), wanted)  # Python's integers have no dtype


# Version 1 beside ONNX


def test_version_1_and_onnx_are_the_same_with_peepholes() -> None:
    """compare() takes the ONNX layer's P, in the order i, o, f, to the order f, i, o."""
    onnx_layer = random_layer(RecurrentOp("LSTM", H, input_forget=True), I, peepholes=True)
    layer = read_layer(write("LSTMSequence-1", {"input_forget": "true"}))
    comparison = compare(onnx_layer, layer)
    assert not comparison.operators
    assert comparison.largest_difference <= 1e-6  # the biases are summed before they are added, in float32
    assert "f, i, o" in str(comparison)
    with pytest.raises(PyrnnxError, match=r"P \(peepholes\) cannot be expressed"):
        compare(onnx_layer, read_layer(write("LSTMSequence-5")))


def test_version_1_without_peepholes_or_bias() -> None:
    for kind, absent in (("LSTMSequence-1", 1), ("LSTMCell-1", 1), ("LSTMCell-1", 2)):
        inputs, outputs = shapes_of(kind)
        layer = read_layer(write(kind, shapes=(inputs[:-absent], outputs)))
        full = read_layer(write(kind))
        arrays = make_arrays(full)
        zero = [np.zeros_like(a) if k >= len(arrays) - absent else a for k, a in enumerate(arrays)]
        assert_same(layer(*arrays[:-absent]), full(*zero))
        with pytest.raises(PyrnnxError, match=f"expected {len(arrays) - absent}: X, H, C"):
            layer(*arrays)
