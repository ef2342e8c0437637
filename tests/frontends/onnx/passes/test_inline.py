"""Functions of a model: those with recurrent nodes become part of the graph, others stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from both_doors import run_both, weights_like
from onnx import helper
from onnx_models import make_graph, simple_model
from rows import each_row

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.passes.inline import inline_functions
from pyrnnx.onnxruntime import InferenceSession

node = helper.make_node
H = 4
X = weights_like(0, x=(5, 2, H))["x"]
WEIGHTS = weights_like(1, W=(1, 3 * H, H), R=(1, 3 * H, H))
GRU = node("GRU", ["p", "w", "r"], ["", "q"], hidden_size=H, name="gru")
NEG = node("Neg", ["p"], ["q"])


def function(name: str, nodes: Sequence[Any], inputs: Sequence[str] = ("p", "w", "r")) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, list(inputs), ["q"], list(nodes), imports)


def call(name: str, x: str, y: str, *weights: str) -> Any:
    return node(name, [x, *weights], [y], domain="own")


def model(nodes: Sequence[Any], functions: Sequence[onnx.FunctionProto], outputs: Sequence[str]) -> onnx.ModelProto:
    inputs = {"x": X, "c": np.array(True)}
    return simple_model(nodes, inputs, outputs, WEIGHTS, domains={"own": 1}, functions=functions)


OUTER = [
    call("Layer", "p", "a", "w", "r"),
    node("Identity", ["a"], ["a3"]),
    call("Layer", "a3", "b", "w", "r"),
    call("Plain", "b", "q"),
]
LAYER, PLAIN = function("Layer", [GRU]), function("Plain", [NEG], ["p"])
THEN = make_graph([call("Outer", "x", "t", "W", "R")], {}, ["t"])
ELSE = make_graph([call("Plain", "start", "e")], {}, ["e"])
# Nodes, functions, outputs, and number of layers.
MODELS: dict[str, tuple[Sequence[Any], Sequence[onnx.FunctionProto], list[str], int]] = {
    "one": ([call("Layer", "x", "y", "W", "R")], [LAYER], ["y"], 1),
    "twice": ([call("Layer", "x", "y", "W", "R"), call("Layer", "y", "z", "W", "R")], [LAYER], ["y", "z"], 2),
    "in another": ([call("Outer", "x", "y", "W", "R")], [LAYER, PLAIN, function("Outer", OUTER)], ["y"], 2),
    "in any order": ([call("Outer", "x", "y", "W", "R")], [function("Outer", OUTER), PLAIN, LAYER], ["y"], 2),
    "in a body": (
        [call("Layer", "x", "start", "W", "R"), node("If", ["c"], ["y"], then_branch=THEN, else_branch=ELSE)],
        [LAYER, PLAIN, function("Outer", OUTER)],
        ["y"],
        3,
    ),
}


@each_row("name", MODELS)
def test_functions_with_layers(name: str) -> None:
    nodes, functions, outputs, count = MODELS[name]
    proto = model(nodes, functions, outputs)
    run_both(proto, {"x": X, "c": np.array(True)}, {"x": X[:2], "c": np.array(False)})
    assert len(read_model(proto).layers) == count


def test_functions_without_layers_stay() -> None:
    proto = model([call("Plain", "x", "y")], [PLAIN, function("Unused", [NEG], ["p"])], ["y"])
    assert inline_functions(proto, "ONNX model") is proto
    np.testing.assert_array_equal(run_both(proto, {"x": X, "c": np.array(True)})["y"], -X)


def test_a_function_of_the_name_of_an_operator() -> None:
    """Its domain says that it is none."""
    proto = model([call("GRU", "x", "y")], [function("GRU", [NEG], ["p"])], ["y"])
    assert inline_functions(proto, "ONNX model") is proto
    np.testing.assert_array_equal(run_both(proto, {"x": X, "c": np.array(True)}, layers=[])["y"], -X)


def test_functions_that_call_each_other() -> None:
    functions = [function("F", [GRU, call("G", "p", "f", "w", "r")]), function("G", [call("F", "p", "q", "w", "r")])]
    proto = model([call("F", "x", "y", "W", "R")], functions, ["y"])
    for use in (lambda: read_model(proto).layers, lambda: InferenceSession(proto.SerializeToString())):
        with pytest.raises(PyrnnxError, match=r"functions call each other in a cycle; among own\.F, own\.G"):
            use()


def test_functions_that_grow() -> None:
    """Each calls the one before twice: 2**40 nodes if they were inlined."""
    functions = [LAYER]
    for k in range(40):
        before = "Layer" if k == 0 else f"F{k - 1}"
        functions.append(function(f"F{k}", [call(before, "p", "a", "w", "r"), call(before, "a", "q", "w", "r")]))
    proto = model([call("F39", "x", "y", "W", "R")], functions, ["y"])
    with pytest.raises(PyrnnxError, match="ONNX model: "):
        read_model(proto).layers  # noqa: B018


def test_functions_that_onnx_inlines_otherwise_are_left_to_onnxruntime() -> None:
    """onnx drops the default of an attribute; Softmax of opset 11 is over all axes from the first on."""
    cell = node("GRU", ["p", "w", "r"], ["", "q"], hidden_size=H)
    cell.attribute.add(name="linear_before_reset", ref_attr_name="lbr", type=onnx.AttributeProto.INT)
    default = function("Layer", [cell])
    default.attribute_proto.append(helper.make_attribute("lbr", 1))
    nodes = [GRU, node("Softmax", ["q"], ["s"]), node("Identity", ["s"], ["t"])]
    old = helper.make_function("own", "Layer", ["p", "w", "r"], ["t"], nodes, [helper.make_opsetid("", 11)])
    for layer in (default, old):
        proto = model([call("Layer", "x", "y", "W", "R")], [layer], ["y"])
        run_both(proto, {"x": X, "c": np.array(True)}, layers=[])
        assert "functions with recurrent nodes" in read_model(proto).layers.why_none
