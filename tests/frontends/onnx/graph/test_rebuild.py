"""Graphs rebuilt from folded ones: kept, dropped and renamed nodes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model

from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.graph.constants import shape_of
from pyrnnx.frontends.onnx.graph.fold import FoldedGraph, fold
from pyrnnx.frontends.onnx.graph.names import named_nodes
from pyrnnx.frontends.onnx.graph.rebuild import Edit, rebuild, tensors_of
from pyrnnx.frontends.onnx.recognise import recognised
from pyrnnx.frontends.onnx.recurrent_graph import recurrent_graph
from pyrnnx.frontends.onnx.runtime.evaluator import evaluate_node
from pyrnnx.testing.numbers import Array

node = helper.make_node
X = np.ones((2, 3), np.float32)
A = np.full((2, 3), 0.5, np.float32)


def folded(nodes: list[onnx.NodeProto], constants: dict[str, Array]) -> FoldedGraph:
    return fold(simple_model(nodes, {"x": X}, ["y"], constants).graph, {"": 17}, evaluate_node, "test")


def contents(graph: onnx.GraphProto) -> tuple[list[str], list[str]]:
    return [one.op_type for one in graph.node], sorted(one.name for one in graph.initializer)


CHAIN = [node("Neg", ["a"], ["b"]), node("Add", ["x", "b"], ["sum"]), node("Mul", ["sum", "c"], ["y"], name="last")]


def test_constants_take_the_place_of_nodes() -> None:
    assert contents(rebuild(folded(CHAIN, {"a": A, "c": A}))) == (["Add", "Mul"], ["b", "c"])


def test_dropped_inputs_are_needed_no_more() -> None:
    graph = folded(CHAIN, {"a": A, "c": A})
    new = rebuild(graph, edits={(graph, 2): Edit("product", (1,))})
    assert contents(new) == (["Add", "Mul"], ["b"])
    assert (new.node[1].name, list(new.node[1].input)) == ("product", ["sum", ""])
    assert CHAIN[2].name == "last"
    assert contents(rebuild(graph, ["c"], {(graph, 2): Edit("product", (1,))})) == (["Add", "Mul"], ["b", "c"])


def test_edits_reach_into_bodies() -> None:
    body = make_graph([node("Neg", ["x"], ["n"]), node("Add", ["n", "a"], ["then"])], {}, ["then"])
    other = make_graph([node("Identity", ["x"], ["else"])], {}, ["else"])
    nodes = [node("Constant", [], ["c"], value_int=1), node("Cast", ["c"], ["yes"], to=onnx.TensorProto.BOOL)]
    nodes.append(node("If", ["yes"], ["y"], then_branch=body, else_branch=other))
    graph = folded(nodes, {"a": A})
    places = named_nodes(graph, lambda one: one.op_type == "Add")
    assert list(places) == ["y/then_branch/then"]
    new = rebuild(graph, edits={place: Edit(name, (1,)) for name, place in places.items()})
    assert contents(new) == (["If"], ["yes"])  # the body's was the only use of "a"
    (added,) = (one for attribute in new.node[0].attribute for one in attribute.g.node if one.op_type == "Add")
    assert (added.name, list(added.input)) == ("y/then_branch/then", ["n", ""])


def test_large_constants_of_bodies_are_lifted() -> None:
    """Those with unique names; the others stay in their bodies."""
    large, small = np.full((40, 40), 0.5, np.float32), np.array(2, np.float32)

    def branch(name: str) -> onnx.GraphProto:
        constants = {"own": large, f"{name}/large": large, f"{name}/small": small, name: large}
        added = [node("Sum", ["x", "own", f"{name}/large", f"{name}/small"], [f"{name}/sum"])]
        return make_graph(added, {}, [f"{name}/sum", name], constants)

    nodes = [node("If", ["c"], ["y", "z"], then_branch=branch("then"), else_branch=branch("else"))]
    model = simple_model(nodes, {"x": large, "c": np.array(True)}, ["y", "z"])
    graph = fold(model.graph, {"": 17}, evaluate_node, "test")
    new = rebuild(graph, values=False)
    assert contents(new) == (["If"], ["else/large", "then/large"])
    bodies = [sorted(tensor.name for tensor in attribute.g.initializer) for attribute in new.node[0].attribute]
    assert sorted(bodies) == [["else", "else/small", "own"], ["own", "then", "then/small"]]
    assert all(shape_of(value) == (40, 40) for value in tensors_of(graph, new).values())
    np.testing.assert_array_equal(read_model(model)(large, np.array(False))["y"], np.full((40, 40), 3.5, np.float32))


@pytest.mark.parametrize("kept", [(), ("W",)])
def test_weights_that_a_layer_has_are_in_no_graph(kept: tuple[str, ...]) -> None:
    weights = {"W": np.ones((1, 4, 3), np.float32), "R": np.ones((1, 4, 4), np.float32)}
    x = np.ones((5, 2, 3), np.float32)
    model = simple_model([node("RNN", ["x", "W", "R"], ["y"], hidden_size=4)], {"x": x}, ["y"], weights)
    folded_graph = fold(model.graph, {"": 17}, evaluate_node, "test")
    graph = recurrent_graph(recognised(folded_graph, {"": 17}, evaluate_node))
    layers = graph.layers({"": 17})
    new, large = graph.rebuilt(kept, layers)
    assert contents(new) == (["RNN"], list(kept))
    assert large == []
    assert list(new.node[0].input) == ["x", "", ""]
    results = read_model(model)(x, outputs=["y", *kept])
    np.testing.assert_array_equal(results["y"], layers["y"](x)[0])
    for name in kept:
        np.testing.assert_array_equal(results[name], weights[name])
