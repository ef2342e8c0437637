"""Layers read from XML: the specification's example, and every allowed spelling."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from openvino_layers import I, N, T, assert_same, function, make_arrays, number_of_weights, shapes_of, write
from rows import each_row

from pyrnnx import RecurrentOp
from pyrnnx.frontends.openvino import OPERATIONS, BoundLayer, read_layer

each_type = each_row("kind", OPERATIONS)

# RNNSequence-5 of OpenVINO's specification; its "..." hold no attribute that is needed.
PORTS = ((1, 4, 16), (1, 1, 128), (1,), (1, 128, 16), (1, 128, 128), (1, 128), (1, 1, 4, 128), (1, 1, 128))
INPUTS = [
    f'<port id="{k}">' + "".join(f"<dim>{size}</dim>" for size in port) + "</port>" for k, port in enumerate(PORTS)
]
EXAMPLE = f"""
<layer id="7" name="rnn" type="RNNSequence">
    <data hidden_size="128"/><input>{"".join(INPUTS[:6])}</input><output>{"".join(INPUTS[6:])}</output>
</layer>
"""


def test_example_of_the_specification() -> None:
    layer = read_layer(EXAMPLE)
    assert (layer.type, layer.name, layer.id) == ("RNNSequence", "rnn", "7")
    assert layer.op == RecurrentOp("RNN", 128)
    assert [port.name for port in (*layer.inputs, *layer.outputs)] == ["X", "H", "sequence_lengths", *"WRB", "Y", "Ho"]
    assert [port.id for port in (*layer.inputs, *layer.outputs)] == list(range(8))
    assert (layer.inputs[0].shape, layer.outputs[0].shape) == ((1, 4, 16), (1, 1, 4, 128))
    assert {port.precision for port in layer.inputs} == {None}
    assert {layer: 1}[pickle.loads(pickle.dumps(layer))] == 1
    assert repr(layer) == (
        "<IRLayer RNNSequence 'rnn' (id 7): forward, input_size=16, hidden_size=128, any dtype, OpenVINO sequence>"
    )
    assert read_layer(EXAMPLE.replace('id="7" name="rnn" ', "")).label == "RNNSequence"


def _path(text: str, folder: Path) -> Path:
    path = folder / "layer.xml"
    path.write_text(text, encoding="utf-8")
    return path


def _declared(text: str, encoding: str) -> str:
    return f'<?xml version="1.0" encoding="{encoding}"?>{text.strip()}'


GIVEN: dict[str, Callable[[str, Path], Any]] = {
    "text": lambda text, folder: text,
    "text after a byte order mark": lambda text, folder: "\ufeff" + text,
    "text with another encoding declared": lambda text, folder: _declared(text, "UTF-16"),
    "text with comments": lambda text, folder: text.replace("<input>", "<!-- a --><input><!-- b -->"),
    "bytes": lambda text, folder: text.encode(),
    "bytes in UTF-16": lambda text, folder: text.strip().encode("utf-16"),
    "bytes with an encoding": lambda text, folder: _declared(text, "ISO-8859-1").encode("latin-1"),
    "bytearray": lambda text, folder: bytearray(text.encode()),
    "memoryview": lambda text, folder: memoryview(text.encode()),
    "path": _path,
    "path as text": lambda text, folder: str(_path(text, folder)),
    "element": lambda text, folder: etree.fromstring(text),
    "element inside a document": lambda text, folder: etree.fromstring(f"<net><layers>{text}</layers></net>")[0][0],
}  # fmt: skip


@each_row("given", GIVEN.values(), ids=GIVEN)
def test_what_may_be_given(given: Callable[[str, Path], Any], tmp_path: Path) -> None:
    text = EXAMPLE.replace('name="rnn"', 'name="säule"')
    layer = read_layer(given(text, tmp_path))
    assert layer.name == "säule"
    assert layer == read_layer(text)


@each_type
@each_row("precision", ["", "FP32", "FP64", "FP16"])
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


SPELLINGS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {  # type, <data>, the same as arguments
    "defaults": ("LSTMSequence", {}, {}),
    "empty lists": ("GRUSequence", {"activations": "", "activations_alpha": "", "activations_beta": " "}, {}),
    "blanks": ("LSTMSequence", {"hidden_size": " 6 ", "direction": " reverse\n",
        "activations": " tanh ,relu,  sigmoid ", "clip": " 0.5 "},
        {"direction": "reverse", "activations": ["tanh", "relu", "sigmoid"], "clip": 0.5}),
    "any case": ("GRUSequence", {"direction": "ReVerse", "activations": "SIGMOID,ReLU", "linear_before_reset": "True"},
        {"direction": "reverse", "activations": ["sigmoid", "relu"], "linear_before_reset": True}),
    "type in another case": ("gruSEQUENCE", {}, {}),
    "linear_before_reset false": ("GRUCell", {"linear_before_reset": "false"}, {}),
    "linear_before_reset 0": ("GRUCell", {"linear_before_reset": "0"}, {}),
    "linear_before_reset 1": ("GRUCell", {"linear_before_reset": "1"}, {"linear_before_reset": True}),
    "clip 0": ("RNNSequence", {"clip": "0"}, {}),
    "clip 0.0": ("RNNSequence", {"clip": "0.000000"}, {}),
    "clip inf": ("RNNSequence", {"clip": "inf"}, {}),
    "clip as it prints": ("RNNCell", {"clip": "0.40000000596046448"}, {"clip": float(np.float32(0.4))}),
    "clip with an exponent": ("RNNCell", {"clip": "4e-1"}, {"clip": 0.4}),
    "parameters": ("LSTMCell", {"activations": "hardsigmoid,elu,tanh", "activations_alpha": "0.25, 0.5",
        "activations_beta": "0.375"}, {"activations": ["hardsigmoid", "elu", "tanh"], "activations_alpha": [0.25, 0.5],
        "activations_beta": [0.375]}),
}  # fmt: skip


@each_row(("kind", "data", "attributes"), SPELLINGS.values(), ids=SPELLINGS)
def test_spellings_of_attributes(kind: str, data: dict[str, str], attributes: dict[str, Any]) -> None:
    (canonical,) = {row.type for row in OPERATIONS.values() if row.type.lower() == kind.lower()}
    shapes = shapes_of(canonical, 1, bool(attributes.get("linear_before_reset")))
    layer = read_layer(write(kind, data, shapes=shapes))
    assert layer.type == canonical
    arrays = make_arrays(layer)
    assert_same(layer(*arrays), function(canonical, *arrays, **attributes))


@each_row("opset", range(1, 17))
@each_row("kind", ["LSTMCell", "LSTMSequence"])
def test_versions_of_lstm(kind: str, opset: int) -> None:
    row = read_layer(write(kind, attributes=f'version="opset{opset}"')).operation
    newer = OPERATIONS["LSTMCell-4" if kind == "LSTMCell" else "LSTMSequence-5"]
    assert row == (newer if opset >= newer.first_opset else OPERATIONS[f"{kind}-1"])


@each_type
def test_ports_in_other_forms(kind: str) -> None:
    """Ids that are neither contiguous nor ascending, open dimensions, and ports of any rank, as OpenVINO reads them."""
    plain = read_layer(write(kind))
    arrays, count = make_arrays(plain), number_of_weights(kind)
    wanted, ranks = plain(*arrays), [len(port.shape) for port in plain.inputs]
    reordered = read_layer(write(kind, ids=lambda k: 100 - 7 * k))
    assert [port.id for port in reordered.inputs] == [100 - 7 * k for k in range(len(ranks))]
    assert [port.shape for port in reordered.inputs] == [port.shape for port in plain.inputs]
    inputs, outputs = shapes_of(kind)
    opened = [
        [tuple(-1 if size in (N, T) else size for size in shape) for shape in shapes] for shapes in (inputs, outputs)
    ]
    dynamic = read_layer(write(kind, shapes=([*opened[0][:-count], *inputs[-count:]], opened[1])))
    assert (dynamic.inputs[0].shape, dynamic.sizes) == ((None,) * (ranks[0] - 1) + (I,), {"I": I})
    fewer = [a if k >= len(arrays) - count else a[:2] for k, a in enumerate(arrays)]
    assert_same(dynamic(*fewer), tuple(y[:2] for y in wanted))
    unranked = read_layer(re.sub(r"<dim>\d+</dim>", "", write(kind)))
    assert ([port.shape for port in unranked.inputs], unranked.sizes) == ([(None,) * rank for rank in ranks], {})
    for layer in (reordered, dynamic, unranked):
        assert_same(layer(*arrays), wanted)
