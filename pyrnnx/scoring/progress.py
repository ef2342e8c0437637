"""How far a run is: in a line of the terminal, or as a caller wants to know it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from pyrnnx.errors import ArgumentError, shown

Progress = Callable[[int, int], None]
WIDTH = 30


def progress_of(given: Any) -> Progress:
    """What to call with the items that are done and all that there are.

    Raises
    ------
    ArgumentError
        Neither None, a bool nor callable.
    """
    if callable(given):
        return given  # type: ignore[no-any-return]
    if given is not None and not isinstance(given, bool):
        raise ArgumentError(f"score: progress is {shown(given)}; expected True, False, or a function of two integers")
    stream = sys.stderr
    if given is False or (given is None and not (stream is not None and stream.isatty())):
        return lambda done, total: None
    return _line()


def _line() -> Progress:
    started, before = time.monotonic(), -1

    def show(done: int, total: int) -> None:
        nonlocal before
        if before < 0:
            before = done  # what an earlier run did tells nothing of the speed of this one
        filled = WIDTH * done // max(total, 1)
        passed = time.monotonic() - started
        left = f", {passed * (total - done) / (done - before):.0f} s left" if done > before and done < total else ""
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {done}/{total} items{left}\x1b[K{end}")
        sys.stderr.flush()

    return show
