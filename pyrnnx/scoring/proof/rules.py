"""Rules for operators that compute: the properties of their results, for each `Kind` of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from pyrnnx.scoring.proof.node import Node, first, with_axes
from pyrnnx.scoring.proof.shapes import SHAPES
from pyrnnx.scoring.proof.table import Kind
from pyrnnx.scoring.proof.values import (
    ROWS,
    TIME,
    Axis,
    UnprovenError,
    Value,
    axis_of,
    broadcast,
    count,
    finite,
    has,
)

Rule = Callable[[Node], list[Value]]
_WIDE = (6, 7)  # ONNX's numbers of int32 and int64, which can represent lengths


def _elementwise(is_zero: Callable[[list[Value]], bool]) -> Rule:
    def rule(node: Node) -> list[Value]:
        operands = node.operands()
        axes, mixed = broadcast(operands, node.label), first(*(value.mixed for value in operands))
        return [with_axes(operands[0], axes, zero=is_zero(operands), mixed=mixed)]

    return rule


def _zero(value: Value) -> bool:
    return value.zero or (value.array is not None and value.array.dtype.kind in "biuf" and not value.array.any())


def _product(operands: list[Value]) -> bool:
    return any(value.zero for value in operands) and all(_zero(value) or finite(value) for value in operands)


def _quotient(operands: list[Value]) -> bool:
    first, second = operands
    return first.zero and finite(second) and second.array is not None and bool(second.array.all())


def _reduce(*, adds: bool, keeps_zero: bool) -> Rule:
    def rule(node: Node) -> list[Value]:
        value = node.data()
        rank = len(value.axes)
        axes = [node.axis(0, rank)] if node.op_type.startswith("Arg") else node.integers("axes", 1, [])
        if not axes and node.attributes.get("noop_with_empty_axes"):
            return [with_axes(value, value.axes, zero=value.zero and keeps_zero)]
        reduced = {axis % max(rank, 1) for axis in axes} or set(range(rank))
        over_time = any(has(value.axes[axis], TIME) for axis in reduced)
        mixed = node.mixing(value, reduced)
        if over_time and adds and value.zero:
            mixed = ""
        keep = node.attributes.get("keepdims", 1)
        left = [() if axis in reduced else value.axes[axis] for axis in range(rank) if keep or axis not in reduced]
        return [with_axes(value, left, zero=value.zero and keeps_zero, mixed=mixed)]

    return rule


def _normalized(axes_of: Callable[[Node, int], list[int]]) -> Rule:
    """Return the rule for results of the input's shape that depend on all elements along the axes of `axes_of`."""

    def rule(node: Node) -> list[Value]:
        value = node.data()
        node.constants(*range(1, len(node.inputs)))
        mixed = node.mixing(value, axes_of(node, len(value.axes)))
        if any(node.outputs[1:]):
            raise UnprovenError(f"{node.label} has outputs that cannot be analysed")
        return [with_axes(value, value.axes, mixed=mixed)]

    return rule


def _along_axis(node: Node, rank: int) -> list[int]:
    if node.opset < 13 and node.op_type != "LpNormalization":  # the input was flattened to two axes
        return list(range(node.axis(1, rank), rank))
    return [node.axis(-1, rank)]


class _Window(NamedTuple):
    """Window along one axis; the default is one element, which leaves the axis unchanged."""

    size: int = 1
    stride: int = 1
    dilation: int = 1
    pads: int = 0
    is_plain: bool = True  # no other attribute affects the number of windows

    @classmethod
    def of(cls, node: Node, place: int, rank: int, size: int) -> _Window:
        stride, dilation = (node.attributes.get(name, [1] * rank)[place] for name in ("strides", "dilations"))
        pads = sum(node.attributes.get("pads", [0] * 2 * rank)[place::rank])
        same = node.attributes.get("auto_pad", "NOTSET") in ("NOTSET", "VALID") or size == stride == 1
        sized = not any(node.attributes.get(name) for name in ("output_padding", "output_shape", "ceil_mode"))
        return cls(size, stride, dilation if size > 1 else 1, pads, same and sized)

    def places(self, size: int) -> int:
        return (size + self.pads - self.dilation * (self.size - 1) - 1) // self.stride + 1


