"""Whole ONNX models written as IR: what OpenVINO and this library compute of it, and what ONNX Runtime of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lxml import etree
from onnx_stacks import HEADS, Array, Graph, H, I, Stack

from pyrnnx import Layer
from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends.openvino import BoundLayer, read_model, to_onnx, write_model

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
STACKS = EVERY[1::23]
OTHERS = [stack for stack in EVERY if stack not in STACKS]


def run_there(path: Path, inputs: dict[str, Array], *, fixed: bool = False) -> list[Array]:
    core = openvino.Core()
    model = core.read_model(path)
    if fixed:
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert [port.any_name for port in compiled.outputs] == [info.name for info in read_model(path).outputs]
    results = compiled(inputs)
    return [results[port] for port in compiled.outputs]


def run_onnx(proto: onnx.ModelProto, inputs: dict[str, Array]) -> list[Array]:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    results: list[Array] = session.run(None, inputs)
    return results


def check(proto: onnx.ModelProto, path: Path, *calls: dict[str, Array], fixed: bool = False) -> None:
    """The written model in OpenVINO and here, beside the ONNX model in ONNX Runtime and here."""
    write_model(proto, path)
    model, source = read_model(path), onnx_frontend.read_model(proto)
    assert [info.name for info in model.inputs] == [info.name for info in source.inputs]
    assert [info.name for info in model.outputs] == [info.name for info in source.outputs]
    assert [port.any_name for port in openvino.Core().read_model(path).inputs] == [info.name for info in model.inputs]
    for inputs in calls:
        expected = run_onnx(proto, inputs)
        results = {
            "OpenVINO": run_there(path, inputs, fixed=fixed),
            "the IR": list(model(inputs).values()),
            "the ONNX model": list(source(inputs).values()),
        }
        for who, arrays in results.items():
            for name, a, b in zip((info.name for info in model.outputs), arrays, expected, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype), (who, name)
                np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0, err_msg=f"{who}: {name}")


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_stacks(stack: Stack, tmp_path: Path) -> None:
    """With batch and time open: two calls of different sizes."""
    check(stack.model(), tmp_path / "stack.xml", stack.arrays(4, 3), stack.arrays(7, 2))


@pytest.mark.slow
@pytest.mark.parametrize("stack", OTHERS, ids=str)
def test_other_stacks(stack: Stack, tmp_path: Path) -> None:
    check(stack.model(), tmp_path / "stack.xml", stack.arrays(5, 3))


def test_stacks_have_every_pair() -> None:
    """Of values of two fields."""
    names = ("cell", "layers", "both", "batch_first", "head", "states")
    for first, second in combinations(names, 2):
        pairs = [{(getattr(one, first), getattr(one, second)) for one in stacks} for stacks in (EVERY, STACKS)]
        assert pairs[0] == pairs[1], (first, second)


@pytest.mark.parametrize("cell", CELLS)
def test_lengths(cell: str, tmp_path: Path) -> None:
    """Shapes are fixed, for OpenVINO ignores lengths otherwise."""
    stack = Stack(cell, 2, both=True, batch_first=True, states="given", lengths=True)
    check(stack.model(5, 4), tmp_path / "stack.xml", stack.arrays(5, 4))
    check(stack.model(), tmp_path / "stack.xml", stack.arrays(6, 3), fixed=True)


def layers_of(path: Path) -> Counter[str]:
    return Counter(str(one.get("type")) for one in etree.parse(path).iter("layer"))


@pytest.mark.parametrize(
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


def test_open_dimensions_stay_open_and_others_fixed(tmp_path: Path) -> None:
    model = read_model(write_model(Stack("LSTM", batch_first=True).model("T", 3), tmp_path / "stack.xml"))
    assert [info.shape for info in model.inputs] == [(3, None, I)]
    assert [info.shape for info in model.outputs] == [(3, None, H), (2, 3, H), (2, 3, H)]
    assert [layer.sizes for layer in map(model.net.recurrent.__getitem__, model.net.recurrent)] == [
        {"N": 3, "I": size} for size in (I, H)
    ]


# What is given


def forms(proto: onnx.ModelProto, folder: Path) -> dict[str, Callable[[], Any]]:
    onnx.save(proto, folder / "model.onnx")
    ir = write_model(proto, folder / "first.xml")
    return {
        "a path": lambda: folder / "model.onnx",
        "a path as str": lambda: str(folder / "model.onnx"),
        "bytes": proto.SerializeToString,
        "a ModelProto": lambda: proto,
        "a Model of ONNX": lambda: onnx_frontend.read_model(proto),
        "the path of an IR": lambda: ir,
        "a Model of an IR": lambda: read_model(ir),
        "what to_onnx gives": lambda: to_onnx(read_model(ir)),
    }


@pytest.mark.parametrize("cell", CELLS)
def test_whatever_holds_the_model(cell: str, tmp_path: Path) -> None:
    stack = Stack(cell, 2, both=True, batch_first=True, head="linear", states="given")
    proto, inputs = stack.model(), stack.arrays(5, 2)
    expected = run_onnx(proto, inputs)
    first = None
    for name, make in forms(proto, tmp_path).items():
        path = write_model(make(), tmp_path / "again.xml")
        first = first or path.read_bytes()
        if "IR" not in name and "to_onnx" not in name:
            assert path.read_bytes() == first, name
        for results in (list(read_model(path)(inputs).values()), run_there(path, inputs)):
            for a, b in zip(results, expected, strict=True):
                np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0, err_msg=name)


def test_layers_keep_their_names_and_weights(tmp_path: Path) -> None:
    proto = Stack("LSTM", 2, both=True).model()
    model, source = read_model(write_model(proto, tmp_path / "stack.xml")), onnx_frontend.read_model(proto)
    assert list(model.layers) == list(source.layers)
    for name, layer in source.layers.items():
        read = model.layers[name]
        assert read.op == layer.op
        assert isinstance(read, BoundLayer)
        assert isinstance(layer, Layer)
        W, theirs = layer.weights["W"], read.weights["W"]
        i, o, f, c = np.split(W, 4, axis=1)
        np.testing.assert_array_equal(theirs, np.concatenate([f, i, c, o], axis=1))


def test_defaults_of_inputs_are_constants(tmp_path: Path) -> None:
    proto = Stack("GRU").model()
    proto.graph.input.append(onnx.helper.make_tensor_value_info("c0", 1, [1, 3 * H, I]))
    assert [info.name for info in read_model(write_model(proto, tmp_path / "stack.xml")).inputs] == ["x"]


# Names

ROW = np.array([[1, -2, 3]], np.float32)


def test_outputs_that_are_one_value_an_input_or_a_constant(tmp_path: Path) -> None:
    g = Graph()
    y = g.add("Relu", "x")
    same, one = g.add("Identity", y), g.constant(np.ones((2, 3), np.float32))
    turned = g.add("Transpose", y)
    proto = g.model({"x": (1, ("N", 3))}, [y, same, turned, g.add("Identity", turned)])
    check(proto, tmp_path / "a.xml", {"x": ROW})
    g = Graph()
    check(g.model({"x": (1, ("N", 3))}, [g.add("Identity", "x"), "x"]), tmp_path / "c.xml", {"x": ROW})
    g = Graph()
    y = g.add("Identity", "x")
    one = g.add("Identity", g.constant(np.ones((2, 3), np.float32)))
    model = read_model(write_model(g.model({"x": (1, ("N", 3))}, [y, one]), tmp_path / "b.xml"))
    found = model(ROW)
    assert list(found) == [y, one]
    np.testing.assert_array_equal(found[y], [[1, -2, 3]])
    np.testing.assert_array_equal(found[one], np.ones((2, 3)))


@pytest.mark.parametrize("name", ["a,b", "a\\b", "é漢字😀", "a/b:0", "node0", "stack", "x" * 5000])
def test_names_of_inputs_outputs_and_layers(name: str, tmp_path: Path) -> None:
    proto = Stack("GRU", 1).model()
    text = {"x": name, proto.graph.output[0].name: f"{name} out"}
    for node in proto.graph.node:
        for names in (node.input, node.output):
            names[:] = [text.get(one, one) for one in names]
        if node.op_type == "GRU":
            node.name = name
    proto.graph.input[0].name, proto.graph.output[0].name = name, f"{name} out"
    model = read_model(write_model(proto, tmp_path / "stack.xml"))
    assert [info.name for info in model.inputs] == [name]
    assert model.outputs[0].name == f"{name} out"
    assert len(model.layers) == 1
    assert len(openvino.Core().read_model(tmp_path / "stack.xml").inputs) == 1
