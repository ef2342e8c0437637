"""Operators that move or select elements, or compute shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....onnx.onnx_package import import_onnx
from ...ir.element_types import BY_PRECISION
from ..context import NodeContext, writes
from ..views import View, plain


@writes("Transpose")
def _transpose(ctx: NodeContext) -> View:
    view = ctx.view(0)
    order = ctx.attribute("perm") or range(view.rank)[::-1]
    if sorted(order) != list(range(view.rank)):
        ctx.refuse(f"perm {list(order)} of {view.rank} axes", "each axis once")
    return view.transposed(order)


@writes("Concat")
def _concat(ctx: NodeContext) -> View:
    views = ctx.views()
    axis = ctx.axis(ctx.attribute("axis", 1), views[0].rank)
    if len(views) == 1:
        return views[0]
    if len({view.order for view in views}) > 1:
        views = [plain(ctx.in_order(view)) for view in views]
    order = views[0].order
    if any(view.rank != len(order) for view in views):
        ctx.refuse(f"inputs of {', '.join(str(view.rank) for view in views)} axes", "the same number for each")
    return ctx.result("Concat", 1, [view.value for view in views], order, axis=order[axis])


@writes("Squeeze")
def _squeeze(ctx: NodeContext) -> View:
    view = ctx.view(0)
    listed = ctx.integers("axes", 1)
    if listed is None:
        if None in view.shape:
            ctx.refuse("a Squeeze without axes of a dynamic shape", "axes")
        listed = [axis for axis, size in enumerate(view.shape) if size == 1]
    axes = {ctx.axis(axis, view.rank) for axis in listed}
    inner = sorted(view.order[axis] for axis in axes)
    return ctx.result("Squeeze", 1, [view.value, ctx.const("axes", inner)], view.order_without(axes))


@writes("Unsqueeze")
def _unsqueeze(ctx: NodeContext) -> View:
    value = ctx[0]
    listed = ctx.integers("axes", 1)
    if listed is None:
        ctx.refuse("an Unsqueeze without axes", "axes")
    rank = len(value.shape) + len(listed)
    axes = sorted({ctx.axis(axis, rank) for axis in listed})
    return ctx.result("Unsqueeze", 1, [value, ctx.const("axes", axes)], rank)


@writes("Reshape")
def _reshape(ctx: NodeContext) -> View:
    """Write Reshape; without allowzero, a size of 0 copies the input's size."""
    view, copies = ctx.view(0), not ctx.attribute("allowzero", 0)
    sizes = ctx.attribute("shape")
    constant = ctx.constant(1) if sizes is None else np.array(sizes, np.int64)
    if constant is None:
        return ctx.plain("Reshape", 1, [ctx[0], ctx[1]], ctx.output(ctx[1].shape[0]), special_zero=copies)
    return _reshaped(ctx, view, [int(size) for size in constant.reshape(-1)], copies)


def _reshaped(ctx: NodeContext, view: View, sizes: Sequence[int], copies: bool) -> View:
    """Reshape a view; leading axes that are copied keep their order, as [0, 0, -1] commutes with their swap."""
    copied = 0
    while copies and copied < min(len(sizes), view.rank) and sizes[copied] == 0:
        copied += 1
    if copies and 0 in sizes[view.rank :]:
        ctx.refuse(f"shape {list(sizes)} of {view.rank} axes", "no 0 after them")
    leading = view.order[:copied]
    value = ctx.in_order(View(view.value, (*sorted(leading), *view.order[copied:])))
    order = (*(sorted(leading).index(axis) for axis in leading), *range(copied, len(sizes)))
    return ctx.result("Reshape", 1, [value, ctx.const("shape", sizes)], order, special_zero=copies)


@writes("Flatten")
def _flatten(ctx: NodeContext) -> View:
    view = ctx.view(0)
    axis = ctx.attribute("axis", 1)
    axis = axis if axis == view.rank else ctx.axis(axis, view.rank)
    leading, trailing = view.shape[:axis], view.shape[axis:]
    if axis == 1:
        return _reshaped(ctx, view, [0, -1], True)
    if None not in leading:
        return _reshaped(ctx, view, [math.prod(size or 0 for size in leading), -1], False)
    if None not in trailing:
        return _reshaped(ctx, view, [-1, math.prod(size or 0 for size in trailing)], False)
    return ctx.refuse(f"axis {axis} of dynamic sizes on both sides", "axis 1, or known sizes on one side")


@writes("Shape")
def _shape(ctx: NodeContext) -> View:
    """Write Shape; it permutes the shape of a view's value, without a Transpose."""
    view = ctx.view(0)
    order = view.order[ctx.attribute("start", 0) : ctx.attribute("end")]
    shape = ctx.sizes(view.value)
    if order == tuple(range(view.rank)):
        return plain(shape)
    return plain(ctx.gathered(shape, ctx.const("axes", order), 0, (len(order),)))


@writes("Size")
def _size(ctx: NodeContext) -> View:
    inputs = [ctx.sizes(ctx.view(0).value), ctx.const("axis", [0])]
    return ctx.result("ReduceProd", 1, inputs, 0, keep_dims=False)


@writes("ConstantOfShape")
def _constant_of_shape(ctx: NodeContext) -> View:
    shape = ctx[0]
    tensor = ctx.attribute("value")
    array = np.zeros(1, np.float32) if tensor is None else import_onnx().numpy_helper.to_array(tensor)
    precision, sizes = ctx.output(shape.shape[0])
    value = ctx.const("value", array.reshape(()), precision)
    return ctx.plain("Broadcast", 3, [value, shape], (precision, sizes), mode="numpy")


@writes("Expand")
def _expand(ctx: NodeContext) -> View:
    value, shape = ctx[0], ctx[1]
    count = shape.shape[0]
    output = ctx.output(None if count is None else max(count, len(value.shape)))
    return ctx.plain("Broadcast", 3, [value, shape], output, mode="bidirectional")


@writes("Tile")
def _tile(ctx: NodeContext) -> View:
    return ctx.result("Tile", 1, [ctx[0], ctx[1]], ctx.view(0).rank)


@writes("Range")
def _range(ctx: NodeContext) -> View:
    bounds = [ctx[position] for position in range(3)]
    precision, shape = ctx.output(1)
    return ctx.plain("Range", 4, bounds, (precision, shape), output_type=BY_PRECISION[precision].name)


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
