"""Shapes as `<data shape="...">` spells them."""

from __future__ import annotations

from collections.abc import Mapping

from pyrnnx.errors import FormatError, shown
from pyrnnx.tensor_info import Interval

from .ports import MAX_RANK, NetPort, integer

ANY_RANK = "..."
Size = int | Interval | None


def parse_shape(label: str, text: str) -> tuple[Size, ...] | None:
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
    shape = tuple(_size(label, text, item.strip()) for item in text.split(",")) if text else ()
    if len(shape) > MAX_RANK:
        raise FormatError(f"{label}: shape has {len(shape)} dimensions; expected at most {MAX_RANK}")
    return shape


def static_shape(label: str, text: str) -> tuple[int, ...]:
    """A shape without open dimensions.

    Raises
    ------
    FormatError
        Any other.
    """
    shape = parse_shape(label, text)
    if shape is None or not all(isinstance(size, int) for size in shape):
        raise FormatError(f"{label}: shape is {shown(text)}; expected sizes that are known, separated by commas")
    return tuple(size for size in shape if isinstance(size, int))


def _size(label: str, text: str, item: str) -> Size:
    if item in ("?", "-1"):
        return None
    low, dots, high = item.partition("..")
    try:
        bounds = [integer(part) if part.strip() else None for part in ((low, high) if dots else (low,))]
        if any(bound is not None and not 0 <= bound < 2**63 for bound in bounds) or bounds == [None]:
            raise ValueError(item)
    except ValueError:
        raise FormatError(
            f"{label}: shape is {shown(text)}; expected sizes separated by commas, each a number, ?, or bounds as 1..8"
        ) from None
    if not dots:
        return bounds[0]
    lowest, highest = bounds[0] or 0, bounds[1]
    if highest is not None and highest < lowest:
        raise FormatError(f"{label}: shape is {shown(text)}; expected bounds in order, not {shown(item)}")
    return lowest if lowest == highest else None if bounds == [None, None] else Interval(lowest, highest)


def port_shape(label: str, data: Mapping[str, str], port: NetPort) -> tuple[int | None, ...] | None:
    """The shape of a Parameter or Const, that `<data>` and the output port give twice.

    Raises
    ------
    FormatError
        They contradict each other.
    """
    text = data.get("shape")
    if text is None:
        return port.shape
    shape = parse_shape(label, text)
    if shape is None:
        return port.shape
    declared = port.shape if port.shape is not None else (None,) * len(shape)
    fits = len(declared) == len(shape) and all(
        size is None or one is None or (size == one if isinstance(one, int) else size in one)
        for size, one in zip(declared, shape, strict=True)
    )
    if not fits:
        raise FormatError(f"{label}: <data> has shape {shown(text)}, output port {port.id} {port.shape}; expected one")
    return tuple(one if isinstance(one, int) else size for size, one in zip(declared, shape, strict=True))
