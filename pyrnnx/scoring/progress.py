"""Progress of a run: a line on the terminal, or calls of the caller's function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from pyrnnx.errors import ArgumentError, shown

Progress = Callable[[int, int], None]
WIDTH = 30


def progress_of(value: Any) -> Progress:
    """Return the function to call with the number of finished items and the number of all items."""
    if callable(value):
        return value  # type: ignore[no-any-return]
    if value is not None and not isinstance(value, bool):
        raise ArgumentError(f"score: progress is {shown(value)}; expected True, False, or a function of two integers")
    stream = sys.stderr
    if value is False or (value is None and not (stream is not None and stream.isatty())):
        return lambda done, total: None
    return _line()


def _line() -> Progress:
    started, before = time.monotonic(), -1

    def show(done: int, total: int) -> None:
        nonlocal before
        if before < 0:
            before = done  # items of an earlier run do not count for the speed of this one
        filled = WIDTH * done // max(total, 1)
        passed = time.monotonic() - started
        left = f", {passed * (total - done) / (done - before):.0f} s left" if done > before and done < total else ""
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {done}/{total} items{left}\x1b[K{end}")
        sys.stderr.flush()

    return show
