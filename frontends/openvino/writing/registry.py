"""Table of writers: functions that write the layers of one ONNX operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from .context import NodeContext
from .views import Sequential, View

Writer = Callable[[NodeContext], View | Sequential | Sequence[View | Sequential]]
WriterType = TypeVar("WriterType", bound=Writer)

# By operators of ONNX's default domain; a writer supports all versions of its operators.
WRITERS: dict[str, Writer] = {}


def writes(*names: str) -> Callable[[WriterType], WriterType]:
    """Register a writer of operators, which returns the first outputs of the node."""

    def register(function: WriterType) -> WriterType:
        WRITERS.update(dict.fromkeys(names, function))
        return function

    return register
