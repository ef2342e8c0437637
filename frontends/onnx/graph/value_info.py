"""Declared types of inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrnnx._internal.dtypes import named_dtype
from pyrnnx.errors import FormatError, shown
from pyrnnx.operator.tensor_info import TensorInfo

from ..onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import TensorShapeProto, ValueInfoProto


def tensor_info(label: str, info: ValueInfoProto, *, optional: bool = False) -> TensorInfo:
    """Return the declared name, dtype and shape of an input or output."""
    onnx = import_onnx()
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type") or tensor.elem_type == 0:
        return TensorInfo(info.name, optional=optional)
    dtype = "str"
    if tensor.elem_type != onnx.TensorProto.STRING:
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
        except KeyError:
            raise FormatError(f"{label}: {shown(info.name)} has the unknown element type {tensor.elem_type}") from None
    shape = tuple(_dimension(size) for size in tensor.shape.dim) if tensor.HasField("shape") else None
    return TensorInfo(info.name, dtype, shape, optional=optional)


def value_info(info: TensorInfo) -> ValueInfoProto:
    """Return an onnx.ValueInfoProto without a shape."""
    onnx = import_onnx()
    element = onnx.helper.np_dtype_to_tensor_dtype(named_dtype(str(info.dtype)))
    result: ValueInfoProto = onnx.helper.make_tensor_value_info(info.name, element, None)
    return result


def _dimension(dimension: TensorShapeProto.Dimension) -> int | str | None:
    if dimension.HasField("dim_value"):
        return dimension.dim_value if dimension.dim_value >= 0 else None
    return dimension.dim_param if isinstance(dimension.dim_param, str) and dimension.dim_param else None
