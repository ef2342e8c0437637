"""Facts about the values of a graph and of the graphs around it: node, constant, shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrnnx._internal.dtypes import AnyArray

from ..graph.inference import Types
from ..graph.walk import Graph, Node
from ..onnx_package import import_onnx
from .forms import Dim, Shape

_WIDE_INTEGERS = (6, 7)  # int32, int64


class Scope:
    """Facts about the values that nodes of a graph can use: those of the graph and of the graphs around it.

    `types` is called when an inferred type is first needed; `outer` is the scope of the graph that has this one as a
    body.
    """

    def __init__(
        self,
        graph: Graph,
        opset: int,
        types: Callable[[], Types],
        outer: Scope | None = None,
    ) -> None:
        self.graph, self.opset, self._types, self.outer = graph, opset, types, outer
        self.producers: dict[str, Node] = {} if outer is None else dict(outer.producers)
        self.producers |= {name: node for node in graph.node for name in node.output if name}
        self.known: dict[str, Shape] = {} if outer is None else dict(outer.known)
        self.elements: dict[str, int] = {} if outer is None else dict(outer.elements)
        self.iterations: set[str] = set()
        self.origins: dict[tuple[str, int], tuple[str, int]] = {}
        self.sizes: dict[str, Shape] = {}

    def body(self, graph: Graph) -> Scope:
        return Scope(graph, self.opset, self._types, self)

    def producer(self, name: str) -> Node | None:
        """Return the node that computes a value; None for inputs, initializers and nodes of other domains."""
        node = self.producers.get(name)
        return None if node is None or node.domain else node

    def shape(self, name: str) -> Shape | None:
        if name in self.known:
            return self.known[name]
        array = self.array(name)
        return self._types().shapes.get(name) if array is None else array.shape

    def array(self, name: str) -> AnyArray | None:
        array: AnyArray | None = self.graph.constants.value(name)
        return array

    def numbers(self, name: str) -> tuple[Dim, ...] | None:
        """Return the elements of a constant integer scalar or vector; None for other values."""
        array = self.array(name)
        is_vector = array is not None and array.ndim < 2 and array.dtype.kind in "iu"
        return tuple(map(int, array.reshape(-1))) if array is not None and is_vector else None

    def element(self, name: str) -> int:
        """Return the number of a value's element type; 0 if unknown."""
        array = self.array(name)
        if array is not None:
            return int(import_onnx().helper.np_dtype_to_tensor_dtype(array.dtype))
        element = self.elements.get(name) or self._types().elements.get(name, 0)
        node = None if element else self.producer(name)
        if node is not None and node.op_type == "Cast":
            element = self.elements[name] = int(attribute_of(node, "to", 0))
        return element

    def iteration(self, name: str) -> bool | None:
        """Return whether a value that equals the iteration number is a scalar; None for other values."""
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
        return is_scalar

    def behind_identities(self, name: str) -> str:
        """Return the value that a value is the same as."""
        while (node := self.producer(name)) is not None and node.op_type == "Identity":
            name = node.input[0]
        return name

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
    for attribute in node.attribute:
        if attribute.name == name:
            return import_onnx().helper.get_attribute_value(attribute)
    return default


def identity(source: str, name: str) -> Node:
    return Node(import_onnx().helper.make_node("Identity", [source], [name]), 1, [])


def keeps_integers(node: Node) -> bool:
    """Return whether a node is a Cast to int32 or int64, which represent every iteration number."""
    return node.op_type == "Cast" and attribute_of(node, "to") in _WIDE_INTEGERS


def clamped(start: int, stop: int, size: int) -> tuple[int, int]:
    """Return the bounds of a Slice with step 1 as indices from the beginning."""
    start, stop = (value + size if value < 0 else value for value in (start, stop))
    return min(max(start, 0), size), min(max(stop, 0), size)
