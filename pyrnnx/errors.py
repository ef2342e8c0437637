"""Errors and warnings of pyrnnx: one root, so that callers can catch everything that pyrnnx rejects."""

from __future__ import annotations

import re
import reprlib
import sys
import warnings
from typing import Any

SHOWN_VALUE = 200  # characters of a value in a message
SHOWN_MESSAGE = 4_000  # characters of a message

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = SHOWN_VALUE
_REPR.maxlist = _REPR.maxtuple = _REPR.maxarray = _REPR.maxset = _REPR.maxdict = 20


def shown(value: Any) -> str:
    """`repr(value)` for a message, in one line, cut to 200 characters: it comes from files or callers, of any size."""
    if isinstance(value, bytes):
        value = value[:SHOWN_VALUE]
    try:
        return printable(shortened(re.sub(r"\s*\n\s*", " ", _REPR.repr(value))))  # arrays have a line for each row
    # An int of thousands of digits, which Python does not print; a deep list; a class that is named as one of Python's.
    except Exception:
        return f"a number of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__name__}"


def shortened(text: str) -> str:
    """A text for a message, without quotes, cut to 200 characters."""
    return text if len(text) <= SHOWN_VALUE else f"{text[: SHOWN_VALUE - 3]}..."


def printable(text: str) -> str:
    """A text in one line, with what a terminal would obey (line breaks, escape sequences) as Python writes it."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


class PyrnnxError(ValueError):
    """Root of everything that pyrnnx rejects.

    The message names the operator or layer, the argument, what was given and what is allowed. It is never longer than
    some 4,000 characters, whatever was given.
    """

    def __init__(self, message: str = "") -> None:
        if len(message) > SHOWN_MESSAGE:
            half = SHOWN_MESSAGE // 2
            message = f"{message[:half]} ... {message[-half:]}"
        super().__init__(message)


class ArgumentError(PyrnnxError):
    """An array or a value does not fit: its rank, shape, dtype or range."""


class UnsupportedError(PyrnnxError):
    """The input is well-formed, but the opset, format or convention has no such thing."""


class MissingLayerError(ArgumentError, KeyError):
    """A model has no layer of that name, or at that place."""

    def __str__(self) -> str:  # a KeyError puts quotes around its message
        return Exception.__str__(self)


class FormatError(PyrnnxError):
    """A file, an XML text or a model is broken or contradicts itself."""


class PyrnnxWarning(UserWarning):
    """Something that was given has no effect."""


class SlowRuntimeWarning(PyrnnxWarning):
    """A part of a model runs many times slower than ONNX Runtime would run it, and why."""


def warn(message: str, category: type[Warning] = PyrnnxWarning) -> None:
    """Warn at the line that led here: the innermost that lies outside of pyrnnx, and of onnx, which may call pyrnnx."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("pyrnnx", "onnx"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
