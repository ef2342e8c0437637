"""Exclusive lock on the sink folder."""

from __future__ import annotations

import os

from pyrnnx.errors import ArgumentError, shown


class Lock:
    """Lock of a folder, acquired at once, until `release` or the end of the process.

    Raises
    ------
    ArgumentError
        Another process has locked the folder.
    OSError
        The lock file cannot be opened, or is a link.
    """

    def __init__(self, path: str) -> None:
        self._file: int | None = None
        try:
            import fcntl
        except ImportError:  # no POSIX system
            return
        # An existing file may belong to another program: do not truncate it or follow a link.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._file = os.open(os.path.join(path, "lock"), flags, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise ArgumentError(f"score: another process is writing to sink {shown(path)}") from None

    def release(self) -> None:
        file, self._file = self._file, None  # an interrupt in here must not let it be closed twice
        if file is not None:
            os.close(file)
