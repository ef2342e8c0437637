"""Results belong to the caller: writing to them changes no input, constant, state or other result."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model

import pyrnnx
from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.numbers import Array

node = helper.make_node
H = 3
WEIGHTS: dict[str, Any] = {
    name: a for name, a in make_arrays(Case("rnn", "RNN", {}, (), I=H, H=H)).items() if name in "WR"
}
X = np.linspace(-1, 1, 2 * H, dtype=np.float32).reshape(2, 1, H)
K = np.arange(6, dtype=np.float32).reshape(2, 1, H)
CONSTANTS: dict[str, Any] = {
    **WEIGHTS,
    "k": K,
    "zero": np.array([0]),
    "one": np.array([1]),
    "two": np.array([2]),
    "none": np.array(0),
    "row": np.array([[1.0, 2.0, 3.0]], np.float32),
}
GIVEN = {"x": X, "h": np.full((1, 1, H), 0.5, np.float32), "go": np.array(True), "shape": np.array([2, H])}
RNN = node("RNN", ["x", "W", "R", "", "", "h"], ["y", "hn"], hidden_size=H)


def constant(name: str, array: Array) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(array))


def choice() -> list[onnx.NodeProto]:
    then = make_graph([], {}, ["inner"], {"inner": K})
    last = node("RNN", ["x", "W", "R", "", "", "h"], ["", "last"], hidden_size=H)
    other = make_graph([last], {}, ["last"])
    return [node("If", ["go"], ["a"], then_branch=then, else_branch=other)]


def loop_of_no_steps() -> list[onnx.NodeProto]:
    body = helper.make_graph(
        [node("Identity", ["c"], ["c1"]), node("RNN", ["x", "W", "R"], ["", "h1"], hidden_size=H)],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            onnx.ValueInfoProto(name="v"),
        ],
        [helper.make_tensor_value_info("c1", onnx.TensorProto.BOOL, []), onnx.ValueInfoProto(name="h1")],
    )
    return [node("Loop", ["none", "", "k"], ["a"], body=body)]


# Nodes beside an RNN from x and h to y and hn; what is returned beside these.
CASES: dict[str, tuple[Callable[[], list[onnx.NodeProto]], list[str]]] = {
    "an input": (list, ["h", "x"]),
    "a constant": (list, ["k"]),
    "a computed constant": (lambda: [node("Add", ["k", "row"], ["a"])], ["a"]),
    "a view of a computed constant": (
        lambda: [node("Add", ["k", "row"], ["s"]), node("Reshape", ["s", "shape"], ["a"])],
        ["a", "s"],
    ),
    "a view of an input": (lambda: [node("Transpose", ["h"], ["a"], perm=[2, 0, 1])], ["a"]),
    "a part of an input": (lambda: [node("Slice", ["x", "zero", "one"], ["a"])], ["a"]),
    "a view of a constant": (lambda: [node("Reshape", ["k", "shape"], ["a"])], ["a"]),
    "a view of a constant within": (
        lambda: [constant("c", K), node("Reshape", ["c", "shape"], ["a"])],
        ["a"],
    ),
    "floats of a node": (
        lambda: [node("Constant", [], ["c"], value_floats=[1.0] * 6), node("Reshape", ["c", "shape"], ["a"])],
        ["a"],
    ),
    "a constant of a branch": (choice, ["a"]),
    "what a loop begins with": (loop_of_no_steps, ["a"]),
    "an input that is repeated": (lambda: [node("Expand", ["h", "one"], ["a"])], ["a"]),
    "views of one another": (
        lambda: [
            node("Exp", ["x"], ["a"]),
            node("Transpose", ["a"], ["b"], perm=[1, 0, 2]),
            node("Squeeze", ["b", "zero"], ["c"]),
        ],
        ["a", "b", "c"],
    ),
    "views of a state": (lambda: [node("Squeeze", ["hn", "zero"], ["a"])], ["a"]),
    "a sequence": (lambda: [node("SequenceConstruct", ["h", "h"], ["a"])], ["a"]),
}


def made(name: str, form: str = "raw") -> onnx.ModelProto:
    nodes, outputs = CASES[name]
    proto = simple_model([RNN, *nodes()], GIVEN, ["y", "hn", *outputs], CONSTANTS)
    graphs = [proto.graph, *(one.g for made in proto.graph.node for one in made.attribute if one.HasField("g"))]
    for one in (one for graph in graphs for one in graph.initializer):
        if form == "numbers" and one.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(one).ravel().tolist()
            one.ClearField("raw_data")
            one.float_data.extend(values)
    return proto


def arrays(results: dict[str, Any]) -> list[Array]:
    return [array for one in results.values() for array in (one if isinstance(one, list) else [one])]


@pytest.mark.parametrize("runtime", ["auto", "reference"])
@pytest.mark.parametrize("form", ["raw", "numbers"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_the_caller_s_own(name: str, form: str, runtime: str) -> None:
    model = read_model(made(name, form), runtime=runtime)
    given = {key: array.copy() for key, array in GIVEN.items()}
    before = None
    for _ in range(5):
        results = model(given)
        found = arrays(results)
        before = before or [array.copy() for array in found]
        for array, expected in zip(found, before, strict=True):
            np.testing.assert_array_equal(array, expected)
        for one, other in combinations([*found, *given.values()], 2):
            assert not np.shares_memory(one, other)
        for array in found:
            array[...] = 99


@pytest.mark.parametrize("runtime", ["auto", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_states_are_the_stream_s_own(name: str, runtime: str) -> None:
    stream = read_model(made(name), runtime=runtime).stream({"hn": "h"}, initial={"h": GIVEN["h"]}, layers=False)
    given = {key: array for key, array in GIVEN.items() if key != "h"}
    rounds = []
    for _ in range(2):
        found = []
        for _ in range(4):
            pushed = stream.push(given)
            found.append(pushed["y"].copy())
            for array in arrays(pushed):
                array[...] = 99
        rounds.append(found)
        stream.reset()
    np.testing.assert_array_equal(rounds[0], rounds[1])
    assert len({array.tobytes() for array in rounds[0]}) == 4


def test_copies_are_counted(small_limit: None) -> None:
    model = read_model(simple_model([node("Neg", ["x"], ["y"])], {"x": X}, ["y", "x"]), runtime="reference")
    large = np.ones((2**18, 1, 1), np.float32)
    pyrnnx.set_memory_limit(2 * large.nbytes)
    assert model(large)["x"].base is None
    pyrnnx.set_memory_limit(2 * large.nbytes - 1)
    with pytest.raises(ArgumentError, match="a copy for the output 'x' would take 1048576 bytes on top of 1048576"):
        model(large)
