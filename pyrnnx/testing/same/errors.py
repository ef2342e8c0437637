"""Errors under the name of the function that was called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyrnnx.errors import PyrnnxError


@contextmanager
def named_after(caller: str) -> Iterator[None]:
    """What `compare` and `assert_same` reject, in whose words a part of the work is done, as the caller's errors."""
    try:
        yield
    except PyrnnxError as error:
        start, _, rest = str(error).partition(": ")
        if start not in ("compare", "assert_same") or start == caller:
            raise
        raise type(error)(f"{caller}: {rest}") from error
