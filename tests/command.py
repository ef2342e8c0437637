"""The command `pyrnnx` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

# Of the user, or of CI: what would change colours and widths.
UNSET = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH")


def environment(**more: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name not in UNSET}, **more}


def pyrnnx(*arguments: str, env: dict[str, str] | None = None, **keywords: Any) -> subprocess.CompletedProcess[str]:
    """`pyrnnx` with these arguments, away from the sources."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": "/"} | keywords
    return subprocess.run(
        [sys.executable, "-m", "pyrnnx", *arguments],
        env=environment(**(env or {})),
        encoding="utf-8",
        check=False,
        timeout=120,
        **streams,
    )


def in_terminal(*arguments: str, columns: int = 80, **env: str) -> tuple[int, str]:
    """The same with a terminal for standard output and standard error; the status, and what was written there."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrnnx", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment(TERM="xterm-256color", **env),
        cwd="/",
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux, when the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    return process.wait(timeout=60), b"".join(parts).decode()
