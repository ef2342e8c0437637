"""All passes in their order: models that both doors run, and those that they leave to ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from both_doors import run_both, weights_like
from onnx import TensorProto, helper
from onnx_models import make_graph, simple_model
from rows import each_row

from pyrnnx import PyrnnxError, reference
from pyrnnx.frontends.onnx import NodeLayer, UnboundNode, read_model
from pyrnnx.frontends.onnx.graph.walk import Graph
from pyrnnx.frontends.onnx.passes import find_layers, rewritten
from pyrnnx.onnxruntime import InferenceSession

node = helper.make_node
I, H = 3, 40
X = weights_like(0, x=(5, 2, I))["x"]
WEIGHTS = weights_like(1, W=(1, 3 * H, I), R=(1, 3 * H, H))  # R is large enough to become an array of the model
OTHER = weights_like(2, W=(1, 3 * H, I), R=(1, 3 * H, H))
GRU = node("GRU", ["x", "W", "R"], ["y"], hidden_size=H, name="gru")


def plain(**others: Any) -> onnx.ModelProto:
    nodes = [GRU, node("Add", ["y", "shift"], ["z"])]
    return simple_model(nodes, {"x": X}, ["z"], WEIGHTS | {"shift": np.array(0.5, np.float32)}, **others)


def with_defaults(ir_version: int) -> onnx.ModelProto:
    """All initializers are inputs, too."""
    proto = plain(ir_version=ir_version)
    for tensor in proto.graph.initializer:
        proto.graph.input.append(helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.dims))
    return proto


@each_row("ir_version", [3, 4, 8])
def test_defaults(ir_version: int) -> None:
    """A call may replace them, with any of them left out; the layer has those of the file."""
    model = read_model(with_defaults(ir_version))
    assert [info.optional for info in model.inputs] == [False, True, True, True]
    assert [type(layer) for layer in model.layers.values()] == [NodeLayer]
    shift = np.array(2, np.float32)
    replaced: list[dict[str, Any]] = [{}, {"R": OTHER["R"]}, {"shift": shift}, {**OTHER, "shift": shift}, {}]
    for more in replaced:
        weights = WEIGHTS | {name: array for name, array in more.items() if name in "WR"}
        expected = reference.gru(X, **weights)[0] + more.get("shift", 0.5)
        np.testing.assert_allclose(model({"x": X, **more})["z"], expected, atol=2e-6)
        (y,) = model({"x": X, **more}, outputs=["y"]).values()
        np.testing.assert_allclose(y, reference.gru(X, **weights)[0], atol=2e-6)
    session = InferenceSession(with_defaults(ir_version).SerializeToString())
    is_constant = ir_version == 3  # ONNX Runtime's rule
    assert len(session.layers) == is_constant
    np.testing.assert_allclose(session.run(None, {"x": X})[0], model(X)["z"], atol=2e-6)


def test_only_some_defaults_are_weights() -> None:
    proto = plain()
    proto.graph.input.append(helper.make_tensor_value_info("shift", TensorProto.FLOAT, []))
    run_both(proto, {"x": X}, {"x": X, "shift": np.array(3, np.float32)}, layers=["gru"])


# Parts that the passes leave alone


def gru(source: str, *outputs: str) -> onnx.NodeProto:
    return node("GRU", [source, "W", "R"], outputs, hidden_size=H)


# Nodes, outputs, and constants besides the weights.
AROUND: dict[str, tuple[list[Any], list[str], dict[str, Any]]] = {
    "values that are no tensors": (
        [node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceAt", ["s", "one"], ["t"]), gru("t", "y")],
        ["y"],
        {"one": np.array(1)},
    ),
    "an operator that only ONNX Runtime has": (
        [node("Gelu", ["x"], ["g"], domain="com.microsoft"), gru("g", "y")],
        ["y"],
        {},
    ),
    "dead nodes": ([GRU, gru("x", "unused"), node("Neg", ["unused"], ["dead"])], ["y"], {}),
    "missing outputs": (
        [gru("x", "", "h"), node("Dropout", ["h"], ["d", ""]), node("Split", ["d"], ["a", "b"], axis=2)],
        ["h", "b"],
        {},
    ),
    "optional inputs": ([GRU, node("Clip", ["y", "", "most"], ["z"])], ["z"], {"most": np.float32(0)}),
    "a weight that another node needs": ([GRU, node("ReduceSum", ["R"], ["s"])], ["y", "s"], {}),
    "a weight that is an output": ([GRU, node("Identity", ["W"], ["w"])], ["y", "w", "R"], {}),
}


@each_row(("nodes", "outputs", "constants"), AROUND.values(), ids=AROUND)
def test_around_layers(nodes: list[Any], outputs: list[str], constants: dict[str, Any]) -> None:
    proto = simple_model(nodes, {"x": X}, outputs, WEIGHTS | constants, domains={"com.microsoft": 1})
    run_both(proto, {"x": X}, {"x": X[:1]}, {"x": X[:, :1]})
    assert read_model(proto).layers


# Errors of recurrent nodes, through both doors


def broken(**changes: Any) -> onnx.ModelProto:
    proto = plain()
    for key, value in changes.items():
        if key in WEIGHTS:
            tensor = next(one for one in proto.graph.initializer if one.name == key)
            tensor.CopyFrom(onnx.numpy_helper.from_array(value, key))
        else:
            proto.graph.node[0].attribute.append(helper.make_attribute(key, value))
    return proto


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "a weight": ({"R": WEIGHTS["R"][:, :-1]}, "GRU 'gru': R has shape"),
    "a direction": ({"direction": "sideways"}, "GRU 'gru': direction"),
    "an attribute": ({"output_sequence": 1}, "GRU 'gru': .*output_sequence"),
    "an activation": ({"activations": ["Tanh", "Sine"]}, "GRU 'gru': .*Sine"),
}


@each_row("name", BROKEN)
def test_recurrent_nodes_that_are_wrong(name: str) -> None:
    changes, message = BROKEN[name]
    proto = broken(**changes)
    for use in (
        lambda: read_model(proto).layers,
        lambda: read_model(proto)(X),
        lambda: InferenceSession(proto.SerializeToString()),
    ):
        with pytest.raises(PyrnnxError, match=message):
            use()


def test_a_call_that_does_not_fit() -> None:
    model, session = read_model(plain()), InferenceSession(plain().SerializeToString())
    wrong = np.zeros((5, 2, I + 1), np.float32)
    for use in (lambda: model(wrong), lambda: session.run(None, {"x": wrong})):
        with pytest.raises(PyrnnxError, match=r"^GRU 'gru': X has shape \(5, 2, 4\)"):
            use()


# Parts that the passes make


def test_weights_are_dropped_and_the_rest_stays() -> None:
    proto = plain()
    before = proto.SerializeToString()
    found = find_layers(proto, Graph(proto.graph), "ONNX model")
    result = rewritten(found).proto
    assert [(one.domain, one.op_type) for one in result.graph.node] == [("pyrnnx", "Recurrent"), ("", "Add")]
    assert [tensor.name for tensor in result.graph.initializer] == ["shift"]
    assert proto.SerializeToString() == before
    assert {one.name for one in rewritten(found, portable=True).proto.graph.initializer} > {"shift"}


def test_weights_that_a_body_needs_stay() -> None:
    """One that is an initializer, and one that is computed."""
    bodies: dict[str, Any] = {
        "then_branch": make_graph([node("ReduceSum", ["R"], ["a"])], {}, ["a"]),
        "else_branch": make_graph([node("ReduceMax", ["W"], ["b"])], {}, ["b"]),
    }
    nodes = [node("Neg", ["V"], ["W"]), GRU, node("If", ["c"], ["s"], **bodies)]
    constants = {"V": -WEIGHTS["W"], "R": WEIGHTS["R"]}
    proto = simple_model(nodes, {"x": X, "c": np.array(True)}, ["y", "s"], constants)
    run_both(proto, {"x": X, "c": np.array(True)}, {"x": X, "c": np.array(False)}, layers=["gru"])


def test_a_computed_weight_of_a_type_that_is_unknown() -> None:
    """Then load leaves the node to ONNX Runtime, too."""
    nodes = [
        *(node("SequenceConstruct", ["x"], ["s"]), node("SequenceAt", ["s", "zero"], ["t"])),
        *(node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Mul", ["W", "sum"], ["V"])),
        node("GRU", ["t", "V", "R"], ["y"], hidden_size=H, name="gru"),
    ]
    proto = simple_model(nodes, {"x": X}, ["y"], WEIGHTS | {"zero": np.array(0)})
    run_both(proto, {"x": X / 10}, layers=[])
    assert [type(layer) for layer in read_model(proto).layers.values()] == [UnboundNode]
