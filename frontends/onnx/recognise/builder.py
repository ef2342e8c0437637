"""New nodes of a graph: recurrent nodes, their X from the values of the steps, and the values that they replace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.operator.op import DirectionName

from ..graph.walk import fresh_name
from ..onnx_package import import_onnx
from ..operators.schemas import op_attributes
from .cells import ORDER, Cell
from .forms import Ref, Shape, View, pushed
from .scope import Scope
from .values import Values, value_shape

_AXES_AS_INPUT = 13  # opset of Squeeze and Unsqueeze
_SLICE_INPUTS = 10
_RANGE = 11
_ONES = ("squeeze", "unsqueeze")
_MOST_INPUTS = 3


class Builder:
    """Nodes, constants and renamed outputs of one graph, before they are added to it.

    `replaced` are the new names of outputs that `nodes` compute now, `layers` where each recurrent node comes from.
    """

    def __init__(self, scope: Scope, taken: set[str]) -> None:
        self.scope, self._taken = scope, taken
        self.can_slice_at_run_time, self.has_range = scope.opset >= _SLICE_INPUTS, scope.opset >= _RANGE
        self.nodes: list[Any] = []
        self.constants: dict[str, AnyArray] = {}
        self.replaced: dict[str, str] = {}
        self.layers: dict[str, str] = {}
        self._made: dict[Ref, str] = {}
        self._integers: dict[tuple[Any, ...], str] = {}

    def fresh(self, wanted: str) -> str:
        return fresh_name(wanted, self._taken)

    def node(self, operator: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node of one output; return the output's name."""
        output = output or self.fresh(f"{inputs[0]}/{operator.lower()}")
        self.nodes.append(import_onnx().helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, wanted: str, array: AnyArray) -> str:
        name = self.fresh(wanted)
        self.constants[name] = np.array(array, order="C")
        return name

    def integers(self, *numbers: int, scalar: bool = False) -> str:
        key = (*numbers, scalar)
        if key not in self._integers:
            array = np.array(numbers[0] if scalar else numbers, np.int64)
            self._integers[key] = self.constant("index", array)
        return self._integers[key]

    def axes(self, operator: str, name: str, axes: Sequence[int], output: str = "") -> str:
        if self.scope.opset >= _AXES_AS_INPUT:
            return self.node(operator, [name, self.integers(*axes)], output)
        return self.node(operator, [name], output, axes=list(axes))

    def slice(self, name: str, axis: int, start: int, stop: int) -> str:
        if self.scope.opset < _SLICE_INPUTS:
            return self.node("Slice", [name], axes=[axis], starts=[start], ends=[stop])
        return self.node("Slice", [name, *(self.integers(k) for k in (start, stop, axis))])

    def ranked(self, name: str, rank: int, new_rank: int, place: int = 0, output: str = "") -> str:
        """Add or remove axes of one element at a place."""
        axes = range(place, place + abs(new_rank - rank))
        if axes:
            return self.axes("Squeeze" if new_rank < rank else "Unsqueeze", name, axes, output)
        return self.node("Identity", [name], output) if output else name

    def reversed(self, name: str, axis: int = 0) -> str:
        return self.node("Slice", [name, *(self.integers(k) for k in (-1, -(2**31), axis, -1))])

    def gather(self, name: str, index: int, axis: int = 0, output: str = "") -> str:
        return self.node("Gather", [name, self.integers(index, scalar=True)], output, axis=axis)

    def transpose(self, name: str, perm: Sequence[int], output: str = "") -> str:
        if tuple(perm) == tuple(range(len(perm))) and not output:
            return name
        return self.node("Transpose", [name], output, perm=list(perm))

    def materialized(self, ref: Ref) -> str:
        """Return the name of columns and views of a value."""
        if ref not in self._made:
            name = self.viewed(ref.name, ref.views)
            shape = value_shape(self.scope, ref.name)
            if shape is None or (ref.start, ref.stop) != (0, shape[-1]):
                name = self.slice(name, -1, ref.start, ref.stop)
            self._made[ref] = name
        return self._made[ref]

    def viewed(self, name: str, views: Sequence[View]) -> str:
        for view in views:
            if view[0] == "transpose":
                name = self.transpose(name, view[1])
            elif view[0] == "flip":
                name = self.reversed(name, view[1])
            elif view[0] == "select":
                name = self.gather(name, view[2], view[1])
            else:
                name = self.axes(view[0].capitalize(), name, [view[1]])
        return name

    def redirect(self, name: str) -> str:
        """Let new nodes compute a value of the graph; its old node gets another output name."""
        self.replaced[name] = self.fresh(f"{name}/unused")
        return name

    def layer(
        self,
        cell: Cell,
        x: str,
        states: Sequence[str],
        name: str,
        origin: str,
        direction: DirectionName,
        lengths: str = "",
    ) -> tuple[str, ...]:
        """Add the recurrent node of a cell over X [T, N, I]; return the names of Y, Y_h and, for an LSTM, Y_c.

        Initial states [1, N, H] are empty names for zeros; `origin` says where the node comes from.
        """
        name = self.fresh(name)
        weights = [self.constant(f"{name}/{key}", array) for key, array in weights_of(cell).items()]
        inputs = [x, *weights, lengths, *states]
        while inputs and not inputs[-1]:
            inputs.pop()
        outputs = [self.fresh(f"{name}/{key}") for key in ("Y", "Y_h", "Y_c")[: 3 if cell.operator == "LSTM" else 2]]
        make_node = import_onnx().helper.make_node
        self.nodes.append(make_node(cell.operator, inputs, outputs, name=name, **op_attributes(cell.op(direction))))
        self.layers[name] = origin
        return tuple(outputs)


