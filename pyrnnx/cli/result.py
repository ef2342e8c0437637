"""What a command gives, and the one place that makes text of it: for a terminal, for a pipe, as JSON."""

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
    """What a command gives.

    Attributes
    ----------
    data : mapping, or callable that gives one
        For ``--json``: values of JSON, and NumPy's; numbers that are not finite become "nan", "inf" and
        "-inf". A callable is called for ``--json`` alone.
    shown : iterable of Rich renderables
        For a terminal, one below the other; may be a generator, which is then run for a terminal alone. A str is text,
        never markup; what came from a file goes through `pyrnnx.errors.printable` first.
    plain : str, optional
        For pipes and files. Default: `shown` without colours, 80 columns wide.
    status : Status
        What the process ends with.
    problem : str
        What went wrong after the result was there: written to standard error after it, and the status is 2.
    """

    data: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    shown: Iterable[RenderableType] = ()
    plain: str | None = None
    status: Status = Status.SUCCESS
    problem: str = ""


def render(result: Result, *, as_json: bool) -> str:
    """The text that goes to standard output, with its last line break; "" for nothing."""
    if as_json:
        data = result.data() if callable(result.data) else result.data
        # Escapes instead of letters beyond ASCII: every terminal shows them, and none obeys them.
        return f"{json.dumps(plain_values(data), indent=1, allow_nan=False)}\n"
    terminal = streams.is_terminal(streams.out())
    text = _rich_text(result.shown, terminal=terminal) if terminal or result.plain is None else ""
    return text or (f"{result.plain}\n" if result.plain else "")


def plain_values(value: Any) -> Any:
    """A value as JSON has it.

    Raises
    ------
    TypeError
        A value that has no form there.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain_values(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _rich_text(shown: Iterable[RenderableType], *, terminal: bool) -> str:
    """As Rich lays it out, without spaces at the ends of lines where nobody sees colours."""
    console = streams.console(terminal=terminal)
    with console.capture() as captured:
        for one in shown:
            console.print(one, markup=False, highlight=False, emoji=False)
    text = captured.get()
    return text if terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines())
