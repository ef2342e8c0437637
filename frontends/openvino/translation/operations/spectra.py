"""Fourier transforms of real numbers: the real and imaginary parts of results are the last axis."""

from __future__ import annotations

from pyrnnx.errors import FormatError

from ..attributes import LARGEST
from ..context import LayerContext, translates


@translates("STFT", since=15)
def _short_time(ctx: LayerContext) -> str:
    """Map signal [L] or [N, L], window [w], frame_size, frame_step -> [(N), frames, frequencies, 2].

    A window that is shorter than a frame is centred between zeros.
    """
    transposed, rank = ctx.flag("transpose_frames"), ctx.rank(0, low=1)
    if rank > 2:
        raise FormatError(f"{ctx.label}: signal (input 0) has shape {ctx.shape(0)}; expected one or two axes")
    size, step = (ctx.integer(k, what, low=1, high=LARGEST) for k, what in ((2, "frame_size"), (3, "frame_step")))
    window, dtype = ctx[1], ctx.dtype(0)
    if ctx.shape(1) != (size,):
        missing = ctx.node("Sub", ctx.constant(size), ctx.dimension(window, 0))
        before = ctx.node("Div", missing, ctx.constant([2]))
        window = ctx.node("Pad", window, ctx.concat([before, ctx.node("Sub", missing, before)]))
    signal = ctx.unsqueeze(ctx[0], [rank] if rank == 2 else [0, 2])
    result = ctx.typed("STFT", dtype, signal, ctx.constant(step), window, ctx.constant(size), onesided=1)
    if rank == 1:
        result = ctx.squeeze(result, [0])
    return ctx.transpose(result, [*range(rank - 1), rank, rank - 1, rank + 1]) if transposed else result


@translates("RDFT", since=9)
def _real(ctx: LayerContext) -> str:
    """Transform real numbers; the last of the axes has only the first half of the frequencies."""
    rank = ctx.rank(0)
    axes = ctx.axes(ctx.integers(1, "axes"), rank)
    if not axes:
        raise FormatError(f"{ctx.label}: axes (input 1) is empty; expected one or more")
    sizes = ctx.integers(2, "signal_size", count=len(axes), low=-1) if ctx.has(2) else [-1] * len(axes)
    if 0 in sizes:
        raise FormatError(f"{ctx.label}: signal_size (input 2) is {sizes}; expected -1, or 1 or more, for each axis")
    name = ctx.unsqueeze(ctx[0], [rank])
    for k in (len(axes) - 1, *range(len(axes) - 1)):
        length = "" if sizes[k] == -1 else ctx.constant(sizes[k])  # -1 means the input's size
        name = ctx.node("DFT", name, length, ctx.constant(axes[k]), inverse=0, onesided=int(k == len(axes) - 1))
    return name
