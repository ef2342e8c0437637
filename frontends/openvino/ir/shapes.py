"""Shapes as `<data shape="...">` spells them."""

from __future__ import annotations

from pyrnnx.errors import FormatError, shown
from pyrnnx.tensor_info import Interval, fits

from .numbers import integer
from .ports import MAX_RANK, NetPort

ANY_RANK = "..."
Size = int | Interval | None
Shape = tuple[Size, ...]


def parse_shape(label: str, text: str) -> Shape | None:
    """A shape: "" is a scalar, "..." any rank (None), "?" and "-1" any size (None), "1..8", "1.." and "..8" bounds.

    Raises
    ------
    FormatError
        Anything else.
    """
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1].strip()
    if text == ANY_RANK:
        return None
    shape = tuple([_size(label, text, item.strip()) for item in text.split(",")]) if text else ()
    if len(shape) > MAX_RANK:
        raise FormatError(f"{label}: shape has {len(shape)} dimensions; expected at most {MAX_RANK}")
    return shape


def static_shape(label: str, text: str, shape: Shape | None) -> tuple[int, ...]:
    """A shape that was parsed, if no dimension of it is open.

    Raises
    ------
    FormatError
        Some dimension is.
    """
    sizes = [size for size in shape or () if isinstance(size, int)]
    if shape is None or len(sizes) != len(shape):
        raise FormatError(f"{label}: shape is {shown(text)}; expected sizes that are known, separated by commas")
    return tuple(sizes)


def _size(label: str, text: str, item: str) -> Size:
    if item in ("?", "-1"):
        return None
    try:
        if ".." not in item:
            return _bound(item)
        first, _, last = item.partition("..")
        low, high = (_bound(part) if part.strip() else None for part in (first, last))
    except ValueError:
        raise FormatError(
            f"{label}: shape is {shown(text)}; expected sizes separated by commas, each a number, ?, or bounds as 1..8"
        ) from None
    if high is None:
        return None if low is None else Interval(low, None)
    low = low or 0
    if high < low:
        raise FormatError(f"{label}: shape is {shown(text)}; expected bounds in order, not {shown(item)}")
    return high if low == high else Interval(low, high)


def _bound(text: str) -> int:
    size = integer(text)
    if not 0 <= size < 2**63:
        raise ValueError(text)
    return size


def port_shape(label: str, text: str | None, shape: Shape | None, port: NetPort) -> tuple[int | None, ...] | None:
    """The shape of a Parameter or Const, that `<data>` (the text, parsed) and the output port give twice.

    Raises
    ------
    FormatError
        They contradict each other.
    """
    if shape is None:
        return port.shape
    declared = port.shape if port.shape is not None else (None,) * len(shape)
    if not fits(shape, declared):
        raise FormatError(
            f"{label}: <data> has shape {shown(text or '')}, output port {port.id} {port.shape}; expected one"
        )
    return tuple([one if isinstance(one, int) else size for size, one in zip(declared, shape, strict=True)])
