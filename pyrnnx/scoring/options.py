"""Checks of the arguments of `score` that are numbers and switches."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.items import Frames
from pyrnnx.scoring.outputs import Batching

_MOST = 2**31 - 1  # largest frame


def switch(name: str, value: Any) -> bool:
    """Return an argument that is a bool.

    Raises
    ------
    ArgumentError
        Any other value.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"score: {name} is {shown(value)}; expected True or False")
    return bool(value)


BATCHINGS = {"auto": Batching.PADDED, "equal": Batching.EQUAL, "none": Batching.ALONE}


def batching_of(value: Any) -> Batching:
    """Return the most permissive batching that the argument `batching` allows.

    Raises
    ------
    ArgumentError
        The value is not in `BATCHINGS`.
    """
    if not isinstance(value, str) or value not in BATCHINGS:
        raise ArgumentError(f"score: batching is {shown(value)}; expected one of {', '.join(BATCHINGS)}")
    return BATCHINGS[value]


TAILS = ("pad", "drop")


def frames_of(frame: Any, context: Any, tail: Any) -> Frames | None:
    """Return the division into frames; None for no frames.

    Raises
    ------
    ArgumentError
        Values that are no integers in range; another `tail`; a context without frames.
    """
    if not isinstance(tail, str) or tail not in TAILS:
        raise ArgumentError(f"score: tail is {shown(tail)}; expected one of {', '.join(TAILS)}")
    before = scalars.integer("score", "context", context, 0, _MOST)
    if frame is not None:
        return Frames(scalars.integer("score", "frame", frame, 1, _MOST), before, tail)
    if before:
        raise ArgumentError(f"score: context is {before} and frame is None; expected frame as well, or no context")
    return None
