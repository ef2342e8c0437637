"""The types of attributes, named as in onnx.AttributeProto, and how a value of each type is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from itertools import islice
from typing import Any

from pyrnnx._internal.scalars import as_integer, as_number

_LONGEST = 1_000  # values of a list; six are the most that have an effect


def _string(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str.__str__(value) if isinstance(value, str) else None  # str() of an Enum is its name


def _list(item: Callable[[Any], Any], value: Any) -> list[Any] | None:
    if isinstance(value, (str, bytes, Mapping)):
        return None
    try:
        items = [item(element) for element in islice(value, _LONGEST + 1)]
    except (TypeError, NotImplementedError):  # a number, an array without axes; a memoryview with several
        return None
    return None if len(items) > _LONGEST or any(element is None for element in items) else items


def _numbers(value: Any) -> list[float] | None:
    return _list(as_number, value)


def _strings(value: Any) -> list[str] | None:
    return _list(_string, value)


class AttributeType(Enum):
    """A type that attributes have, by its name in onnx.AttributeProto.AttributeType.

    Attributes
    ----------
    words : str
        A description for errors.
    read : callable
        Returns a caller's or a node's value as Python's own type, or None if it has another type.
    """

    FLOAT = ("a number", as_number)
    INT = ("an integer", as_integer)
    STRING = ("a string", _string)
    FLOATS = ("a list of numbers, at most 1000", _numbers)
    STRINGS = ("a list of strings, at most 1000", _strings)

    def __init__(self, words: str, read: Callable[[Any], Any]) -> None:
        self.words, self.read = words, read
