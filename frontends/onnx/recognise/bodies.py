"""Layers in the bodies of Loop and Scan.

X, h0 -> Scan (x, h -> LSTM cell -> h') -> Y, h        becomes      X, h0 -> LSTM -> Y, h
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyrnnx.operator.op import DirectionName

from ..graph.walk import Node, node_label
from .builder import (
    Builder,
    can_be_time_first,
    emit_rows,
    emit_series,
    emit_state,
    rows_of,
    shape_of,
    states_fit,
    time_first,
)
from .cells import Cell, Matcher
from .forms import ITERATION, Dim, Ref, Shape
from .loops import Loop, State
from .masks import INT64, Lengths, Mask, Masked, emit_mask, last_state, mask_of, moved_steps, states_after
from .scope import attribute_of, identity
from .values import Values, with_shapes

_ONES = ("squeeze", "unsqueeze")


@dataclass(frozen=True)
class Layer:
    """A cell of a loop, the states that it takes, the value that is its new h in the loop, and its mask."""

    cell: Cell
    h: State
    c: State | None
    new_h: str
    mask: Mask | None = None


def layers_of(loop: Loop) -> list[Layer] | str:
    """Return the layers whose steps a loop runs, or what is missing."""
    scope, plain = loop.scope, Values(loop.scope)
    names = {state.name for state in loop.states}
    by_name = {state.name: state for state in loop.states}
    masked = {
        name: choice for name, state in by_name.items() if (choice := mask_of(plain, plain.base(state.new), name))
    }
    for name, choice in masked.items():
        _join_equal(loop, plain, name, by_name[name], choice)
    new = {name: plain.base(masked[name].new if name in masked else by_name[name].new) for name in names}
    stops = names | set(new.values()) | {plain.base(state.new) for state in loop.states}
    values = with_shapes(scope, stops, [name for node in loop.graph.node for name in node.output if name in stops])
    matcher = Matcher(values, names)
    layers: list[Layer] = []
    why = "the body has no state that a cell computes"
    for state in loop.states:
        cell = matcher.match(new[state.name])
        if isinstance(cell, str):
            why = cell or why
        elif cell.h is None or cell.h.name != state.name or not cell.is_complete:
            why = "a cell takes another state than its own"
        else:
            c = None if cell.c is None else by_name.get(cell.c.name)
            why = _unfit(values, cell, state, c, masked)
            if why:
                return why
            mask = masked[state.name].mask if state.name in masked else None
            layers.append(Layer(cell, state, c, plain.base(state.new), mask))
    return layers or why


def _join_equal(loop: Loop, plain: Values, name: str, state: State, masked: Masked) -> None:
    """Let other nodes that compute the same masked state be copies of it, and let it have the state's shape."""
    scope, chosen = loop.scope, plain.base(state.new)
    if name in scope.known:
        scope.known[chosen] = scope.known[name]
    for node in loop.graph.node:
        if node.op_type == "Where" and node.output[0] != chosen:
            other = mask_of(plain, node.output[0], name)
            if (
                other is not None
                and other.mask == masked.mask
                and all(
                    plain.ref(a) is not None and plain.ref(a) == plain.ref(b)
                    for a, b in ((other.new, masked.new), (other.old, masked.old))
                )
            ):
                scope.producers[node.output[0]] = identity(chosen, node.output[0])


def _unfit(values: Values, cell: Cell, h: State, c: State | None, masked: Mapping[str, Masked]) -> str:
    """Return why the states of a cell are not those of the loop; "" if they are."""
    known = values.scope.known
    pairs: list[tuple[Ref | None, Ref | None, State | None]] = [(cell.h, cell.new_h, h)]
    if cell.c is not None:
        pairs.append((cell.c, cell.new_c, c))
    if len({masked[state.name].mask if state.name in masked else None for _, _, state in pairs if state}) > 1:
        return "the states of a cell have different masks"
    for before, after, state in pairs:
        is_masked = state is not None and state.name in masked
        if before is None or after is None or state is None or (is_masked and len(known.get(state.name, ())) != 2):
            return "a state of the cell is none of the loop, or has a mask and another rank than 2"
        new, end = values.ref(state.new), after
        if is_masked:
            choice = masked[state.name]
            if (values.ref(choice.new), values.ref(choice.old)) != (after, before):
                return "a mask chooses between other values than the states before and after the step"
            end = replace(after, name=values.base(state.new))
        if before.name != state.name or new is None or new.viewed(*before.views) != end:
            return "the loop changes a state between the steps"
        shape = known.get(state.name)
        if rows_of(shape) is None or shape != values.shape(state.new):
            return "a state changes its shape, or it is unknown or not [..., 1, N, H]"
    return states_fit(values.scope, cell)


