"""Safe opening of the files of sources and sinks: regular files only, without blocking."""

from __future__ import annotations

import os
from typing import BinaryIO

from pyrnnx._internal.files import open_checked


def open_file(path: str | os.PathLike[str], *, follow: bool) -> BinaryIO:
    """Open a regular file for reading; reject a FIFO or a device at once.

    Parameters
    ----------
    path : str or os.PathLike
    follow : bool
        Whether the file may be a symbolic link: in a source it may, in a sink never.

    Raises
    ------
    OSError, ValueError
        No file; another kind of file; a link although `follow` is false.
    """
    if follow:
        return open_checked(path)
    if os.path.islink(path):  # not all systems have O_NOFOLLOW
        raise ValueError("it is a symbolic link; expected a regular file")
    return open_checked(path, getattr(os, "O_NOFOLLOW", 0))
