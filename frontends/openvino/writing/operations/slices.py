"""Operators that return parts of arrays."""

from __future__ import annotations

import numpy as np

from ..context import NodeContext, writes
from ..views import View, plain


@writes("Slice")
def _slice(ctx: NodeContext) -> View:
    """Write Slice; before opset 10, starts, ends and axes are attributes and there are no steps."""
    view = ctx.view(0)
    if ctx.opset < 10:
        bounds = [ctx.const(name, ctx.integers(name, 9)) for name in ("starts", "ends")]
    else:
        bounds = [ctx.listed(1), ctx.listed(2)]
    start, stop = bounds
    listed = ctx.integers("axes", 3)
    count = start.shape[0] if listed is None else len(listed)
    if count is None:
        ctx.refuse("a Slice without axes whose starts have a dynamic size", "axes")
    axes = [ctx.axis(axis, view.rank) for axis in (range(count) if listed is None else listed)]
    step = ctx.listed(4) if ctx.has(4) else ctx.const("steps", np.ones(count), start.precision)
    inner = [view.order[axis] for axis in axes]
    inputs = [view.value, start, stop, step, ctx.const("axes", inner, start.precision)]
    return ctx.result("Slice", 8, inputs, view.order)


@writes("Gather")
def _gather(ctx: NodeContext) -> View:
    """Write Gather; a scalar index removes the axis, whatever the order of the others."""
    view, indices = ctx.view(0), ctx[1]
    axis = ctx.axis(ctx.attribute("axis", 0), view.rank)
    inner, order = view.order[axis], view.order_without({axis})
    if indices.shape != ():
        view, inner, order = plain(ctx[0]), axis, tuple(range(view.rank - 1 + len(indices.shape)))
    shape = (*view.value.shape[:inner], *indices.shape, *view.value.shape[inner + 1 :])
    return View(ctx.gathered(view.value, indices, inner, shape), order)


@writes("Split")
def _split(ctx: NodeContext) -> list[View]:
    view = ctx.view(0)
    axis = ctx.axis(ctx.attribute("axis", 0), view.rank)
    count, size = len(ctx.node.output), view.shape[axis]
    ctx.attribute("num_outputs")
    sizes = ctx.integers("split", 1)
    if sizes is None:
        if size is None:
            ctx.refuse("a Split of a dynamic axis into equal parts", "split, or a known size")
        largest = -(-size // count)
        sizes = [min(largest, max(size - k * largest, 0)) for k in range(count)]
    if len(sizes) != count or (size is not None and sum(sizes) != size):
        ctx.refuse(f"split {sizes} of an axis of {size} into {count} outputs", "a size for each output, with that sum")
    return ctx.parts(view, axis, sizes)
