"""Whole ONNX models written as IR: OpenVINO and pyrnnx agree with ONNX Runtime on the ONNX model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lxml import etree
from onnx_stacks import HEADS, Array, Graph, Stack
from peers import compile_openvino, run_onnxruntime, run_openvino
from rows import each_row, few_rows
from whole_models import check_calls, onnxruntime_witness

from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends.openvino import read_model, to_onnx, write_model

openvino = pytest.importorskip("openvino")

# float32 on all sides: sums of up to 30 terms in another order, through up to 3 layers whose outputs are below 1
TOLERANCE = 1e-5
CELLS = ("RNN", "GRU", "LSTM")
EVERY = [
    Stack(cell, layers, both, first, head, states)
    for cell, layers, both, first, head, states in product(
        CELLS, (1, 2, 3), (False, True), (False, True), HEADS, ("", "given", "zeros", "constant")
    )
]
STACKS = EVERY[1::138]
OTHERS = [stack for stack in EVERY if stack not in STACKS]


def check(proto: onnx.ModelProto, path: Path, *calls: dict[str, Array], fixed: bool = False) -> None:
    """The written model in OpenVINO and here, beside the ONNX model in ONNX Runtime and here."""
    write_model(proto, path)
    model, source = read_model(path), onnx_frontend.read_model(proto)
    assert [info.name for info in model.inputs] == [info.name for info in source.inputs]
    assert [info.name for info in model.outputs] == [info.name for info in source.outputs]
    assert [port.any_name for port in openvino.Core().read_model(path).inputs] == [info.name for info in model.inputs]
    compiled, witness = None if fixed else compile_openvino(path), onnxruntime_witness(proto)
    for inputs in calls:
        expected = witness(inputs)
        results = {
            "OpenVINO": run_openvino(path, inputs, fixed=True)
            if compiled is None
            else list(compiled(inputs).to_tuple()),
            "the IR": list(model(inputs).values()),
            "the ONNX model": list(source(inputs).values()),
        }
        for who, arrays in results.items():
            for name, a, b in zip((info.name for info in model.outputs), arrays, expected, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype), (who, name)
                np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0, err_msg=f"{who}: {name}")
    for who, run in {"the IR": model, "the ONNX model": source}.items():
        check_calls(run, witness, *calls, atol=TOLERANCE, label=who)


@few_rows("stack", STACKS, OTHERS[::7], ids=str, mark="nightly")
def test_stacks(stack: Stack, tmp_path: Path) -> None:
    """Batch and time are open: two calls of different sizes."""
    check(stack.model(), tmp_path / "stack.xml", stack.arrays(4, 3), stack.arrays(7, 2))


@few_rows("cell", ["LSTM"], ["RNN", "GRU"])
def test_lengths(cell: str, tmp_path: Path) -> None:
    """Shapes are fixed, for OpenVINO ignores lengths otherwise."""
    stack = Stack(cell, 2, both=True, batch_first=True, states="given", lengths=True)
    check(stack.model(5, 4), tmp_path / "stack.xml", stack.arrays(5, 4))
    check(stack.model(), tmp_path / "stack.xml", stack.arrays(6, 3), fixed=True)


def layers_of(path: Path) -> Counter[str]:
    return Counter(str(one.get("type")) for one in etree.parse(path).iter("layer"))


@each_row(
    ("stack", "transposes"),
    [
        (Stack("GRU", 3, batch_first=True), 1),  # of the last states alone
        (Stack("GRU", 3), 3),  # X, Y and the last states
        (Stack("GRU", 3, both=True, batch_first=True), 4),  # of Y of each layer, and the last states
        (Stack("LSTM", 2, batch_first=True, head="activations"), 2),
        (Stack("LSTM", 2, batch_first=True, head="norm"), 2),
    ],
    ids=str,
)
def test_transposes_that_cancel_are_left_out(stack: Stack, transposes: int, tmp_path: Path) -> None:
    assert layers_of(write_model(stack.model(), tmp_path / "stack.xml"))["Transpose"] == transposes


FORMS: dict[str, Callable[[onnx.ModelProto, Path], Any]] = {
    "a path": lambda proto, path: path,
    "a path as str": lambda proto, path: str(path),
    "bytes": lambda proto, path: proto.SerializeToString(),
    "a ModelProto": lambda proto, path: proto,
    "a Model of ONNX": lambda proto, path: onnx_frontend.read_model(proto),
    "the path of an IR": lambda proto, path: path.with_suffix(".xml"),
    "a Model of an IR": lambda proto, path: read_model(path.with_suffix(".xml")),
    "what to_onnx gives": lambda proto, path: to_onnx(read_model(path.with_suffix(".xml"))),
}


@each_row("name", FORMS)
def test_whatever_holds_the_model(name: str, tmp_path: Path) -> None:
    stack = Stack("LSTM", 2, both=True, batch_first=True, head="linear", states="given")
    proto, inputs = stack.model(), stack.arrays(5, 2)
    onnx.save(proto, tmp_path / "model.onnx")
    first = write_model(proto, tmp_path / "model.xml")
    path = write_model(FORMS[name](proto, tmp_path / "model.onnx"), tmp_path / "again.xml")
    if "IR" not in name and "to_onnx" not in name:
        assert path.read_bytes() == first.read_bytes()
    for a, b in zip(read_model(path)(inputs).values(), run_onnxruntime(proto, inputs), strict=True):
        np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0)


ROW = np.array([[1, -2, 3]], np.float32)


def test_outputs_that_are_one_value_an_input_or_a_constant(tmp_path: Path) -> None:
    g = Graph()
    y = g.add("Relu", "x")
    turned = g.add("Transpose", y)
    outputs = [y, g.add("Identity", y), turned, g.add("Identity", turned), g.add("Identity", "x"), "x"]
    check(g.model({"x": (1, ("N", 3))}, outputs), tmp_path / "a.xml", {"x": ROW})
    g = Graph()
    constant = g.add("Identity", g.constant(np.ones((2, 3), np.float32)))
    model = read_model(write_model(g.model({"x": (1, ("N", 3))}, ["x", constant]), tmp_path / "b.xml"))
    for array, wanted in zip(model(ROW).values(), (ROW, np.ones((2, 3))), strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_sizes_as_int32_and_a_large_constant_of_a_node(tmp_path: Path) -> None:
    """Constant nodes: tf2onnx writes the first states of layers so, and Paddle all weights."""
    g = Graph()
    sizes = g.add("Cast", g.add("Shape", "x"), to=onnx.TensorProto.INT32)
    first = g.add("Slice", sizes, *(g.constant(np.array([k])) for k in (0, 1, 0)))
    shape = g.add(
        "Cast", g.add("Concat", first, g.constant(np.array([2], np.int32)), axis=0), to=onnx.TensorProto.INT64
    )
    table = g.rng.uniform(-0.5, 0.5, (3, 700)).astype(np.float32)
    weights = g.add("Constant", value=onnx.numpy_helper.from_array(table))
    outputs = [g.add("Expand", g.constant(np.float32(0.5)), shape), g.add("MatMul", "x", weights)]
    check(g.model({"x": (1, ("N", 3))}, outputs), tmp_path / "model.xml", {"x": ROW})


def test_bounds_of_a_slice_without_axes(tmp_path: Path) -> None:
    """Constant and computed ones, as exporters write them; ONNX wants one axis, and so does OpenVINO."""
    g = Graph()
    rows = g.add("Gather", g.add("Shape", "x"), g.constant(np.array(0)))
    axis = g.constant(np.array([1]))
    parts = [
        g.add("Slice", "x", g.constant(np.array(1)), g.constant(np.array(3)), axis),
        g.add("Slice", "x", rows, g.constant(np.array(3)), axis),
    ]
    path = write_model(g.model({"x": (1, ("N", 3))}, parts), tmp_path / "model.xml")
    for arrays in (run_openvino(path, {"x": ROW}), read_model(path)(ROW).values()):
        for array in arrays:
            np.testing.assert_array_equal(array, ROW[:, 1:3])


@each_row(
    "name",
    ["a,b", "a<b>&\"'c", "tab\t, line\n and \r", " blank ", "a\\b", "é漢字😀", "a/b:0", "node0", "stack", "x" * 5000],
)
def test_names_of_inputs_outputs_and_layers(name: str, tmp_path: Path) -> None:
    proto = Stack("GRU", 1).model()
    renamed = {"x": name, proto.graph.output[0].name: f"{name} out"}
    for node in proto.graph.node:
        for names in (node.input, node.output):
            names[:] = [renamed.get(text, text) for text in names]
        if node.op_type == "GRU":
            node.name = name
    proto.graph.input[0].name, proto.graph.output[0].name = name, f"{name} out"
    model = read_model(write_model(proto, tmp_path / "stack.xml"))
    assert [info.name for info in model.inputs] == [name]
    assert model.outputs[0].name == f"{name} out"
    assert len(model.layers) == 1
    assert len(openvino.Core().read_model(tmp_path / "stack.xml").inputs) == 1
