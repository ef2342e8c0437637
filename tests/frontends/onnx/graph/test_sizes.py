"""Small models that ask for much memory or time: refused at once, or left as they are."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from cases import Array
from onnx import helper, numpy_helper
from onnx_models import make_graph, simple_model

import pyrnnx
from pyrnnx import ArgumentError, FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.file import check_model
from pyrnnx.frontends.onnx.graph.fold import fold_constants
from pyrnnx.frontends.onnx.graph.sizes import RULES

node = helper.make_node
X = np.ones((2, 3), np.float32)
ONE = np.ones(1, np.float32)
MEGABYTE = 2**20


@pytest.fixture(autouse=True)
def small_limit() -> Iterator[None]:
    """Of memory, so that the machine that runs the tests is spared where a test fails."""
    before = pyrnnx.get_memory_limit()
    pyrnnx.set_memory_limit(64 * MEGABYTE)
    yield
    pyrnnx.set_memory_limit(before)


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def chain(operator: str, count: int, *others: str, **attributes: Any) -> list[onnx.NodeProto]:
    """r = f(f(...f(one)...))"""
    names = ["one", *(f"v{k}" for k in range(1, count)), "r"]
    return [node(operator, [a, *others], [b], **attributes) for a, b in pairwise(names)]


def doubled(count: int) -> list[onnx.NodeProto]:
    names = ["one", *(f"v{k}" for k in range(1, count)), "r"]
    return [node("Concat", [a, a], [b], axis=0) for a, b in pairwise(names)]


LARGE: dict[str, list[onnx.NodeProto]] = {
    "ConstantOfShape": [node("ConstantOfShape", ["shape"], ["r"])],
    "Tile": chain("Tile", 40, "two"),
    "Concat": doubled(40),
    "Pad": [node("Pad", ["one", "pads"], ["r"])],
    "Expand": [node("Expand", ["one", "shape"], ["r"])],
    "Range": [node("Range", ["zero", "huge", "step"], ["r"])],
    "OneHot": [node("OneHot", ["two", "huge", "values"], ["r"])],
    "Resize": [node("Resize", ["image", "", "", "image_size"], ["r"], mode="nearest")],
    "RandomNormal": [node("RandomNormal", [], ["r"], shape=[2**20, 2**20])],
    "RandomUniform": [node("RandomUniform", [], ["r"], shape=[2**20, 2**20])],
    "broadcasting": [
        node("Expand", ["one", "column"], ["c"]),
        node("Expand", ["one", "row"], ["d"]),
        node("Add", ["c", "d"], ["r"]),
    ],
    "MatMul": [
        node("Expand", ["one", "column"], ["c"]),
        node("Expand", ["one", "row"], ["d"]),
        node("MatMul", ["c", "d"], ["r"]),
    ],
    "Einsum": [node("Expand", ["one", "flat"], ["c"]), node("Einsum", ["c", "c"], ["r"], equation="i,j->ij")],
    "Gather": [
        node("Expand", ["one", "row"], ["c"]),
        node("Expand", ["index", "flat"], ["d"]),
        node("Gather", ["c", "d"], ["r"], axis=0),
    ],
    "Conv": [node("Conv", ["image", "kernel"], ["r"], pads=[2**20] * 4)],
    "dilated Conv": [node("Conv", ["image", "kernel"], ["r"], pads=[1] * 4, dilations=[2**20, 2**20])],
    "MaxPool": [node("MaxPool", ["image"], ["r"], kernel_shape=[2**20, 2**20], auto_pad="SAME_UPPER")],
    "ConvTranspose": [node("ConvTranspose", ["image", "kernel"], ["r"], output_padding=[2**20, 2**20])],
    "HannWindow": [node("HannWindow", ["huge"], ["r"])],
    "MelWeightMatrix": [node("MelWeightMatrix", ["many", "many", "many", "low", "high"], ["r"])],
    "CenterCropPad": [node("CenterCropPad", ["one", "shape"], ["r"])],
    "AffineGrid": [node("AffineGrid", ["theta", "grid_size"], ["r"])],
    "DFT": [node("DFT", ["signal", "huge"], ["r"])],
    # larger on the way than in the end
    "TopK": [node("TopK", ["one", "many_of_one"], ["r", "i"], axis=0)],
    "Tile, empty": [node("Tile", ["image", "empty_tiles"], ["r"])],
    "Expand, empty": [node("Expand", ["nothing", "empty_row"], ["r"])],
    "LayerNormalization": [node("LayerNormalization", ["image", "one"], ["r"], axis=-(2**40))],
    "Resize, empty": [node("Resize", ["image", "", "", "empty_size"], ["r"], mode="nearest")],
    "StringConcat": [
        node("StringConcat", ["text", "text"] if k == 0 else [f"v{k}"] * 2, ["r" if k == 39 else f"v{k + 1}"])
        for k in range(40)
    ],
}
CONSTANTS: dict[str, Array] = {
    "one": ONE,
    "two": integers(2),
    "shape": integers(2**31),
    "pads": integers(2**40, 0),
    "zero": np.array(0),
    "huge": np.array(2**40),
    "step": np.array(1),
    "values": np.array([0.0, 1.0], np.float32),
    "column": integers(2**20, 1),
    "row": integers(1, 2**20),
    "flat": integers(2**20),
    "index": integers(0),
    "image": np.ones((1, 1, 4, 4), np.float32),
    "image_size": integers(1, 1, 2**20, 2**20),
    "many_of_one": integers(2**31),
    "empty_tiles": integers(1, 1, 2**40, 0),
    "nothing": np.zeros((0, 1), np.float32),
    "empty_row": integers(1, 2**40),
    "empty_size": integers(1, 1, 2**40, 0),
    "kernel": np.ones((1, 1, 2, 2), np.float32),
    "many": np.array(2**20),
    "low": np.array(1.0, np.float32),
    "high": np.array(2.0, np.float32),
    "theta": np.ones((1, 2, 3), np.float32),
    "grid_size": integers(1, 1, 2**20, 2**20),
    "signal": np.ones((1, 2, 1), np.float32),
    "text": np.array(["a" * 100], object),
}


def large(name: str) -> onnx.ModelProto:
    needed = {one for part in LARGE[name] for one in part.input}
    constants = {key: array for key, array in CONSTANTS.items() if key in needed}
    nodes = [*LARGE[name], node("Shape", ["r"], ["s"]), node("Add", ["s", "x"], ["y"])]
    return simple_model(nodes, {"x": integers(0)}, ["y"], constants, opset=20)


@pytest.mark.parametrize("name", LARGE)
def test_large_constants(name: str) -> None:
    """Not folded, and refused before they are computed where a call would."""
    model = large(name)
    tracemalloc.start()
    start = time.process_time()
    folded = fold_constants(model)
    assert tracemalloc.get_traced_memory()[1] < 100 * MEGABYTE
    assert folded.ByteSize() < 40 * MEGABYTE
    with pytest.raises(ArgumentError, match=r"would take \d+ bytes.*; a call may take 67108864 \(pyrnnx.set_memory"):
        read_model(model)(integers(0))
    assert tracemalloc.get_traced_memory()[1] < 200 * MEGABYTE
    tracemalloc.stop()
    assert time.process_time() - start < 10  # not a measurement: without a budget these take minutes, or the machine


@pytest.mark.parametrize("name", ["Tile", "Concat"])
def test_chains_of_constants_are_refused_before_any_is_computed(name: str) -> None:
    """With a limit that would take long to reach."""
    model = read_model(large(name))
    pyrnnx.set_memory_limit(2**34)
    tracemalloc.start()
    with pytest.raises(ArgumentError, match=rf"{name} .*would take \d+ bytes"):
        model(integers(0))
    assert tracemalloc.get_traced_memory()[1] < 100 * MEGABYTE
    tracemalloc.stop()


def test_large_constants_that_a_call_does_not_need_are_not_asked_for() -> None:
    model = large("Tile")
    del model.graph.node[-2:]
    model.graph.node.append(node("Identity", ["x"], ["y"]))
    assert read_model(model)(integers(3))["y"] == 3


def test_what_is_beyond_the_budget_is_computed_at_the_call() -> None:
    nodes = [node("Expand", ["one", "flat"], ["r"]), node("Add", ["r", "x"], ["y"])]
    model = simple_model(nodes, {"x": ONE}, ["y"], {"one": ONE, "flat": integers(2**23)})
    assert [one.op_type for one in fold_constants(model).graph.node] == ["Expand", "Add"]
    np.testing.assert_array_equal(read_model(model)(ONE)["y"], np.full(2**23, 2, np.float32))


def test_limit_of_a_call_can_be_raised() -> None:
    nodes = [node("Expand", ["x", "shape"], ["y"])]
    model = read_model(simple_model(nodes, {"x": ONE}, ["y"], {"shape": integers(2**20)}))
    pyrnnx.set_memory_limit(4 * MEGABYTE - 1)
    message = r"^ONNX model: Expand \(output 'y'\) would take 4194304 bytes; a call may take 4194303 "
    with pytest.raises(ArgumentError, match=message):
        model(ONE)
    pyrnnx.set_memory_limit(4 * MEGABYTE)
    assert model(ONE)["y"].shape == (2**20,)


def test_results_of_a_call_add_up() -> None:
    nodes = [node("Exp", ["x"], [f"v{k}"]) for k in range(8)]
    model = read_model(simple_model(nodes, {"x": X}, [f"v{k}" for k in range(8)]))
    big = np.ones((1024, 256), np.float32)
    pyrnnx.set_memory_limit(7 * MEGABYTE)
    with pytest.raises(ArgumentError, match=r"Exp \(output 'v7'\) would take 1048576 bytes beside 7340032 taken"):
        model(big)
    pyrnnx.set_memory_limit(8 * MEGABYTE)
    model(big)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "1", None])
def test_limits_that_are_none(limit: Any) -> None:
    with pytest.raises(ArgumentError, match="set_memory_limit: n is "):
        pyrnnx.set_memory_limit(limit)


def looped(steps: int) -> onnx.ModelProto:
    """Computes 1 MB in each step and collects one number."""
    body = make_graph(
        [
            node("Expand", ["one", "size"], ["wide"]),
            node("ReduceSum", ["wide"], ["sum"], keepdims=0),
            node("Identity", ["c"], ["d"]),
        ],
        {"i": np.array(0), "c": np.array(True)},
        ["d", "sum"],
    )
    constants = {"one": ONE, "size": integers(2**18), "steps": np.array(steps)}
    nodes = [node("Loop", ["steps", "", "x"][:2], ["y"], body=body)]
    return simple_model(nodes, {"x": ONE}, ["y"], constants)


def test_what_a_body_computes_is_forgotten() -> None:
    pyrnnx.set_memory_limit(3 * MEGABYTE)
    assert read_model(looped(20))(ONE)["y"].shape == (20,)


def test_what_a_loop_collects_counts() -> None:
    model = looped(20)
    model.graph.node[0].attribute[0].g.output[1].name = "wide"
    pyrnnx.set_memory_limit(8 * MEGABYTE)
    with pytest.raises(ArgumentError, match="would take"):
        read_model(model)(ONE)


def scan(count: int) -> onnx.ModelProto:
    body = make_graph(
        [node("Add", ["a", "b"], ["c"]), node("Identity", ["c"], ["d"])], {"a": ONE, "b": ONE}, ["c", "d"]
    )
    nodes = [node("Scan", ["one", "x"], ["last", "y"], name="walk", body=body, num_scan_inputs=count)]
    return simple_model(nodes, {"x": X}, ["y"], {"one": np.ones(3, np.float32)})


@pytest.mark.parametrize("count", [2**28, 2**62, 3, 0, -1])
def test_scan_inputs_that_are_not_there(count: int) -> None:
    with pytest.raises(FormatError, match=rf"Scan 'walk': num_scan_inputs is {count}; the node has 2 inputs"):
        read_model(scan(count))(X)


def test_scan() -> None:
    np.testing.assert_array_equal(read_model(scan(1))(X)["y"], [[2, 2, 2], [3, 3, 3]])


def test_split_outputs_that_are_not_there() -> None:
    nodes = [node("Split", ["x"], ["y"], name="cut", num_outputs=2**40)]
    with pytest.raises(FormatError, match=f"Split 'cut': num_outputs is {2**40}; the node has 1 outputs"):
        read_model(simple_model(nodes, {"x": X}, ["y"], opset=18))(X)


def calling(functions: int, calls: int) -> onnx.ModelProto:
    """Functions that each call the next, so many times one after another."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    made = []
    for k in range(functions):
        names = ["p", *(f"v{i}" for i in range(1, calls)), "q"]
        pairs = pairwise(names)
        nodes = [node(f"F{k + 1}", [a], [b], domain="test") for a, b in pairs]
        last = k == functions - 1
        made.append(
            helper.make_function("test", f"F{k}", ["p"], ["q"], [node("Neg", ["p"], ["q"])] if last else nodes, imports)
        )
    call = node("F0", ["x"], ["y"], domain="test")
    return simple_model([call], {"x": X}, ["y"], domains={"test": 1}, functions=made)


