"""Arguments of `score` that are numbers and switches."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from pyrnnx import scalars
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.items import Frames

_UNITS = {"": 1, **{f"{letter}{end}": 1000**power for power, letter in enumerate("kMGT", 1) for end in ("", "B")}}
_UNITS |= {f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)} | {"B": 1, "K": 1000, "KB": 1000}
_MOST = 2**31 - 1  # values of a frame
_BYTES = re.compile(r"(\d{1,18}) ?([A-Za-z]*)")


def byte_count(name: str, value: Any) -> int:
    """Bytes, given as an integer or as a text such as "256MiB" or "2 GB".

    Raises
    ------
    ArgumentError
        Anything else; 0.
    """
    found = value
    if isinstance(value, str):
        match = _BYTES.fullmatch(value.strip())
        found = int(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else value
    return scalars.integer("score", name, found, 1, expected='a number of bytes above 0, or a text such as "256MiB"')


def switch(name: str, value: Any) -> bool:
    """A bool.

    Raises
    ------
    ArgumentError
        Anything else.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"score: {name} is {shown(value)}; expected True or False")
    return bool(value)


def frames_of(frame: Any, context: Any) -> Frames | None:
    """How values are cut into frames; None: not at all.

    Raises
    ------
    ArgumentError
        No integers in range; a context without frames.
    """
    before = scalars.integer("score", "context", context, 0, _MOST)
    if frame is not None:
        return Frames(scalars.integer("score", "frame", frame, 1, _MOST), before)
    if before:
        raise ArgumentError(f"score: context is {before} and frame is None; expected frame, too")
    return None
