"""Best-path decoding of CTC: the likeliest class of each step, without repetitions and blanks."""

from __future__ import annotations

from ..context import LayerContext
from ..inputs import END
from ..registry import translates

_NONE = -1  # fills a row after its last class


@translates("CTCGreedyDecoder")
def _greedy(ctx: LayerContext) -> str:
    """Decode data [T, N, C] with sequence_mask [T, N], 1 up to the row's length -> [N, T, 1, 1] of data's type."""
    merged = ctx.flag("ctc_merge_repeated" if "ctc_merge_repeated" in ctx.layer.data else "merge_repeated", True)
    masked = ctx.cast(ctx.node("Equal", ctx[1], ctx.constant(0, ctx.dtype(1))), "int32")
    valid = ctx.node("Equal", ctx.node("CumSum", masked, ctx.constant(0)), ctx.constant(0, "int32"))
    classes, valid = (ctx.transpose(name, [1, 0]) for name in (_likeliest(ctx), valid))
    decoded, _ = _decoded(ctx, classes, valid, _last_class(ctx), merged=merged)
    return ctx.unsqueeze(ctx.cast(decoded, ctx.output_dtype()), [2, 3])


@translates("CTCGreedyDecoderSeqLen", since=6)
def _greedy_by_length(ctx: LayerContext) -> list[str]:
    """Decode data [N, T, C], sequence_length [N], blank_index [] -> classes_index [N, T], sequence_length [N]."""
    types = [ctx.type_attribute(f"{name}_type", "i32") for name in ("classes_index", "sequence_length")]
    merged = ctx.flag("merge_repeated", True)
    classes = _likeliest(ctx)
    steps = ctx.node("Range", ctx.constant(0), ctx.reshape(ctx.dimension(classes, 1), []), ctx.constant(1))
    valid = ctx.node("Less", steps, ctx.unsqueeze(ctx.int64(1), [1]))
    blank = ctx.scalar_int64(2) if ctx.has(2) else _last_class(ctx)
    outputs = _decoded(ctx, classes, valid, blank, merged=merged)
    return [ctx.cast(name, dtype) for name, dtype in zip(outputs, types, strict=True)]


def _likeliest(ctx: LayerContext) -> str:
    wide = {"float16": "float32", "bfloat16": "float32"}.get(ctx.dtype(0), ctx.dtype(0))
    return ctx.node("ArgMax", ctx.as_dtype(0, wide), axis=-1, keepdims=0)


def _last_class(ctx: LayerContext) -> str:
    return ctx.node("Sub", ctx.dimension(ctx[0], -1), ctx.constant([1]))


def _decoded(ctx: LayerContext, classes: str, valid: str, blank: str, *, merged: bool) -> tuple[str, str]:
    """Return the selected classes of [N, T], moved to the beginning of each row, and their numbers, [N].

    Selected classes are scattered to places from 1 on, all others to place 0, which is removed.
    """
    selected = ctx.node("And", valid, ctx.node("Not", ctx.node("Equal", classes, blank)))
    wider = ctx.node("Pad", classes, ctx.constant([0, 1, 0, 0]), ctx.constant(_NONE))
    if merged:
        before = ctx.slice(wider, 0, -1, 1)
        selected = ctx.node("And", selected, ctx.node("Not", ctx.node("Equal", classes, before)))
    ones = ctx.cast(selected, "int64")
    places = ctx.node("Mul", ones, ctx.node("CumSum", ones, ctx.constant(1)))
    empty = ctx.node("Expand", ctx.constant(_NONE), ctx.node("Shape", wider))
    scattered = ctx.node("ScatterElements", empty, places, classes, axis=1)
    return ctx.slice(scattered, 1, END, 1), ctx.reduce("ReduceSum", ones, ctx.constant([1]), "int64", keep=False)
