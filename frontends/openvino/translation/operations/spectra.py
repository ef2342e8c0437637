"""Fourier transforms. A complex number is an axis of two, real and imaginary part, the last one."""

from __future__ import annotations

from pyrnnx.errors import FormatError

from ..call import Call
from ..registry import translates


def _axes(call: Call, rank: int) -> list[int]:
    """The axes of the transform, at least one."""
    axes = call.axes(call.integers(1, "axes"), rank)
    if not axes:
        raise FormatError(f"{call.label}: axes (input 1) is empty; expected one or more")
    return axes


def _sizes(call: Call, count: int) -> list[int | None]:
    """signal_size; None where it is the input's own."""
    if not call.has(2):
        return [None] * count
    sizes = call.integers(2, "signal_size", count=count, low=-1)
    if 0 in sizes:
        raise FormatError(f"{call.label}: signal_size (input 2) is {sizes}; expected -1, or 1 or more, for each axis")
    return [None if size == -1 else size for size in sizes]


def _dft(call: Call, name: str, axis: int, size: int | None, *, inverse: bool = False, onesided: bool = False) -> str:
    length = "" if size is None else call.constant(size)
    return call.node("DFT", name, length, call.constant(axis), inverse=int(inverse), onesided=int(onesided))


def _complex(call: Call, *, inverse: bool) -> str:
    axes, name = _axes(call, call.rank(0, low=1) - 1), call[0]
    for axis, size in zip(axes, _sizes(call, len(axes)), strict=True):
        name = _dft(call, name, axis, size, inverse=inverse)
    return name


@translates("DFT", since=7)
def _forward(call: Call) -> str:
    return _complex(call, inverse=False)


@translates("IDFT", since=7)
def _backward(call: Call) -> str:
    return _complex(call, inverse=True)


@translates("RDFT", since=9)
def _real(call: Call) -> str:
    """Of real numbers: over the last of the axes only the first half of the frequencies."""
    rank = call.rank(0)
    axes = _axes(call, rank)
    sizes = _sizes(call, len(axes))
    name = call.unsqueeze(call[0], [rank])
    name = _dft(call, name, axes[-1], sizes[-1], onesided=True)
    for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
        name = _dft(call, name, axis, size)
    return name
