"""Shapes and element types of the values of a graph and its bodies, as onnx infers them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..graph.inference import infer_shapes
from ..graph.walk import Graph, all_graphs, subgraphs
from ..messages import copy_fields

if TYPE_CHECKING:
    from onnx import ModelProto

    from .forms import Shape

_SMALL = 64  # elements; shapes are computed from such vectors


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


def inferred(model: ModelProto) -> Inferred:
    """Infer the types of a model from its inputs."""
    result = Inferred()
    try:
        _collect(infer_shapes(_without_weights(model), data_prop=True).graph, result)
    except Exception:  # of several types; a model that cannot be inferred has no recognised layers
        return Inferred()
    graphs = Counter(name for inner in all_graphs(Graph(model.graph)) for name in inner.local)
    for name in (name for name, count in graphs.items() if count > 1):
        result.shapes.pop(name, None)
        result.elements.pop(name, None)
    return result


def _without_weights(model: ModelProto) -> ModelProto:
    """Return a model with large initializers as inputs, and without declared outputs."""
    result = type(model)()
    copy_fields(model, result, {"graph"})
    copy_fields(model.graph, result.graph, {"initializer", "output"})
    inputs = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if len(tensor.dims) < 2 and math.prod(tensor.dims) <= _SMALL:
            result.graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            kind = result.graph.input.add(name=tensor.name).type.tensor_type
            kind.elem_type = tensor.data_type
            kind.shape.SetInParent()
            for size in tensor.dims:
                kind.shape.dim.add(dim_value=size)
    for value in model.graph.output:
        result.graph.output.add(name=value.name)
    return result


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
