"""Small ONNX models, made for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from cases import Array
from onnx import helper, numpy_helper


def value_info(name: str, array: Array, shape: Sequence[int | str | None] | None = None) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, element, array.shape if shape is None else shape)


def make_graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
) -> onnx.GraphProto:
    """Inputs are declared with the dtypes of the arrays and open shapes, outputs without a type."""
    return helper.make_graph(
        list(nodes),
        "test",
        [value_info(name, array, [None] * array.ndim) for name, array in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )


def make_model(graph: onnx.GraphProto, opset: int = 17, *, ir_version: int = 8, **others: Any) -> onnx.ModelProto:
    """`others`: versions of further domains as domains={...}, functions=[...]."""
    opsets = {"": opset, **others.get("domains", {})}
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        functions=others.get("functions", []),
        ir_version=ir_version,
    )


def simple_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
    **others: Any,
) -> onnx.ModelProto:
    return make_model(make_graph(nodes, inputs, outputs, constants), opset, **others)
