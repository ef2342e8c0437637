"""Errors and warnings of pyrnnx, with one base class for everything that pyrnnx rejects."""

from __future__ import annotations

import os
import re
import reprlib
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SHOWN_VALUE = 200  # characters of a value in a message
SHOWN_MESSAGE = 4_000  # characters of a message

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = SHOWN_VALUE
_REPR.maxlist = _REPR.maxtuple = _REPR.maxarray = _REPR.maxset = _REPR.maxdict = 20


def shown(value: Any) -> str:
    """Return `repr(value)` in one line of at most 200 characters, because values from files may have any size."""
    if isinstance(value, bytes):
        value = value[:SHOWN_VALUE]
    try:
        return printable(shortened(re.sub(r"\s*\n\s*", " ", _REPR.repr(value))))  # arrays have one line per row
    # An int of thousands of digits, which Python refuses to print; a deep list; a class that reprlib takes for a list.
    except Exception:
        return f"a number of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__name__}"


def shortened(text: str) -> str:
    """Return a text cut to 200 characters for a message."""
    return text if len(text) <= SHOWN_VALUE else f"{text[: SHOWN_VALUE - 3]}..."


def listed(names: Iterable[str], most: int = 10) -> str:
    """Return names in one line for a message, as "a, b and 3 more"."""
    names = list(names)
    return ", ".join(names[:most]) + ("" if len(names) <= most else f" and {len(names) - most} more")


def printable(text: str) -> str:
    """Return a text in one line, with control characters (line breaks, terminal codes) escaped as in a literal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def wrong_suffix(path: str | os.PathLike[str], allowed: str) -> str:
    """Return what a message says of a path that does not end in one of the allowed suffixes."""
    if os.path.isdir(path):
        return f"it is a folder; expected a file that ends in {allowed}"
    suffix = Path(path).suffix.lower()
    name = f"the file name ends in {shown(suffix)}" if suffix else "the file name has no extension"
    return f"{name}; expected {allowed}"


def reason_of(error: BaseException) -> str:
    """Return the message of an error of the system or another library, in one line of at most 200 characters.

    The system's has neither number nor path; an error without a message has the name of its type.
    """
    text = getattr(error, "strerror", None) or str(error)
    return shortened(printable(" ".join(str(text).split()))) or type(error).__name__


class PyrnnxError(ValueError):
    """Base class of all errors for input that pyrnnx rejects.

    The message names the operator or layer, the argument, its value and the allowed values, in about 4,000 characters
    at most.

    Attributes
    ----------
    argument : str
        Name of the argument, if a caller may know it by another name: the command puts its option before the message.
    """

    def __init__(self, message: str = "", *, argument: str = "") -> None:
        self.argument = argument
        if len(message) > SHOWN_MESSAGE:
            half = SHOWN_MESSAGE // 2
            message = f"{message[:half]} ... {message[-half:]}"
        super().__init__(message)


class ArgumentError(PyrnnxError):
    """Error for an array or a value of a wrong rank, shape, dtype or range."""


class UnsupportedError(PyrnnxError):
    """Error for well-formed input that the opset, format or convention does not support."""


class MissingLayerError(ArgumentError, KeyError):
    """Error for a layer name or index that a model does not have."""

    def __str__(self) -> str:  # KeyError would quote the message
        return Exception.__str__(self)


class FormatError(PyrnnxError):
    """Error for a file, an XML text or a model that is broken or contradicts itself."""


class PyrnnxWarning(UserWarning):
    """Warning about an argument or a part of a file that has no effect."""


_CALLING_BACK = ("pyrnnx", "functools", "onnx", "onnxruntime")


def warn(message: str, category: type[Warning] = PyrnnxWarning) -> None:
    """Issue a warning at the innermost line outside of pyrnnx and of the packages that call it back."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _CALLING_BACK:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
