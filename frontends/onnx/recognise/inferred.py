"""Shapes and element types of the values of a graph and its bodies, as onnx infers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.constants import named, shape_of
from ..graph.fold import FoldedGraph
from ..graph.inference import infer_shapes
from ..graph.rebuild import rebuild, tensors_of
from ..graph.signatures import declare
from ..graph.walk import all_graphs, subgraphs
from ..onnx_package import import_onnx

if TYPE_CHECKING:
    from .forms import Shape

_SMALL = 64  # elements; shapes are computed from such integers


@dataclass
class Inferred:
    """Types by name; a name of values in several graphs is missing.

    Attributes
    ----------
    shapes : dict
    elements : dict
        Numbers of element types.
    """

    shapes: dict[str, Shape] = field(default_factory=dict)
    elements: dict[str, int] = field(default_factory=dict)


def inferred(folded: FoldedGraph, opsets: Mapping[str, int]) -> Inferred:
    """Infer the types of a graph from its inputs alone; declared types of other values may be wrong."""
    onnx = import_onnx()
    graph = rebuild(folded, values=False)
    tensors = tensors_of(folded, graph)
    del graph.initializer[:]
    inputs = {value.name for value in graph.input}
    for name, tensor in tensors.items():
        if len(shape_of(tensor)) < 2 and max(shape_of(tensor), default=1) <= _SMALL:
            graph.initializer.append(named(tensor, name))
        elif name not in inputs:
            if isinstance(tensor, np.ndarray):
                element = onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
            else:
                element = tensor.data_type
            graph.input.append(onnx.helper.make_tensor_value_info(name, element, shape_of(tensor)))
    for value in graph.output:
        value.ClearField("type")
    _clear(graph)
    versions = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    result = Inferred()
    try:
        model = onnx.helper.make_model(graph, opset_imports=versions)
        _collect(infer_shapes(model, data_prop=True).graph, result)
    except Exception:  # of several types; a model that cannot be inferred has no recognised layers
        return Inferred()
    graphs = Counter(name for inner in all_graphs(folded.graph) for name in inner.local)
    for name in (name for name, count in graphs.items() if count > 1):
        result.shapes.pop(name, None)
        result.elements.pop(name, None)
    return result


def _clear(graph: Any) -> None:
    for node in graph.node:
        for _, body in subgraphs(node):
            del body.value_info[:]
            for value in body.output:
                if value.type.HasField("tensor_type"):
                    value.type.tensor_type.ClearField("shape")
            _clear(body)


def _collect(graph: Any, result: Inferred) -> None:
    """Add the types of the values of a graph and its bodies."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.elem_type:
            result.elements[value.name] = kind.elem_type
        if kind.HasField("shape"):
            result.shapes[value.name] = tuple(_dimension(value.name, k, dim) for k, dim in enumerate(kind.shape.dim))
    for node in graph.node:
        for _, body in subgraphs(node):
            _collect(body, result)


def _dimension(name: str, axis: int, dim: Any) -> int | str:
    """Return a size, its name, or a name of its own: an unknown dimension of one value is equal to itself."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return str(dim.dim_param) if dim.dim_param else f"\0{name}[{axis}]"


__all__ = ["Inferred", "declare", "inferred"]
