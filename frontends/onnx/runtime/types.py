"""Types of a graph's values, as onnx infers them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..graph import signatures
from ..graph.inference import infer_shapes
from ..graph.walk import subgraphs
from ..messages import copied
from ..onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

    from ..graph.constants import Tensor

Types: TypeAlias = "Mapping[str, TypeProto]"  # by name
_ELEMENT_TYPES = ("to", "dtype", "output_dtype")  # attributes that name the element type of a node's results
_TEXTS = ("value_string", "value_strings")


@dataclass(frozen=True)
class Contents:
    """Contents of a graph and its bodies.

    Attributes
    ----------
    operators : frozenset of str
    domains : frozenset of str
    elements : frozenset of int
        Declared element types. Other nodes return value of these, or a number or truth value of any size.
    """

    operators: frozenset[str]
    domains: frozenset[str]
    elements: frozenset[int]


def contents_of(graph: GraphProto) -> Contents:
    """Return the contents of an onnx.GraphProto, without `value_info`."""
    attribute_types, string = import_onnx().AttributeProto, import_onnx().TensorProto.STRING
    operators, domains, elements = set[str](), set[str](), set[int]()
    left = [graph]
    while left:
        inner = left.pop()
        for value in (*inner.input, *inner.output):
            elements |= element_types(value.type)
        elements.update(tensor.data_type for tensor in inner.initializer)
        for node in inner.node[:]:
            operators.add(node.op_type)
            domains.add(node.domain)
            for attribute in node.attribute[:]:
                kind = attribute.type
                if kind == attribute_types.INT:
                    if attribute.name in _ELEMENT_TYPES:
                        elements.add(attribute.i)
                elif kind == attribute_types.TENSOR:
                    elements.add(attribute.t.data_type)
                elif kind == attribute_types.GRAPH:
                    left.append(attribute.g)
                elif kind == attribute_types.GRAPHS:
                    left += attribute.graphs
                elif attribute.name in _TEXTS:
                    elements.add(string)
    return Contents(frozenset(operators), frozenset(domains), frozenset(elements))


Tensors: TypeAlias = "Mapping[str, Tensor]"  # constants by name


def inferred(model: ModelProto, graph: GraphProto, recurrent_type: Callable[[NodeProto], int]) -> GraphProto:
    """Return a copy of the graph and its bodies, with element types in `value_info`.

    It has no shapes and no constants: declared shapes may be wrong, and some crash onnx's shape inference.

    Parameters
    ----------
    model : onnx.ModelProto
        The model of the graph.
    graph : onnx.GraphProto
        If it has no `value_info`, the model's is used.
    recurrent_type : callable
        node -> element type of its results; 0 for other nodes.
    """
    onnx = import_onnx()
    skeleton = _without_weights(onnx, graph)
    if not skeleton.value_info:
        skeleton.value_info.extend(model.graph.value_info)
    _strip(skeleton, recurrent_type)
    opset = next((value.version for value in model.opset_import if not value.domain), 0)
    if signatures.element_types(skeleton, opset, {}) is not None:
        return skeleton
    bare = onnx.ModelProto(ir_version=model.ir_version, graph=skeleton, opset_import=model.opset_import)
    with suppress(Exception):  # of several types; the types show when the graph runs
        skeleton = infer_shapes(bare).graph
    return skeleton


def _without_weights(onnx: Any, graph: GraphProto) -> GraphProto:
    """Return the graph with its initializers as typed inputs, so that their values are not copied."""
    result: GraphProto = onnx.GraphProto(
        name=graph.name, node=graph.node, input=graph.input, output=graph.output, value_info=graph.value_info
    )
    inputs = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in inputs:
            signatures.declare(result.input, tensor.name, tensor.data_type)
    return result


def _strip(graph: GraphProto, recurrent_type: Callable[[NodeProto], int]) -> None:
    """Drop shapes and constants, and declare element types of recurrent nodes, which onnx cannot infer."""
    for tensor in graph.initializer:
        signatures.declare(graph.value_info, tensor.name, tensor.data_type)
    graph.ClearField("initializer")
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    known = {value.name for value in (*graph.value_info, *graph.output)}
    for node in graph.node:
        element = recurrent_type(node)
        for name in node.output if element else ():
            if name and name not in known:
                signatures.declare(graph.value_info, name, element)
        for _, body in subgraphs(node):
            _strip(body, recurrent_type)


class Scope:
    """Types that the nodes of a graph see, inferred lazily because few graphs need them.

    Parameters
    ----------
    typed : callable
        Function that returns the graph with types, as `inferred` does.
    outer : Scope, optional
        Scope of the graph around it.
    """

    def __init__(self, typed: Callable[[], GraphProto], outer: Scope | None = None) -> None:
        self._typed, self._outer = typed, outer

    @cached_property
    def graph(self) -> GraphProto:
        return self._typed()

    @cached_property
    def types(self) -> Types:
        """Types of the values of the graph and of those around it, by name."""
        return types_of(self.graph, {} if self._outer is None else self._outer.types)

    def body(self, place: int, name: str) -> Scope:
        """Return the scope of a body of the node at that place, by the name that `subgraphs` returns."""
        return Scope(lambda: dict(subgraphs(self.graph.node[place]))[name], self)


def types_of(graph: GraphProto, outer: Types) -> dict[str, TypeProto]:
    """Return the types of the values of an inferred graph and of those around it, by name."""
    onnx, types = import_onnx(), dict(outer)
    for tensor in graph.initializer:
        types[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    return types | declared_types((*graph.input, *graph.value_info, *graph.output))


def declared_types(values: Iterable[ValueInfoProto]) -> dict[str, TypeProto]:
    """Return the types of the values that declare one, by name."""
    return {value.name: value.type for value in values if element_types(value.type)}


def element_types(declared: TypeProto) -> set[int]:
    """Return the element types in a type; empty if unknown."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        element = getattr(declared, kind).elem_type
        return {element} if element else set()
    if kind in ("sequence_type", "optional_type"):
        return element_types(getattr(declared, kind).elem_type)
    return set()


def without_shape(declared: TypeProto) -> TypeProto:
    """Return a copy of the type without its shape, because files declare wrong ones."""
    result = copied(declared)
    if result.HasField("tensor_type"):
        result.tensor_type.ClearField("shape")
    return result


def type_of_value(value: Any) -> TypeProto | None:
    """Return the type of an array or a list of arrays; None for other values."""
    onnx = import_onnx()
    if isinstance(value, list):
        inner = type_of_value(value[0]) if value else None
        return None if inner is None else onnx.helper.make_sequence_type_proto(inner)
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    dtype = np.dtype(object) if value.dtype.kind == "U" else value.dtype
    try:
        declared: TypeProto = onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(dtype), None)
    except (KeyError, ValueError):
        return None
    return declared
