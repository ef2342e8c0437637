"""Operators on sequences of tensors. IR has no sequences, so each element is written as a value."""

from __future__ import annotations

from ...ir.writer import Value
from ..context import NodeContext, writes
from ..views import Sequential, View, plain


@writes("SequenceConstruct")
def _construct(ctx: NodeContext) -> Sequential:
    return Sequential(ctx.views())


@writes("SequenceEmpty")
def _empty(ctx: NodeContext) -> Sequential:
    ctx.attribute("dtype")
    return Sequential([])


@writes("SplitToSequence")
def _split(ctx: NodeContext) -> Sequential:
    """Write SplitToSequence; parts of size 1 are written where they are read, so that their number may be dynamic."""
    view, split = ctx.view(0), ctx.constant(1)
    axis = ctx.axis(ctx.attribute("axis", 0), view.rank)
    keep = bool(ctx.attribute("keepdims", 1)) or ctx.has(1)
    size = view.shape[axis]
    if not ctx.has(1) or (split is not None and split.ndim == 0 and split.item() == 1):
        return Sequential([], view, axis, keep)
    if split is None:
        ctx.refuse("split, computed at run time,", "a constant")
    if split.ndim == 0 and size is None:
        ctx.refuse("a SplitToSequence of a dynamic axis into parts of several elements", "parts of 1, or a known size")
    part = int(split.reshape(-1)[0])
    sizes = split.tolist() if split.ndim else [min(part, (size or 0) - k) for k in range(0, size or 0, part)]
    return Sequential(ctx.parts(view, axis, sizes))


@writes("SequenceAt")
def _at(ctx: NodeContext) -> View:
    """Write SequenceAt; the position of a part of size 1 may be computed."""
    sequence, position = ctx.sequence(0), ctx.constant(1)
    if sequence.whole is not None:
        return _part(ctx, sequence, sequence.whole, ctx.scalar(1))
    if position is None:
        ctx.refuse("a position, computed at run time,", "a constant, or a sequence that SplitToSequence makes")
    return sequence.views[ctx.axis(int(position.item()), len(sequence.views))]


def _part(ctx: NodeContext, sequence: Sequential, view: View, position: Value) -> View:
    inner = view.order[sequence.axis]
    shape = (*view.value.shape[:inner], *view.value.shape[inner + 1 :])
    part = View(ctx.gathered(view.value, position, inner, shape), view.order_without({sequence.axis}))
    if not sequence.keeps_axis:
        return part
    kept = ctx.in_order(part)
    shape = (*kept.shape[: sequence.axis], 1, *kept.shape[sequence.axis :])
    return ctx.plain("Unsqueeze", 1, [kept, ctx.const("axes", [sequence.axis])], (kept.precision, shape))


@writes("SequenceInsert")
def _insert(ctx: NodeContext) -> Sequential:
    views, position = _views(ctx), ctx.constant(2)
    if ctx.has(2) and position is None:
        ctx.refuse("a position, computed at run time,", "a constant")
    place = len(views) if position is None else int(position.item())
    if not -len(views) <= place <= len(views):
        ctx.refuse(f"position {place} of {len(views)} elements", f"{-len(views)} to {len(views)}")
    place += len(views) if place < 0 else 0
    return Sequential([*views[:place], ctx.view(1), *views[place:]])


def _views(ctx: NodeContext) -> list[View]:
    """Return the elements of a sequence with a known number of them."""
    sequence = ctx.sequence(0)
    if sequence.whole is None:
        return list(sequence.views)
    size = sequence.whole.shape[sequence.axis]
    if size is None:
        ctx.refuse("a sequence of a dynamic number of elements", "a known number")
    return [_part(ctx, sequence, sequence.whole, ctx.const(str(k), k)) for k in range(size)]


@writes("SequenceLength")
def _length(ctx: NodeContext) -> View:
    sequence = ctx.sequence(0)
    if sequence.whole is None:
        return plain(ctx.const("length", len(sequence.views)))
    return ctx.size(sequence.whole.value, sequence.whole.order[sequence.axis])


@writes("ConcatFromSequence")
def _concat(ctx: NodeContext) -> View:
    """Write ConcatFromSequence; rows that a Loop has stacked are one tensor already."""
    new = bool(ctx.attribute("new_axis", 0))
    sequence = ctx.sequence(0)
    if sequence.whole is not None and not sequence.keeps_axis and new:
        view = sequence.whole
        axis = ctx.axis(ctx.attribute("axis"), view.rank)
        order = [k for k in range(view.rank) if k != sequence.axis]
        return view.transposed([*order[:axis], sequence.axis, *order[axis:]])
    whole = sequence.whole if sequence.keeps_axis and not new else None
    if whole is not None and ctx.axis(ctx.attribute("axis"), whole.rank) == sequence.axis:
        return whole
    values = [ctx.in_order(view) for view in _views(ctx)]
    if not values:
        ctx.refuse("a concatenation of no elements", "one or more")
    rank = len(values[0].shape)
    axis = ctx.axis(ctx.attribute("axis"), rank + new)
    if new:
        place = ctx.const("axis", [axis])
        shapes = [(*value.shape[:axis], 1, *value.shape[axis:]) for value in values]
        values = [
            ctx.layer("Unsqueeze", 1, [value, place], (value.precision, shape))
            for value, shape in zip(values, shapes, strict=True)
        ]
    return ctx.result("Concat", 1, values, len(values[0].shape), axis=axis)
