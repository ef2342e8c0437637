"""What every source is: it lists its items, and reads those that it is asked for, in any process."""

from __future__ import annotations

import hashlib
import math
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, printable, shown
from pyrnnx.scoring.items import Bad, Items

MOST = 2**62  # numbers of an item


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
            relative = os.path.relpath(path, self.path)
            try:
                status = os.stat(path)
            except OSError:  # a link to nothing
                digest.update(os.fsencode(f"{relative}\0\n"))
                continue
            digest.update(os.fsencode(f"{relative}\0{status.st_size}\0{status.st_mtime_ns}\n"))
        return digest.hexdigest()

    @abstractmethod
    def files(self) -> Iterable[str]:
        """Paths of all its files, in an order that is always the same."""


Result = TypeVar("Result")


def attempted(read: Callable[..., Result], *arguments: Any) -> Result | Bad:
    """What `read` gives; what it raises as a bad item: readers of broken files raise errors of any kind."""
    try:
        return read(*arguments)
    except EOFError as error:
        return Bad(printable(str(error)) or "it ends too early")
    except Exception as error:
        return Bad(printable(str(error)) or type(error).__name__)


def regular(path: str) -> str:
    """The path of a file that can be opened without waiting, or anything else that a device or a FIFO does.

    Raises
    ------
    OSError, ValueError
        No file; another kind of file.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("no regular file; expected one")
    return path


def listed(names: Sequence[str], places: Sequence[Any], shapes: Sequence[tuple[int, ...] | Bad]) -> Items:
    """Items of these shapes, of which some may be bad."""
    checked = [_checked(one) for one in shapes]
    bad = {index: one.reason for index, one in enumerate(checked) if isinstance(one, Bad)}
    sound = [(0,) if isinstance(one, Bad) else one for one in checked]
    lengths, counts = [one[0] for one in sound], [math.prod(one) for one in sound]
    return Items(names, np.array(lengths, np.int64), places, bad, np.array(counts, np.int64))


def _checked(shape: tuple[int, ...] | Bad) -> tuple[int, ...] | Bad:
    if isinstance(shape, Bad):
        return shape
    if not shape:
        return Bad("an array without axes; expected [T, ...]")
    if min(shape) < 0 or max(math.prod(shape), *shape) > MOST:
        return Bad(f"it has shape {shape}; expected at most {MOST} numbers")
    return shape


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
