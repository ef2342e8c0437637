"""Operators that search, sort, gather, scatter and pad."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyrnnx.errors import shown

from ...ir.writer import Shape, Value
from ..context import NodeContext, writes
from ..views import View, plain


@writes("Pad")
def _pad(ctx: NodeContext) -> View:
    """Write Pad; in opset 1, pads are called paddings, below opset 11 they are an attribute."""
    view, mode = ctx.view(0), ctx.attribute("mode", "constant")
    if mode not in ("constant", "edge", "reflect"):
        ctx.refuse(f"mode {shown(mode)}", "constant, edge or reflect")
    listed = ctx.attribute("paddings") or ctx.attribute("pads")
    fill = ctx.attribute("value", 0.0)
    value = ctx.scalar(2) if ctx.has(2) else ctx.const("fill", fill, view.precision)
    axes = ctx.integers("axes", 3)
    axes = [ctx.axis(axis, view.rank) for axis in (range(view.rank) if axes is None else axes)]
    constant = ctx.constant(1) if listed is None else np.array(listed)
    if constant is None:
        inputs = [ctx[0], *_computed_pads(ctx, axes, view.rank)]
        return ctx.plain("Pad", 12, [*inputs, value], ctx.output(view.rank), pad_mode=mode)
    begin, end = np.zeros((2, view.rank), np.int64)
    inner = [view.order[axis] for axis in axes]
    begin[inner], end[inner] = constant.reshape(2, -1)
    if mode != "constant" and (constant < 0).any():
        ctx.refuse(f"negative pads {constant.tolist()} in mode {mode}", "mode constant")
    sizes = zip(view.value.shape, begin.tolist(), end.tolist(), strict=True)
    shape = tuple(None if size is None else size + before + after for size, before, after in sizes)
    inputs = [view.value, ctx.const("begin", begin), ctx.const("end", end), value]
    return View(ctx.layer("Pad", 12, inputs, (view.precision, shape), pad_mode=mode), view.order)


def _computed_pads(ctx: NodeContext, axes: list[int], rank: int) -> list[Value]:
    """Return pads before and after each axis; axes that are not listed have zeros."""
    pads = ctx.layer("Concat", 1, [ctx[1], ctx.const("none", [0])], ("I64", (2 * len(axes) + 1,)), axis=0)
    results = []
    for name, first in (("begin", 0), ("end", len(axes))):
        places = [first + axes.index(axis) if axis in axes else 2 * len(axes) for axis in range(rank)]
        inputs = [pads, ctx.const(name, places), ctx.const("axis", 0)]
        results.append(ctx.layer("Gather", 8, inputs, ("I64", (rank,)), batch_dims=0))
    return results


@writes("TopK")
def _top_k(ctx: NodeContext) -> list[View]:
    """Write TopK, sorted also where any order is allowed; of equal values, those with lower indices win."""
    view = ctx.view(0)
    axis, largest = ctx.axis(ctx.attribute("axis", -1), view.rank), ctx.attribute("largest", 1)
    ctx.attribute("sorted")
    count, constant = ctx.attribute("k"), ctx.constant(1)
    if constant is not None:
        count = int(constant.item())
    k = ctx.scalar(1) if count is None else ctx.const("k", count)
    return _sorted(ctx, view, k, axis, count, largest=bool(largest))


def _sorted(ctx: NodeContext, view: View, k: Value, axis: int, count: int | None, *, largest: bool) -> list[View]:
    """Return the first `k` values along an axis, and their indices."""
    inner = view.order[axis]
    shape = _replaced(view.value.shape, inner, count)
    data = {"axis": inner, "mode": "max" if largest else "min", "sort": "value", "index_element_type": "i64"}
    outputs = [(view.precision, shape), ("I64", shape)]
    values = ctx.layers("TopK", 11, [view.value, k], outputs, {**data, "stable": True})
    return [View(value, view.order) for value in values]


def _replaced(shape: Shape, axis: int, size: int | None) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _arg(ctx: NodeContext, largest: bool) -> View:
    """Write ArgMax or ArgMin; for the last of equal elements, the axis is reversed."""
    view = ctx.view(0)
    axis = ctx.axis(ctx.attribute("axis", 0), view.rank)
    last = ctx.attribute("select_last_index", 0)
    if last:
        view = _reversed(ctx, view, axis)
    _, result = _sorted(ctx, view, ctx.const("k", 1), axis, 1, largest=largest)
    if last:
        sizes = ctx.layer("ShapeOf", 3, [view.value], ("I64", (view.rank,)), output_type="i64")
        inputs = [sizes, ctx.const("place", view.order[axis]), ctx.const("axis", 0)]
        size = ctx.plain("Gather", 8, inputs, ("I64", ()), batch_dims=0)
        end = ctx.binary("Subtract", 1, size, plain(ctx.const("one", 1)))
        result = ctx.binary("Subtract", 1, end, result)
    if ctx.attribute("keepdims", 1):
        return result
    inner = result.order[axis]
    shape = (*result.value.shape[:inner], *result.value.shape[inner + 1 :])
    value = ctx.layer("Squeeze", 1, [result.value, ctx.const("axes", [inner])], ("I64", shape))
    return View(value, result.order_without({axis}))


def _reversed(ctx: NodeContext, view: View, axis: int) -> View:
    bounds = {"start": [-1], "stop": [-(2**63)], "step": [-1], "axes": [view.order[axis]]}
    inputs = [view.value, *(ctx.const(name, value) for name, value in bounds.items())]
    return View(ctx.layer("Slice", 8, inputs, (view.precision, view.value.shape)), view.order)


writes("ArgMax")(partial(_arg, largest=True))
writes("ArgMin")(partial(_arg, largest=False))


@writes("CumSum")
def _cum_sum(ctx: NodeContext) -> View:
    view, constant = ctx.view(0), ctx.constant(1)
    data: dict[str, Any] = {name: bool(ctx.attribute(name, 0)) for name in ("exclusive", "reverse")}
    if constant is None:
        value = ctx[0]
        return ctx.plain("CumSum", 3, [value, ctx.scalar(1)], (value.precision, value.shape), **data)
    axis = view.order[ctx.axis(int(constant.item()), view.rank)]
    return ctx.unary("CumSum", 3, view, ctx.const("axis", axis), **data)


@writes("GatherElements")
def _gather_elements(ctx: NodeContext) -> View:
    value, indices = ctx[0], ctx[1]
    axis = ctx.axis(ctx.attribute("axis", 0), len(value.shape))
    indices = _from_start(ctx, indices, value, axis)
    return ctx.plain("GatherElements", 6, [value, indices], (value.precision, indices.shape), axis=axis)


def _from_start(ctx: NodeContext, indices: Value, value: Value, axis: int) -> Value:
    """Return indices of an axis, negative ones counted from its end, which IR does not have."""
    constant = ctx.constant(1)
    if constant is not None and (constant >= 0).all():
        return indices
    shape = ctx.layer("ShapeOf", 3, [value], ("I64", (len(value.shape),)), output_type="i64")
    inputs = [shape, ctx.const("place", axis), ctx.const("axis", 0)]
    size = ctx.converted(ctx.plain("Gather", 8, inputs, ("I64", ()), batch_dims=0), indices.precision)
    return ctx.binary("FloorMod", 1, plain(indices), size).value


@writes("GatherND")
def _gather_nd(ctx: NodeContext) -> View:
    value, indices = ctx[0], ctx[1]
    batch = ctx.attribute("batch_dims", 0)
    depth = indices.shape[-1]
    rank = None if depth is None else len(indices.shape) - 1 + len(value.shape) - depth - batch
    return ctx.plain("GatherND", 8, [value, indices], ctx.output(rank), batch_dims=batch)


_REDUCTIONS = {"none": "none", "add": "sum", "mul": "prod", "min": "min", "max": "max"}


def _reduction(ctx: NodeContext) -> str:
    reduction = ctx.attribute("reduction", "none")
    if reduction not in _REDUCTIONS:
        ctx.refuse(f"reduction {shown(reduction)}", ", ".join(_REDUCTIONS))
    return _REDUCTIONS[reduction]


@writes("ScatterND")
def _scatter_nd(ctx: NodeContext) -> View:
    inputs = [ctx[position] for position in range(3)]
    output = (inputs[0].precision, inputs[0].shape)
    return ctx.plain("ScatterNDUpdate", 15, inputs, output, reduction=_reduction(ctx))


def _scatter_elements(ctx: NodeContext) -> View:
    """Write ScatterElements, called Scatter before opset 11."""
    inputs = [ctx[position] for position in range(3)]
    axis = ctx.axis(ctx.attribute("axis", 0), len(inputs[0].shape))
    output = (inputs[0].precision, inputs[0].shape)
    data = {"reduction": _reduction(ctx), "use_init_val": True}
    return ctx.plain("ScatterElementsUpdate", 12, [*inputs, ctx.const("axis", axis)], output, **data)


writes("ScatterElements", "Scatter")(_scatter_elements)


@writes("NonZero")
def _non_zero(ctx: NodeContext) -> View:
    value = ctx[0]
    return ctx.plain("NonZero", 3, [value], ("I64", (len(value.shape), None)), output_type="i64")


@writes("OneHot")
def _one_hot(ctx: NodeContext) -> View:
    """Write OneHot; a negative index counts from the end."""
    indices = ctx.converted(plain(ctx[0]), "I64")
    axis = ctx.axis(ctx.attribute("axis", -1), indices.rank + 1)
    depth = ctx.scalar(1)
    if depth.precision != "I64":
        depth = ctx.converted(plain(depth), "I64").value
    values = ctx[2]
    parts = [ctx.const(str(k), k) for k in (0, 1)]
    off, on = (ctx.layer("Gather", 8, [values, part, parts[0]], (values.precision, ()), batch_dims=0) for part in parts)
    inputs = [indices.value, depth, on, off]
    output = ctx.output(indices.rank + 1)
    return ctx.plain("OneHot", 16, inputs, output, axis=axis, negative_indices_mode="normalize")


@writes("ReverseSequence")
def _reverse_sequence(ctx: NodeContext) -> View:
    view = ctx.view(0)
    batch, time = (ctx.axis(ctx.attribute(name, k), view.rank) for name, k in (("batch_axis", 1), ("time_axis", 0)))
    lengths = ctx[1]
    return ctx.unary("ReverseSequence", 1, view, lengths, batch_axis=view.order[batch], seq_axis=view.order[time])


@writes("Trilu")
def _trilu(ctx: NodeContext) -> View:
    """Write Trilu as Select by row and column numbers."""
    value, upper = ctx[0], ctx.attribute("upper", 1)
    rank = len(value.shape)
    shape = ctx.layer("ShapeOf", 3, [value], ("I64", (rank,)), output_type="i64")
    zero, step = ctx.const("0", 0), ctx.const("1", 1)
    numbers = []
    for axis in (rank - 2, rank - 1):
        size = ctx.layer("Gather", 8, [shape, ctx.const("place", axis), zero], ("I64", ()), batch_dims=0)
        numbers.append(ctx.layer("Range", 4, [zero, size, step], ("I64", (value.shape[axis],)), output_type="i64"))
    rows = ctx.layer("Unsqueeze", 1, [numbers[0], ctx.const("axes", [1])], ("I64", (value.shape[-2], 1)))
    diagonal = plain(rows)
    if ctx.has(1):
        diagonal = ctx.binary("Add", 1, diagonal, plain(ctx.scalar(1)))
    kind = "GreaterEqual" if upper else "LessEqual"
    kept = ctx.binary(kind, 1, plain(numbers[1]), diagonal, "BOOL")
    zeros = ctx.const("zero", np.zeros(()), value.precision)
    return ctx.plain("Select", 1, [kept.value, value, zeros], (value.precision, value.shape), auto_broadcast="numpy")