def _window(*, sums_channels: bool) -> Rule:
    """Return the rule for convolutions and pooling over [N, C, ...]."""

    def rule(node: Node) -> list[Value]:
        value = node.data()
        node.constants(1, 2)
        space = list(range(2, len(value.axes)))
        if len(value.axes) < 2 or any(node.outputs[1:]):  # batch, channels
            raise UnprovenError(f"{node.label} has outputs that cannot be analysed")
        weights = node.data(1).array if sums_channels else None
        shape = node.attributes.get("kernel_shape", () if weights is None else weights.shape[2:])
        windows = {axis: _Window.of(node, k, len(space), shape[k]) for k, axis in enumerate(space)}
        touched = [axis for axis, window in windows.items() if window != _Window()]
        mixed = node.mixing(value, [*([1] if sums_channels else []), *touched])
        axes = list(value.axes)
        if weights is not None:
            transposed = node.op_type == "ConvTranspose"
            axes[1] = axis_of(weights.shape[1] * node.attributes.get("group", 1) if transposed else weights.shape[0])
        for axis in touched:
            size = count(value.axes[axis])
            plain = size is not None and node.op_type != "ConvTranspose" and windows[axis].is_plain
            axes[axis] = axis_of(windows[axis].places(size)) if plain and size is not None else node.fresh(axis)
        return [with_axes(value, axes, mixed=mixed)]

    return rule


def _along_space(node: Node, rank: int) -> list[int]:
    if has(node.data().axes[1], ROWS):
        raise UnprovenError(f"{node.label} has a constant with an element for each row")
    return list(range(2, rank))


def _whole_space(node: Node) -> list[Value]:
    value = node.data()
    space = range(2, len(value.axes))
    return [with_axes(value, [*value.axes[:2], *(() for _ in space)], mixed=node.mixing(value, space))]


def _channel(node: Node) -> list[Value]:
    value = node.data()
    node.constants(*range(1, len(node.inputs)))
    if node.attributes.get("training_mode") or any(node.outputs[1:]) or len(value.axes) < 2:
        raise UnprovenError(f"{node.label} combines rows")
    if has(value.axes[1], ROWS):
        raise UnprovenError(f"{node.label} has a constant with an element for each row")
    return [with_axes(value, value.axes)]


def _codes(node: Node) -> list[Value]:
    value = node.data()
    node.constants(1, 2)
    scale = node.data(1)
    if "block_size" in node.attributes or len(scale.axes) > 1:
        raise UnprovenError(f"{node.label} has scales of blocks")
    if count(scale.axes[0] if scale.axes else ()) != 1 and has(value.axes[node.axis(1, len(value.axes))], ROWS):
        raise UnprovenError(f"{node.label} has a constant with an element for each row")
    return [with_axes(value, value.axes)]


def _cumulative(node: Node) -> list[Value]:
    value = node.data()
    (place,) = node.integers("axis", 1)
    axis = place % max(len(value.axes), 1)
    mixed = node.mixing(value, [axis])
    if len(value.axes[axis]) == 1 and has(value.axes[axis], TIME) and not node.attributes.get("reverse"):
        mixed = value.mixed  # sums of earlier time steps only
    return [with_axes(value, value.axes, mixed=mixed)]


def _dropout(node: Node) -> list[Value]:
    training = node.input(2)
    if any(node.outputs[1:]) or (training is not None and (training.array is None or training.array.any())):
        raise UnprovenError(f"{node.label} draws random numbers")
    value = node.data()
    return [with_axes(value, value.axes, zero=value.zero)]


def _cast(node: Node) -> list[Value]:
    value = node.inputs[0]
    assert value is not None  # `check_model` has checked it
    if value.numbers is not None:
        return [value]
    is_lengths = value.is_lengths and node.attributes.get("to") in _WIDE
    return [replace(with_axes(value, value.axes, zero=value.zero), is_lengths=is_lengths)]


def _identity(node: Node) -> list[Value]:
    assert node.inputs[0] is not None
    return [node.inputs[0]]


