"""What a writer of an operator sees: one node, its attributes, inputs and outputs, and the net to write to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import UnsupportedError, shown

from ..ir.element_types import BY_PRECISION
from ..ir.writer import Shape, Value
from ..translation.onnx_frontend import import_onnx, node_label
from .net import Net
from .views import View, broadcast, plain

Output = tuple[str, Shape]


class NodeContext:
    """One node.

    Attributes
    ----------
    node : onnx.NodeProto
    label : str
        How errors name it.
    net : Net
    opset : int
        Version of the default domain.
    """

    def __init__(self, node: Any, net: Net) -> None:
        self.node, self.net, self.opset = node, net, net.source.opset
        self.label = node_label(node)
        self.name = node.name or next(iter(node.output), "") or node.op_type
        value = import_onnx().helper.get_attribute_value
        self._attributes = {one.name: value(one) for one in node.attribute}
        self._read: set[str] = set()

    def refuse(self, what: str, expected: str) -> NoReturn:
        """Raise the error of a node that cannot be written."""
        raise UnsupportedError(f"{self.label}: {what} cannot be written as IR; expected {expected}")

    # Attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, text as str."""
        self._read.add(name)
        value = self._attributes.get(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def check_attributes(self) -> None:
        """Reject attributes that nobody has read."""
        for name in self._attributes.keys() - self._read:
            self.refuse(f"attribute {shown(name)}", f"a node of {self.node.op_type} without it")

    def axis(self, axis: int, rank: int) -> int:
        """An axis of so many, counted from the first."""
        if not -rank <= axis < rank:
            self.refuse(f"axis {axis} of {rank} axes", f"{-rank} to {rank - 1}")
        return axis % rank

    def integers(self, name: str, position: int) -> list[int] | None:
        """Numbers that are an attribute, or in later versions a constant input; None where there are none."""
        value = self.attribute(name)
        if value is None and self.has(position):
            array = self.constant(position)
            if array is None:
                self.refuse(f"{name}, computed at run time,", "a constant")
            value = array.reshape(-1).tolist()
        return None if value is None else [int(one) for one in value]

    # Inputs

    def has(self, position: int) -> bool:
        """Whether there is such an input."""
        return position < len(self.node.input) and self.node.input[position] != ""

    def view(self, position: int) -> View:
        """An input, its axes in whatever order they lie."""
        if not self.has(position):
            self.refuse(f"a node without input {position}", "that input")
        return self.net.view(self.node.input[position])

    def views(self) -> list[View]:
        """All inputs."""
        return [self.view(position) for position in range(len(self.node.input))]

    def __getitem__(self, position: int) -> Value:
        """An input in its own order of axes."""
        return self.settled(self.view(position))

    def constant(self, position: int) -> AnyArray | None:
        """The array of a constant input; None of any other, and of one that is absent."""
        return self.net.source.constant(self.node.input[position]) if self.has(position) else None

    def settled(self, view: View) -> Value:
        """A view with its axes in order, by a Transpose if it needs one."""
        return self.net.settled(view, self.name)

    # Layers

    def output(self, rank: int | None = None, position: int = 0) -> Output:
        """The precision and shape that ONNX's shape inference tells of an output; `rank` helps where it does not."""
        return self.net.declared(self.label, self.node.output[position], rank)

    def const(self, what: str, array: Any, precision: str = "I64") -> Value:
        """A constant of the net; `what` it is makes its name."""
        made: AnyArray = np.asarray(array, BY_PRECISION[precision].numpy_dtype(self.label))
        return self.net.ir.constant(f"{self.name}/{what}", made)

    def layers(
        self, kind: str, opset: int, inputs: Sequence[Value], outputs: Sequence[Output], data: Mapping[str, Any]
    ) -> list[Value]:
        """A layer and what comes out of it."""
        texts = {name: _text(value) for name, value in data.items()}
        return self.net.ir.layer(self.name, kind, opset, texts, inputs, outputs)

    def layer(self, kind: str, opset: int, inputs: Sequence[Value], output: Output, **data: Any) -> Value:
        """A layer of one output."""
        return self.layers(kind, opset, inputs, [output], data)[0]

    def plain(self, kind: str, opset: int, inputs: Sequence[Value], output: Output, **data: Any) -> View:
        """A layer whose output is that of the node."""
        return plain(self.layer(kind, opset, inputs, output, **data))

    def unary(self, kind: str, opset: int, view: View, *more: Value, precision: str | None = None, **data: Any) -> View:
        """An operation on one element at a time, with scalars: the order of axes does not matter."""
        output = (precision or view.precision, view.value.shape)
        return View(self.layer(kind, opset, [view.value, *more], output, **data), view.order)

    def binary(self, kind: str, opset: int, a: View, b: View, precision: str | None = None, **data: Any) -> View:
        """An operation on two arrays that are broadcast to each other.

        ==========================================  =====================
        the arrays                                  the result's order
        ==========================================  =====================
        in the same order                           that one
        b of one element, or along the last axis,   a's
        which is last in a's order too
        others                                      plain, by Transposes
        ==========================================  =====================
        """
        if a.order == b.order or (a.rank >= b.rank and _along_last(a, b)):
            order = a.order
        elif b.rank >= a.rank and _along_last(b, a):
            order = b.order
        else:
            a, b = plain(self.settled(a)), plain(self.settled(b))
            order = max(a.order, b.order, key=len)
        output = (precision or a.precision, broadcast(a.value.shape, b.value.shape))
        data = {"auto_broadcast": "numpy", **data}
        return View(self.layer(kind, opset, [a.value, b.value], output, **data), order)


def _along_last(one: View, other: View) -> bool:
    if not other.is_plain:
        return False
    leading, last = other.shape[:-1], other.shape[-1:]
    return all(size == 1 for size in leading) and (one.keeps_last or last in ((), (1,)))


def _text(value: Any) -> str:
    """As OpenVINO writes a value of `<data>`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return repr(value) if isinstance(value, float) else str(value)
