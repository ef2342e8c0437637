"""Warnings point to the caller's line, and values in messages take one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino_nets as nets
import pytest
from onnx.reference import ReferenceEvaluator
from openvino_layers import GOOD
from rows import each_row

import pyrnnx
from pyrnnx.errors import shown
from pyrnnx.frontends.onnx import backend, from_node, lstm, read_model, reference_ops
from pyrnnx.frontends.onnx.operators.layers import unbound_node
from pyrnnx.frontends.openvino import read_layer, read_net
from pyrnnx.frontends.openvino import read_model as read_ir
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.onnx_models import make_node

CASE = Case("left over", "LSTM", {"activation_alpha": [0.5]}, (), None, I=2)
ARRAYS = make_arrays(CASE)
NODE = make_node(CASE, list(ARRAYS))
WEIGHTS = {name: ARRAYS[name] for name in "WR"}
LAYER_XML = GOOD.replace("<data ", '<data alpha="1" ')
NET_XML, NET_BIN = nets.lstm_net()
NET_XML = NET_XML.replace("<data direction", '<data alpha="1" direction')


def onnx_model() -> onnx.ModelProto:
    infos = [onnx.helper.make_tensor_value_info("X", 1, ARRAYS["X"].shape)]
    infos += [onnx.helper.make_tensor_value_info(name, 1, None) for name in NODE.output]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in WEIGHTS.items()]
    graph = onnx.helper.make_graph([NODE], "left_over", infos[:1], infos[1:], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 22)], ir_version=10)


def saved(folder: Path) -> str:
    onnx.save(onnx_model(), path := str(folder / "left_over.onnx"))
    return path


def saved_ir(folder: Path, text: str) -> str:
    (path := folder / "net.xml").write_text(text)
    path.with_suffix(".bin").write_bytes(NET_BIN)
    return str(path)


WAYS: dict[str, Callable[[Path], Any]] = {
    "lstm": lambda folder: lstm(*ARRAYS.values(), activation_alpha=[0.5]),
    "from_node": lambda folder: from_node(NODE, WEIGHTS),
    "unbound_node": lambda folder: unbound_node(NODE, {}),
    "read_model": lambda folder: read_model(onnx_model()).layers,
    "a call": lambda folder: read_model(onnx_model())(ARRAYS["X"]),
    "run_node": lambda folder: backend.run_node(NODE, list(ARRAYS.values())),
    "ReferenceEvaluator": lambda folder: ReferenceEvaluator(onnx_model(), new_ops=reference_ops()).run(
        None, {"X": ARRAYS["X"]}
    ),
    "load": lambda folder: pyrnnx.load(saved(folder)).layers,
    "load of an IR": lambda folder: pyrnnx.load(saved_ir(folder, NET_XML)),
    "load of a layer": lambda folder: pyrnnx.load(saved_ir(folder, LAYER_XML)),
    "read_layer": lambda folder: read_layer(LAYER_XML),
    "read_net": lambda folder: read_net(NET_XML),
    "read_model of an IR": lambda folder: read_ir(NET_XML, NET_BIN),
    "compare": lambda folder: pyrnnx.compare(saved(folder), saved(folder)),
}


@each_row("way", WAYS.values(), ids=WAYS)
def test_warnings_point_to_the_caller(way: Callable[[Path], Any], tmp_path: Path) -> None:
    with pytest.warns(pyrnnx.PyrnnxWarning, match=r"no effect") as caught:
        way(tmp_path)
    assert {one.filename for one in caught} == {__file__}


class Drawn:
    def __repr__(self) -> str:
        return "a\r\n  b\x1b[31m"


@each_row(
    ("value", "expected"),
    [
        (np.array([[1.5, None], ["a\n", 3]], dtype=object), r"array([[1.5, None], ['a\n', 3]], dtype=object)"),
        (np.arange(4.0).reshape(2, 2), "array([[0., 1.], [2., 3.]])"),
        ("two  spaces\n", r"'two  spaces\n'"),
        (Drawn(), r"a b\x1b[31m"),
    ],
    ids=["objects", "numbers", "text", "of others"],
)
def test_shown_in_one_line(value: Any, expected: str) -> None:
    assert shown(value) == expected
