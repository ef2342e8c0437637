"""Operations that sum or average rows of a table over bags of indices."""

from __future__ import annotations

from pyrnnx.errors import FormatError

from ..context import LayerContext
from ..inputs import END
from ..registry import translates

_MEANS = {"sum": False, "mean": True}


@translates("EmbeddingBagPackedSum", since=3)
def _packed_sum(ctx: LayerContext) -> str:
    return _packed(ctx, mean=False)


@translates("EmbeddingBagPacked", since=15)
def _packed_15(ctx: LayerContext) -> str:
    return _packed(ctx, mean=ctx.choice("reduction", _MEANS, "sum"))


def _packed(ctx: LayerContext, *, mean: bool) -> str:
    """Reduce rows of the inputs table, indices [bags, n], weights [bags, n]."""
    rows = _rows(ctx, 2, mean=mean)
    return ctx.reduce("ReduceMean" if mean else "ReduceSum", rows, ctx.constant([1]), ctx.dtype(0), keep=False)


@translates("EmbeddingBagOffsetsSum", since=3)
def _offsets_sum(ctx: LayerContext) -> str:
    return _by_offsets(ctx, mean=False)


@translates("EmbeddingBagOffsets", since=15)
def _offsets_15(ctx: LayerContext) -> str:
    return _by_offsets(ctx, mean=ctx.choice("reduction", _MEANS, "sum"))


def _by_offsets(ctx: LayerContext, *, mean: bool) -> str:
    """Reduce rows of the inputs table, indices [n], offsets of bags, the index of empty bags, weights [n]."""
    count = ctx.node("Size", ctx[1])
    places = ctx.node("Range", ctx.constant(0), count, ctx.constant(1))
    started = ctx.node("LessOrEqual", ctx.unsqueeze(ctx.int64(2), [1]), places)
    # The bag of a row, from 1: the number of bags that begin before it. Rows before the first bag have 0.
    number = ctx.reduce("ReduceSum", ctx.cast(started, "int64"), ctx.constant([0]), "int64", keep=False)
    bags = ctx.node("Add", ctx.dimension(ctx[2], 0), ctx.constant([1]))
    return ctx.slice(_in_bags(ctx, number, bags, 3, 4, mean=mean), 1, END, 0)


@translates("EmbeddingSegmentsSum", since=3)
def _segments_sum(ctx: LayerContext) -> str:
    """Sum rows of the inputs table, indices [n], their bags [n], number of bags, index of empty bags, weights [n]."""
    return _in_bags(ctx, ctx.int64(2), ctx.reshape(ctx.int64(3), [1]), 4, 5, mean=False)


def _rows(ctx: LayerContext, weights: int, *, mean: bool) -> str:
    """Return the indexed rows of the table, times their weights."""
    if mean and ctx.has(weights):
        raise FormatError(f"{ctx.label}: per_sample_weights (input {weights}) is present; expected none for a mean")
    rows = ctx.node("Gather", ctx[0], ctx.int64(1), axis=0)
    if not ctx.has(weights):
        return rows
    rank, of_indices = ctx.rank(0, low=1), ctx.rank(1)
    return ctx.node("Mul", rows, ctx.unsqueeze(ctx[weights], list(range(of_indices, of_indices + rank - 1))))


def _in_bags(ctx: LayerContext, number: str, bags: str, default: int, weights: int, *, mean: bool) -> str:
    """Reduce rows to [bags, ...]; `number` is the bag of each row."""
    dtype, rank, of_row = ctx.dtype(0), ctx.rank(0, low=1), ctx.slice(ctx.node("Shape", ctx[0]), 1, END, 0)
    rows = _rows(ctx, weights, mean=mean)
    other_axes = list(range(1, rank))
    target = ctx.node("Expand", ctx.unsqueeze(number, other_axes), ctx.node("Shape", rows))
    zeros = ctx.node("Expand", ctx.constant(0, dtype), ctx.concat([bags, of_row]))
    sums = ctx.node("ScatterElements", zeros, target, rows, axis=0, reduction="add")
    if not mean and not ctx.has(default):
        return sums
    ones = ctx.node("Expand", ctx.constant(1), ctx.node("Shape", number))
    none = ctx.node("Expand", ctx.constant(0), bags)
    counts = ctx.unsqueeze(ctx.node("ScatterElements", none, number, ones, axis=0, reduction="add"), other_axes)
    if mean:
        sums = ctx.node("Div", sums, ctx.cast(ctx.node("Max", counts, ctx.constant(1)), dtype))
    if not ctx.has(default):
        return sums
    index, zero = ctx.scalar_int64(default), ctx.constant(0)
    row = ctx.node("Gather", ctx[0], ctx.node("Max", index, zero), axis=0)
    filled = ctx.node("And", ctx.node("Equal", counts, zero), ctx.node("GreaterOrEqual", index, zero))
    return ctx.typed("Where", dtype, filled, row, sums, first=1)
