"""Operations that slice and pad."""

from __future__ import annotations

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ..attributes import LARGEST
from ..context import BEGIN, END, LayerContext, translates
from ..graph import WIDENED

_LISTS = {1: "start", 2: "stop", 3: "step"}


@translates("Slice", since=8)
def _slice(ctx: LayerContext) -> str:
    """Slice by start, stop, step, axes; in ONNX, axes precede steps."""
    start, stop, step = (ctx.list_of_int64(k) for k in (1, 2, 3))
    if ctx.has(4):
        return ctx.node("Slice", ctx[0], start, stop, ctx.list_of_int64(4), step)
    lengths = [length for k in (1, 2, 3) if (length := ctx.length(k, _LISTS[k])) is not None]
    count = lengths[0] if lengths else ctx.rank(0)
    return ctx.node("Slice", ctx[0], start, stop, ctx.constant(list(range(count))), step)


def _masks(ctx: LayerContext, count: int) -> dict[str, AnyArray]:
    """Return the masks of StridedSlice by name, with an item for each entry of `begin`."""
    masks = {}
    for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis"):
        mask = ctx.wholes(f"{name}_mask", [], low=0, high=1)
        masks[name] = np.array((mask + [0] * count)[:count], bool)
    return masks


@translates("StridedSlice")
def _strided_slice(ctx: LayerContext) -> str:
    count = ctx.length(1, "begin")
    if count is None:
        ctx.refuse("size of begin", "dynamic", "a known one")
    masks = _masks(ctx, count)
    steps = np.asarray(ctx.integers(3, "strides", count=count) if ctx.has(3) else [1] * count, np.int64)
    axes, inserted, dropped = _axes(ctx, masks, count)
    places = [k for k in range(count) if axes[k] is not None]
    name = ctx[0]
    if places:
        starts, ends, steps = _bounds(ctx, masks, places, steps)
        sliced = ctx.constant([axes[k] for k in places])
        name = ctx.node("Slice", name, starts, ends, sliced, ctx.constant(steps))
    return ctx.unsqueeze(ctx.squeeze(name, dropped), inserted)


def _axes(ctx: LayerContext, masks: dict[str, AnyArray], count: int) -> tuple[list[int | None], list[int], list[int]]:
    """Return the axis that each entry of `begin` slices (or None), the new axes, and the axes to drop."""
    axes: list[int | None] = [None] * count
    inserted: list[int] = []
    dropped: list[int] = []
    axis = target = 0
    seen = False
    for k in range(count):
        if masks["ellipsis"][k] and not seen:
            seen = True
            after = int((~masks["new_axis"][k + 1 :]).sum())
            skipped = ctx.rank(0) - axis - after
            axis, target = axis + skipped, target + skipped
        elif masks["new_axis"][k]:
            inserted.append(target)
            target += 1
        else:
            axes[k] = axis
            if masks["shrink_axis"][k]:
                dropped.append(axis)
            else:
                target += 1
            axis += 1
    return axes, inserted, dropped


Value = AnyArray | str  # constant numbers, or the name of a computed value


def _bounds(
    ctx: LayerContext, masks: dict[str, AnyArray], places: list[int], steps: AnyArray
) -> tuple[str, str, AnyArray]:
    """Return starts, ends and steps of a Slice for these entries of begin, end and strides.

    ================  =======  =================================  =======
    masks             start    end                                step
    ================  =======  =================================  =======
    shrink_axis       begin    begin + 1 (END after begin = -1)   1
    begin             first    as below                           stride
    end               begin    last                               stride
    none              begin    end                                stride
    ================  =======  =================================  =======

    `first` and `last` are the ends of the axis in the direction of the stride.
    """
    shrunk = masks["shrink_axis"][places]
    open_start, open_end = masks["begin"][places] & ~shrunk, masks["end"][places] & ~shrunk
    steps = np.where(shrunk, 1, steps[places])
    first, last = np.where(steps > 0, 0, END), np.where(steps > 0, END, BEGIN)
    begin = _taken(ctx, 1, places)
    starts = _where(ctx, open_start, first, begin)
    # Do not read `end` if the masks replace all of it.
    following = _following(ctx, begin) if shrunk.any() else begin
    ends = following if (shrunk | open_end).all() else _where(ctx, shrunk, following, _taken(ctx, 2, places))
    ends = _where(ctx, open_end, last, ends)
    return _name(ctx, starts), _name(ctx, ends), steps


def _taken(ctx: LayerContext, k: int, places: list[int]) -> Value:
    array = ctx.array(k)
    if array is None:
        return ctx.node("Gather", ctx.list_of_int64(k), ctx.constant(places), axis=0)
    return array.reshape(-1).astype(np.int64)[places]


def _where(ctx: LayerContext, mask: AnyArray, yes: Value, no: Value) -> Value:
    if mask.all() or not mask.any():
        return yes if mask.all() else no
    if isinstance(yes, str) or isinstance(no, str):
        return ctx.node("Where", ctx.constant(mask, "bool"), _name(ctx, yes), _name(ctx, no))
    return np.where(mask, yes, no)


def _following(ctx: LayerContext, places: Value) -> Value:
    """Return the next index; END, not 0, after the last index, -1."""
    if not isinstance(places, str):
        return np.where(places == -1, END, places + 1)
    is_last = ctx.node("Equal", places, ctx.constant(-1))
    return ctx.node("Where", is_last, ctx.constant(END), ctx.node("Add", places, ctx.constant(1)))


def _name(ctx: LayerContext, value: Value) -> str:
    return value if isinstance(value, str) else ctx.constant(value)


@translates("Pad")
def _pad(ctx: LayerContext) -> str:
    mode = ctx.choice("pad_mode", {name: name for name in ("constant", "edge", "reflect")})
    if ctx.array(1) is not None and ctx.array(2) is not None:
        names = enumerate(("pads_begin", "pads_end"), start=1)
        listed = [pad for k, what in names for pad in ctx.integers(k, what, low=-LARGEST)]
        if mode != "constant" and min(listed, default=0) < 0:
            ctx.refuse("pads", listed, f"0 or more in mode {mode}")
        pads = ctx.constant(listed)
    else:
        pads = ctx.concat([ctx.list_of_int64(1), ctx.list_of_int64(2)])
    fill = [ctx[3]] if mode == "constant" and ctx.has(3) else []
    if fill and ctx.shape(3) != ():
        fill = [ctx.reshape(fill[0], [])]
    dtype = ctx.dtype(0)
    wide = WIDENED["Pad"].get(dtype, dtype)
    data, *fill = (name if wide == dtype else ctx.cast(name, wide) for name in (ctx[0], *fill))
    padded = ctx.node("Pad", data, pads, *fill, mode=mode)
    return padded if wide == dtype else ctx.cast(padded, dtype)
