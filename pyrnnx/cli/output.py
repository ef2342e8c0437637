"""Results of commands, messages and progress: what is written to standard output and standard error."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.errors import printable, reason_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Exit statuses; `pyrnnx --help` describes them.
SUCCESS, DIFFERENT, REJECTED = 0, 1, 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
CLOSED_PIPE = 141  # 128 + SIGPIPE


@dataclass(frozen=True)
class Result:
    """Result of a command.

    `data` is the output of ``--json``: values of JSON or NumPy, of which "nan", "inf" and "-inf" stand for numbers.
    `shown` is the output otherwise; text from a file goes through `pyrnnx.errors.printable` or `tables` first.
    """

    data: Mapping[str, Any]
    shown: Iterable[RenderableType] = ()
    status: int = SUCCESS

    def as_json(self) -> str:
        # ASCII escapes are shown by every terminal, and cannot control it.
        return f"{json.dumps(plain_values(self.data), indent=1, allow_nan=False)}\n"

    def as_text(self) -> str:
        """Return the layout of Rich; for pipes and files without trailing spaces."""
        from rich.text import Text

        out = console()
        with out.capture() as captured:
            for renderable in self.shown:
                # A terminal breaks lines of reports, whose paths stay whole for whoever copies them.
                out.print(renderable, soft_wrap=isinstance(renderable, (str, Text)))
        text = captured.get()
        return text if out.is_terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def plain_values(value: Any) -> Any:
    """Return a value converted to types that JSON has."""
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


def console(**options: Any) -> Console:
    """Return a console of Rich that shows texts unchanged."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, **options)


def write(text: str) -> int:
    """Write a result to standard output, and return the exit status."""
    if sys.stdout is None:
        complain("the result cannot be written (standard output is closed)")
        return REJECTED
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python flushes the stream again at exit: redirect it so that this cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return CLOSED_PIPE
        complain(f"the result cannot be written ({reason_of(error)})")
        return REJECTED
    return SUCCESS


def complain(message: str) -> None:
    """Write one line to standard error."""
    write_error(f"pyrnnx: {printable(message)}\n")


def write_error(text: str) -> None:
    """Write text to standard error unchanged."""
    if sys.stderr is not None:
        with suppress(OSError):  # an error about standard error can be reported nowhere
            sys.stderr.write(text)
            sys.stderr.flush()


def escape_what_streams_lack() -> None:
    """Let both streams escape characters that their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Show progress on a terminal during the block; yield a function that replaces its text."""
    from rich.text import Text

    with console(stderr=True).status("") as status:
        yield lambda text: status.update(Text(printable(text)))
