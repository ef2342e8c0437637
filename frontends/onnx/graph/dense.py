"""A model without sparse tensors: as initializers and in nodes, they become dense ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx import config
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, FormatError, shortened, shown

from ..onnx_package import import_onnx
from .constants import array_of
from .walk import DEFAULT_DOMAINS, all_nodes, subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, SparseTensorProto, TensorProto


def densified(model: ModelProto, label: str) -> ModelProto:
    """The model with dense tensors alone; itself where it is so already.

    Raises
    ------
    FormatError
        Values and indices that do not fit together or into the shape.
    ArgumentError
        Dense tensors that take more memory than a call may.
    """
    if not any(graph.sparse_initializer for graph in _graphs(model)) and not any(_sparse_constants(model)):
        return model
    result = type(model)()
    result.CopyFrom(model)
    tensors = _Tensors(label)
    for graph in _graphs(result):
        graph.initializer.extend(tensors.dense(one, one.values.name) for one in graph.sparse_initializer)
        del graph.sparse_initializer[:]
    for node, attribute in _sparse_constants(result):
        attribute.t.CopyFrom(tensors.dense(attribute.sparse_tensor, node.output[0]))
        attribute.ClearField("sparse_tensor")
        attribute.name, attribute.type = "value", attribute.TENSOR
    return result


def _graphs(model: ModelProto) -> Iterator[GraphProto]:
    yield model.graph
    for node in all_nodes(model.graph.node):
        yield from (graph for _, graph in subgraphs(node))


def _sparse_constants(model: ModelProto) -> Iterator[tuple[Any, Any]]:
    """Nodes that hold a sparse tensor, and the attribute that does."""
    for node in all_nodes(model.graph.node):
        if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
            yield from ((node, one) for one in node.attribute if one.name == "sparse_value")


class _Tensors:
    """The dense tensors of a model, whose bytes are counted before they are made."""

    def __init__(self, label: str) -> None:
        self._label, self._taken = label, 0

    def dense(self, sparse: SparseTensorProto, name: str) -> TensorProto:
        what = f"{self._label}: the sparse tensor {shown(name)}"
        values, shape = array_of(sparse.values, self._label), tuple(sparse.dims)
        if min(shape, default=0) < 0 or values.ndim != 1:
            raise FormatError(f"{what} has dims {shown(list(shape))} and values {values.shape}; expected [NNZ]")
        size, limit = math.prod(shape) * values.itemsize, config.get_memory_limit()
        if self._taken + size > limit:
            beside = f" beside {self._taken}" if self._taken else ""
            raise ArgumentError(
                f"{what} would take {size} bytes{beside}; all that a model has may take {limit} "
                "(pyrnnx.set_memory_limit allows more)"
            )
        self._taken += size
        places = self._places(what, sparse, shape, len(values))
        try:
            array = np.full(math.prod(shape), "" if values.dtype.kind in "OU" else 0, values.dtype)
        except (MemoryError, ValueError) as error:
            raise ArgumentError(f"{what} cannot be made ({shortened(str(error))})") from error
        array[places] = values
        tensor: TensorProto = import_onnx().numpy_helper.from_array(array.reshape(shape), name)
        return tensor

    def _places(self, what: str, sparse: SparseTensorProto, shape: tuple[int, ...], count: int) -> AnyArray:
        """Where the values go, counted in the order of memory."""
        if not count:
            return np.zeros(0, np.int64)
        indices = array_of(sparse.indices, self._label)
        if indices.dtype != np.int64 or indices.shape not in ((count,), (count, len(shape))):
            raise FormatError(
                f"{what} has indices {indices.dtype} {indices.shape}; expected int64, [{count}] or "
                f"[{count}, {len(shape)}]"
            )
        sizes = np.array(shape if indices.ndim == 2 else [math.prod(shape)])
        if (indices < 0).any() or (indices >= sizes).any():
            raise FormatError(f"{what} has indices that are not in its dims {shown(list(shape))}")
        places: AnyArray = np.ravel_multi_index(tuple(indices.T), shape) if indices.ndim == 2 else indices
        if (np.diff(places) <= 0).any():
            raise FormatError(f"{what} has indices that do not ascend; expected each once, in order")
        return places
