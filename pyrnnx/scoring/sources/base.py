"""What every source is: it lists its items, and reads those that it is asked for, in any process."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.items import Bad, Items

FAILURES = (OSError, ValueError, TypeError, KeyError, EOFError, MemoryError, NotImplementedError)
"""What the readers of a format raise for a file that is broken."""


class Source(ABC):
    """Sequences in one of the formats.

    Attributes
    ----------
    kind : str
        Name of the format, as `pyrnnx.score` takes it.
    path : str
        Absolute, as workers open it.
    """

    kind: ClassVar[str]

    def __init__(self, path: str) -> None:
        self.path = path

    @abstractmethod
    def items(self) -> Items:
        """All items; only what tells their lengths is read.

        Raises
        ------
        PyrnnxError
            A source that is not of this format.
        """

    @abstractmethod
    def read(self, places: Sequence[Any]) -> Iterator[AnyArray | Bad]:
        """The values of items that lie one after the other in the source: [T, ...] of each, or why there are none."""

    def fingerprint(self) -> str:
        """What changes when the source does: of its files the names, sizes and times of change."""
        digest = hashlib.sha256()
        for path in self.files():
            status = os.stat(path)
            relative = os.path.relpath(path, self.path)
            digest.update(os.fsencode(f"{relative}\0{status.st_size}\0{status.st_mtime_ns}\n"))
        return digest.hexdigest()

    @abstractmethod
    def files(self) -> Iterable[str]:
        """Paths of all its files, in an order that is always the same."""


Result = TypeVar("Result")


def attempted(read: Callable[..., Result], *arguments: Any, failures: Any = FAILURES) -> Result | Bad:
    """What `read` gives; what it raises as a bad item."""
    try:
        return read(*arguments)
    except failures as error:
        return Bad(str(error) or "it ends too early")  # an EOFError says nothing


def listed(names: Sequence[str], places: Sequence[Any], lengths: Sequence[int | Bad]) -> Items:
    """Items of which some may be bad."""
    bad = {index: one.reason for index, one in enumerate(lengths) if isinstance(one, Bad)}
    return Items(names, np.array([0 if isinstance(one, Bad) else one for one in lengths], np.int64), places, bad)


def files_with(folder: str, suffix: str) -> list[str]:
    """Paths of the files in a folder and those below that end in `suffix`, sorted; hidden ones are left out."""
    found = []
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        found += [os.path.join(here, one) for one in files if one.lower().endswith(suffix) and not one.startswith(".")]
    return sorted(found)


def folder_with(kind: str, path: str, suffix: str) -> list[str]:
    """As `files_with`, of which there has to be one.

    Raises
    ------
    ArgumentError
        No folder; none of these files in it.
    """
    if not Path(path).is_dir():
        raise ArgumentError(f"score: source {shown(path)} is no folder; expected one with {suffix} files ({kind})")
    found = files_with(path, suffix)
    if not found:
        raise ArgumentError(f"score: source {shown(path)} holds no {suffix} file ({kind})")
    return found
