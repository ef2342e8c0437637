"""Facts about the values of a graph and of the graphs around it: node, constant, shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ..graph.fold import Evaluate, FoldedGraph, is_deterministic
from ..graph.signatures import Result, signature_of
from ..graph.walk import Node
from ..onnx_package import import_onnx
from .forms import Dim, Shape
from .inferred import Inferred

_MOST_CONSTANT = 1 << 24  # elements of constants that are computed here
_WIDE_INTEGERS = (6, 7)  # int32, int64
_WHOLE = (np.iinfo(np.int32).max, np.iinfo(np.int64).max)


class Scope:
    """Facts about the values that nodes of a graph can use: those of the graph and of the graphs around it.

    Parameters
    ----------
    graph : FoldedGraph
    opsets : mapping
        Version by domain.
    evaluate : callable
        Function that computes a node.
    types : callable
        Function that returns the inferred types of values. It is called when a type is first needed.
    outer : Scope, optional
        Scope of the graph that contains this one as a body.

    Attributes
    ----------
    aliases : dict
        {input of a body: name of the value outside} for inputs that have the same value in each iteration.
    known, elements : dict
        Shapes and element types by inputs of a body.
    iterations : dict
        {name of a value: name of the iteration number that it is equal to}.
    origins, sizes : dict
        {value and axis: value and axis that it is moved from}, and {value: sizes of its axes}, as far as they were
        needed.
    """

    def __init__(
        self,
        graph: FoldedGraph,
        opsets: Mapping[str, int],
        evaluate: Evaluate,
        types: Callable[[], Inferred],
        outer: Scope | None = None,
    ) -> None:
        self.graph, self.opsets, self._evaluate, self._types, self.outer = graph, opsets, evaluate, types, outer
        self.producers: dict[str, Node] = {} if outer is None else dict(outer.producers)
        self.producers |= {name: node for node in graph.nodes for name in node.output if name}
        self.aliases: dict[str, str] = {} if outer is None else dict(outer.aliases)
        self.known: dict[str, Shape] = {} if outer is None else dict(outer.known)
        self.elements: dict[str, int] = {} if outer is None else dict(outer.elements)
        self.iterations: dict[str, str] = {} if outer is None else dict(outer.iterations)
        self.origins: dict[tuple[str, int], tuple[str, int]] = {}
        self.sizes: dict[str, Shape] = {}
        self._arrays: dict[str, AnyArray | None] = {}

    @property
    def opset(self) -> int:
        return self.opsets.get("", 1)

    def body(self, graph: FoldedGraph) -> Scope:
        return Scope(graph, self.opsets, self._evaluate, self._types, self)

    def producer(self, name: str) -> Node | None:
        """Return the node that computes a value; None for inputs, initializers and nodes of other domains."""
        node = self.producers.get(name)
        return None if node is None or node.domain else node

    def shape(self, name: str) -> Shape | None:
        """Return the inferred shape of a value; None if unknown."""
        if name in self.known:
            return self.known[name]
        array = self.array(name)
        return self._types().shapes.get(name) if array is None else array.shape

    def array(self, name: str) -> AnyArray | None:
        """Return a constant, also one that passes through inputs of a body; None for other values."""
        name = self.aliases.get(name, name)
        if name not in self._arrays:
            self._arrays[name] = self.graph.constants.value(name)
            if self._arrays[name] is None and self.aliases:
                self._arrays[name] = self._computed(name)
        return self._arrays[name]

    def _computed(self, name: str) -> AnyArray | None:
        node = self.producer(name)
        if node is None or not is_deterministic(node):
            return None
        inputs = {source: self.array(source) for source in node.input if source}
        if any(array is None or array.size > _MOST_CONSTANT for array in inputs.values()):
            return None
        results = self._evaluate(node, inputs, self.opsets)
        return None if results is None else results.get(name)

    def numbers(self, name: str) -> tuple[Dim, ...] | None:
        """Return the elements of a constant integer scalar or vector; None for other values."""
        name = self.aliases.get(name, name)
        array = self.array(name)
        if array is not None:
            is_vector = array.ndim < 2 and array.dtype.kind in "iu"
            return tuple(map(int, array.reshape(-1))) if is_vector else None
        return None

    def element(self, name: str) -> int:
        """Return the number of a value's element type; 0 if unknown."""
        name = self.aliases.get(name, name)
        array = self.array(name)
        if array is not None:
            return int(import_onnx().helper.np_dtype_to_tensor_dtype(array.dtype))
        element = self.elements.get(name) or self._types().elements.get(name, 0)
        node = None if element else self.producer(name)
        signature = None if node is None else signature_of(node, self.opset)
        if node is not None and node.op_type == "Cast":
            element = self.elements[name] = int(attribute_of(node, "to", 0))
        elif node is not None and signature is not None and signature.result is Result.FIRST:
            element = self.elements[name] = self.element(node.input[0])
        return element

    def iteration(self, name: str) -> tuple[str, bool] | None:
        """Return the iteration number that a value equals, and whether the value is a scalar; None for other values."""
        is_scalar = True
        while name not in self.iterations:
            node = self.producer(name)
            if node is None:
                return None
            if node.op_type != "Identity" and not keeps_integers(node):
                if not (is_scalar and self._makes_vector(node)):
                    return None
                is_scalar = False
            name = node.input[0]
        return self.iterations[name], is_scalar

    def _makes_vector(self, node: Node) -> bool:
        """Return whether a node turns a scalar into a vector of one element."""
        if node.op_type == "Unsqueeze":
            return len(self.integers(node, "axes", 1) or ()) == 1
        return node.op_type == "Reshape" and len(self.numbers(node.input[1]) or ()) == 1

    def integers(self, node: Node, attribute: str, place: int) -> tuple[int, ...] | None:
        """Return integers that are an attribute in older opsets and an input in newer ones; None if not constant."""
        given = attribute_of(node, attribute)
        if given is not None:
            return tuple(given)
        if len(node.input) <= place or not node.input[place]:
            return None
        values = self.numbers(node.input[place])
        return None if values is None or None in values else tuple(values)  # type: ignore[arg-type]


def attribute_of(node: Node, name: str, default: Any = None) -> Any:
    """Return the value of an attribute."""
    for attribute in node.attribute:
        if attribute.name == name:
            return import_onnx().helper.get_attribute_value(attribute)
    return default


def keeps_integers(node: Node) -> bool:
    """Return whether a node is a Cast to int32 or int64, which represent every iteration number."""
    return node.op_type == "Cast" and attribute_of(node, "to") in _WIDE_INTEGERS


def clamped(start: int, stop: int, size: int) -> tuple[int, int]:
    """Return the bounds of a Slice with step 1 as indices from the beginning."""
    start, stop = (value + size if value < 0 else value for value in (start, stop))
    return min(max(start, 0), size), min(max(stop, 0), size)
