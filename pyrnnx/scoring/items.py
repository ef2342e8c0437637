"""Items: the sequences of a source, as they are listed, read and cut into frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError


@dataclass(frozen=True)
class Items:
    """What a source holds, in its order, without the values.

    Attributes
    ----------
    names : sequence of str
        Each another.
    lengths : ndarray of int64
        Sizes of the first axis; 0 of an item that cannot be read.
    places : sequence
        Where each is, as `Source.read` takes it: small, and can be pickled.
    bad : mapping
        Why items cannot be read, by their index, as far as listing told.
    counts : ndarray of int64, optional
        Numbers that each item holds, as far as listing told. Default: as many as its length.
    """

    names: Sequence[str]
    lengths: AnyArray
    places: Sequence[Any]
    bad: Mapping[int, str] = field(default_factory=dict)
    counts: AnyArray | None = None

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Bad:
    """In place of an item's values: why there are none."""

    reason: str


@dataclass(frozen=True)
class Frames:
    """How sequences of single values, such as samples, become sequences of frames.

    Attributes
    ----------
    size : int
        Values that each frame adds; the last one is filled up with zeros.
    context : int
        Values before these that each frame begins with; zeros before the first.
    """

    size: int
    context: int = 0

    def count(self, lengths: AnyArray) -> AnyArray:
        """Frames of sequences with so many values."""
        return -(-lengths // self.size)

    def cut(self, values: AnyArray) -> AnyArray:
        """[T] as [frames, context + size].

        Raises
        ------
        ArgumentError
            Values with other axes than one.
        """
        if values.ndim != 1:
            raise ArgumentError(f"it has shape {values.shape}; expected [T], which is cut into frames")
        count = -(-len(values) // self.size)
        whole = np.zeros(self.context + count * self.size, values.dtype)
        whole[self.context : self.context + len(values)] = values
        if not count:
            return np.zeros((0, self.context + self.size), values.dtype)
        found = np.lib.stride_tricks.sliding_window_view(whole, self.context + self.size)[:: self.size]
        return np.ascontiguousarray(found)


def consecutive(places: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, list[int]]]:
    """Places as runs with the same first entry (a file, a row group): that entry, and their indices."""
    run: list[int] = []
    for index, place in enumerate(places):
        if run and place[0] != places[run[0]][0]:
            yield places[run[0]][0], run
            run = []
        run.append(index)
    if run:
        yield places[run[0]][0], run