FUNCTIONS = {
    "doubling": (31, 2, r"the function test.F16, inlined, has 16384 nodes; expected at most 10000"),
    "a thousand": (1000, 2, r"the function test.F\d+, inlined, has \d+ nodes; expected at most"),
    "deep": (5000, 1, r"the function test.F\d+ has calls \d+ deep; expected at most 200"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_would_become_too_many(name: str) -> None:
    functions, calls, message = FUNCTIONS[name]
    contents = calling(functions, calls).SerializeToString()
    message = message.replace("F16", r"F\d+").replace("16384", r"\d+").replace("10000", r"\d+")
    with pytest.raises(UnsupportedError, match=f"^ONNX model: {message}"):
        read_model(contents)


def test_constants_in_functions_that_would_become_too_large() -> None:
    model = calling(12, 2)
    constant = numpy_helper.from_array(np.ones(2**18, np.float32))
    body = [node("Constant", [], ["c"], value=constant), node("Add", ["p", "c"], ["q"])]
    del model.functions[-1].node[:]
    model.functions[-1].node.extend(body)
    with pytest.raises(UnsupportedError, match=r"inlined, has \d+ bytes"):
        read_model(model)


def test_functions_that_are_few_are_inlined() -> None:
    np.testing.assert_array_equal(read_model(calling(6, 3))(X)["y"], -X)  # 3^5 = 243 times


def test_function_that_stands_twice() -> None:
    model = calling(2, 1)
    model.functions.append(model.functions[0])
    with pytest.raises(FormatError, match=r"the function test\.F0 is defined twice"):
        read_model(model)


def nested(depth: int) -> onnx.ModelProto:
    """If in If in If; made from outside to inside, since copies of such depths are refused by protobuf."""
    model = simple_model([], {"x": X, "c": np.array(True)}, ["y0"])
    graph = model.graph
    for k in range(depth):
        choice = graph.node.add(op_type="If", input=["c"], output=[f"y{k}"])
        other = choice.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH).g
        other.node.add(op_type="Identity", input=["x"], output=[f"e{k}"])
        other.output.add(name=f"e{k}")
        graph = choice.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
        graph.output.add(name=f"y{k + 1}")
    graph.node.add(op_type="Neg", input=["x"], output=[f"y{depth}"])
    return model


@pytest.mark.parametrize("depth", [60, 1000])
def test_deep_bodies(depth: int) -> None:
    with pytest.raises(PyrnnxError):
        read_model(nested(depth))


def test_deep_bodies_are_counted() -> None:
    with pytest.raises(FormatError, match="is in 51 bodies; expected at most 50"):
        check_model(nested(60), "ONNX model")


def test_bodies_as_deep_as_a_file_can_hold_them() -> None:
    np.testing.assert_array_equal(read_model(nested(30))({"x": X, "c": np.array(True)})["y0"], -X)


def test_long_chains_of_constants_end() -> None:
    nodes = [node("Neg", [f"v{k}"], [f"v{k + 1}"]) for k in range(5000)]
    model = simple_model([*nodes, node("Add", ["v5000", "x"], ["y"])], {"x": X}, ["y"], {"v0": X})
    np.testing.assert_array_equal(read_model(model)(X)["y"], 2 * X)


def test_every_operator_has_a_rule_of_size() -> None:
    """But for the recurrent ones, whose layers tell, and what only a decoder knows."""
    names = {one.name for one in onnx.defs.get_all_schemas_with_history() if not one.domain}
    assert names - RULES.keys() == {"RNN", "GRU", "LSTM", "ImageDecoder"}


def test_recurrent_results_count() -> None:
    W, R = np.ones((1, 8, 3), np.float32), np.ones((1, 8, 8), np.float32)
    nodes = [node("RNN", ["x", "W", "R"], ["y"], name="rnn", hidden_size=8)]
    model = read_model(simple_model(nodes, {"x": np.ones((1, 1, 3), np.float32)}, ["y"], {"W": W, "R": R}))
    long = np.broadcast_to(np.float32(1), (2**22, 1, 3))
    with pytest.raises(ArgumentError, match=r"RNN 'rnn' would take 134217760 bytes"):
        model(long)


def test_a_limit_holds_for_one_call_and_not_for_those_after_it() -> None:
    model = read_model(simple_model([node("Exp", ["x"], ["y"])], {"x": X}, ["y"]))
    pyrnnx.set_memory_limit(X.nbytes)
    for _ in range(3):
        model(X)
    pyrnnx.set_memory_limit(X.nbytes - 1)
    with pytest.raises(PyrnnxError, match="Exp"):
        model(X)
