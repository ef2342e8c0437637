"""Standard output and standard error: results, messages and progress."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from pyrnnx.cli.status import Status
from pyrnnx.errors import printable, reason_of

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 80
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def out() -> TextIO | None:
    """Return standard output, or None if it is closed."""
    return sys.stdout


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def width() -> int:
    """Return the columns of the terminal, or 80 for a file or a pipe."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else PIPE_WIDTH


def written(text: str) -> Status:
    """Write a result to standard output, and return the exit status."""
    if text and sys.stdout is None:
        complain("the result cannot be written (standard output is closed)")
        return Status.REJECTED
    try:
        _write(text, sys.stdout)
    except OSError as error:
        # Python flushes the stream again at exit: redirect it so that this cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return Status.CLOSED_PIPE
        complain(f"the result cannot be written ({reason_of(error)})")
        return Status.REJECTED
    return Status.SUCCESS


def complain(message: str) -> None:
    """Write one line to standard error."""
    write_error(f"pyrnnx: {printable(message)}\n")


def write_error(text: str) -> None:
    """Write text to standard error unchanged."""
    with suppress(OSError):  # an error about standard error can be reported nowhere
        _write(text, sys.stderr)


class _Sparse:
    """Progress in a file or pipe: a line every `SECONDS`, none for a short command."""

    SECONDS = 30.0
    last: float | None = None  # time of the last line, or of the beginning

    def show(self, text: str) -> None:
        """Write a line if it is time for one; "" means the end."""
        now = monotonic()
        if not text or self.last is None:
            self.last = now if text else None
        elif now - self.last >= self.SECONDS:
            self.last = now
            complain(text)


_sparse = _Sparse()


def show_progress(text: str) -> None:
    """Replace the current line of a terminal; in a file or pipe, write a line from time to time. "" means the end."""
    if is_terminal(sys.stderr):
        write_error(f"\r{printable(text)[: shutil.get_terminal_size().columns - 1]}\x1b[K")
    else:
        _sparse.show(text)


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error during the block, or lines in a pipe; yield a function to call after each step."""
    if not (total and is_terminal(sys.stderr)):
        steps = count(1)
        try:
            yield lambda: show_progress(f"{what}: {next(steps)} of {total}")
        finally:
            show_progress("")
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(printable(what), total=total)
        yield lambda: progress.advance(task)


def console(*, terminal: bool) -> Console:
    """Return the console that lays out a result, with colours for a terminal unless NO_COLOR is set."""
    from rich.console import Console

    return Console(
        file=_Buffer(sys.stdout),
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        width=width(),
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
        legacy_windows=False,
    )


@contextmanager
def captured() -> Iterator[list[str]]:
    """Yield a list that gets the text that Typer prints during the block (help, completion), at our width."""
    stream, columns = sys.stdout, os.environ.get("COLUMNS")
    terminal, buffer = is_terminal(stream), _Buffer(stream)
    texts: list[str] = []
    sys.stdout = buffer
    if not terminal:
        os.environ["COLUMNS"] = str(PIPE_WIDTH)
    try:
        yield texts
    finally:
        sys.stdout = stream
        if columns is None:
            os.environ.pop("COLUMNS", None)
        else:
            os.environ["COLUMNS"] = columns
        text = buffer.getvalue()
        texts.append(text if terminal else _COLOUR.sub("", text))


class _Buffer(io.StringIO):
    """Text buffer that looks like another stream: same encoding, and a terminal if that is one."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]  # None in StringIO
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return is_terminal(self._stream)


def _write(text: str, stream: TextIO | None) -> None:
    """Write to a stream (None: closed); escape characters that its encoding lacks."""
    if stream is not None:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
