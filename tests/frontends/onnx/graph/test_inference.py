"""onnx's shape inference of operators on which it ends the process."""

import onnx
import pytest
from onnx import TensorProto, helper

from pyrnnx.frontends.onnx.graph.inference import infer_shapes

CRASHING = {
    "no type": helper.make_node("RegexFullMatch", ["unknown"], ["z"], pattern="a"),
    "outputs that are not counted": helper.make_node("Split", ["x"], ["z"], num_outputs=3),
}


@pytest.mark.parametrize("node", CRASHING.values(), ids=CRASHING)
def test_the_process_goes_on(node: onnx.NodeProto) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])
    nodes = [helper.make_node("Unheard", ["x"], ["unknown"]), node, helper.make_node("Neg", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [onnx.ValueInfoProto(name="y")])
    inferred = infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    assert [output.op_type for output in inferred.graph.node] == [one.op_type for one in nodes]
    assert inferred.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
