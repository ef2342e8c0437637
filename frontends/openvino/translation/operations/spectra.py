"""Fourier transforms of complex numbers, whose real and imaginary parts are the last axis."""

from __future__ import annotations

from pyrnnx.errors import FormatError

from ..attributes import LARGEST
from ..context import LayerContext
from ..registry import translates


def _axes(ctx: LayerContext, rank: int) -> list[int]:
    """Return the axes of the transform, at least one."""
    axes = ctx.axes(ctx.integers(1, "axes"), rank)
    if not axes:
        raise FormatError(f"{ctx.label}: axes (input 1) is empty; expected one or more")
    return axes


def _sizes(ctx: LayerContext, count: int) -> list[int | None]:
    """Return signal_size; None means the input's size."""
    if not ctx.has(2):
        return [None] * count
    sizes = ctx.integers(2, "signal_size", count=count, low=-1)
    if 0 in sizes:
        raise FormatError(f"{ctx.label}: signal_size (input 2) is {sizes}; expected -1, or 1 or more, for each axis")
    return [None if size == -1 else size for size in sizes]


def _dft(
    ctx: LayerContext, name: str, axis: int, size: int | None, *, inverse: bool = False, onesided: bool = False
) -> str:
    length = "" if size is None else ctx.constant(size)
    return ctx.node("DFT", name, length, ctx.constant(axis), inverse=int(inverse), onesided=int(onesided))


def _complex(ctx: LayerContext, *, inverse: bool) -> str:
    axes, name = _axes(ctx, ctx.rank(0, low=1) - 1), ctx[0]
    for axis, size in zip(axes, _sizes(ctx, len(axes)), strict=True):
        name = _dft(ctx, name, axis, size, inverse=inverse)
    return name


@translates("DFT", since=7)
def _forward(ctx: LayerContext) -> str:
    return _complex(ctx, inverse=False)


@translates("IDFT", since=7)
def _backward(ctx: LayerContext) -> str:
    return _complex(ctx, inverse=True)


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
    axes = _axes(ctx, rank)
    sizes = _sizes(ctx, len(axes))
    name = ctx.unsqueeze(ctx[0], [rank])
    name = _dft(ctx, name, axes[-1], sizes[-1], onesided=True)
    for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
        name = _dft(ctx, name, axis, size)
    return name
