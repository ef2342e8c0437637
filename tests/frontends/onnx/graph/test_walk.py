"""Walks over nodes: missing inputs and outputs, and nested bodies."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import simple_model

from pyrnnx import FormatError, PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.graph.inference import infer_shapes
from pyrnnx.frontends.onnx.graph.walk import Graph

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


def test_deep_bodies_are_counted() -> None:
    with pytest.raises(FormatError, match="is in 51 bodies; expected at most 50"):
        Graph(nested(60).graph)


def test_bodies_as_deep_as_a_file_can_hold_them() -> None:
    np.testing.assert_array_equal(read_model(nested(30))({"x": X, "c": np.array(True)})["y0"], -X)


# Operators on which the shape inference of onnx ends the process
CRASHING = {
    "no type": node("RegexFullMatch", ["unknown"], ["z"], pattern="a"),
    "outputs that are not counted": node("Split", ["x"], ["z"], num_outputs=3),
}


@pytest.mark.parametrize("crashing", CRASHING.values(), ids=CRASHING)
def test_the_process_goes_on(crashing: onnx.NodeProto) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])
    nodes = [node("Unheard", ["x"], ["unknown"]), crashing, node("Neg", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [onnx.ValueInfoProto(name="y")])
    inferred = infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    assert [output.op_type for output in inferred.graph.node] == [one.op_type for one in nodes]
    assert inferred.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
