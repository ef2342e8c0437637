"""Errors that name the function the user called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyrnnx.errors import PyrnnxError


@contextmanager
def named_after(caller: str) -> Iterator[None]:
    """Rename errors of `compare` and `assert_same` after the called function."""
    try:
        yield
    except PyrnnxError as error:
        start, _, rest = str(error).partition(": ")
        if start not in ("compare", "assert_same") or start == caller:
            raise
        raise type(error)(f"{caller}: {rest}") from error
