"""Parsers of numbers and flags in XML attributes."""

from __future__ import annotations

MAX_DIGITS = 20  # more than a 64-bit number has: int() of a long text is slow


def integer(text: str) -> int:
    """Parse a decimal integer, with or without a minus.

    Raises
    ------
    ValueError
        The text is not one.
    """
    digits = text[1:] if text.startswith("-") else text
    if not digits.isdecimal() or not digits.isascii() or len(text) > MAX_DIGITS:
        raise ValueError(text)
    return int(text)


def number(text: str) -> float:
    """Parse a decimal number, infinity or NaN.

    Raises
    ------
    ValueError
        The text is not one.
    """
    if not text.isascii() or "_" in text:  # float() accepts underscores and non-ASCII digits
        raise ValueError(text)
    return float(text)


def boolean(text: str) -> bool:
    """Parse true or false, in any case, or 1 or 0.

    Raises
    ------
    ValueError
        The text is none of them.
    """
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")
