"""Context of a writer: one node, its attributes, inputs and outputs, and the net to write to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import UnsupportedError, shown

from ...onnx.graph.walk import node_label
from ...onnx.onnx_package import import_onnx
from ..ir.element_types import BY_PRECISION
from ..ir.writer import Element, Shape, Value
from .net import Net
from .views import Sequential, View, broadcast, plain

if TYPE_CHECKING:
    from onnx import NodeProto

Output = tuple[str, Shape]


class NodeContext:
    """A node to write, and the net to write to."""

    def __init__(self, node: NodeProto, net: Net) -> None:
        self.node, self.net, self.opset = node, net, net.source.opset
        self.label = node_label(node)
        self.name = node.name or next(iter(node.output), "") or node.op_type
        value = import_onnx().helper.get_attribute_value
        self._attributes = {attribute.name: value(attribute) for attribute in node.attribute}
        self._read: set[str] = set()

    def refuse(self, what: str, expected: str) -> NoReturn:
        """Raise the error about a node that cannot be written."""
        raise UnsupportedError(f"{self.label}: {what} cannot be written as IR; expected {expected}")

    # Attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute, text as str."""
        self._read.add(name)
        value = self._attributes.get(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def check_attributes(self) -> None:
        """Raise if the writer has not read an attribute."""
        for name in self._attributes.keys() - self._read:
            self.refuse(f"attribute {shown(name)}", f"a node of {self.node.op_type} without it")

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis from 0 to rank - 1."""
        if not -rank <= axis < rank:
            self.refuse(f"axis {axis} of {rank} axes", f"{-rank} to {rank - 1}")
        return axis % rank

    def integers(self, name: str, position: int) -> list[int] | None:
        """Return integers of an attribute, or of a constant input in later versions; None if there are none."""
        value = self.attribute(name)
        if value is None and self.has(position):
            array = self.constant(position)
            if array is None:
                self.refuse(f"{name}, computed at run time,", "a constant")
            value = array.reshape(-1).tolist()
        return None if value is None else list(map(int, value))

    # Inputs

    def has(self, position: int) -> bool:
        """Return whether there is such an input."""
        return position < len(self.node.input) and self.node.input[position] != ""

    def view(self, position: int) -> View:
        """Return an input, with its axes in any order."""
        if not self.has(position):
            self.refuse(f"a node without input {position}", "that input")
        return self.net.view(self.node.input[position])

    def views(self) -> list[View]:
        """Return all inputs."""
        return [self.view(position) for position in range(len(self.node.input))]

    def __getitem__(self, position: int) -> Value:
        """Return an input with its axes in order."""
        return self.in_order(self.view(position))

    def constant(self, position: int) -> AnyArray | None:
        """Return the array of a constant input; None for any other or absent input."""
        return self.net.source.constant(self.node.input[position]) if self.has(position) else None

    def sequence(self, position: int) -> Sequential:
        """Return an input that is a sequence."""
        return self.net.sequence(self.node.input[position])

    def scalar(self, position: int) -> Value:
        """Return an input of one element without axes."""
        value = self[position]
        return value if value.shape == () else self.reshaped(value, (), f"shape{position}")

    def listed(self, position: int) -> Value:
        """Return an input with one axis, which has none in what some exporters write."""
        value = self[position]
        return value if value.shape != () else self.reshaped(value, (1,), f"shape{position}")

    def in_order(self, view: View) -> Value:
        """Return the value of a view with its axes in order, transposed if necessary."""
        return self.net.in_order(view, self.name)

    # Layers

    def output(self, rank: int | None = None, position: int = 0) -> Output:
        """Return an output's precision and shape by ONNX's shape inference; `rank` is used if it finds none."""
        return self.net.declared(self.label, self.node.output[position], rank)

    def const(self, name: str, array: Any, precision: str = "I64") -> Value:
        """Add a constant; its name is the node's and `name`."""
        value: AnyArray = np.asarray(array, BY_PRECISION[precision].numpy_dtype(self.label))
        return self.net.ir.constant(f"{self.name}/{name}", value)

    def layers(
        self,
        kind: str,
        opset: int,
        inputs: Sequence[Value],
        outputs: Sequence[Output],
        data: Mapping[str, Any] = MappingProxyType({}),
        bodies: Sequence[Element] = (),
    ) -> list[Value]:
        """Add a layer, with the elements of its bodies; return its outputs."""
        texts = {name: _text(value) for name, value in data.items()}
        return self.net.ir.layer(self.name, kind, opset, texts, inputs, outputs, bodies)

    def layer(self, kind: str, opset: int, inputs: Sequence[Value], output: Output, **data: Any) -> Value:
        """Add a layer with one output; return it."""
        return self.layers(kind, opset, inputs, [output], data)[0]

    def plain(self, kind: str, opset: int, inputs: Sequence[Value], output: Output, **data: Any) -> View:
        """Add a layer; return its output as the node's."""
        return plain(self.layer(kind, opset, inputs, output, **data))

    def result(self, kind: str, opset: int, inputs: Sequence[Value], order: Sequence[int] | int, **data: Any) -> View:
        """Add the layer whose output is the node's, with its axes in this order, or with so many axes in order."""
        axes = tuple(range(order)) if isinstance(order, int) else tuple(order)
        precision, shape = self.net.declared(self.label, self.node.output[0], len(axes), inputs[0].precision)
        inner = tuple(shape[axes.index(axis)] for axis in range(len(axes)))
        return View(self.layer(kind, opset, inputs, (precision, inner), **data), axes)

    def reshaped(self, value: Value, shape: Shape, name: str) -> Value:
        """Reshape a value to sizes of which at most one is dynamic."""
        inputs = [value, self.const(name, [-1 if size is None else size for size in shape])]
        return self.layer("Reshape", 1, inputs, (value.precision, shape), special_zero=False)

    def sizes(self, value: Value) -> Value:
        return self.layer("ShapeOf", 3, [value], ("I64", (len(value.shape),)), output_type="i64")

    def size(self, value: Value, axis: int) -> View:
        """Return the size of an axis, without axes."""
        return plain(self.gathered(self.sizes(value), self.const("place", axis), 0, ()))

    def gathered(self, value: Value, indices: Value, axis: int, shape: Shape) -> Value:
        inputs = [value, indices, self.const("axis", axis)]
        return self.layer("Gather", 8, inputs, (value.precision, shape), batch_dims=0)

    def parts(self, view: View, axis: int, sizes: Sequence[int]) -> list[View]:
        """Split a value along an axis."""
        inner, (value, order) = view.order[axis], view
        inputs = [value, self.const("axis", inner), self.const("split", sizes)]
        outputs = [(value.precision, (*value.shape[:inner], size, *value.shape[inner + 1 :])) for size in sizes]
        return [View(part, order) for part in self.layers("VariadicSplit", 1, inputs, outputs)]

    def converted(self, view: View, precision: str) -> View:
        """Convert a value; one of that precision is returned as it is."""
        if precision == view.precision:
            return view
        return self.unary("Convert", 1, view, precision=precision, destination_type=BY_PRECISION[precision].name)

    def along(self, position: int, axis: int | None, rank: int) -> View:
        """Return an input of one element, or of one for each size of an axis, so that it is broadcast to `rank`."""
        value = self[position]
        if math.prod(size or 0 for size in value.shape) == 1:
            return plain(self.scalar(position))
        if len(value.shape) != 1 or axis is None:
            self.refuse(f"input {position} of {len(value.shape)} axes", "one element, or one for each size of an axis")
        shape = (value.shape[0], *[1] * (rank - 1 - axis))
        return plain(self.reshaped(value, shape, f"shape{position}"))

    def unary(self, kind: str, opset: int, view: View, *more: Value, precision: str | None = None, **data: Any) -> View:
        """Add an elementwise operation with scalars, for which the order of axes does not matter."""
        output = (precision or view.precision, view.value.shape)
        return View(self.layer(kind, opset, [view.value, *more], output, **data), view.order)

    def binary(self, kind: str, opset: int, a: View, b: View, precision: str | None = None, **data: Any) -> View:
        """Add an operation on two arrays that are broadcast to each other.

        ==================================================  =====================
        arrays                                              order of the result
        ==================================================  =====================
        both have the same order                            that order
        b has one element, or only the last axis, which is  order of a
        also last in a's order
        others                                              plain, by Transposes
        ==================================================  =====================
        """
        if a.order == b.order or (a.rank >= b.rank and _along_last(a, b)):
            order = a.order
        elif b.rank >= a.rank and _along_last(b, a):
            order = b.order
        else:
            a, b = plain(self.in_order(a)), plain(self.in_order(b))
            order = max(a.order, b.order, key=len)
        output = (precision or a.precision, broadcast(a.value.shape, b.value.shape))
        data = {"auto_broadcast": "numpy", **data}
        return View(self.layer(kind, opset, [a.value, b.value], output, **data), order)


def _along_last(a: View, b: View) -> bool:
    """Return whether `b` has one element, or only the last axis, which is also last in the order of `a`."""
    if not b.is_plain:
        return False
    leading, last = b.shape[:-1], b.shape[-1:]
    return all(size == 1 for size in leading) and (a.last_in_place or last in ((), (1,)))


def _text(value: Any) -> str:
    """Return the text of a value in `<data>`, in OpenVINO's format."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return repr(value) if isinstance(value, float) else str(value)


Writer = Callable[[NodeContext], View | Sequential | Sequence[View | Sequential]]
WriterType = TypeVar("WriterType", bound=Writer)

# By operators of ONNX's default domain; a writer supports all versions of its operators.
WRITERS: dict[str, Writer] = {}


def writes(*names: str) -> Callable[[WriterType], WriterType]:
    """Register a writer of operators, which returns the first outputs of the node."""

    def register(function: WriterType) -> WriterType:
        WRITERS.update(dict.fromkeys(names, function))
        return function

    return register
