"""The command `pyrnnx`, run in this process with its own streams, or in a new process."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

# Variables of the user or of CI that would change colours and widths.
UNSET = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH")

_SILENT = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # as Python starts


class Stream(io.TextIOWrapper):
    """Standard output or standard error in memory, which may be a terminal."""

    def __init__(self, encoding: str = "utf-8", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding, newline="\n")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        self.flush()
        contents: bytes = self.buffer.getvalue()  # type: ignore[attr-defined]  # a BytesIO
        return contents.decode(self.encoding)


@contextmanager
def process_state(stdout: TextIO | None, stderr: TextIO | None, env: dict[str, str], cwd: Any) -> Iterator[None]:
    """Set what a new process would have, and restore it: streams, environment, folder, filters of warnings."""
    before = sys.stdout, sys.stderr, dict(os.environ), os.getcwd()
    try:
        sys.stdout, sys.stderr = stdout, stderr  # None, as Python sets a closed stream
        for name in UNSET:
            os.environ.pop(name, None)
        os.environ.update(env)
        os.chdir(cwd)
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            for category in _SILENT:
                warnings.simplefilter("ignore", category)
            yield
    finally:
        sys.stdout, sys.stderr, environ, folder = before
        if os.environ != environ:
            os.environ.clear()
            os.environ.update(environ)
        os.chdir(folder)


def pyrnnx(
    *arguments: str,
    env: dict[str, str] | None = None,
    cwd: Any = "/",
    encoding: str = "utf-8",
    **streams: TextIO | None,
) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, away from the sources; its output goes to pipes.

    `streams` may replace the pipes: `stdout`, `stderr`; None is a closed one.
    """
    from pyrnnx.cli import main

    pipes = {name: Stream(encoding) for name in ("stdout", "stderr")}
    used: dict[str, TextIO | None] = {**pipes, **streams}
    with process_state(used["stdout"], used["stderr"], env or {}, cwd):
        status = main(arguments)
    return subprocess.CompletedProcess(arguments, status, pipes["stdout"].text(), pipes["stderr"].text())


def in_terminal(*arguments: str, columns: int = 80, **env: str) -> tuple[int, str]:
    """Run the command in this process; both streams are one terminal. Return the status, and what was written."""
    from pyrnnx.cli import main

    stream = Stream(terminal=True)
    with process_state(stream, stream, {"TERM": "xterm-256color", "COLUMNS": str(columns), **env}, "/"):
        status = main(arguments)
    return status, stream.text()


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a new process."""
    return {**{name: value for name, value in os.environ.items() if name not in UNSET}, **more}


def process(*arguments: str, env: dict[str, str] | None = None, **keywords: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, away from the sources."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": "/"} | keywords
    return subprocess.run(
        [sys.executable, "-m", "pyrnnx", *arguments],
        env=environment(**(env or {})),
        encoding="utf-8",
        check=False,
        timeout=120,
        **streams,
    )
