"""Messages between `execute` and its worker: length-prefixed pickles over a pipe."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any

HEADER = struct.Struct("<Q")


def packed(message: Any) -> bytes:
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(body)) + body


def receive(read: Callable[[int], bytes]) -> Any:
    """Return the next message.

    Parameters
    ----------
    read : callable
        Gives at least one byte and at most so many, or none where the pipe has ended.

    Raises
    ------
    EOFError
        The pipe has ended.
    """
    (length,) = HEADER.unpack(_exactly(read, HEADER.size))
    return pickle.loads(_exactly(read, length))


def _exactly(read: Callable[[int], bytes], length: int) -> bytearray:
    data = bytearray()
    while len(data) < length:
        part = read(min(length - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return data