def _recurrent(node: Node) -> list[Value]:
    """Return Y and the final states of a recurrent operator.

    With the items' lengths as sequence_lens, Y is zero in the padding, and the states do not depend on it.
    """
    X = node.data()
    node.constants(1, 2, 3, 7)
    batch_first = bool(node.attributes.get("layout", 0))
    time, rows = (X.axes[1], X.axes[0]) if batch_first else (X.axes[0], X.axes[1])
    if len(X.axes) != 3 or has(X.axes[2], ROWS):  # time, rows, elements
        raise UnprovenError(f"{node.label} has an X whose rows are not its batch")
    mixed = node.mixing(X, [1 if batch_first else 0]) and X.mixed
    if has(X.axes[2], TIME):
        mixed = mixed or f"{node.label} combines time steps with the padding"
    over_time = has(time, TIME)
    lens = node.input(4)
    respected = False
    if lens is not None:
        lens = node.data(4)
        _same_rows(node, lens, 0, rows, "sequence_lens")
        respected = lens.is_lengths and len(time) == 1 and over_time
        mixed = first(mixed, lens.mixed)
    for place, name in ((5, "initial_h"), (6, "initial_c")):
        if node.input(place) is not None:
            state = node.data(place)
            _same_rows(node, state, 0 if batch_first else 1, rows, name)
            mixed = first(mixed, state.mixed)
    direction = node.attributes.get("direction", "forward")
    reason = f"{node.label} runs over the padding: its sequence_lens are not the lengths of the items"
    padded = over_time and not respected
    steps_mixed = mixed or (reason if padded and (direction != "forward" or lens is not None or len(time) > 1) else "")
    last_mixed = mixed or (reason if padded else "")
    directions, hidden = axis_of(2 if direction == "bidirectional" else 1), axis_of(node.attributes["hidden_size"])
    Y_axes = [rows, time, directions, hidden] if batch_first else [time, directions, rows, hidden]
    state_axes = [rows, directions, hidden] if batch_first else [directions, rows, hidden]
    Y = with_axes(X, Y_axes, zero=respected and not steps_mixed, mixed=steps_mixed)
    last = with_axes(X, state_axes, mixed=last_mixed)
    return [Y, last, last][: len(node.outputs)]


def _same_rows(node: Node, value: Value, place: int, rows: Axis, name: str) -> None:
    broadcast([Value((rows,)), _of_axis(value, place)], f"{name} of {node.label}")
    if not value.axes[place] and rows:
        raise UnprovenError(f"{name} of {node.label} has one row")


def _of_axis(value: Value, place: int) -> Value:
    """Return a value reduced to one axis; of a constant, the other axes are joined before it."""
    array = None if value.array is None else np.moveaxis(value.array, place, -1).reshape(-1, value.array.shape[place])
    return Value((value.axes[place],), array=array) if array is None else Value(((), value.axes[place]), array=array)


def _matmul(node: Node) -> list[Value]:
    a, b = node.data(0), node.data(1)
    if min(len(a.axes), len(b.axes)) < 2:
        raise UnprovenError(f"{node.label} multiplies a vector")
    mixed = first(node.mixing(a, [len(a.axes) - 1]), node.mixing(b, [len(b.axes) - 2]))
    batch = broadcast([a, b], node.label, trailing=2)
    zero = a.zero and not has(a.axes[-1], TIME) and finite(b)
    return [with_axes(a, [*batch, a.axes[-2], b.axes[-1]], zero=zero, mixed=mixed)]


def _gemm(node: Node) -> list[Value]:
    value = node.data()
    node.constants(1, 2)
    weights, bias = node.data(1), node.input(2)
    if node.attributes.get("transA"):
        value = with_axes(value, value.axes[::-1], zero=value.zero)
    mixed = node.mixing(value, [1])
    columns = weights.axes[0 if node.attributes.get("transB") else 1]
    zero = value.zero and finite(weights) and bias is None
    product = with_axes(value, [value.axes[0], columns], zero=zero, mixed=mixed)
    if bias is not None:
        broadcast([product, bias], node.label)
    return [product]


RULES: Mapping[Kind, Rule] = MappingProxyType(
    {
        Kind.ELEMENTWISE: _elementwise(lambda operands: False),
        Kind.KEEPS_ZERO: _elementwise(lambda operands: operands[0].zero),
        Kind.SUM: _elementwise(lambda operands: all(map(_zero, operands))),
        Kind.PRODUCT: _elementwise(_product),
        Kind.QUOTIENT: _elementwise(_quotient),
        Kind.CHOICE: _elementwise(lambda operands: all(map(_zero, operands[1:]))),
        Kind.REDUCE_SUM: _reduce(adds=True, keeps_zero=True),
        Kind.REDUCE: _reduce(adds=False, keeps_zero=True),
        Kind.REDUCE_NONZERO: _reduce(adds=False, keeps_zero=False),
        Kind.ALONG_AXIS: _normalized(_along_axis),
        Kind.FROM_AXIS: _normalized(lambda node, rank: list(range(node.axis(-1, rank), rank))),
        Kind.ALONG_SPACE: _normalized(_along_space),
        Kind.WINDOW: _window(sums_channels=True),
        Kind.WINDOW_OF_CHANNEL: _window(sums_channels=False),
        Kind.WHOLE_SPACE: _whole_space,
        Kind.CHANNEL: _channel,
        Kind.CUMULATIVE: _cumulative,
        Kind.CODES: _codes,
        Kind.DROPOUT: _dropout,
        Kind.CAST: _cast,
        Kind.IDENTITY: _identity,
        Kind.RECURRENT: _recurrent,
        Kind.MATMUL: _matmul,
        Kind.GEMM: _gemm,
        **SHAPES,
    }
)