def emit_loop(builder: Builder, loop: Loop, layers: Sequence[Layer]) -> str:
    """Add the layers of a loop to the graph around it; return what was missing, or ""."""
    left, emitted = list(layers), _Emitted(builder, loop)
    while left:
        ready = next((layer for layer in left if all(map(emitted.source, layer.cell.xs))), None)
        if ready is None:
            return "an input of a step is neither a slice of a value nor the state of another layer"
        why = emitted.layer(ready)
        if why:
            return why
        left.remove(ready)
    return emitted.results()


class _Emitted:
    """Layers of a loop that are in the graph already."""

    def __init__(self, builder: Builder, loop: Loop) -> None:
        self._builder, self._loop, self._outer = builder, loop, builder.scope
        self._sequences: dict[str, tuple[str, bool]] = {}  # Y [T, N, H] and whether it runs from the end, by new h
        self._lengths: dict[Mask, Lengths | None] = {}
        self._steps = ""

    def source(self, ref: Ref) -> tuple[str, Ref | None, int, bool] | None:
        """Return where an input comes from: a new state, or a value around the loop with its time axis."""
        is_plain = all(view[0] in _ONES for view in ref.views)
        if ref.name in self._sequences and is_plain:
            return ref.name, None, 0, self._sequences[ref.name][1]
        if ref.name in self._loop.series and is_plain:
            source, axis, is_reverse = self._loop.series[ref.name]
            return source, replace(ref, name=source, views=()), axis, is_reverse
        if ref.name in self._loop.graph.local:
            return None
        place = next((k for k in reversed(range(len(ref.views))) if ref.views[k][0] == "select"), None)
        if place is None or ref.views[place][2] != ITERATION or any(v[0] not in _ONES for v in ref.views[place + 1 :]):
            return None
        if any(view[0] == "select" and view[2] == ITERATION for view in ref.views[:place]):  # of a diagonal
            return None
        return ref.name, replace(ref, views=ref.views[:place]), int(ref.views[place][1]), False

    def _input(self, ref: Ref) -> tuple[str, bool]:
        """Return the name of an input over time, [T, N, I], and whether it runs from the end."""
        source = self.source(ref)
        if source is None:
            return "", False
        _, outer, axis, is_reverse = source
        if outer is None:
            Y, is_whole = (
                self._sequences[ref.name][0],
                (ref.start, ref.stop) == (0, self._loop.scope.known[ref.name][-1]),
            )
            return Y if is_whole else self._builder.slice(Y, -1, ref.start, ref.stop), is_reverse
        shape = shape_of(self._outer, outer)
        if shape is None or not can_be_time_first(shape, axis):
            return "", False
        x = self._builder.materialized(outer)
        x = time_first(self._builder, x, shape, axis)
        return (x if self._loop.is_scan else self._cut(x, shape[axis])), is_reverse

    def _cut(self, x: str, size: Dim) -> str:
        """Return the steps of X that the Loop runs; "" if the opset has no operator for it.

        Sizes of the same name may differ in a call, and so may a number of iterations and T. GatherND fails for more
        iterations than steps, as the Loop does, and gives no step for a negative number. A Gather would, too, but ONNX
        Runtime makes a Slice of a Gather and a Range, which takes as many steps as there are.
        """
        trips, build = self._loop.trips, self._builder
        numbers = Values(self._outer).moves.numbers(trips) if isinstance(trips, str) else (trips,)
        if isinstance(size, int) and numbers == (size,):
            return x
        if not build.has_range:
            return ""
        if not self._steps:
            bounds = [build.integers(0, scalar=True), self._limit(trips), build.integers(1, scalar=True)]
            self._steps = build.axes("Unsqueeze", build.node("Range", bounds), [1])
        return build.node("GatherND", [x, self._steps])

    def _limit(self, trips: str | int) -> str:
        """Return the name of the number of iterations, a scalar of int64."""
        build = self._builder
        if isinstance(trips, int):
            return build.integers(trips, scalar=True)
        name = build.node("Squeeze", [trips])
        return name if self._outer.element(trips) == INT64 else build.node("Cast", [name], to=INT64)

    def layer(self, layer: Layer) -> str:
        cell, builder, node = layer.cell, self._builder, self._loop.node
        inputs = [self._input(ref) for ref in cell.xs]
        if any(not name for name, _ in inputs) or len({is_reverse for _, is_reverse in inputs}) > 1:
            return "the inputs of a step have other shapes than [N, I], or other directions"
        names = [name for name, _ in inputs]
        x = names[0] if len(names) == 1 else builder.node("Concat", names, axis=-1)
        initial = [self._initial(cell.h, layer.h), *([self._initial(cell.c, layer.c)] if cell.c else [])]
        states = [name for name in initial if name is not None]
        if len(states) < len(initial):
            return "the shape of an initial state is unknown"
        mask = None if layer.mask is None else self._mask(layer.mask, rows_of(cell.shape))
        if layer.mask is not None and (mask is None or inputs[0][1]):
            return "the mask of the states is not one of the steps alone"
        x = x if mask is None else moved_steps(builder, x, mask)
        label = f"{node.name or node.output[0]}/{cell.operator}"
        direction: DirectionName = "reverse" if inputs[0][1] else "forward"
        lengths = "" if mask is None else mask.lengths
        outputs = builder.layer(cell, x, states, label, f"body of {node_label(node)}", direction, lengths)
        Y = builder.axes("Squeeze", outputs[0], [1])
        Y = Y if mask is None else states_after(builder, Y, states[0], mask)
        self._sequences[layer.new_h] = Y, inputs[0][1]
        for state, before, after in zip((layer.h, layer.c), states, outputs[1:], strict=False):
            if state is not None:
                self._final(state, before, after, x, mask)
        return ""

    def _mask(self, mask: Mask, rows: Dim) -> Lengths | None:
        if mask not in self._lengths:
            self._lengths[mask] = emit_mask(self._builder, self._loop, mask, rows, self._cut)
        return self._lengths[mask]

    def _initial(self, ref: Ref | None, state: State | None) -> str | None:
        if ref is None or state is None:
            return ""
        return emit_state(self._builder, replace(ref, name=state.initial))

    def _final(self, state: State, before: str, after: str, x: str, mask: Lengths | None) -> None:
        """Let a new state be the loop's output; without iterations, it is the state before."""
        builder, name = self._builder, self._loop.node.output[state.place]
        if not name:
            return
        if mask is not None:
            after = last_state(builder, after, before, mask)
        elif before:
            length = builder.gather(builder.node("Shape", [x]), 0)
            after = builder.node(
                "Where", [builder.node("Equal", [length, builder.integers(0, scalar=True)]), before, after]
            )
        rank = len(self._loop.scope.known[state.name])
        emit_rows(builder, builder.axes("Squeeze", after, [0]), rank, name)

    def results(self) -> str:
        """Let Y of the layers be the other outputs of the loop that have a user."""
        loop, builder = self._loop, self._builder
        values = Values(loop.scope, self._sequences)
        for value, place, axis, is_reverse in loop.results:
            name = loop.node.output[place] if place < len(loop.node.output) else ""
            series = self._series(values, value, is_reverse) if name else None
            if series is not None:
                emit_series(builder, *series, axis, name)
                self._outer.known[name] = self._shape_over_time(values, value, axis, name)
        for place, value in loop.sequences.items():
            series = self._series(values, value, False)
            for user in self._outer.graph.node:
                is_user = user.op_type == "ConcatFromSequence" and loop.node.output[place] in user.input
                if is_user and series is not None:
                    self._joined(user, *series)
        return ""

    def _shape_over_time(self, values: Values, value: str, axis: int, name: str) -> Shape:
        shape = values.shape(value) or ()
        axis %= len(shape) + 1
        return (*shape[:axis], f"{name}[{axis}]", *shape[axis:])

    def _series(self, values: Values, value: str, is_reverse: bool) -> tuple[str, int] | None:
        """Return Y of a value of the body over time, [T, N, H], and the value's rank; None for other values."""
        ref = values.ref(value)
        if ref is None or ref.name not in self._sequences or any(view[0] not in _ONES for view in ref.views):
            return None
        shape = shape_of(self._loop.scope, ref)
        if rows_of(shape) is None or (ref.start, ref.stop) != (0, self._loop.scope.known[ref.name][-1]):
            return None
        Y, runs_backward = self._sequences[ref.name]
        if runs_backward != is_reverse and not self._builder.can_slice_at_run_time:
            return None
        if runs_backward != is_reverse:
            Y = self._builder.reversed(Y)
        return Y, len(shape or ())

    def _joined(self, node: Node, Y: str, rank: int) -> None:
        """Let a ConcatFromSequence be Y: rows at a new axis, or rows [1, N, H] at their first."""
        axis, is_new = int(attribute_of(node, "axis", 0)), bool(attribute_of(node, "new_axis", 0))
        if is_new:
            emit_series(self._builder, Y, rank, axis, node.output[0])
        elif rank == 3 and axis == 0:
            emit_series(self._builder, Y, 2, 0, node.output[0])
