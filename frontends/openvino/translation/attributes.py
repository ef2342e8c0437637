"""Typed attributes of a layer; one that the translator does not read is an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from pyrnnx.errors import FormatError, UnsupportedError, shortened, shown

from ..ir.layer import NetLayer
from ..ir.numbers import boolean, integer, number

Choice = TypeVar("Choice")
REQUIRED: Any = object()
LOWEST, HIGHEST = -(2**63), 2**63 - 1  # range of int64, the integers of ONNX's attributes
LARGEST = 2**31 - 1  # limit of kernels, strides, pads and the like: their products and sums fit into int64


class Attributes:
    """The `<data>` of a layer."""

    def __init__(self, layer: NetLayer) -> None:
        self.layer, self.label = layer, layer.label
        self._read: set[str] = set()

    def text(self, name: str, default: Any = REQUIRED) -> str:
        self._read.add(name)
        if name in self.layer.data:
            return self.layer.data[name].strip()
        if default is REQUIRED:
            raise FormatError(f"{self.label}: attribute {name!r} is missing")
        return str(default)

    def _parsed(self, name: str, default: Any, convert: Callable[[str], Any], expected: str) -> Any:
        if name not in self.layer.data and default is not REQUIRED:
            self._read.add(name)
            return default
        text = self.text(name)
        try:
            return convert(text)
        except ValueError:
            raise FormatError(f"{self.label}: {name} is {shown(text)}; expected {expected}") from None

    def number(self, name: str, default: Any = REQUIRED) -> float:
        value = float(self._parsed(name, default, number, "a number"))
        if math.isnan(value):
            raise FormatError(f"{self.label}: {name} is NaN; expected a number")
        return value

    def whole(self, name: str, default: Any = REQUIRED, *, low: int = LOWEST, high: int = HIGHEST) -> int:
        """Return an integer from low to high."""
        return int(self._parsed(name, default, lambda text: _whole(text, low, high), f"an integer{_range(low, high)}"))

    def wholes(
        self, name: str, default: Any = REQUIRED, *, count: int | None = None, low: int = LOWEST, high: int = HIGHEST
    ) -> list[int]:
        """Return integers from low to high, separated by commas; an empty list means the default."""

        def convert(text: str) -> list[int]:
            if not text and default is not REQUIRED:
                return list(default)
            return [_whole(item.strip(), low, high) for item in text.split(",")]

        values = list(self._parsed(name, default, convert, f"integers{_range(low, high)}"))
        if count is not None and len(values) != count:
            raise FormatError(f"{self.label}: {name} has {len(values)} values, {shown(values)}; expected {count}")
        return values

    def flag(self, name: str, default: Any = REQUIRED) -> bool:
        return bool(self._parsed(name, default, boolean, "true or false"))

    def choice(self, name: str, choices: Mapping[str, Choice], default: Any = REQUIRED) -> Choice:
        """Return the item of `choices` for the attribute's value, in any case."""
        text = self.text(name, default)
        if text.lower() not in choices:
            self.refuse(name, text, " or ".join(choices))
        return choices[text.lower()]

    def refuse(self, name: str, value: object, allowed: str) -> NoReturn:
        """Raise an UnsupportedError about an option that is not translated."""
        raise UnsupportedError(f"{self.label}: {name} is {shown(value)}, which is not translated; expected {allowed}")

    def ignore(self, *names: str) -> None:
        """Mark attributes that do not change the result as read."""
        self._read.update(names)

    def check_attributes(self) -> None:
        """Raise an UnsupportedError about an attribute that the translator has not read."""
        for name, value in self.layer.data.items():
            if name not in self._read:
                known = ", ".join(sorted(self._read)) or "none"
                raise UnsupportedError(
                    f"{self.label}: attribute {shown(name)} ({shown(value)}) is unknown in "
                    f"{shortened(self.layer.type)} {shortened(self.layer.version)}; expected {known}"
                )


def _whole(text: str, low: int, high: int) -> int:
    value = integer(text)
    if not low <= value <= high:
        raise ValueError(text)
    return value


def _range(low: int, high: int) -> str:
    """Return the text about allowed values in errors."""
    if (low, high) == (LOWEST, HIGHEST):
        return " of 64 bits"
    return f", {low} or above" if high == HIGHEST else f" from {low} to {high}"
