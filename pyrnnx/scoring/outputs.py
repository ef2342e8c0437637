"""Outputs of a batch, divided into the results of its items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.interface import Input, Subject


class Batching(str, Enum):
    """Kinds of items that may share a call of the model."""

    PADDED = "items of like length, padded"
    EQUAL = "items of equal length"
    ALONE = "one item at a time"


@dataclass(frozen=True)
class Output:
    """An output of the model: the part of its shape that is the same for all items.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
    rows, time : int or None
        Axis of the batch's rows, and axis of the time steps; None if there is none.
    shape : tuple of int
        Shape of an item's result without the time steps.
    follows : bool
        Whether it has as many time steps as the item, so that the steps of the padding can be cut off.
    """

    name: str
    dtype: np.dtype[Any]
    rows: int | None
    time: int | None
    shape: tuple[int, ...]
    follows: bool = False

    def of_item(self, array: AnyArray, row: int, length: int | None) -> AnyArray:
        """Return a copy of one row of a batch's output, [T, ...] if it has time steps, so that the batch can be freed.

        Raises
        ------
        ArgumentError
            The shape differs from the first item's.
        """
        axes = [axis for axis in (self.rows, self.time) if axis is not None]
        if array.ndim <= max(axes, default=-1) or array.dtype != self.dtype:
            raise self._differs(array)
        # np.moveaxis took half of the time of a run over a million short items.
        result = array.transpose(*axes, *(axis for axis in range(array.ndim) if axis not in axes))
        if self.rows is not None:
            result = result[row]
        if self.time is not None and self.follows and length is not None:
            result = result[:length]
        if result.shape[0 if self.time is None else 1 :] != self.shape:
            raise self._differs(array)
        return np.array(result)  # C-contiguous whatever the order of axes

    def _differs(self, array: AnyArray) -> ArgumentError:
        size = "" if self.time is None else "T, "
        expected = f"[{size}{', '.join(map(str, self.shape))}] of {self.dtype} for each item"
        return ArgumentError(
            f"output {shown(self.name)} has shape {array.shape} and dtype {array.dtype}; expected {expected}, as for "
            "the first item"
        )

    def size(self, length: int) -> int:
        """Return an upper bound in bytes of the result of an item of this length."""
        return math.prod(self.shape) * self.dtype.itemsize * (1 if self.time is None else length)


@dataclass(frozen=True)
class Scorer:
    """A subject with its outputs and the batches that it may be called with.

    Attributes
    ----------
    subject : Subject
    outputs : tuple of Output
    batching : Batching
    reason : str
        Why this batching was chosen.
    """

    subject: Subject
    outputs: tuple[Output, ...]
    batching: Batching
    reason: str = ""

    def run(self, items: Sequence[AnyArray]) -> list[dict[str, AnyArray]]:
        """Return the results of each item of a batch, by output.

        Raises
        ------
        PyrnnxError
            As the model raises; an output whose shape differs from the first item's.
        """
        results = call(self.subject, items)
        if missing := [output.name for output in self.outputs if output.name not in results]:
            raise ArgumentError(f"output {shown(missing[0])} is missing")
        return [
            {output.name: output.of_item(results[output.name], row, len(item)) for output in self.outputs}
            for row, item in enumerate(items)
        ]

    def size(self, length: int, step: int) -> int:
        """Return the bytes of an item of `length` time steps of `step` bytes, with its results."""
        return length * step + sum(output.size(length) for output in self.outputs)


def call(subject: Subject, items: Sequence[AnyArray]) -> Mapping[str, AnyArray]:
    """Return the outputs of a batch of items, padded to the rows and time steps that the model declares, if any."""
    takes: Input = subject.input
    steps = takes.size("T") or max(map(len, items))
    rows = takes.size("N") or len(items)
    lengths = np.full(rows, steps, np.int64)
    lengths[: len(items)] = [len(item) for item in items]
    return subject.call(takes.batch(items, rows, steps), lengths)