def weights_of(cell: Cell) -> dict[str, AnyArray]:
    """Return W, R and B of a cell in the arrangement of ONNX."""
    gates = [cell.gates[name] for name in ORDER[cell.operator]]
    size, dtype = cell.hidden_size, next(W for gate in gates for W in gate.W.values()).dtype
    widths = {ref: ref.width for ref in cell.xs}
    W = [
        np.concatenate([gate.W[ref].T if ref in gate.W else np.zeros((size, widths[ref]), dtype) for ref in cell.xs], 1)
        for gate in gates
    ]
    R = [np.zeros((size, size), dtype) if gate.R is None else gate.R.T for gate in gates]
    zeros = np.zeros(size, dtype)
    after = [cell.reset_bias if name == "h" and cell.reset_bias is not None else zeros for name in ORDER[cell.operator]]
    B = np.concatenate([*(gate.b for gate in gates), *after])
    return {"W": np.concatenate(W)[None], "R": np.concatenate(R)[None], "B": B[None].astype(dtype)}


@dataclass(frozen=True)
class Step:
    """Time of a state in Y, [T, N, H]."""

    Y: str
    time: int
    count: int
    width: int


def shape_of(scope: Scope, ref: Ref) -> Shape | None:
    """Return the shape of a value after views; None if unknown."""
    shape = value_shape(scope, ref.name)
    for view in ref.views:
        shape = None if shape is None else pushed(view, shape)
    return None if shape is None else (*shape[:-1], ref.width)


def rows_of(shape: Shape | None) -> int | str | None:
    """Return N of a shape [N, H], [1, ..., N, H] or, with 1 row, [H]; None for others."""
    if shape is None or any(size != 1 for size in shape[:-2]):
        return None
    return shape[-2] if len(shape) > 1 else 1


def states_fit(scope: Scope, cell: Cell) -> str:
    """Return why the rows of a cell's input and states may differ; "" if they are the same."""
    rows = rows_of(cell.shape)
    if rows is None:
        return "the number of rows of the state is unknown"
    refs = [ref for ref in (cell.h, cell.c, *cell.xs) if ref is not None]
    if any(rows_of(shape_of(scope, ref)) != rows for ref in refs):
        return "an input or a state of a step may have another number of rows than the new state"
    return ""


def emit_state(builder: Builder, ref: Ref | None) -> str | None:
    """Return the name of an initial state [1, N, H]; "" for zeros, None if its shape is unknown.

    Zeros whose N is only a name stay, so that the layer rejects another N.
    """
    if ref is None:
        return ""
    shape = shape_of(builder.scope, ref)
    if shape is None:
        return None
    form = Values(builder.scope).form(ref.name)
    is_zero = form is not None and form.is_constant and not form.bias.any()
    if is_zero and all(isinstance(size, int) for size in shape):
        return ""
    return builder.ranked(builder.materialized(ref), len(shape), 3)


def in_order(reference: Cell, cell: Cell) -> tuple[Ref, ...] | None:
    """Return the inputs of a cell in the order of another one's with the same weights; None for other weights."""
    if len(reference.xs) != len(cell.xs) or len(cell.xs) > _MOST_INPUTS:
        return None
    for order in permutations(cell.xs):
        if reference.same_weights(cell, dict(zip(reference.xs, order, strict=True))):
            return order
    return None


