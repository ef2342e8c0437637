"""Interface of models and layers for scoring: calls with batches of sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.models.inputs import given_names


class Options(NamedTuple):
    """Arguments of `score` with these names."""

    input: Any
    axes: Any
    lengths: Any
    inputs: Any
    outputs: Any


@dataclass(frozen=True)
class Input:
    """Input of a model that takes the sequences."""

    name: str
    dtype: np.dtype[Any]
    # a letter for each axis: T for time steps, N for rows of a batch (optional), others for the axes of a step
    axes: str
    shape: tuple[int | None, ...]  # declared sizes in the order of `axes`; None for an open one

    def size(self, axis: str) -> int | None:
        """Return the declared size of an axis; None if it is open or missing."""
        return self.shape[self.axes.index(axis)] if axis in self.axes else None

    @property
    def step(self) -> tuple[int | None, ...]:
        return tuple(size for axis, size in zip(self.axes, self.shape, strict=True) if axis not in "TN")

    def batch(self, items: Sequence[AnyArray], rows: int, steps: int) -> AnyArray:
        """Return items [T, ...] as one array for this input, padded with zeros."""
        batch = np.zeros((rows, steps, *items[0].shape[1:]), self.dtype)
        for row, item in zip(batch, items, strict=False):
            if item.shape[1:] != items[0].shape[1:]:  # NumPy would broadcast them
                raise ArgumentError(f"steps of shape {item.shape[1:]} share a batch with {items[0].shape[1:]}")
            row[: len(item)] = item
        order = "N" + "T" + "".join(axis for axis in self.axes if axis not in "TN")
        if "N" not in self.axes:
            batch, order = batch[0], order[1:]
        return np.ascontiguousarray(batch.transpose([order.index(axis) for axis in self.axes]))


class Subject(ABC):
    """Model or layer that can be called with batches and can be pickled."""

    label: str
    what: Any  # model or layer with its constants, the basis of its checksum
    input: Input
    mixes_lengths: bool  # whether items of different lengths may share a call
    lengths: str | None = None  # input of a model that takes the lengths
    axes: Mapping[str, str] = MappingProxyType({})  # letters as in `Input`, by output, as far as they are known
    is_trusted: bool = False  # whether rows are known to be independent, so that batches need no check
    pushes: bool = False  # whether a call runs the model once for each time step, so that batches may be large

    def rows(self, batch: int | None) -> int:
        """Return the number of rows of a call for the argument `batch` of `score`, 1 by default."""
        takes = self.input
        fixed = takes.size("N") if "N" in takes.axes else 1
        if fixed not in (None, batch or 1):
            declared = f"{shown(takes.name)} has {fixed} rows" if "N" in takes.axes else "axes has no N for rows"
            condition = " if its rows are independent" if fixed != 1 else ""
            raise ArgumentError(
                f"score: {self.label}: batch is {batch or 1}; expected {fixed}{condition}, because {declared}"
            )
        return batch or 1

    @abstractmethod
    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        """Return the outputs of a batch by name; the longest items come first."""


def chosen_outputs(label: str, outputs: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the argument `outputs` of `score`; all allowed ones if it is None."""
    if outputs is None:
        return tuple(allowed)
    names = given_names(label, outputs)
    for name in names:
        if name not in allowed:
            raise ArgumentError(f"{label}: outputs has {shown(name)}; expected names out of {', '.join(allowed)}")
    return names


def changed_axis(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> int | None:
    """Return the axis along which two shapes of a value differ, or None if they are the same."""
    axes = [axis for axis, sizes in enumerate(zip(a, b, strict=False)) if sizes[0] != sizes[1]]
    if len(a) != len(b) or len(axes) > 1:
        raise ArgumentError(f"{shown(name)} has shape {a} and then {b}; expected one axis to change")
    return axes[0] if axes else None
