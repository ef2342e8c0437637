"""Results of commands, and their rendering for a terminal, for a pipe, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.cli import streams
from pyrnnx.cli.status import Status

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Result:
    """Result of a command.

    Attributes
    ----------
    data : mapping, or callable that returns one
        Output of ``--json``: values of JSON or NumPy; numbers that are not finite become "nan", "inf" and "-inf". A
        callable is called only for ``--json``.
    shown : iterable of Rich renderables
        Output for a terminal; a generator is run only for a terminal. A str is text, never markup; pass text from a
        file through `pyrnnx.errors.printable` first.
    plain : str, optional
        Output for pipes and files. Default: `shown` without colours, 80 columns wide.
    status : Status
        Exit status of the process.
    problem : str
        Error that occurred after the result was complete. It is written to standard error, and the status is 2.
    """

    data: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    shown: Iterable[RenderableType] = ()
    plain: str | None = None
    status: Status = Status.SUCCESS
    problem: str = ""


def render(result: Result, *, as_json: bool) -> str:
    """Return the text for standard output, with a final line break, or ""."""
    if as_json:
        data = result.data() if callable(result.data) else result.data
        # ASCII escapes are shown by every terminal, and cannot control it.
        return f"{json.dumps(plain_values(data), indent=1, allow_nan=False)}\n"
    terminal = streams.is_terminal(streams.out())
    text = _rich_text(result.shown, terminal=terminal) if terminal or result.plain is None else ""
    return text or (f"{result.plain}\n" if result.plain else "")


def plain_values(value: Any) -> Any:
    """Return a value converted to types that JSON has.

    Raises
    ------
    TypeError
        A value that JSON cannot express.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain_values(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"JSON cannot express a {type(value).__name__}")


def _rich_text(shown: Iterable[RenderableType], *, terminal: bool) -> str:
    """Return the layout of Rich; for pipes and files without trailing spaces."""
    console = streams.console(terminal=terminal)
    with console.capture() as captured:
        for renderable in shown:
            console.print(renderable, markup=False, highlight=False, emoji=False)
    text = captured.get()
    return text if terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines())
