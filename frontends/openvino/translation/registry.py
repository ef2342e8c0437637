"""The table of translators: functions that make the nodes of one operation, each put into it where it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..ir.layer import NetLayer
from .context import LayerContext

Translator = Callable[[LayerContext], str | Sequence[str]]
TranslatorType = TypeVar("TranslatorType", bound=Translator)

# By type in lower case, then by the first opset that it holds for.
TRANSLATORS: dict[str, dict[int, Translator]] = {}


def translates(name: str, *, since: int = 1) -> Callable[[TranslatorType], TranslatorType]:
    """Put a translator of an operation into the table, for its versions from that of opset `since` on."""

    def register(function: TranslatorType) -> TranslatorType:
        TRANSLATORS.setdefault(name.lower(), {})[since] = function
        return function

    return register


def translator(layer: NetLayer) -> Translator | None:
    """The translator of a layer's type and version; None where there is none."""
    rows = TRANSLATORS.get(layer.type.lower(), {})
    # The opset of "extension" and the like, which are operations of others, is 0.
    first = max([since for since in rows if since <= layer.opset], default=None)
    return None if first is None else rows[first]
