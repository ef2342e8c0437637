"""Table of translators: functions that add the nodes of one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..ir.layer import NetLayer
from .context import LayerContext

Translator = Callable[[LayerContext], str | Sequence[str]]
TranslatorType = TypeVar("TranslatorType", bound=Translator)

# By type in lower case, then by the first opset of the translated version.
TRANSLATORS: dict[str, dict[int, Translator]] = {}


def translates(name: str, *, since: int = 1) -> Callable[[TranslatorType], TranslatorType]:
    """Register a translator of an operation's versions since opset `since`."""

    def register(function: TranslatorType) -> TranslatorType:
        TRANSLATORS.setdefault(name.lower(), {})[since] = function
        return function

    return register


def translator(layer: NetLayer) -> Translator | None:
    """Return the translator of a layer's type and version; None if there is none."""
    rows = TRANSLATORS.get(layer.type.lower(), {})
    # The opset of "extension" and other sets of custom operations is 0.
    first = max([since for since in rows if since <= layer.opset], default=None)
    return None if first is None else rows[first]
