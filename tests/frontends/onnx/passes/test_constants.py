"""Weights that are computed from constants: both doors have their layers, with the values of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from both_doors import run_both, weights_like
from onnx import TensorProto, helper, numpy_helper
from onnx_models import make_graph, simple_model
from rows import each_row

from pyrnnx import PyrnnxError, reference
from pyrnnx.frontends.onnx import UnboundNode, read_model
from pyrnnx.testing.numbers import Array

node = helper.make_node
I, H = 3, 4
X = weights_like(0, x=(5, 2, I))["x"]
ARRAYS = weights_like(1, W=(1, 3 * H, I), R=(1, 3 * H, H))
W, R = ARRAYS["W"], ARRAYS["R"]
B = weights_like(2, B=(1, 6 * H))["B"]
CELL = node("GRU", ["x", "W", "R", "B"], ["y"], hidden_size=H, name="gru")
Nodes = list[onnx.NodeProto]
Chain = tuple[Nodes, dict[str, Any]]


def codes(array: Array, zero: int = 0, dtype: Any = np.int8) -> Array:
    result: Array = (np.rint(array * 100) + zero).astype(dtype)
    return result


# Nodes that compute W, R or B, and their constants.
CHAINS: dict[str, Chain] = {
    "Transpose": ([node("Transpose", ["Wt"], ["W"], perm=[0, 2, 1])], {"Wt": W.swapaxes(1, 2).copy()}),
    "Cast": ([node("Cast", ["W16"], ["W"], to=TensorProto.FLOAT)], {"W16": W.astype(np.float16)}),
    "Cast of bfloat16": (
        [node("Cast", ["W32"], ["Wb"], to=TensorProto.BFLOAT16), node("Cast", ["Wb"], ["W"], to=TensorProto.FLOAT)],
        {"W32": W},
    ),
    "DequantizeLinear": (
        [node("DequantizeLinear", ["W8", "scale", "zero"], ["W"])],
        {"W8": codes(W, 7), "scale": np.array(0.01, np.float32), "zero": np.array(7, np.int8)},
    ),
    "a shape": (
        [
            *(node("Shape", ["R"], ["shape"]), node("Gather", ["shape", "last"], ["h"])),
            node("ConstantOfShape", ["sizes"], ["ones"], value=numpy_helper.from_array(np.array([1], np.float32))),
            *(node("Cast", ["h"], ["hf"], to=TensorProto.FLOAT), node("Div", ["ones", "hf"], ["B"])),
        ],
        {"last": np.array(2), "sizes": np.array([1, 6 * H])},
    ),
    "a Constant": ([node("Constant", [], ["W"], value=numpy_helper.from_array(W))], {}),
    "shared": (
        [node("Split", ["both", "parts"], ["W", "R"], axis=2)],
        {"both": np.concatenate([W, R], axis=2), "parts": np.array([I, H])},
    ),
    "a state and lengths": (
        [node("Expand", ["half", "shape"], ["h0"]), node("Cast", ["lens64"], ["lens"], to=TensorProto.INT32)],
        {"half": np.array(0.5, np.float32), "shape": np.array([1, 2, H]), "lens64": np.array([5, 2])},
    ),
}


def model_of(chain: Chain) -> onnx.ModelProto:
    nodes, constants = chain
    made = {output for one in nodes for output in one.output}
    others = {name: array for name, array in {"W": W, "R": R, "B": B}.items() if name not in made}
    cell = onnx.NodeProto.FromString(CELL.SerializeToString())
    cell.input.extend(["lens", "h0"] if "h0" in made else [])
    return simple_model([*nodes, cell], {"x": X}, ["y"], {**others, **constants})


@each_row("name", CHAINS)
def test_layers(name: str) -> None:
    run_both(model_of(CHAINS[name]), {"x": X}, {"x": -X}, layers=["gru"])


def in_a_body(chain: Chain) -> onnx.ModelProto:
    """The nodes in the body, their constants around it."""
    proto = model_of(chain)
    bodies: dict[str, Any] = {
        "then_branch": make_graph(list(proto.graph.node), {}, ["y"]),
        "else_branch": make_graph([node("Unsqueeze", ["x", "axis"], ["z"])], {}, ["z"]),
    }
    constants = {one.name: numpy_helper.to_array(one) for one in proto.graph.initializer}
    choice = node("If", ["c"], ["out"], **bodies)
    return simple_model([choice], {"x": X, "c": np.array(True)}, ["out"], {**constants, "axis": np.array([1])})


def captured(chain: Chain) -> onnx.ModelProto:
    """The nodes around the body, in which only the layer is."""
    proto = in_a_body(chain)
    choice = proto.graph.node[0]
    (then,) = (attribute.g for attribute in choice.attribute if attribute.name == "then_branch")
    inner = list(then.node)
    del then.node[:]
    then.node.append(inner[-1])
    del proto.graph.node[:]
    proto.graph.node.extend([*inner[:-1], choice])
    return proto


# These differ in where constants come from, not in how they are computed.
IN_BODIES = ("Transpose", "DequantizeLinear", "a shape", "shared", "a state and lengths")


@each_row("place", [in_a_body, captured])
def test_layers_in_bodies(place: Callable[[Chain], onnx.ModelProto]) -> None:
    for name in IN_BODIES:
        chain = CHAINS[name]
        proto = place(chain)
        results = run_both(proto, {"x": X, "c": np.array(True)}, {"x": X, "c": np.array(False)}, layers=["gru"])
        plain = read_model(model_of(chain))(X)["y"]
        np.testing.assert_array_equal(results["out"], plain, err_msg=name)


# Values that are no constants

VARYING: dict[str, Nodes] = {
    "random": [node("RandomNormal", [], ["s"], shape=[1, 3 * H, I])],
    "an input": [node("ReduceSum", ["x"], ["s"], keepdims=0)],
}


@each_row("name", VARYING)
def test_weights_that_vary(name: str) -> None:
    """They are computed in each call, and the layer is built then."""
    nodes = [*VARYING[name], node("Mul", ["s", "nothing"], ["none"]), node("Add", ["W0", "none"], ["W"])]
    proto = model_of((nodes, {"W0": W, "nothing": np.array(0, np.float32)}))
    run_both(proto, {"x": X}, layers=[])
    (layer,) = read_model(proto).layers.values()
    assert isinstance(layer, UnboundNode)


@each_row(("dtype", "layout"), [(np.float32, 1), (np.float64, 0), (np.float64, 1), (np.float16, 0)], ids=str)
def test_what_onnxruntime_has_no_kernel_for(dtype: Any, layout: int) -> None:
    """layout=1 and float64 with weights that are computed from inputs."""
    nodes = [
        *(node("ReduceSum", ["x"], ["s"], keepdims=0), node("Mul", ["s", "nothing"], ["none"])),
        node("Add", ["W0", "none"], ["W"]),
        node("GRU", ["x", "W", "R", "B"], ["y", "h"], hidden_size=H, layout=layout, name="gru"),
        node("Neg", ["y"], ["z"]),
    ]
    constants: dict[str, Any] = {
        **{name: array.astype(dtype) for name, array in {"W0": W, "R": R, "B": B}.items()},
        "nothing": np.array(0, dtype),
    }
    x = X.astype(dtype)
    proto = simple_model(nodes, {"x": x}, ["z", "h"], constants)
    expected = reference.gru(x, constants["W0"], constants["R"], B=constants["B"], layout=layout)
    atol = {np.float16: 4e-3, np.float32: 1e-6}.get(dtype, 1e-13)
    results = list(read_model(proto)(x).values())
    np.testing.assert_allclose(results[0], -expected[0], atol=atol)
    np.testing.assert_allclose(results[1], expected[1], atol=atol)


def test_constants_that_cannot_be_computed() -> None:
    """A Gather of an element that is not there: the error is the call's, and names the node."""
    nodes = [node("Gather", ["many", "nine"], ["W"], axis=0, name="pick")]
    proto = model_of((nodes, {"many": W, "nine": np.array([9])}))
    model = read_model(proto)
    assert [type(layer) for layer in model.layers.values()] == [UnboundNode]
    with pytest.raises(PyrnnxError, match=r"ONNX model: .*'pick'.*idx=9"):
        model(X)


def test_random_weights_of_a_function_are_no_constants() -> None:
    body = [node("RandomUniform", [], ["r"], shape=[1, 3 * H, I])]
    function = helper.make_function("own", "Drawn", [], ["r"], body, [helper.make_opsetid("", 17)])
    nodes = [node("Drawn", [], ["W"], domain="own"), node("GRU", ["x", "W", "R"], ["y"], hidden_size=H)]
    proto = simple_model(nodes, {"x": X}, ["y", "W"], {"R": R}, domains={"own": 1}, functions=[function])
    model = read_model(proto)
    for _ in range(2):
        results = model(X)
        np.testing.assert_allclose(results["y"], reference.gru(X, results["W"], R)[0], atol=1e-6)
