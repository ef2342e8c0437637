"""Models of opsets 1 to 6, which ONNX Runtime does not have, and the other name of the default domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from both_doors import weights_like
from onnx import TensorProto, helper
from onnx_models import make_graph, simple_model
from rows import each_row, few_rows

from pyrnnx import UnsupportedError, reference
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import Array

node = helper.make_node
I, H = 3, 4
X = weights_like(0, x=(5, 2, I))["x"]
WEIGHTS = weights_like(1, W=(1, 4 * H, I), R=(1, 4 * H, H))
FACTOR = weights_like(2, M=(I, I), row=(I,), one=(1,), rows=(5, 1, 1))
ROW, ONE, M = FACTOR["row"], FACTOR["one"], FACTOR["M"]
OLD = (1, 3, 5, 6)


def lstm(opset: int, source: str = "a") -> onnx.NodeProto:
    attributes: dict[str, Any] = {"output_sequence": 1} if opset < 7 else {}
    return node("LSTM", [source, "W", "R"], ["y"], hidden_size=H, name="lstm", **attributes)


# Nodes from x to a, and what they compute.
BEFORE: dict[str, tuple[Sequence[Any], Callable[[Array], Any]]] = {
    "Relu": ([node("Relu", ["x"], ["a"])], lambda x: np.maximum(x, 0)),
    "Add of one shape": ([node("Neg", ["x"], ["n"]), node("Add", ["n", "x"], ["a"])], lambda x: x - x),
    "Mul that broadcasts": ([node("Mul", ["x", "row"], ["a"], broadcast=1)], lambda x: x * ROW),
    "Add of one element": ([node("Add", ["x", "one"], ["a"], broadcast=1)], lambda x: x + ONE),
    "Sub of a product": ([node("MatMul", ["x", "M"], ["m"]), node("Sub", ["m", "x"], ["a"])], lambda x: x @ M - x),
    "Div, Pow": (
        [node("Mul", ["x", "x"], ["s"]), node("Add", ["s", "one"], ["p"], broadcast=1), node("Div", ["x", "p"], ["a"])],
        lambda x: x / (x * x + ONE),
    ),
    "Concat, Split": (
        [node("Concat", ["x", "x"], ["c"], axis=2), node("Split", ["c"], ["a", "unused"], axis=2, split=[I, I])],
        lambda x: x,
    ),
}


def model_of(name: str, opset: int, **others: Any) -> onnx.ModelProto:
    nodes = [*BEFORE[name][0], lstm(opset)]
    used = {value for one in nodes for value in one.input}
    constants = {key: array for key, array in (WEIGHTS | FACTOR).items() if key in used}
    return simple_model(nodes, {"x": X}, ["y"], constants, opset, **others)


ROWS = [(name, opset) for name in BEFORE for opset in OLD if (name, opset) != ("Concat, Split", 1)]


@few_rows(("name", "opset"), ROWS[::3], [row for k, row in enumerate(ROWS) if k % 3])
def test_old_opsets(name: str, opset: int) -> None:
    """Sizes are open, as in files for any batch."""
    model = read_model(model_of(name, opset))
    assert list(model.layers) == ["lstm"]
    for x in (X, X[:2], -X[:, :1]):
        expected = reference.lstm(np.asarray(BEFORE[name][1](x), np.float32), **WEIGHTS)[0]
        np.testing.assert_allclose(model(x)["y"], expected, atol=2e-6)


def test_axes_of_broadcasts() -> None:
    """`axis` says which axis of x the first one of the other is; onnx converts it where sizes are known."""
    nodes = [node("Mul", ["x", "rows"], ["a"], broadcast=1, axis=0), lstm(6)]
    constants = WEIGHTS | {"rows": FACTOR["rows"].reshape(5)}
    proto = simple_model(nodes, {"x": X}, ["y"], constants, 6)
    for size, value in zip(proto.graph.input[0].type.tensor_type.shape.dim, X.shape, strict=True):
        size.dim_value = value
    expected = reference.lstm(X * FACTOR["rows"], **WEIGHTS)[0]
    np.testing.assert_allclose(read_model(proto)(X)["y"], expected, atol=2e-6)
    for size in proto.graph.input[0].type.tensor_type.shape.dim:
        size.Clear()
    with pytest.raises(UnsupportedError, match=r"ONNX Runtime cannot run the model: .*Mul\(6\)"):
        read_model(proto)(X)


def test_old_opsets_in_bodies() -> None:
    bodies: dict[str, Any] = {
        "then_branch": make_graph([node("Add", ["x", "one"], ["a"], broadcast=1), lstm(6)], {}, ["y"]),
        "else_branch": make_graph([node("Unsqueeze", ["x"], ["z"], axes=[1])], {}, ["z"]),
    }
    nodes = [node("If", ["c"], ["out"], **bodies)]
    proto = simple_model(nodes, {"x": X, "c": np.array(True)}, ["out"], WEIGHTS | {"one": ONE}, 6)
    model = read_model(proto)
    np.testing.assert_allclose(model(X, np.array(True))["out"], reference.lstm(X + ONE, **WEIGHTS)[0], atol=2e-6)
    np.testing.assert_array_equal(model(X, np.array(False))["out"], X[:, np.newaxis])


def test_files_before_opsets() -> None:
    """IR versions 1 and 2 are of opset 1."""
    proto = model_of("Relu", 1)
    del proto.opset_import[:]
    proto.ir_version = 2
    for tensor in proto.graph.initializer:
        proto.graph.input.append(helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.dims))
    expected = reference.lstm(np.maximum(X, 0), **WEIGHTS)[0]
    np.testing.assert_allclose(read_model(proto)(X)["y"], expected, atol=2e-6)


@each_row("opset", [6, 7, 17])
def test_the_other_name_of_the_default_domain(opset: int) -> None:
    proto = model_of("Relu", opset)
    proto.opset_import[0].domain = "ai.onnx"
    for one in proto.graph.node:
        one.domain = "ai.onnx"
    before = proto.SerializeToString()
    model = read_model(proto)
    assert list(model.layers) == ["lstm"]
    np.testing.assert_array_equal(model(X)["y"], read_model(model_of("Relu", opset))(X)["y"])
    assert proto.SerializeToString() == before


def test_operators_that_newer_opsets_have_otherwise() -> None:
    """Hardmax has one 1 in all axes from `axis` on, and from opset 13 on one along `axis`."""
    nodes = [node("Hardmax", ["x"], ["m"], axis=1), lstm(6, "m")]
    maxima = np.zeros_like(X).reshape(len(X), -1)
    maxima[np.arange(len(X)), X.reshape(len(X), -1).argmax(axis=1)] = 1
    expected = reference.lstm(maxima.reshape(X.shape), **WEIGHTS)[0]
    np.testing.assert_allclose(
        read_model(simple_model(nodes, {"x": X}, ["y"], WEIGHTS, 6))(X)["y"], expected, atol=2e-6
    )
