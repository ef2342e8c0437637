"""Walks over nodes: missing inputs and outputs, and nested bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model

from pyrnnx import FormatError, PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.graph.check import check_names, is_in_order
from pyrnnx.frontends.onnx.graph.walk import SPARSE, Graph, all_graphs, local_names, needed_names, subgraphs

node = helper.make_node
X = np.ones((2, 3), np.float32)


def nested(depth: int) -> onnx.ModelProto:
    """If in If in If; made from outside to inside, since copies of such depths are refused by protobuf."""
    model = simple_model([], {"x": X, "c": np.array(True)}, ["y0"])
    graph = model.graph
    for k in range(depth):
        choice = graph.node.add(op_type="If", input=["c"], output=[f"y{k}"])
        other = choice.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH).g
        other.name = f"else{k}"
        other.node.add(op_type="Identity", input=["x"], output=[f"e{k}"])
        other.output.add(name=f"e{k}")
        graph = choice.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
        graph.name = f"then{k}"
        graph.output.add(name=f"y{k + 1}")
    graph.node.add(op_type="Neg", input=["x"], output=[f"y{depth}"])
    return model


@pytest.mark.parametrize("depth", [60, 1000])
def test_deep_bodies(depth: int) -> None:
    with pytest.raises(PyrnnxError):
        read_model(nested(depth))


def test_fields_that_are_read_once() -> None:
    then, other = (make_graph([node(name, ["a"], ["p"])], {}, ["p"]) for name in ("Neg", "Abs"))
    nodes = [node("Add", ["x", "w"], ["a"]), node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    value = onnx.numpy_helper.from_array(X, "held")
    nodes.append(node("Constant", [], ["k"], value=value))
    proto = simple_model(nodes, {"x": X, "c": np.array(True)}, ["y"], {"w": X}).graph
    graph = Graph(proto)
    assert [each.op_type for each in graph.every] == ["Add", "If", "Constant", "Abs", "Neg"]
    assert graph.kinds == {("", each.op_type) for each in graph.every}
    assert [needed_names(each) for each in graph.node] == [needed_names(each) for each in proto.node]
    assert [each.needs for each in graph.node] == [{"x", "w"}, {"c", "a"}, set()]
    assert graph.local == local_names(proto) == {"x", "c", "w", "a", "y", "k"}
    assert sorted(tensor.name for tensor in graph.tensors) == ["held", "w"]
    assert [dict(subgraphs(each)).keys() for each in graph.node] == [
        dict(subgraphs(each)).keys() for each in proto.node
    ]
    assert len(list(all_graphs(graph))) == 3


def test_sparse_tensors_are_read_with_their_parts() -> None:
    proto = onnx.GraphProto()
    sparse = proto.sparse_initializer.add()
    sparse.values.name, sparse.indices.name = "s", "places"
    graph = Graph(proto)
    assert [tensor.name for tensor in graph.tensors] == ["s", "places"]
    assert SPARSE in graph.kinds


def test_deep_bodies_are_counted() -> None:
    with pytest.raises(FormatError, match="is in 51 bodies; expected at most 50"):
        Graph(nested(60).graph)


def test_bodies_as_deep_as_a_file_can_hold_them() -> None:
    np.testing.assert_array_equal(read_model(nested(30))({"x": X, "c": np.array(True)})["y0"], -X)


def test_outputs_that_are_left_out_have_no_name_in_common() -> None:
    def cell(source: str, result: str) -> onnx.NodeProto:
        return node("RNN", [source, "w", "w"], ["", result], hidden_size=1)

    bodies: dict[str, Any] = {key: make_graph([cell("x", key)], {}, [key]) for key in ("then_branch", "else_branch")}
    nodes = [cell("x", "before"), node("If", ["c"], ["y"], **bodies)]
    constants = {"w": np.ones((1, 1, 1), np.float32)}
    graph = Graph(simple_model(nodes, {"x": X, "c": np.array(True)}, ["y"], constants).graph)
    assert is_in_order(graph)
    check_names(graph, "ONNX model")
