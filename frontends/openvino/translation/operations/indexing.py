"""Operations that gather, scatter, search and sort."""

from __future__ import annotations

from ..context import LayerContext, translates
from .shapes import inverse


@translates("Gather")
def _gather(ctx: LayerContext) -> str:
    if ctx.opset >= 7 and (batch := ctx.whole("batch_dims", 0)):
        ctx.refuse("batch_dims", batch, "0")
    return ctx.node("Gather", ctx[0], _indices(ctx, 1), axis=ctx.integer(2, "axis"))


def _indices(ctx: LayerContext, k: int) -> str:
    """Return indices as int32 or int64, ONNX's types."""
    return ctx[k] if ctx.dtype(k) in ("int32", "int64") else ctx.int64(k)


@translates("GatherElements", since=6)
def _gather_elements(ctx: LayerContext) -> str:
    return ctx.node("GatherElements", ctx[0], _indices(ctx, 1), axis=ctx.whole("axis"))


@translates("GatherND", since=8)
def _gather_nd(ctx: LayerContext) -> str:
    return ctx.node("GatherND", ctx[0], ctx.int64(1), batch_dims=ctx.whole("batch_dims", 0))


_REDUCTIONS = {"none": "none", "sum": "add", "prod": "mul", "min": "min", "max": "max"}


@translates("ScatterElementsUpdate", since=3)
def _scatter_elements(ctx: LayerContext) -> str:
    reduction = ctx.choice("reduction", _REDUCTIONS, "none") if ctx.opset >= 12 else "none"
    if ctx.opset >= 12 and not ctx.flag("use_init_val", True) and reduction != "none":
        ctx.refuse("use_init_val", False, "true")
    axis = ctx.integer(3, "axis")
    return ctx.node("ScatterElements", ctx[0], _indices(ctx, 1), ctx[2], axis=axis, reduction=reduction)


@translates("ScatterUpdate", since=3)
def _scatter(ctx: LayerContext) -> str:
    """Scatter whole slices along an axis, which moves to the front for ScatterND."""
    axis, places = ctx.integer(3, "axis"), ctx.node("Unsqueeze", ctx.int64(1), ctx.constant([-1]))
    if axis == 0:
        return ctx.node("ScatterND", ctx[0], places, ctx[2])
    rank, of_indices = ctx.rank(0), ctx.rank(1)
    axis = ctx.axis(axis, rank)
    order = [axis, *(k for k in range(rank) if k != axis)]
    moved = list(range(axis, axis + of_indices))
    of_updates = [*moved, *(k for k in range(rank - 1 + of_indices) if k not in moved)]
    data, updates = ctx.transpose(ctx[0], order), ctx.transpose(ctx[2], of_updates)
    return ctx.transpose(ctx.node("ScatterND", data, places, updates), inverse(order))


@translates("ScatterNDUpdate", since=4)
def _scatter_nd(ctx: LayerContext) -> str:
    modes = {**_REDUCTIONS, "sub": "sub"}
    reduction, updates = ctx.choice("reduction", modes, "none") if ctx.opset >= 15 else "none", ctx[2]
    if reduction == "sub":
        reduction, updates = "add", ctx.node("Neg", updates)
    return ctx.node("ScatterND", ctx[0], ctx.int64(1), updates, reduction=reduction)


@translates("TopK")
def _top_k(ctx: LayerContext) -> list[str]:
    """Select the top k, sorted by value or index; sort=none allows any order."""
    largest = ctx.choice("mode", {"max": 1, "min": 0})
    by_index = ctx.choice("sort", {"value": False, "none": False, "index": True}, "value")
    axis, dtype = ctx.whole("axis"), ctx.type_attribute("index_element_type", "i32")
    ctx.ignore("stable")  # ONNX is always stable
    k = ctx.list_of_int64(1)
    values, indices = ctx.nodes("TopK", ctx[0], k, outputs=2, axis=axis, largest=largest, sorted=1)
    if by_index:
        indices, order = ctx.nodes("TopK", indices, k, outputs=2, axis=axis, largest=0, sorted=1)
        values = ctx.node("GatherElements", values, order, axis=axis)
    return [values, indices if dtype == "int64" else ctx.cast(indices, dtype)]


@translates("NonZero", since=3)
def _non_zero(ctx: LayerContext) -> str:
    dtype = ctx.type_attribute("output_type", "i64")
    value = ctx[0] if ctx.dtype(0) in ("float32", "int32", "int64", "uint8", "bool") else ctx.cast(ctx[0], "bool")
    indices = ctx.node("NonZero", value)
    return indices if dtype == "int64" else ctx.cast(indices, dtype)


@translates("OneHot")
def _one_hot(ctx: LayerContext) -> str:
    """Translate OneHot: negative indices are ignored, or since opset 16 may count from the end, as in ONNX."""
    axis, indices, depth = ctx.whole("axis"), ctx.int64(0), ctx.scalar_int64(1)
    from_end = False
    if ctx.opset >= 16:
        modes = {"ignore_negative": False, "normalize": True}
        from_end = ctx.choice("negative_indices_mode", modes, "ignore_negative")
    if not from_end:
        indices = ctx.node("Where", ctx.node("Less", indices, ctx.constant(0)), depth, indices)
    scalar = ctx.rank(0) == 0
    if scalar:  # ONNX rejects a scalar
        indices, axis = ctx.reshape(indices, [1]), 0
    dtype = ctx.dtype(2)
    if dtype in ("float32", "int64"):
        values = ctx.concat([_row(ctx, 3), _row(ctx, 2)])
        result = ctx.node("OneHot", indices, depth, values, axis=axis)
    else:
        hot = ctx.cast(ctx.node("OneHot", indices, depth, ctx.constant([0, 1]), axis=axis), "bool")
        result = ctx.typed("Where", dtype, hot, ctx[2], ctx[3], first=1)
    return ctx.squeeze(result, [1]) if scalar else result


def _row(ctx: LayerContext, k: int) -> str:
    """Return the k-th input as [1]."""
    array = ctx.element(k, "the value")
    return ctx.reshape(ctx[k], [1]) if array is None else ctx.constant(array.reshape(1), array.dtype.name)
