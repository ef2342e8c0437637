"""Conversion of an item's values for the model: frames, dtype and shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.sources.base import Bad, Source
from pyrnnx.scoring.subjects.interface import Subject

_LARGEST = 2**31 - 1  # values of a frame
TAILS = ("pad", "drop")


@dataclass(frozen=True)
class Frames:
    """Division of sequences of single values, such as samples, into frames."""

    size: int  # new values in each frame
    context: int = 0  # preceding values at the start of each frame; zeros before the first value
    tail: str = "pad"  # "pad": zeros complete the last frame. "drop": values that do not fill a frame are left out

    def count(self, lengths: Any) -> Any:
        """Return the number of frames of a sequence with this length, or of each length of an array."""
        return lengths // self.size if self.tail == "drop" else -(-lengths // self.size)

    def cut(self, values: AnyArray) -> AnyArray:
        """Return values [T] as frames [frames, context + size]."""
        if values.ndim != 1:
            raise ArgumentError(f"it has shape {values.shape}; expected [T], which is cut into frames")
        count = self.count(len(values))
        padded = np.zeros(self.context + count * self.size, values.dtype)
        values = values[: count * self.size]
        padded[self.context : self.context + len(values)] = values
        return padded[np.arange(count)[:, np.newaxis] * self.size + np.arange(self.context + self.size)]


def frames_of(frame: Any, context: Any, tail: Any) -> Frames | None:
    """Return the division into frames for these arguments of `score`; None for no frames."""
    if not isinstance(tail, str) or tail not in TAILS:
        raise ArgumentError(f"score: tail is {shown(tail)}; expected one of {', '.join(TAILS)}")
    before = scalars.integer("score", "context", context, 0, _LARGEST)
    if frame is not None:
        return Frames(scalars.integer("score", "frame", frame, 1, _LARGEST), before, tail)
    if before:
        raise ArgumentError(f"score: context is {before} and frame is None; expected frame as well, or no context")
    return None


@dataclass(frozen=True)
class Conversion:
    """Conversion of the items of a source for the input of a subject."""

    source: Source
    subject: Subject
    frames: Frames | None
    cast: bool  # whether to convert values to the subject's dtype

    def item(self, values: AnyArray | Bad) -> AnyArray | Bad:
        """Return the values [T, ...] of an item as the input takes them; a `Bad` if it cannot."""
        if isinstance(values, Bad):
            return values
        try:
            return self._converted(values)
        except ArgumentError as error:
            return Bad(f"{error}{self.source.advice(values)}")

    def _converted(self, values: AnyArray) -> AnyArray:
        takes = self.subject.input
        if values.dtype != takes.dtype:
            if not self.cast or values.dtype.kind not in "biuf" or takes.dtype.kind not in "iuf":
                hint = "" if self.cast else " (cast=True converts)"
                raise ArgumentError(f"it has dtype {values.dtype}; expected {takes.dtype}{hint}")
            values = values.astype(takes.dtype)
        if self.frames is not None:
            values = self.frames.cut(values)
        step = takes.step
        if values.ndim == 1 + len([size for size in step if size != 1]):  # without the axes of size 1
            sizes = iter(values.shape[1:])
            values = values.reshape(len(values), *(1 if size == 1 else next(sizes) for size in step))
        fits = values.ndim == 1 + len(step) and all(
            declared in (None, size) for declared, size in zip(step, values.shape[1:], strict=True)
        )
        if not fits:
            expected = ", ".join("?" if size is None else str(size) for size in ("T", *step))
            frames = self.frames
            cut = "" if frames is None else f" after frame={frames.size} and context={frames.context} cut it"
            raise ArgumentError(f"it has shape {values.shape}{cut}; expected [{expected}]{self._advice(values)}")
        steps, padded = takes.size("T"), self.subject.mixes_lengths
        if steps is not None and (len(values) > steps if padded else len(values) != steps):
            raise ArgumentError(f"it has {len(values)} time steps; expected {'at most ' if padded else ''}{steps}")
        return values

    def _advice(self, values: AnyArray) -> str:
        """Return how frames could make single values fit the steps of the input; "" if they could not."""
        sizes = [size for size in self.subject.input.step if size != 1]
        if self.frames is not None or values.ndim != 1 or len(sizes) != 1:
            return ""
        return f", or frame={'N' if sizes[0] is None else sizes[0]}, which cuts samples into steps of this size"
