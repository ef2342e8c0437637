"""Operators that move elements, or compute shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ....onnx.onnx_package import import_onnx
from ...ir.element_types import BY_PRECISION
from ...ir.writer import Shape
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
    shapes = [view.value.shape for view in views]
    if len({len(shape) for shape in shapes}) > 1:
        ctx.refuse(f"inputs of {', '.join(str(len(shape)) for shape in shapes)} axes", "the same number for each")
    inner = order[axis]
    joined = [next((size for size in sizes if size is not None), None) for sizes in zip(*shapes, strict=True)]
    sizes = [shape[inner] for shape in shapes]
    joined[inner] = None if None in sizes else sum(size or 0 for size in sizes)
    output = (views[0].precision, tuple(joined))
    return View(ctx.layer("Concat", 1, [view.value for view in views], output, axis=inner), order)


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
    shape = tuple(size for axis, size in enumerate(view.value.shape) if axis not in inner)
    value = ctx.layer("Squeeze", 1, [view.value, ctx.const("axes", inner)], (view.precision, shape))
    return View(value, view.order_without(axes))


@writes("Unsqueeze")
def _unsqueeze(ctx: NodeContext) -> View:
    value = ctx[0]
    listed = ctx.integers("axes", 1)
    if listed is None:
        ctx.refuse("an Unsqueeze without axes", "axes")
    axes = sorted({ctx.axis(axis, len(value.shape) + len(listed)) for axis in listed})
    shape = list(value.shape)
    for axis in axes:
        shape.insert(axis, 1)
    return ctx.plain("Unsqueeze", 1, [value, ctx.const("axes", axes)], (value.precision, tuple(shape)))


@writes("Reshape")
def _reshape(ctx: NodeContext) -> View:
    """Write Reshape; without allowzero, a size of 0 copies the input's size."""
    view, copies = ctx.view(0), not ctx.attribute("allowzero", 0)
    sizes = ctx.attribute("shape")
    constant = ctx.constant(1) if sizes is None else np.array(sizes, np.int64)
    if constant is None:
        value, shape = ctx[0], ctx[1]
        output = ctx.output(shape.shape[0])
        return ctx.plain("Reshape", 1, [value, shape], output, special_zero=copies)
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
    shape = _sizes(value.shape, sizes, copies)
    target = ctx.const("shape", sizes)
    result = ctx.layer("Reshape", 1, [value, target], (view.precision, shape), special_zero=copies)
    order = [sorted(leading).index(axis) for axis in leading]
    return View(result, (*order, *range(copied, len(sizes))))


def _sizes(source: Shape, sizes: Sequence[int], copies: bool) -> Shape:
    """Return the shape of the result of a Reshape, as far as it is known."""
    shape = [source[k] if size == 0 and copies else None if size < 0 else size for k, size in enumerate(sizes)]
    if -1 in sizes:
        rest = sizes.index(-1)
        # Copied dimensions cancel, even if they are dynamic.
        copied = {k for k, size in enumerate(sizes) if size == 0 and copies}
        before = [size for k, size in enumerate(source) if k not in copied]
        after = [size for k, size in enumerate(shape) if k not in copied and k != rest]
        total, others = _product(before), _product(after)
        shape[rest] = total // others if total is not None and others else None
    return tuple(shape)


def _product(sizes: Iterable[int | None]) -> int | None:
    known = list(sizes)
    return None if None in known else math.prod(size or 0 for size in known)


@writes("Flatten")
def _flatten(ctx: NodeContext) -> View:
    view = ctx.view(0)
    axis = ctx.attribute("axis", 1)
    axis = axis if axis == view.rank else ctx.axis(axis, view.rank)
    leading, trailing = _product(view.shape[:axis]), _product(view.shape[axis:])
    if axis == 1:
        return _reshaped(ctx, view, [0, -1], True)
    if leading is not None:
        return _reshaped(ctx, view, [leading, -1], False)
    if trailing is not None:
        return _reshaped(ctx, view, [-1, trailing], False)
    return ctx.refuse(f"axis {axis} of dynamic sizes on both sides", "axis 1, or known sizes on one side")


@writes("Shape")
def _shape(ctx: NodeContext) -> View:
    """Write Shape; it permutes the shape of a view's value, without a Transpose."""
    view = ctx.view(0)
    order = view.order[ctx.attribute("start", 0) : ctx.attribute("end")]
    shape = ctx.layer("ShapeOf", 3, [view.value], ("I64", (view.rank,)), output_type="i64")
    if order == tuple(range(view.rank)):
        return plain(shape)
    inputs = [shape, ctx.const("axes", order), ctx.const("axis", 0)]
    return ctx.plain("Gather", 8, inputs, ("I64", (len(order),)), batch_dims=0)


@writes("Size")
def _size(ctx: NodeContext) -> View:
    view = ctx.view(0)
    shape = ctx.layer("ShapeOf", 3, [view.value], ("I64", (view.rank,)), output_type="i64")
    return ctx.plain("ReduceProd", 1, [shape, ctx.const("axis", [0])], ("I64", ()), keep_dims=False)


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
    value = ctx[0]
    return ctx.plain("Tile", 1, [value, ctx[1]], ctx.output(len(value.shape)))


@writes("Range")
def _range(ctx: NodeContext) -> View:
    bounds = [ctx[position] for position in range(3)]
    precision, shape = ctx.output(1)
    return ctx.plain("Range", 4, bounds, (precision, shape), output_type=BY_PRECISION[precision].name)
