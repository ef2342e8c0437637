"""Rules for operators that move elements or compute shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrnnx.scoring.proof.arithmetic import from_numbers
from pyrnnx.scoring.proof.node import Node, first, with_axes, with_axis
from pyrnnx.scoring.proof.table import Kind
from pyrnnx.scoring.proof.values import (
    ROWS,
    TIME,
    Axis,
    Size,
    UnprovenError,
    Value,
    as_data,
    axis_of,
    axis_of_size,
    broadcast,
    count,
    has,
    integers,
    reshaped,
    size_of,
)

_END = 2**31 - 1  # exporters write this number or more for the end of an axis


def _sizes(value: Value | None, node: Node) -> list[Size | None]:
    """Return the numbers of a shape.

    Raises
    ------
    UnprovenError
        The shape is computed from values of the inputs.
    """
    if value is None or value.numbers is None:
        raise UnprovenError(f"{node.label} has axes, indices or sizes that are computed from the inputs")
    return list(value.numbers)


def _moved(value: Value, axes: Any, *, mixed: str | None = None) -> list[Value]:
    return [with_axes(value, axes, zero=value.zero, mixed=mixed)]


def _transpose(node: Node) -> list[Value]:
    value = node.data()
    order = node.attributes.get("perm", range(len(value.axes))[::-1])
    return _moved(value, [value.axes[axis] for axis in order])


def _reshape(node: Node) -> list[Value]:
    value = node.inputs[0]
    assert value is not None
    if "shape" in node.attributes:
        sizes: list[Size | None] = [Size(size) for size in node.attributes["shape"]]
    else:
        sizes = _sizes(node.input(1), node)
    if value.numbers is not None and len(sizes) <= 1:
        return [from_numbers(list(value.numbers), scalar=not sizes)]
    value = as_data(value, node.label)
    if Size(0) in sizes and not node.attributes.get("allowzero"):
        sizes = [size_of(value.axes[k]) if size == Size(0) else size for k, size in enumerate(sizes)]
    if any(size is None or (size.factor < 0 and size != Size(-1)) for size in sizes):
        raise UnprovenError(f"{node.label} has an unknown shape")
    if Size(-1) in sizes:
        rest: Size | None = size_of(atom for axis in value.axes for atom in axis)
        for size in sizes:
            if size != Size(-1) and size is not None:
                rest = rest.over(size) if rest is not None else None
        sizes = [rest if size == Size(-1) else size for size in sizes]
    if None in sizes:
        raise UnprovenError(f"{node.label} does not keep rows apart from other axes")
    return _moved(value, reshaped(value.axes, [size for size in sizes if size is not None], node.label))


def _flatten(node: Node) -> list[Value]:
    value = node.data()
    axis, rank = int(node.attributes.get("axis", 1)), len(value.axes)
    axis = axis + rank if axis < 0 else axis
    joined = [tuple(atom for axis in axes for atom in axis) for axes in (value.axes[:axis], value.axes[axis:])]
    return _moved(value, joined)


def _squeeze(node: Node) -> list[Value]:
    value = node.inputs[0]
    assert value is not None
    if value.numbers is not None:
        return [from_numbers(list(value.numbers), scalar=True)]
    value = as_data(value, node.label)
    axes = {axis % max(len(value.axes), 1) for axis in node.integers("axes", 1)}
    if any(value.axes[axis] for axis in axes):
        raise UnprovenError(f"{node.label} removes an axis that may have several elements")
    return _moved(value, [axis for place, axis in enumerate(value.axes) if place not in axes])


def _unsqueeze(node: Node) -> list[Value]:
    value = node.inputs[0]
    assert value is not None
    axes = node.integers("axes", 1)
    if value.numbers is not None and not value.axes:
        return [from_numbers(list(value.numbers))]
    value = as_data(value, node.label)
    rank = len(value.axes) + len(axes)
    added, left = {axis % rank for axis in axes}, iter(value.axes)
    return _moved(value, [() if place in added else next(left) for place in range(rank)])


def _shaped(sizes: list[Size | None], node: Node) -> tuple[Axis, ...]:
    """Return the axes of sizes, which may be the numbers of rows and time steps."""
    try:
        return tuple(axis_of_size(size) for size in sizes)
    except UnprovenError:
        raise UnprovenError(f"{node.label} has an unknown shape") from None


def _expand(node: Node) -> list[Value]:
    value = node.data()
    target = Value(_shaped(_sizes(node.input(1), node), node))
    return _moved(value, broadcast([value, target], node.label))


def _tile(node: Node) -> list[Value]:
    value, repeats = node.data(), _sizes(node.input(1), node)
    axes = list(value.axes)
    for place, (axis, size) in enumerate(zip(value.axes, repeats, strict=True)):
        if size == Size(1):
            continue
        if axis and (has(axis, ROWS) or has(axis, TIME) or size is None or size.labels):
            raise UnprovenError(f"{node.label} repeats rows or time steps")
        axes[place] = (*_shaped([size], node)[0], *axis)
    return _moved(value, axes)


def _concat(node: Node) -> list[Value]:
    values = [value for value in node.inputs if value is not None]
    if all(value.numbers is not None for value in values) and any(value.array is None for value in values):
        return [from_numbers([number for value in values for number in value.numbers or ()])]
    values = node.operands()
    rank = len(values[0].axes)
    place = node.axis(0, rank)
    mixed = first(*(node.mixing(value, [place]) for value in values))
    axes = list(broadcast([_without(value, place) for value in values], node.label))[1:]
    sizes = [count(value.axes[place]) for value in values]
    axes.insert(place, node.fresh(place) if None in sizes else axis_of(sum(size or 0 for size in sizes)))
    for value in values:  # Concat does not broadcast: an axis of size 1 does not match all rows
        if any(axis and not own for k, (axis, own) in enumerate(zip(axes, value.axes, strict=True)) if k != place):
            raise UnprovenError(f"{node.label} combines axes that are not the same")
    zero = all(value.zero or (value.array is not None and not value.array.any()) for value in values)
    return [with_axes(values[0], axes, zero=zero, mixed=mixed)]


def _without(value: Value, place: int) -> Value:
    """Return a value with one axis moved to the front and replaced by (), which matches any other axis."""
    axes = ((), *value.axes[:place], *value.axes[place + 1 :])
    return Value(axes, array=None if value.array is None else np.moveaxis(value.array, place, 0))


def _split(node: Node) -> list[Value]:
    value = node.data()
    place = node.axis(0, len(value.axes))
    mixed = node.mixing(value, [place])
    size, pieces = count(value.axes[place]), len(node.outputs)
    if "split" in node.attributes or node.input(1) is not None:
        sizes: list[int | None] = list(node.integers("split", 1))
    else:
        step = None if size is None else -(-size // pieces)
        sizes = [None if step is None or size is None else min(step, size - k * step) for k in range(pieces)]
    axes = [node.fresh(place, k) if size is None else axis_of(size) for k, size in enumerate(sizes)]
    return [_moved(value, with_axis(value, place, axis), mixed=mixed)[0] for axis in axes]


def _slice(node: Node) -> list[Value]:
    value = node.inputs[0]
    assert value is not None
    starts, ends = (node.integers(name, 1 + k) for k, name in enumerate(("starts", "ends")))
    rank = len(value.axes)
    axes = [axis % max(rank, 1) for axis in node.integers("axes", 3, list(range(len(starts))))]
    steps = node.integers("steps", 4, [1] * len(starts))
    if value.numbers is not None:
        return [from_numbers(list(value.numbers)[starts[0] : ends[0] : steps[0]])]
    value = as_data(value, node.label)
    result, mixed = list(value.axes), value.mixed
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = count(value.axes[axis])
        if (start, step) == (0, 1) and end >= (_END if size is None else size):
            continue
        mixed = first(mixed, node.mixing(value, [axis]))
        result[axis] = node.fresh(axis) if size is None else axis_of(len(range(size)[start:end:step]))
    return _moved(value, result, mixed=mixed)


def _gather(node: Node) -> list[Value]:
    value, indices = node.inputs[0], node.input(1)
    assert value is not None
    if value.numbers is not None and value.array is None:
        chosen = [value.numbers[k] for k in integers(indices, node.label)]
        return [from_numbers(chosen, scalar=indices is not None and not indices.axes)]
    value, indices = as_data(value, node.label), node.data(1)
    place = node.axis(0, len(value.axes))
    mixed = first(node.mixing(value, [place]), indices.mixed)
    if value.array is None and indices.array is None:
        raise UnprovenError(f"{node.label} has indices that are computed from the inputs")
    axes = [*value.axes[:place], *indices.axes, *value.axes[place + 1 :]]
    return [with_axes(value, axes, zero=value.zero, mixed=mixed)]


def _gather_elements(node: Node) -> list[Value]:
    value, indices = node.data(0), node.data(1)
    place = node.axis(0, len(value.axes))
    mixed = first(node.mixing(value, [place]), node.mixing(indices, [place]))
    for k, (a, b) in enumerate(zip(value.axes, indices.axes, strict=True)):
        if k != place and a != b and (has(a, ROWS) or has(b, ROWS) or has(a, TIME) or has(b, TIME)):
            raise UnprovenError(f"{node.label} combines axes that are not the same")
    return [with_axes(value, indices.axes, mixed=mixed)]


def _pad(node: Node) -> list[Value]:
    value, pads = node.data(), node.integers("pads", 1)
    rank = len(value.axes)
    axes = [axis % rank for axis in node.integers("axes", 3, list(range(rank)))]
    result, mixed = list(value.axes), value.mixed
    for k, axis in enumerate(axes):
        before, after = pads[k], pads[k + len(axes)]
        if before or after:
            mixed = first(mixed, node.mixing(value, [axis]))
            size = count(value.axes[axis])
            result[axis] = node.fresh(axis) if size is None else axis_of(size + before + after)
    return [with_axes(value, result, mixed=mixed)]


def _shape(node: Node) -> list[Value]:
    value = node.inputs[0]
    assert value is not None
    sizes: list[Size | None] = [size_of(axis) for axis in value.axes]
    return [from_numbers(sizes[node.attributes.get("start", 0) : node.attributes.get("end", len(sizes))])]


def _size(node: Node) -> list[Value]:
    value = node.inputs[0]
    assert value is not None
    return [from_numbers([size_of(atom for axis in value.axes for atom in axis)], scalar=True)]


def _constant_of_shape(node: Node) -> list[Value]:
    axes = _shaped(_sizes(node.input(0), node), node)
    filled = node.attributes.get("value")
    return [with_axes(Value(axes), axes, zero=filled is None or not np.any(filled))]


def _range(node: Node) -> list[Value]:
    start, limit, delta = (_sizes(node.input(place), node)[0] for place in range(3))
    if (start, delta) != (Size(0), Size(1)):
        raise UnprovenError(f"{node.label} has an unknown shape")
    axes = _shaped([limit], node)
    if has(axes[0], ROWS):
        raise UnprovenError(f"{node.label} computes with the number of rows")
    return [with_axes(Value(axes), axes)]


SHAPES: Mapping[Kind, Callable[[Node], list[Value]]] = MappingProxyType(
    {
        Kind.TRANSPOSE: _transpose,
        Kind.RESHAPE: _reshape,
        Kind.FLATTEN: _flatten,
        Kind.SQUEEZE: _squeeze,
        Kind.UNSQUEEZE: _unsqueeze,
        Kind.EXPAND: _expand,
        Kind.TILE: _tile,
        Kind.CONCAT: _concat,
        Kind.SPLIT: _split,
        Kind.SLICE: _slice,
        Kind.GATHER: _gather,
        Kind.GATHER_ELEMENTS: _gather_elements,
        Kind.PAD: _pad,
        Kind.SHAPE: _shape,
        Kind.SIZE: _size,
        Kind.CONSTANT_OF_SHAPE: _constant_of_shape,
        Kind.RANGE: _range,
    }
)
