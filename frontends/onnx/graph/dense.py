"""Conversion of sparse tensors, in initializers and nodes, to dense ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, FormatError, shortened, shown

from ..messages import copied
from ..onnx_package import import_onnx
from .constants import array_of
from .walk import DEFAULT_DOMAINS, SPARSE, Graph, Node, all_graphs

if TYPE_CHECKING:
    from onnx import AttributeProto, ModelProto, SparseTensorProto, TensorProto


def densified(model: ModelProto, label: str, graph: Graph | None = None) -> ModelProto:
    """Return the model without sparse tensors, itself if it has none; `graph` is its graph, if already read.

    Raises
    ------
    FormatError
        Values and indices do not match each other or the shape.
    ArgumentError
        The dense tensors exceed the memory limit.
    """
    read = Graph(model.graph) if graph is None else graph
    if SPARSE not in read.kinds and not any(_sparse_constants(read)):
        return model
    result = copied(model)
    tensors = _Tensors(label)
    copy = Graph(result.graph)
    for inner in all_graphs(copy):
        dense = (tensors.dense(sparse, sparse.values.name) for sparse in inner.sparse_initializer)
        inner.proto.initializer.extend(dense)
        del inner.proto.sparse_initializer[:]
    for node, attribute in _sparse_constants(copy):
        attribute.t.CopyFrom(tensors.dense(attribute.sparse_tensor, node.output[0]))
        attribute.ClearField("sparse_tensor")
        attribute.name, attribute.type = "value", attribute.TENSOR
    return result


def _sparse_constants(graph: Graph) -> Iterator[tuple[Node, AttributeProto]]:
    """Yield nodes with a sparse tensor, and its attribute."""
    for node in graph.every:
        if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
            yield from ((node, attribute) for attribute in node.attribute if attribute.name == "sparse_value")


class _Tensors:
    """Dense tensors of a model, counted before they are allocated."""

    def __init__(self, label: str) -> None:
        self._label, self._taken = label, 0

    def dense(self, sparse: SparseTensorProto, name: str) -> TensorProto:
        what = f"{self._label}: the sparse tensor {shown(name)}"
        values, shape = array_of(sparse.values, self._label), tuple(sparse.dims)
        if min(shape, default=0) < 0 or values.ndim != 1:
            raise FormatError(f"{what} has dims {shown(list(shape))} and values {values.shape}; expected [NNZ]")
        size, limit = math.prod(shape) * values.itemsize, config.get_memory_limit()
        if self._taken + size > limit:
            taken = f" on top of {self._taken}" if self._taken else ""
            raise ArgumentError(
                f"{what} would take {size} bytes{taken}; the sparse tensors of a model may take {limit} "
                "(pyrnnx.set_memory_limit allows more)"
            )
        self._taken += size
        places = self._places(what, sparse, shape, len(values))
        try:
            array = np.full(math.prod(shape), "" if values.dtype.kind in "OU" else 0, values.dtype)
        except (MemoryError, ValueError) as error:
            raise ArgumentError(f"{what} cannot be allocated ({shortened(str(error))})") from error
        array[places] = values
        tensor: TensorProto = import_onnx().numpy_helper.from_array(array.reshape(shape), name)
        return tensor

    def _places(self, what: str, sparse: SparseTensorProto, shape: tuple[int, ...], count: int) -> AnyArray:
        """Return the flat indices of the values."""
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
            raise FormatError(f"{what} has indices outside its dims {shown(list(shape))}")
        places: AnyArray = np.ravel_multi_index(tuple(indices.T), shape) if indices.ndim == 2 else indices
        if (np.diff(places) <= 0).any():
            raise FormatError(f"{what} has indices that do not ascend; expected unique indices in order")
        return places
