"""Numbers and flags as XML attributes spell them."""

from __future__ import annotations

MAX_DIGITS = 20  # more than any 64-bit number has: int() of a long text is slow


def integer(text: str) -> int:
    """A decimal number, with a minus or without.

    Raises
    ------
    ValueError
        Any other text.
    """
    digits = text[1:] if text.startswith("-") else text
    if not digits.isdecimal() or not digits.isascii() or len(text) > MAX_DIGITS:
        raise ValueError(text)
    return int(text)


def number(text: str) -> float:
    """A decimal number, infinity or NaN.

    Raises
    ------
    ValueError
        Any other text.
    """
    if not text.isascii() or "_" in text:  # float() takes underscores and other digits
        raise ValueError(text)
    return float(text)


def boolean(text: str) -> bool:
    """true or false, in any case, or 1 or 0.

    Raises
    ------
    ValueError
        Any other text.
    """
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")
