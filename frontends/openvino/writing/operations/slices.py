"""Operators that return parts of arrays."""

from __future__ import annotations

import numpy as np

from ...ir.writer import Shape, Value
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
    _, shape = ctx.output(view.rank)
    return View(ctx.layer("Slice", 8, inputs, (view.precision, view.inner(shape))), view.order)


@writes("Gather")
def _gather(ctx: NodeContext) -> View:
    """Write Gather; a scalar index removes the axis, whatever the order of the others."""
    view, indices = ctx.view(0), ctx[1]
    axis = ctx.axis(ctx.attribute("axis", 0), view.rank)
    if indices.shape == ():
        inner = view.order[axis]
        shape = view.value.shape[:inner] + view.value.shape[inner + 1 :]
        return View(_gathered(ctx, view.value, indices, inner, shape), view.order_without({axis}))
    value = ctx[0]
    shape = value.shape[:axis] + indices.shape + value.shape[axis + 1 :]
    return plain(_gathered(ctx, value, indices, axis, shape))


def _gathered(ctx: NodeContext, value: Value, indices: Value, axis: int, shape: Shape) -> Value:
    inputs = [value, indices, ctx.const("axis", axis)]
    return ctx.layer("Gather", 8, inputs, (value.precision, shape), batch_dims=0)


@writes("Split")
def _split(ctx: NodeContext) -> list[View]:
    view = ctx.view(0)
    axis = ctx.axis(ctx.attribute("axis", 0), view.rank)
    inner, count = view.order[axis], len(ctx.node.output)
    ctx.attribute("num_outputs")
    sizes = ctx.integers("split", 1)
    size = view.value.shape[inner]
    if sizes is None:
        if size is None:
            ctx.refuse("a Split of a dynamic axis into equal parts", "split, or a known size")
        largest = -(-size // count)
        sizes = [min(largest, max(size - k * largest, 0)) for k in range(count)]
    if len(sizes) != count or (size is not None and sum(sizes) != size):
        ctx.refuse(f"split {sizes} of an axis of {size} into {count} outputs", "a size for each output, with that sum")
    inputs = [view.value, ctx.const("axis", inner), ctx.const("split", sizes)]
    shapes = [(*view.value.shape[:inner], part, *view.value.shape[inner + 1 :]) for part in sizes]
    values = ctx.layers("VariadicSplit", 1, inputs, [(view.precision, shape) for shape in shapes], {})
    return [View(value, view.order) for value in values]
