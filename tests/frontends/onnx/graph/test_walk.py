"""Walks over nodes: missing inputs and outputs, and nested bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model
from rows import each_row

from pyrnnx import FormatError, PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.constants import fold_constants
from pyrnnx.frontends.onnx.graph.check import check_model
from pyrnnx.frontends.onnx.graph.walk import SPARSE, Graph, all_graphs, local_names, needed_names, subgraphs

pytestmark = pytest.mark.usefixtures("small_limit")
node = helper.make_node
X = np.ones((2, 3), np.float32)
ONE = np.ones(1, np.float32)


def scan(count: int) -> onnx.ModelProto:
    body = make_graph(
        [node("Add", ["a", "b"], ["c"]), node("Identity", ["c"], ["d"])], {"a": ONE, "b": ONE}, ["c", "d"]
    )
    nodes = [node("Scan", ["one", "x"], ["last", "y"], name="walk", body=body, num_scan_inputs=count)]
    return simple_model(nodes, {"x": X}, ["y"], {"one": np.ones(3, np.float32)})


@each_row("count", [2**28, 2**62, 3, 0, -1])
def test_scan_inputs_that_are_not_there(count: int) -> None:
    with pytest.raises(FormatError, match=rf"Scan 'walk': num_scan_inputs is {count}; the node has 2 inputs"):
        read_model(scan(count))(X)


def test_scan() -> None:
    np.testing.assert_array_equal(read_model(scan(1))(X)["y"], [[2, 2, 2], [3, 3, 3]])


@each_row(("count", "outputs"), [(2**40, ["y"]), (1, ["y", "z"]), (0, ["y"]), (-1, ["y"])])
def test_split_of_another_number_of_outputs(count: int, outputs: list[str]) -> None:
    """onnx and ONNX Runtime end the process if there are fewer than outputs, and their size is known."""
    split = node("Split", ["x"], outputs, name="cut", num_outputs=count)
    opset = helper.make_opsetid("", 18)
    function = helper.make_function("own", "Cut", ["x"], outputs, [split], [opset])
    for part, functions in ((split, []), (node("Cut", ["x"], outputs, domain="own"), [function])):
        proto = simple_model([part], {"x": X}, outputs, opset=18)
        proto.functions.extend(functions)
        proto.opset_import.add(domain="own", version=1)
        for read in (read_model, fold_constants):
            with pytest.raises(FormatError, match=f"num_outputs is {count}; the node has {len(outputs)} outputs"):
                read(proto)


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
        check_model(nested(60), "ONNX model")


def test_bodies_as_deep_as_a_file_can_hold_them() -> None:
    np.testing.assert_array_equal(read_model(nested(30))({"x": X, "c": np.array(True)})["y0"], -X)


def test_outputs_that_are_left_out_have_no_name_in_common() -> None:
    def cell(source: str, result: str) -> onnx.NodeProto:
        return node("RNN", [source, "w", "w"], ["", result], hidden_size=1)

    bodies: dict[str, Any] = {key: make_graph([cell("x", key)], {}, [key]) for key in ("then_branch", "else_branch")}
    nodes = [cell("x", "before"), node("If", ["c"], ["y"], **bodies)]
    constants = {"w": np.ones((1, 1, 1), np.float32)}
    check_model(simple_model(nodes, {"x": X, "c": np.array(True)}, ["y"], constants), "ONNX model")
