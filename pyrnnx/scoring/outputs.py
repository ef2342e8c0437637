"""What a batch gives, parted into what each of its items gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.subject import Input, Subject


class Batching(str, Enum):
    """Which items one call of the model takes."""

    PADDED = "items of like length, padded"
    EQUAL = "items of equal length"
    ALONE = "one item at a time"


@dataclass(frozen=True)
class Output:
    """An output of the model, as far as its shape is the same for all items.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
    rows, time : int or None
        Which axis the rows of the batch are, and which the time steps; None where there is none.
    shape : tuple of int
        Of an item, without the time steps.
    follows : bool
        Whether it has as many time steps as the item, so that what padding gives can be cut off.
    """

    name: str
    dtype: np.dtype[Any]
    rows: int | None
    time: int | None
    shape: tuple[int, ...]
    follows: bool = False

    def of_item(self, array: AnyArray, row: int, length: int | None) -> AnyArray:
        """One row of a batch's output, [T, ...] where it has time steps; a copy, so that the batch can be freed.

        Raises
        ------
        ArgumentError
            A shape that is not that of the other items.
        """
        axes = [axis for axis in (self.rows, self.time) if axis is not None]
        if array.ndim <= max(axes, default=-1) or array.dtype != self.dtype:
            raise self._differs(array)
        found = np.moveaxis(array, axes, range(len(axes)))
        if self.rows is not None:
            found = found[row]
        if self.time is not None and self.follows and length is not None:
            found = found[:length]
        if found.shape[0 if self.time is None else 1 :] != self.shape:
            raise self._differs(array)
        return np.array(found)  # in C order, whatever the axes of the batch were

    def _differs(self, array: AnyArray) -> ArgumentError:
        size = "" if self.time is None else "T, "
        expected = f"[{size}{', '.join(map(str, self.shape))}] of {self.dtype} for each item"
        return ArgumentError(
            f"output {shown(self.name)} has shape {array.shape} and dtype {array.dtype}; expected {expected}, as for "
            "the first one"
        )

    def size(self, length: int) -> int:
        """Bytes of an item of that length: with fewer time steps than the item, still as many."""
        return math.prod(self.shape) * self.dtype.itemsize * (1 if self.time is None else length)


@dataclass(frozen=True)
class Scorer:
    """A subject, and how it takes and gives items.

    Attributes
    ----------
    subject : Subject
    outputs : tuple of Output
    batching : Batching
    """

    subject: Subject
    outputs: tuple[Output, ...]
    batching: Batching

    def run(self, items: Sequence[AnyArray]) -> list[dict[str, AnyArray]]:
        """What each item of one batch gives, by the names of outputs.

        Raises
        ------
        PyrnnxError
            As of the model; an output whose shape is not that of other items.
        """
        called = call(self.subject, items)
        if missing := [one.name for one in self.outputs if one.name not in called]:
            raise ArgumentError(f"output {shown(missing[0])} is missing")
        return [
            {one.name: one.of_item(called[one.name], row, len(item)) for one in self.outputs}
            for row, item in enumerate(items)
        ]

    def size(self, length: int, step: int) -> int:
        """Bytes of an item of `length` time steps of `step` bytes, and of what it gives."""
        return length * step + sum(one.size(length) for one in self.outputs)


def call(subject: Subject, items: Sequence[AnyArray]) -> Mapping[str, AnyArray]:
    """The outputs of a batch of these items: of as many rows and time steps as the model declares, if it does."""
    takes: Input = subject.input
    steps = takes.size("T") or max(map(len, items))
    rows = takes.size("N") or len(items)
    lengths = np.full(rows, steps, np.int64)
    lengths[: len(items)] = [len(item) for item in items]
    return subject.call(takes.batch(items, rows, steps), lengths)
