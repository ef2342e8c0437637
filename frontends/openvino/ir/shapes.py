"""Parser of shapes in `<data shape="...">`."""

from __future__ import annotations

from pyrnnx.errors import FormatError, shown
from pyrnnx.operator.tensor_info import Interval, fits

from .numbers import integer
from .ports import MAX_RANK, NetPort

ANY_RANK = "..."
Size = int | Interval | None
Shape = tuple[Size, ...]


def parse_shape(label: str, text: str) -> Shape | None:
    """Parse a shape: "" is a scalar, "..." any rank, "?" or "-1" any size (None both), "1..8", "1..", "..8" bounds."""
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
    """Return a parsed shape if it is static."""
    sizes = [size for size in shape or () if isinstance(size, int)]
    if shape is None or len(sizes) != len(shape):
        raise FormatError(f"{label}: shape is {shown(text)}; expected sizes separated by commas, none of them dynamic")
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
    """Merge the shapes that `<data>` (`text`, parsed as `shape`) and the output port declare."""
    if shape is None:
        return port.shape
    declared = port.shape if port.shape is not None else (None,) * len(shape)
    if not fits(shape, declared):
        raise FormatError(
            f"{label}: <data> has shape {shown(text or '')}, output port {port.id} has {port.shape}; expected the same"
        )
    return tuple([size if isinstance(size, int) else other for other, size in zip(declared, shape, strict=True)])