class Steps:
    """Values of the steps of one unrolled layer; `done` are the states that other layers compute."""

    def __init__(self, builder: Builder, done: Mapping[str, Step]) -> None:
        self._builder, self._scope, self._done = builder, builder.scope, done

    def input(self, inputs: Sequence[tuple[Ref, ...]]) -> tuple[str, bool]:
        """Return the name of X of the inputs of each step, and whether the steps run from its end."""
        columns = list(zip(*inputs, strict=True))
        series = [self._known(refs) or self._sliced(refs) for refs in columns]
        is_reverse = series[0] is not None and series[0][1]
        if any(item is None or item[1] != is_reverse for item in series):
            series, is_reverse = [(self._joined(refs), False) for refs in columns], False
        names = [item[0] for item in series if item is not None]
        return (names[0] if len(names) == 1 else self._builder.node("Concat", names, axis=-1)), is_reverse

    def _known(self, refs: Sequence[Ref]) -> tuple[str, bool] | None:
        """Return Y of another layer if the inputs are its states."""
        steps = [self._done.get(ref.name) for ref in refs]
        first = steps[0]
        if first is None or first.count != len(refs) or any(view[0] not in _ONES for ref in refs for view in ref.views):
            return None
        if any((ref.start, ref.stop) != (0, first.width) for ref in refs):
            return None
        times = [None if step is None or step.Y != first.Y else step.time for step in steps]
        order = list(range(len(refs)))
        return (first.Y, times != order) if times in (order, order[::-1]) else None

    def _sliced(self, refs: Sequence[Ref]) -> tuple[str, bool] | None:
        """Return a value whose slices the inputs are, with the time first."""
        parts = [_selected(ref.views) for ref in refs]
        first, ref = parts[0], refs[0]
        if first is None or any(
            part is None
            or (part[0], part[1]) != first[:2]
            or (item.name, item.start, item.stop) != (ref.name, ref.start, ref.stop)
            for part, item in zip(parts, refs, strict=True)
        ):
            return None
        axis, indices = first[1], [part[2] for part in parts if part is not None]
        base = shape_of(self._scope, Ref(ref.name, ref.start, ref.stop, first[0]))
        start, count = min(indices), len(refs)
        order = list(range(start, start + count))
        if base is None or indices not in (order, order[::-1]) or not can_be_time_first(base, axis):
            return None
        name = self._builder.materialized(Ref(ref.name, ref.start, ref.stop, first[0]))
        name = time_first(self._builder, name, base, axis)
        if base[axis] != count or start:  # a Gather fails if a step is missing
            name = self._builder.node("Gather", [name, self._builder.integers(*order)], axis=0)
        return name, indices != order

    def _joined(self, refs: Sequence[Ref]) -> str:
        build, scope = self._builder, self._scope
        rows = [build.ranked(build.materialized(ref), len(shape_of(scope, ref) or ()), 3) for ref in refs]
        return build.node("Concat", rows, axis=0)


def can_be_time_first(shape: Shape, axis: int) -> bool:
    """Return whether `time_first` removes only axes of one element."""
    return all(size == 1 for size in [size for k, size in enumerate(shape) if k != axis][:-2])


def time_first(builder: Builder, name: str, shape: Shape, axis: int) -> str:
    """Return a value [T, N, I] of one with more axes of one element, or without N, in another order."""
    rank = len(shape)
    name = builder.transpose(name, (axis, *(k for k in range(rank) if k != axis)))
    return builder.ranked(name, rank, 3, 1)


def _selected(views: Sequence[View]) -> tuple[tuple[View, ...], int, int] | None:
    """Return the views before the selection of a step, its axis and its index."""
    for place in reversed(range(len(views))):
        if views[place][0] == "select":
            _, axis, index = views[place]
            return (tuple(views[:place]), axis, index) if isinstance(index, int) else None
        if views[place][0] not in _ONES:
            return None
    return None


def emit_rows(builder: Builder, rows: str, rank: int, name: str) -> None:
    """Let a value of the graph be rows [N, H] in the shape of a state with that rank."""
    builder.ranked(rows, 2, rank, output=builder.redirect(name))


def is_whole(scope: Scope, ref: Ref) -> bool:
    """Return whether the columns are all of the value, without views."""
    shape = scope.shape(ref.name)
    return not ref.views and shape is not None and (ref.start, ref.stop) == (0, shape[-1])


def emit_series(builder: Builder, Y: str, rank: int, axis: int, name: str) -> None:
    """Let a value of the graph be Y [T, N, H]: states of that rank, with the time at an axis."""
    Y = builder.ranked(Y, 3, rank + 1, 1)
    perm = list(range(1, rank + 1))
    perm.insert(axis % (rank + 1), 0)
    builder.node("Transpose", [Y], builder.redirect(name), perm=perm)
