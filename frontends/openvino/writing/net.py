"""Net under construction: values of a graph by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pyrnnx.errors import UnsupportedError, shown
from pyrnnx.operator.tensor_info import TensorInfo

from ..ir.element_types import BY_DTYPE
from ..ir.writer import NetWriter, Shape, Value
from .source import Source
from .views import Sequential, View, plain


class Net:
    """The net of a graph, or of a body in the net `outer`.

    `captured` are the Parameters of a body, by the values of the net around it.
    """

    def __init__(
        self, source: Source, ir: NetWriter, write_nodes: Callable[[Net], None], outer: Net | None = None
    ) -> None:
        self.source, self.ir, self._outer = source, ir, outer
        self._write_nodes = write_nodes
        self.captured: dict[Value, Value] = {}
        self._views: dict[str, View] = {}
        self._sequences: dict[str, Sequential] = {}
        self._transposed: dict[View, Value] = {}
        self._absent: dict[str, str] = {}
        self._outputs = {info.name for info in source.graph.output} if outer is None else set()
        self._parameters: dict[str, Value] = {}
        self._ends: set[Value] = set()  # Parameters, and values with a Result

    def body(self, source: Source) -> Net:
        """Return a net for a body."""
        return Net(source, self.ir.body(), self._write_nodes, self)

    def write_nodes(self) -> None:
        """Write the nodes of the graph."""
        self._write_nodes(self)

    def view(self, name: str) -> View:
        """Return the value of a name, with its axes in any order."""
        if name not in self._views:
            array = self.source.constant(name)
            if array is None and self._outer is not None and name not in self._absent:
                return self.capture(name, self._outer.view(name))
            if array is None:
                raise UnsupportedError(f"{self._absent.get(name, self.source.label)}: {shown(name)} is not written")
            if array.dtype.name not in BY_DTYPE:
                raise UnsupportedError(f"{self.source.label}: the constant {shown(name)} has type {array.dtype}")
            self.bind(name, plain(self.ir.constant(name, array)))
        return self._views[name]

    def is_sequence(self, name: str) -> bool:
        """Return whether a name is that of a sequence."""
        return name in self._sequences or (self._outer is not None and self._outer.is_sequence(name))

    def sequence(self, name: str) -> Sequential:
        """Return a sequence by name; a body reads its elements as those of the net around it."""
        if name in self._sequences:
            return self._sequences[name]
        if self._outer is None or name in self._absent:
            raise UnsupportedError(f"{self._absent.get(name, self.source.label)}: {shown(name)} is not written")
        outer = self._outer.sequence(name)
        views = [self.capture(f"{name}/{k}", view) for k, view in enumerate(outer.views)]
        whole = None if outer.whole is None else self.capture(name, outer.whole)
        return outer._replace(views=views, whole=whole)

    def capture(self, name: str, view: View) -> View:
        """Return the view of a value of the net around a body; its Parameter is added once."""
        if view.value not in self.captured:
            self.captured[view.value] = self.ir.parameter(name, view.precision, view.value.shape)
        self._views[name] = View(self.captured[view.value], view.order)
        return self._views[name]

    def bind(self, name: str, view: View | Sequential) -> None:
        """Register a value by name; its tensor gets the name too if its axes are in order."""
        if isinstance(view, Sequential):
            self._sequences[name] = view
            return
        self._views[name] = view
        if view.is_plain and name not in self._outputs:
            self.ir.name_tensor(view.value, name)

    def bind_outputs(self, label: str, names: Sequence[str], views: Sequence[View | Sequential]) -> None:
        """Register a node's outputs; reading one that its writer did not return raises."""
        for index, name in enumerate(names):
            if name and index < len(views):
                self.bind(name, views[index])
            elif name:
                self._absent[name] = label

    def parameter(self, name: str) -> Value:
        """Add an input; return its value."""
        value = self.ir.parameter(name, *self.declared(self.source.label, name))
        self._parameters[name] = value
        self._ends.add(value)
        self._views[name] = plain(value)
        return value

    def result(self, name: str) -> None:
        """Add an output of the model, with a tensor of its own: OpenVINO identifies outputs by names of tensors."""
        value = self.in_order(self.view(name), name)
        if value != self._parameters.get(name):
            if value in self._ends:
                (value,) = self.ir.layer(name, "Identity", 16, {}, [value], [(value.precision, value.shape)])
            self.ir.name_tensor(value, name)
        self._ends.add(value)
        self.ir.result(name, value)

    def in_order(self, view: View, name: str) -> Value:
        """Return the value of a view with its axes in order; a Transpose, if necessary, is shared."""
        if view.is_plain:
            return view.value
        if view not in self._transposed:
            name = f"{name}/transposed"
            order = self.ir.constant(f"{name}/order", np.array(view.order, np.int64))
            output = (view.precision, view.shape)
            (self._transposed[view],) = self.ir.layer(name, "Transpose", 1, {}, [view.value, order], [output])
        return self._transposed[view]

    def declared(
        self, label: str, name: str, rank: int | None = None, precision: str | None = None
    ) -> tuple[str, Shape]:
        """Return the precision and shape of a value by ONNX's shape inference, else these."""
        info = self.source.types.get(name, TensorInfo(name))
        row = None if info.dtype is None else BY_DTYPE.get(info.dtype)
        if info.dtype is not None and row is None:
            raise UnsupportedError(f"{label}: {shown(name)} has type {info.dtype}, which IR does not have")
        precision = precision if row is None else row.precision
        sizes = (None,) * rank if info.shape is None and rank is not None else info.shape
        if precision is None or sizes is None:
            missing = "type" if precision is None else "rank"
            raise UnsupportedError(
                f"{label}: the {missing} of {shown(name)} is unknown; expected a model that declares it, or whose "
                "shapes can be inferred"
            )
        return precision, tuple(size if isinstance(size, int) else None for size in sizes)
