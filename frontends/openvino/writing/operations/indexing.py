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
        inputs = [ctx[0], *_computed_pads(ctx, axes, view.rank), value]
        return ctx.result("Pad", 12, inputs, view.rank, pad_mode=mode)
    begin, end = np.zeros((2, view.rank), np.int64)
    inner = [view.order[axis] for axis in axes]
    begin[inner], end[inner] = constant.reshape(2, -1)
    if mode != "constant" and (constant < 0).any():
        ctx.refuse(f"negative pads {constant.tolist()} in mode {mode}", "mode constant")
    inputs = [view.value, ctx.const("begin", begin), ctx.const("end", end), value]
    return ctx.result("Pad", 12, inputs, view.order, pad_mode=mode)


def _computed_pads(ctx: NodeContext, axes: list[int], rank: int) -> list[Value]:
    """Return pads before and after each axis; axes that are not listed have zeros."""
    pads = ctx.layer("Concat", 1, [ctx[1], ctx.const("none", [0])], ("I64", (2 * len(axes) + 1,)), axis=0)
    results = []
    for name, first in (("begin", 0), ("end", len(axes))):
        places = [first + axes.index(axis) if axis in axes else 2 * len(axes) for axis in range(rank)]
        results.append(ctx.gathered(pads, ctx.const(name, places), 0, (rank,)))
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
        end = ctx.binary("Subtract", 1, ctx.size(view.value, view.order[axis]), plain(ctx.const("one", 1)))
        result = ctx.binary("Subtract", 1, end, result)
    if ctx.attribute("keepdims", 1):
        return result
    inputs = [result.value, ctx.const("axes", [result.order[axis]])]
    return ctx.result("Squeeze", 1, inputs, result.order_without({axis}))


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
        return ctx.result("CumSum", 3, [ctx[0], ctx.scalar(1)], view.rank, **data)
    axis = view.order[ctx.axis(int(constant.item()), view.rank)]
    return ctx.unary("CumSum", 3, view, ctx.const("axis", axis), **data)


@writes("GatherElements")
def _gather_elements(ctx: NodeContext) -> View:
    value, indices = ctx[0], ctx[1]
    axis = ctx.axis(ctx.attribute("axis", 0), len(value.shape))
    indices = _from_start(ctx, indices, value, axis)
    return ctx.result("GatherElements", 6, [value, indices], len(value.shape), axis=axis)


def _from_start(ctx: NodeContext, indices: Value, value: Value, axis: int) -> Value:
    """Return indices of an axis, negative ones counted from its end, which IR does not have."""
    constant = ctx.constant(1)
    if constant is not None and (constant >= 0).all():
        return indices
    size = ctx.converted(ctx.size(value, axis), indices.precision)
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
    return ctx.result("ScatterNDUpdate", 15, inputs, ctx.view(0).rank, reduction=_reduction(ctx))


def _scatter_elements(ctx: NodeContext) -> View:
    """Write ScatterElements, called Scatter before opset 11."""
    rank = ctx.view(0).rank
    axis = ctx.const("axis", ctx.axis(ctx.attribute("axis", 0), rank))
    inputs = [*(ctx[position] for position in range(3)), axis]
    return ctx.result("ScatterElementsUpdate", 12, inputs, rank, reduction=_reduction(ctx), use_init_val=True)


writes("ScatterElements", "Scatter")(_scatter_elements)


@writes("NonZero")
def _non_zero(ctx: NodeContext) -> View:
    return ctx.result("NonZero", 3, [ctx[0]], 2, output_type="i64")


@writes("OneHot")
def _one_hot(ctx: NodeContext) -> View:
    """Write OneHot; a negative index counts from the end."""
    indices = ctx.converted(plain(ctx[0]), "I64")
    axis = ctx.axis(ctx.attribute("axis", -1), indices.rank + 1)
    depth = ctx.scalar(1)
    if depth.precision != "I64":
        depth = ctx.converted(plain(depth), "I64").value
    values = ctx[2]
    off, on = (ctx.gathered(values, ctx.const(str(k), k), 0, ()) for k in (0, 1))
    inputs = [indices.value, depth, on, off]
    return ctx.result("OneHot", 16, inputs, indices.rank + 1, axis=axis, negative_indices_mode="normalize")


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
    zero, step = ctx.const("0", 0), ctx.const("1", 1)
    numbers = []
    for axis in (rank - 2, rank - 1):
        inputs = [zero, ctx.size(value, axis).value, step]
        numbers.append(ctx.layer("Range", 4, inputs, ("I64", (value.shape[axis],)), output_type="i64"))
    rows = ctx.layer("Unsqueeze", 1, [numbers[0], ctx.const("axes", [1])], ("I64", (value.shape[-2], 1)))
    diagonal = plain(rows)
    if ctx.has(1):
        diagonal = ctx.binary("Add", 1, diagonal, plain(ctx.scalar(1)))
    kind = "GreaterEqual" if upper else "LessEqual"
    kept = ctx.binary(kind, 1, plain(numbers[1]), diagonal, "BOOL")
    zeros = ctx.const("zero", np.zeros(()), value.precision)
    return ctx.result("Select", 1, [kept.value, value, zeros], rank, auto_broadcast="numpy")
