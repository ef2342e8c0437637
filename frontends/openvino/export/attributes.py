"""The attributes of a layer, each read with its type; one that nobody has read is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pyrnnx.errors import FormatError, UnsupportedError
from pyrnnx.frontends.openvino.ports import boolean

if TYPE_CHECKING:
    from pyrnnx.frontends.openvino.net import NetLayer

Choice = TypeVar("Choice")
REQUIRED: Any = object()


class Attributes:
    """What `<data>` of a layer says.

    Attributes
    ----------
    layer : NetLayer
    label : str
        How errors name the layer.
    """

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
            raise FormatError(f"{self.label}: {name} is {text[:60]!r}; expected {expected}") from None

    def number(self, name: str, default: Any = REQUIRED) -> float:
        return float(self._parsed(name, default, float, "a number"))

    def whole(self, name: str, default: Any = REQUIRED) -> int:
        return int(self._parsed(name, default, int, "an integer"))

    def wholes(self, name: str, default: Any = REQUIRED) -> list[int]:
        """Integers separated by commas."""
        return list(
            self._parsed(name, default, lambda text: [int(one) for one in text.split(",") if one.strip()], "integers")
        )

    def flag(self, name: str, default: Any = REQUIRED) -> bool:
        return bool(self._parsed(name, default, boolean, "true or false"))

    def choice(self, name: str, choices: Mapping[str, Choice], default: Any = REQUIRED) -> Choice:
        """What the attribute's value, in any case, stands for in `choices`.

        Raises
        ------
        UnsupportedError
            Any other value.
        """
        text = self.text(name, default)
        if text.lower() not in choices:
            self.refuse(name, text, " or ".join(choices))
        return choices[text.lower()]

    def refuse(self, name: str, value: object, allowed: str) -> NoReturn:
        """An option that is not translated.

        Raises
        ------
        UnsupportedError
        """
        raise UnsupportedError(f"{self.label}: {name} is {value!r}, which is not translated; expected {allowed}")

    def ignore(self, *names: str) -> None:
        """Attributes that do not change the result."""
        self._read.update(names)

    def check_attributes(self) -> None:
        """
        Raises
        ------
        UnsupportedError
            An attribute that the translator has not read.
        """
        for name, value in self.layer.data.items():
            if name not in self._read:
                known = ", ".join(sorted(self._read)) or "none"
                raise UnsupportedError(
                    f"{self.label}: attribute {name!r} ({value[:60]!r}) is not known of {self.layer.type} "
                    f"{self.layer.version}; expected {known}"
                )
