"""Large initializers, as arrays of their own: each copy of a message would copy them, and each session parse them.

ModelProto { graph { node ..., initializer { name, dims, raw_data }, ... } }
->  the same message without raw_data, and {name: array}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError

from ..messages import copied
from .constants import PLAIN, array_of

if TYPE_CHECKING:
    from onnx import ModelProto

_SMALLEST = 2**12  # bytes of an initializer that becomes an array
_COPIED = 2**24  # bytes from which on a message is worth a copy: it frees its memory only as a whole
_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def without_large(model: ModelProto) -> tuple[ModelProto, Mapping[str, AnyArray]]:
    """Return a model without large values of initializers, and these as arrays by name; the model is changed."""
    arrays: dict[str, AnyArray] = {}
    tensors = []
    for tensor in model.graph.initializer:
        size = math.prod(tensor.dims) * PLAIN[tensor.data_type].itemsize if tensor.data_type in PLAIN else 0
        if size >= _SMALLEST and not tensor.data_location and tensor.name:
            if tensor.name in arrays:
                return model, {}  # the checks say so
            try:
                arrays[tensor.name] = array_of(tensor, "")
            except FormatError:  # ONNX Runtime says so
                continue
            tensors.append(tensor)
    for tensor in tensors:
        for field in _DATA:
            tensor.ClearField(field)
    is_large = sum(array.nbytes for array in arrays.values()) >= _COPIED
    return (copied(model) if is_large else model), arrays


def completed(model: ModelProto, arrays: Mapping[str, AnyArray]) -> ModelProto:
    """Return the model with these values of its initializers, itself if there are none."""
    return complete(copied(model), arrays) if arrays else model


def complete(model: ModelProto, arrays: Mapping[str, AnyArray]) -> ModelProto:
    """Set these values of a model's initializers in place, and return the model."""
    for tensor in model.graph.initializer:
        if tensor.name in arrays:
            tensor.raw_data = arrays[tensor.name].tobytes()
    return model
