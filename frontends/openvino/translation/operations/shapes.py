"""Operations that move, repeat, split and join elements, or compute shapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..attributes import LARGEST
from ..context import BEGIN, END, LayerContext, translates


@translates("Reshape")
def _reshape(ctx: LayerContext) -> str:
    """Reshape; with special_zero, a size of 0 means the input's size."""
    special = ctx.flag("special_zero")
    return ctx.node("Reshape", ctx[0], ctx.list_of_int64(1), allowzero=None if special else 1)


@translates("Squeeze")
def _squeeze(ctx: LayerContext) -> str:
    if ctx.opset >= 15 and ctx.flag("allow_axis_skip", False):
        ctx.refuse("allow_axis_skip", True, "false")
    axes = ctx.array(1) if ctx.has(1) else None
    if not ctx.has(1) or (axes is not None and axes.size == 0):
        return ctx.node("Squeeze", ctx[0])
    return ctx.node("Squeeze", ctx[0], ctx.list_of_int64(1))


@translates("Unsqueeze")
def _unsqueeze(ctx: LayerContext) -> str:
    return ctx.node("Unsqueeze", ctx[0], ctx.list_of_int64(1))


@translates("Transpose")
def _transpose(ctx: LayerContext) -> str:
    return ctx.node("Transpose", ctx[0], perm=ctx.integers(1, "order") or None)


@translates("Concat")
def _concat(ctx: LayerContext) -> str:
    return ctx.node("Concat", *ctx.inputs, axis=ctx.whole("axis"))


@translates("Split")
def _split(ctx: LayerContext) -> list[str]:
    count = len(ctx.layer.outputs)
    ctx.whole("num_splits", low=count, high=count)
    return ctx.nodes("Split", ctx[0], outputs=count, axis=ctx.integer(1, "axis"), num_outputs=count)


@translates("VariadicSplit")
def _variadic_split(ctx: LayerContext) -> list[str]:
    axis, sizes, lengths = ctx.integer(1, "axis"), ctx.list_of_int64(2), ctx.array(2)
    if lengths is None or -1 in lengths:  # -1 is the rest
        zero = ctx.constant([0])
        is_rest = ctx.node("Less", sizes, zero)
        others = ctx.node("ReduceSum", ctx.node("Where", is_rest, zero, sizes), zero, keepdims=1)
        sizes = ctx.node("Where", is_rest, ctx.node("Sub", ctx.dimension(ctx[0], axis), others), sizes)
    return ctx.nodes("Split", ctx[0], sizes, outputs=len(ctx.layer.outputs), axis=axis)


@translates("Broadcast")
def _broadcast(ctx: LayerContext) -> str:
    """Broadcast by NumPy's rules, or in mode explicit to the axes in axes_mapping."""
    mode = ctx.text("mode", "numpy").lower()
    if mode not in ("numpy", "bidirectional", "none", "explicit"):
        ctx.refuse("mode", mode, "numpy, bidirectional or explicit")
    target = ctx.list_of_int64(1)
    data = ctx[0]
    if mode in ("explicit", "none") and ctx.has(2):
        mapping = ctx.integers(2, "axes_mapping")
        rank = ctx.length(1, "target_shape")
        if rank is None:
            ctx.refuse("mode", mode, "numpy or bidirectional if the rank of the result is unknown")
        data = ctx.unsqueeze(data, [axis for axis in range(rank) if axis not in mapping])
    return ctx.node("Expand", data, target)


@translates("ShapeOf")
def _shape_of(ctx: LayerContext) -> str:
    dtype = "int64"
    if ctx.opset >= 3:
        dtype = ctx.type_attribute("output_type", "i64")
    shape = ctx.node("Shape", ctx[0])
    return shape if dtype == "int64" else ctx.cast(shape, dtype)


@translates("Range")
def _range(ctx: LayerContext) -> str:
    """Translate Range; ONNX's has fewer types, and only scalar inputs."""
    dtype = ctx.type_attribute("output_type") if ctx.opset >= 4 else ctx.output_dtype()
    inner = dtype if dtype in ("float32", "float64", "int16", "int32", "int64") else "int64"
    if dtype in ("float16", "bfloat16"):
        inner = "float32"
    ends = []
    for k in range(3):
        array = ctx.element(k, ("start", "stop", "step")[k])
        if array is not None:
            ends.append(ctx.cast(ctx.constant(array, array.dtype.name), inner))
        else:
            ends.append(ctx.reshape(ctx.as_dtype(k, inner), []))
    result = ctx.node("Range", *ends)
    return result if inner == dtype else ctx.cast(result, dtype)


@translates("Tile")
def _tile(ctx: LayerContext) -> str:
    """Tile; ones are prepended to the shorter of shape and repeats."""
    data, repeats, rank = ctx[0], ctx.list_of_int64(1), ctx.rank(0)
    count = ctx.length(1, "repeats")
    if count is None:
        count = rank
    if count > rank:
        data = ctx.unsqueeze(data, list(range(count - rank)))
    elif count < rank:
        repeats = ctx.concat([ctx.constant([1] * (rank - count)), repeats])
    return ctx.node("Tile", data, repeats)


@translates("Reverse")
def _reverse(ctx: LayerContext) -> str:
    mode = ctx.choice("mode", {"index": "index", "mask": "mask"})
    chosen = np.flatnonzero(ctx.constant_input(1, "axes")).tolist() if mode == "mask" else ctx.integers(1, "axes")
    n = len(chosen)
    parts = ([END] * n, [BEGIN] * n, chosen, [-1] * n)
    return ctx.node("Slice", ctx[0], *map(ctx.constant, parts)) if n else ctx[0]


@translates("ReverseSequence")
def _reverse_sequence(ctx: LayerContext) -> str:
    """Reverse sequences; ONNX's operator is for the first two axes only."""
    rank = ctx.rank(0)
    batch, time = (ctx.axis(ctx.whole(name), rank, name) for name in ("batch_axis", "seq_axis"))
    lengths = ctx.int64(1)
    if {batch, time} == {0, 1}:
        return ctx.typed("ReverseSequence", ctx.dtype(0), ctx[0], lengths, last=1, batch_axis=batch, time_axis=time)
    order = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    result = ctx.node("ReverseSequence", ctx.transpose(ctx[0], order), lengths, batch_axis=0, time_axis=1)
    return ctx.transpose(result, inverse(order))


def inverse(order: Sequence[int]) -> list[int]:
    """Return the inverse of a permutation."""
    return [list(order).index(k) for k in range(len(order))]


def _blocks(ctx: LayerContext, op_type: str, **modes: str) -> str:
    mode, size = ctx.choice("mode", modes), ctx.whole("block_size", 1, low=1, high=LARGEST)
    return ctx.node(op_type, ctx[0], blocksize=size, mode=mode if len(modes) > 1 else None)


translates("DepthToSpace")(partial(_blocks, op_type="DepthToSpace", blocks_first="DCR", depth_first="CRD"))
translates("SpaceToDepth")(partial(_blocks, op_type="SpaceToDepth", blocks_first=""))
