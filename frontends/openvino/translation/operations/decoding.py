"""The best path of CTC: the likeliest class of each step, repetitions merged, blanks left out."""

from __future__ import annotations

from ..context import END, LayerContext
from ..registry import translates

_NONE = -1  # what stands behind the last class of a row


@translates("CTCGreedyDecoder")
def _greedy(ctx: LayerContext) -> str:
    """data [T, N, C], sequence_mask [T, N], 1 as long as the row goes on -> [N, T, 1, 1], of data's type."""
    merged = ctx.flag("ctc_merge_repeated" if "ctc_merge_repeated" in ctx.layer.data else "merge_repeated", True)
    over = ctx.cast(ctx.node("Equal", ctx[1], ctx.constant(0, ctx.dtype(1))), "int32")
    valid = ctx.node("Equal", ctx.node("CumSum", over, ctx.constant(0)), ctx.constant(0, "int32"))
    classes, valid = (ctx.transpose(name, [1, 0]) for name in (_likeliest(ctx), valid))
    found, _ = _decoded(ctx, classes, valid, _last_class(ctx), merged=merged)
    return ctx.unsqueeze(ctx.cast(found, ctx.output_dtype()), [2, 3])


@translates("CTCGreedyDecoderSeqLen", since=6)
def _greedy_by_length(ctx: LayerContext) -> list[str]:
    """data [N, T, C], sequence_length [N], blank_index [] -> classes_index [N, T], sequence_length [N]."""
    types = [ctx.type_attribute(f"{name}_type", "i32") for name in ("classes_index", "sequence_length")]
    merged = ctx.flag("merge_repeated", True)
    classes = _likeliest(ctx)
    steps = ctx.node("Range", ctx.constant(0), ctx.reshape(ctx.dimension(classes, 1), []), ctx.constant(1))
    valid = ctx.node("Less", steps, ctx.unsqueeze(ctx.int64(1), [1]))
    blank = ctx.scalar_int64(2) if ctx.has(2) else _last_class(ctx)
    found = _decoded(ctx, classes, valid, blank, merged=merged)
    return [ctx.cast(name, dtype) for name, dtype in zip(found, types, strict=True)]


def _likeliest(ctx: LayerContext) -> str:
    wide = {"float16": "float32", "bfloat16": "float32"}.get(ctx.dtype(0), ctx.dtype(0))
    return ctx.node("ArgMax", ctx.as_dtype(0, wide), axis=-1, keepdims=0)


def _last_class(ctx: LayerContext) -> str:
    return ctx.node("Sub", ctx.dimension(ctx[0], -1), ctx.constant([1]))


def _decoded(ctx: LayerContext, classes: str, valid: str, blank: str, *, merged: bool) -> tuple[str, str]:
    """From [N, T]: the classes that are kept, moved to the begin of each row, and how many they are, [N].

    Each of them is scattered to a place counted from 1; those that are dropped go to place 0.
    """
    kept = ctx.node("And", valid, ctx.node("Not", ctx.node("Equal", classes, blank)))
    wider = ctx.node("Pad", classes, ctx.constant([0, 1, 0, 0]), ctx.constant(_NONE))
    if merged:
        before = ctx.slice(wider, 0, -1, 1)
        kept = ctx.node("And", kept, ctx.node("Not", ctx.node("Equal", classes, before)))
    ones = ctx.cast(kept, "int64")
    places = ctx.node("Mul", ones, ctx.node("CumSum", ones, ctx.constant(1)))
    empty = ctx.node("Expand", ctx.constant(_NONE), ctx.node("Shape", wider))
    scattered = ctx.node("ScatterElements", empty, places, classes, axis=1)
    return ctx.slice(scattered, 1, END, 1), ctx.reduce("ReduceSum", ones, ctx.constant([1]), "int64", keep=False)
