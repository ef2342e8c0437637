"""Shapes that follow from those of a graph's inputs, beside the shapes of results of onnx's evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import simple_model

from pyrnnx.frontends.onnx.runtime.step_shapes import Shape, declare_shape, declared_shapes, shapes_of
from pyrnnx.testing.numbers import Array

node = helper.make_node


@dataclass(frozen=True)
class Step:
    """A node, the shapes of its inputs a, b, ..., its constants by name, and the shapes of its results p, q, ...

    `certain` is None if no shape is certain.
    """

    node: Any
    inputs: Sequence[Shape]
    certain: Sequence[Shape] | None
    constants: Mapping[str, Any] = field(default_factory=dict)
    dtype: Any = np.float32


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


STEPS = {
    "unary": Step(node("Tanh", ["a"], ["p"]), [("N", 4)], [("N", 4)]),
    "equal sizes": Step(node("Add", ["a", "b"], ["p"]), [("N", 4), ("N", 4)], [("N", 4)]),
    "sizes of 1": Step(node("Mul", ["a", "b"], ["p"]), [("N", 1), (1, 4)], [("N", 4)]),
    "fewer axes": Step(node("Sub", ["a", "b"], ["p"]), [(4,), (2, "N", 4)], [(2, "N", 4)]),
    "scalars": Step(node("Add", ["a", "b"], ["p"]), [(), ()], [()]),
    "constant": Step(node("Add", ["a", "c"], ["p"]), [("N", 4)], [("N", 4)], {"c": np.ones(4, np.float32)}),
    "different names": Step(node("Add", ["a", "b"], ["p"]), [("N", 4), ("M", 4)], None),
    "name and number": Step(node("Add", ["a", "b"], ["p"]), [("N", 4), (3, 4)], None),
    "numbers that do not fit": Step(node("Add", ["a", "b"], ["p"]), [(2, 4), (3, 4)], None),
    "product": Step(node("MatMul", ["a", "b"], ["p"]), [("N", 4), (4, "M")], [("N", "M")]),
    "products": Step(node("MatMul", ["a", "b"], ["p"]), [(2, 1, "N", 4), (6, 4, 5)], [(2, 6, "N", 5)]),
    "product of a vector": Step(node("MatMul", ["a", "b"], ["p"]), [(4,), (4, 5)], None),
    "product that does not fit": Step(node("MatMul", ["a", "b"], ["p"]), [("N", "M"), ("N", "M")], None),
    "Gemm": Step(
        node("Gemm", ["a", "b", "c"], ["p"], transA=1, transB=1),
        [(4, "N"), (5, 4)],
        [("N", 5)],
        {"c": np.ones((1, 5), np.float32)},
    ),
    "Gemm with a larger C": Step(node("Gemm", ["a", "b", "c"], ["p"]), [(1, 4), (4, 5), ("N", 5)], None),
    "equal parts": Step(node("Split", ["a"], ["p", "q"], axis=-1), [("N", 6)], [("N", 3), ("N", 3)]),
    "parts": Step(
        node("Split", ["a", "c"], ["p", "q"], axis=1), [("N", 6)], [("N", 2), ("N", 4)], {"c": integers(2, 4)}
    ),
    "parts of another sum": Step(
        node("Split", ["a", "c"], ["p", "q"], axis=1), [("N", 6)], None, {"c": integers(2, 5)}
    ),
    "parts of an unknown size": Step(node("Split", ["a"], ["p", "q"], axis=0), [("N", 6)], None),
    "Concat": Step(node("Concat", ["a", "b"], ["p"], axis=-1), [("N", 4), ("N", 2)], [("N", 6)]),
    "Concat without axis": Step(node("Concat", ["a", "b"], ["p"]), [("N", 4), ("N", 2)], None),
    "Concat along infinity": Step(node("Concat", ["a", "b"], ["p"], axis=math.inf), [("N", 4), ("N", 2)], None),
    "an attribute of a function": Step(
        onnx.NodeProto(op_type="Tanh", input=["a"], output=["p"], attribute=[onnx.AttributeProto(ref_attr_name="x")]),
        [("N", 4)],
        None,
    ),
    "Concat of an unknown size": Step(node("Concat", ["a", "b"], ["p"], axis=0), [("N", 4), ("N", 4)], None),
    "Concat of other sizes": Step(node("Concat", ["a", "b"], ["p"], axis=1), [("N", 4), ("M", 4)], None),
    "Slice": Step(
        node("Slice", ["a", "c", "d", "e", "f"], ["p"]),
        [("N", 8, 6)],
        [("N", 3, 3)],
        {"c": integers(-7, 3), "d": integers(2**62, -1 + 2**31), "e": integers(1, -1), "f": integers(3, 1)},
    ),
    "Slice of an unknown size": Step(
        node("Slice", ["a", "c", "d", "e"], ["p"]),
        [("N", 8)],
        None,
        {"c": integers(0), "d": integers(2), "e": integers(0)},
    ),
    "Slice whose places are computed": Step(
        node("Slice", ["a", "b", "d", "e"], ["p"]), [("N", 8), (1,)], None, {"d": integers(2), "e": integers(1)}
    ),
    "Transpose": Step(node("Transpose", ["a"], ["p"], perm=[1, 2, 0]), [("N", 4, 5)], [(4, 5, "N")]),
    "Transpose by default": Step(node("Transpose", ["a"], ["p"]), [("N", 4, 5)], [(5, 4, "N")]),
    "Transpose of other axes": Step(node("Transpose", ["a"], ["p"], perm=[0, 1]), [("N", 4, 5)], None),
    "quantized": Step(node("DynamicQuantizeLinear", ["a"], ["p", "q", "r"]), [("N", 4)], [("N", 4), (), ()]),
    "product of codes": Step(node("MatMulInteger", ["a", "b"], ["p"]), [("N", 4), (4, 5)], [("N", 5)], dtype=np.uint8),
    "Gather": Step(node("Gather", ["a", "c"], ["p"], axis=-2), [("N", 4, 5)], [("N", 2, 5)], {"c": integers(1, 0)}),
    "Gather by a scalar": Step(node("Gather", ["a", "c"], ["p"], axis=1), [("N", 4)], [("N",)], {"c": np.array(1)}),
    "Gather along other axes": Step(node("Gather", ["a", "c"], ["p"], axis=2), [("N", 4)], None, {"c": np.array(1)}),
    "other operators": Step(node("NonZero", ["a"], ["p"]), [("N", 4)], None),
    "other domains": Step(node("Tanh", ["a"], ["p"], domain="other"), [("N", 4)], None),
}


@pytest.mark.parametrize("name", STEPS)
def test_shapes(name: str) -> None:
    step = STEPS[name]
    known = dict(zip("ab", step.inputs, strict=False))
    known |= dict(zip("c", step.inputs[2:], strict=False))
    graph = onnx.GraphProto(node=[step.node])
    certain = shapes_of(graph, known, step.constants)
    if step.certain is None:
        assert not set(step.node.output) & set(certain)
        return
    assert [certain[name] for name in step.node.output] == list(step.certain)
    calls: Any = ({"N": 3, "M": 5}, {"N": 1, "M": 1}, {"N": 0, "M": 2})
    for sizes in calls:
        if name == "quantized" and not sizes["N"]:
            continue  # it has no largest element
        shapes = {name: [sizes.get(size, size) for size in shape] for name, shape in known.items()}
        arrays = {name: np.ones(shape, step.dtype) for name, shape in shapes.items()}
        model = simple_model([step.node], arrays, list(step.node.output), dict(step.constants), 17)
        results = ReferenceEvaluator(model).run(None, arrays)
        assert [np.shape(result) for result in results] == [
            tuple(sizes.get(size, size) for size in shape) for shape in step.certain
        ]


def test_sizes_beyond_64_bits_are_not_declared() -> None:
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    declare_shape(value, (2**63, 2**63 - 1, "N", -1))
    sizes = value.type.tensor_type.shape.dim
    assert [size.HasField("dim_value") and size.dim_value for size in sizes] == [False, 2**63 - 1, False, False]


def test_declared_shapes() -> None:
    declared: Any = [("x", ["N", 4]), ("y", [None, "N"]), ("s", []), ("none", None)]
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in declared]
    assert declared_shapes(values) == {"x": ("N", 4), "y": ("y 0", "N"), "s": ()}
