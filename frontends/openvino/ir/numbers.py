"""Parsers of numbers and flags in XML attributes; any other text is a ValueError."""

from __future__ import annotations

from pyrnnx.errors import FormatError, shown

MAX_DIGITS = 20  # more than a 64-bit number has: int() of a long text is slow


def integer(text: str, low: int = -(2**63), high: int = 2**63 - 1) -> int:
    """Parse a decimal integer from `low` to `high`, with or without a minus."""
    digits = text[1:] if text.startswith("-") else text
    if not digits.isdecimal() or not digits.isascii() or len(text) > MAX_DIGITS or not low <= int(text) <= high:
        raise ValueError(text)
    return int(text)


def count(label: str, what: str, text: str) -> int:
    """Parse an integer of 0 or above; errors call it `what`."""
    try:
        return integer(text.strip(), 0)
    except ValueError:
        raise FormatError(f"{label}: {what} is {shown(text)}; expected a number, 0 or above, of 64 bits") from None


def number(text: str) -> float:
    """Parse a decimal number, infinity or NaN."""
    if not text.isascii() or "_" in text:  # float() accepts underscores and non-ASCII digits
        raise ValueError(text)
    return float(text)


def boolean(text: str) -> bool:
    """Parse true or false, in any case, or 1 or 0."""
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")
