"""Constants of a graph: initializers, and values computed from them.

Large initializers become arrays: each copy of a message would copy them, and each session parse them.

    ModelProto { graph { node ..., initializer { name, dims, raw_data }, ... } }
    ->  the same message without raw_data, and {name: array}
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, shortened, shown

from ..messages import copied
from ..onnx_package import import_onnx
from .walk import Graph, Node

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

    Tensor: TypeAlias = TensorProto | AnyArray

_SMALLEST = 2**12  # bytes of an initializer that becomes an array
_COPIED = 2**24  # bytes from which on a message is worth a copy: it frees its memory only as a whole
_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")


class Constants:
    """Constants visible in a graph: its own, and those of the graphs around it.

    A body sees the names of the graphs around it, except those that it defines itself:

        a = 1, b = 2                    seen from the body:   a  1, of the outer graph
          body: b = input, c = 3                              b  none: an input of the body
                                                              c  3
    """

    def __init__(self, graph: Graph, outer: Constants | None, label: str) -> None:
        self._outer, self._label, self._local = outer, label, graph.local
        inputs = {value.name for value in graph.input}
        # Tensors become arrays lazily: most weights are only passed on.
        self._values: dict[str, Tensor] = {
            tensor.name: graph.arrays.get(tensor.name, tensor)
            for tensor in graph.initializer
            if tensor.name not in inputs
        }

    def add(self, values: Mapping[str, Tensor]) -> None:
        """Add the results of a node, read-only arrays or tensors."""
        self._values |= values

    def owner(self, name: str) -> Constants | None:
        """Return the constants that define the name; None if it is not constant."""
        owner: Constants | None = self
        while owner is not None and name not in owner._values:
            owner = None if name in owner._local else owner._outer
        return owner

    def value(self, name: str) -> AnyArray | None:
        owner = self.owner(name)
        return None if owner is None else owner._array(name)

    def tensor(self, name: str) -> Tensor | None:
        owner = self.owner(name)
        return None if owner is None else owner._values[name]

    def _array(self, name: str) -> AnyArray:
        array = self._values[name] = array_of(self._values[name], self._label)
        return array


def set_constants(graph: Graph, label: str, outer: Constants | None = None) -> Graph:
    """Set the constants of a graph and of its bodies, initializers and Constant nodes, and return the graph."""
    graph.constants = Constants(graph, outer, label)
    for node in graph.node:
        for _, body in node.bodies:
            set_constants(body, label, graph.constants)
        if node.op_type == "Constant" and (tensor := _constant_tensor(node)) is not None:
            graph.constants.add({node.output[0]: tensor})
    return graph


def _constant_tensor(node: Node) -> TensorProto | None:
    if node.domain or not node.attribute or node.attribute[0].name != "value" or not node.output:
        return None
    tensor: TensorProto = node.attribute[0].t
    return None if tensor.data_location else tensor


def named(tensor: Tensor, name: str) -> TensorProto:
    """Return the tensor as an onnx.TensorProto of that name, copied if necessary."""
    if isinstance(tensor, np.ndarray):
        result: TensorProto = import_onnx().numpy_helper.from_array(tensor, name)
        return result
    if tensor.name == name:
        return tensor
    copy = copied(tensor)
    copy.name = name
    return copy


# Dtypes whose raw data NumPy can view, by TensorProto.DataType.
PLAIN: Mapping[int, np.dtype[Any]] = MappingProxyType(
    {
        number: np.dtype(name)
        for number, name in (
            *((1, "f4"), (2, "u1"), (3, "i1"), (4, "u2"), (5, "i2"), (6, "i4"), (7, "i8"), (9, "?"), (10, "f2")),
            *((11, "f8"), (12, "u4"), (13, "u8")),
        )
    }
)


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    return tensor.shape if isinstance(tensor, np.ndarray) else tuple(tensor.dims[:])


def array_of(tensor: Tensor, label: str) -> AnyArray:
    """Return the read-only array of an onnx.TensorProto, or the array itself; errors name the model by `label`."""
    if isinstance(tensor, np.ndarray):
        return tensor
    value: AnyArray
    dtype = PLAIN.get(tensor.data_type) if sys.byteorder == "little" else None
    try:
        is_raw = tensor.HasField("raw_data") and not tensor.data_location and not tensor.HasField("segment")
        if dtype is not None and is_raw:
            return np.frombuffer(tensor.raw_data, dtype).reshape(tensor.dims)  # four times faster than onnx
        if tensor.data_location:
            raise ValueError("its data is in another file")
        value = import_onnx().numpy_helper.to_array(tensor)
    except Exception as error:  # of several types
        raise FormatError(
            f"{label}: the tensor {shown(tensor.name)} cannot be read ({shortened(str(error))})"
        ) from error
    value.flags.writeable = False
    return value


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
