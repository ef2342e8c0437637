"""Operations that move blocks between batch and space."""

from __future__ import annotations

from pyrnnx.errors import FormatError

from ..attributes import LARGEST
from ..context import LayerContext
from ..inputs import END
from ..registry import translates


def _lists(ctx: LayerContext, names: tuple[str, str, str]) -> tuple[int, list[int], list[int], list[int]]:
    """Return the rank, the sizes of blocks, and the pads or crops at both ends of each axis."""
    rank = ctx.rank(0, low=1)
    block = ctx.integers(1, names[0], count=rank, low=1, high=LARGEST)
    begin, end = (ctx.integers(k, names[k - 1], count=rank, low=0, high=LARGEST) for k in (2, 3))
    if (block[0], begin[0], end[0]) != (1, 0, 0):
        raise FormatError(
            f"{ctx.label}: {', '.join(names)} begin with {block[0]}, {begin[0]} and {end[0]}; expected 1, 0 and 0 for "
            "the batch"
        )
    return rank, block, begin, end


@translates("BatchToSpace", since=2)
def _batch_to_space(ctx: LayerContext) -> str:
    """Move [b_1 ... b_n N, S_1, ..., S_n] -> [N, S_1 b_1, ..., S_n b_n]; crop both ends."""
    rank, block, begin, end = _lists(ctx, ("block_shape", "crops_begin", "crops_end"))
    shape = ctx.node("Shape", ctx[0])
    whole = ctx.node("Div", ctx.node("Mul", shape, ctx.constant(block)), _of_batch(ctx, block))
    spread = ctx.concat([ctx.constant(block[1:]), ctx.slice(whole, 0, 1, 0), ctx.slice(shape, 1, END, 0)])
    pieces = ctx.node("Reshape", ctx[0], spread, allowzero=1)
    order = [rank - 1, *(axis for k in range(1, rank) for axis in (rank - 1 + k, k - 1))]
    name = ctx.node("Reshape", ctx.transpose(pieces, order), whole, allowzero=1)
    ends = ctx.node("Sub", whole, ctx.constant(end))
    return ctx.node("Slice", name, ctx.constant(begin), ends, ctx.constant(list(range(rank))))


@translates("SpaceToBatch", since=2)
def _space_to_batch(ctx: LayerContext) -> str:
    """Pad both ends with zeros; move [N, S_1, ..., S_n] -> [b_1 ... b_n N, S_1 / b_1, ..., S_n / b_n]."""
    rank, block, begin, end = _lists(ctx, ("block_shape", "pads_begin", "pads_end"))
    padded = ctx.typed("Pad", ctx.dtype(0), ctx[0], ctx.constant(begin + end), last=1)
    shape = ctx.node("Shape", padded)
    parts = ctx.node("Div", shape, ctx.constant(block))
    split = [ctx.slice(shape, 0, 1, 0)]
    for k in range(1, rank):
        split += [ctx.slice(parts, k, k + 1, 0), ctx.constant([block[k]])]
    pieces = ctx.node("Reshape", padded, ctx.concat(split), allowzero=1)
    order = [*range(2, 2 * rank, 2), 0, *range(1, 2 * rank - 1, 2)]
    whole = ctx.node("Mul", parts, _of_batch(ctx, block))
    return ctx.node("Reshape", ctx.transpose(pieces, order), whole, allowzero=1)


def _of_batch(ctx: LayerContext, block: list[int]) -> str:
    """Return the number of elements of a block for the batch axis, 1 for the others."""
    product = 1
    for size in block:
        product *= size
    return ctx.constant([product, *[1] * (len(block) - 1)])
