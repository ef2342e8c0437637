"""Segments of recordings, such as speech, from outputs of one number a frame."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scoring.conversion import Frames
from pyrnnx.scoring.sources.base import Source
from pyrnnx.scoring.subjects.outputs import Output

HEADER = "name,start,end\n"


@dataclass(frozen=True)
class Segments:
    """Rule for the segments of recordings."""

    output: str  # the one with a number for each frame
    threshold: float
    frame: int  # samples
    rate: int  # samples per second

    def lines(self, name: str, numbers: AnyArray, length: int) -> str:
        """Return the segments of a recording of `length` samples as lines of CSV: its name, start and end in s."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        printable_name = name.encode("utf-8", "replace").decode()  # names of files need not be Unicode
        for start, end in speech_segments(numbers.ravel().tolist(), length, self.frame, self.rate, self.threshold):
            rows.writerow([printable_name, f"{start / self.rate:.3f}", f"{end / self.rate:.3f}"])
        return text.getvalue()


def segments_of(
    value: Any, source: Source, frames: Frames | None, label: str, outputs: Sequence[Output]
) -> Segments | None:
    if value is None:
        return None
    threshold = scalars.as_number(value)
    if threshold is None or not 0 < threshold < 1:
        raise ArgumentError(f"score: segments is {shown(value)}; expected a threshold between 0 and 1, or None")
    if frames is None or source.sample_rate is None:
        raise ArgumentError(
            f"score: segments is {threshold}, frame is {frames and frames.size}, and the source is {source.kind}; "
            "expected recordings and frame, which make the times in seconds"
        )
    numbers = [output.name for output in outputs if output.follows and math.prod(output.shape) == 1]
    if len(numbers) != 1:
        shapes = ", ".join(f"{shown(output.name)} {output.in_words}" for output in outputs)
        raise ArgumentError(
            f"score: {label}: segments is {threshold}, and the outputs of an item are {shapes}; expected one output of "
            "one number a frame, [T, 1], which outputs may choose"
        )
    return Segments(numbers[0], threshold, frames.size, source.sample_rate)


def speech_segments(
    probabilities: Iterable[float], length: int, frame: int = 512, rate: int = 16_000, threshold: float = 0.5
) -> list[tuple[int, int]]:
    """Return where speech begins and ends, in samples, as Silero's `get_speech_timestamps` does with its defaults.

    Speech begins with the first frame of at least `threshold`, and ends where the probability falls below
    threshold - 0.15 and does not reach `threshold` again for 0.1 s. Speech of up to 0.25 s is left out. The others are
    extended by 0.03 s on both sides, or by half of the pause between two of them if that is shorter.
    """
    shortest, pause, margin = rate // 4, rate // 10, 3 * rate // 100
    segments: list[list[int]] = []
    begin, end = -1, -1  # of the current speech, and of the pause that may end it; -1 for none
    for number, probability in enumerate(probabilities):
        sample = number * frame
        if probability >= threshold:
            begin, end = sample if begin < 0 else begin, -1
        elif begin >= 0 and probability < max(threshold - 0.15, 0.01):
            end = sample if end < 0 else end
            if sample - end >= pause:
                segments += [[begin, end]] if end - begin > shortest else []
                begin, end = -1, -1
    if begin >= 0 and length - begin > shortest:
        segments.append([begin, length])
    for before, after in pairwise(segments):
        between = after[0] - before[1]
        extra = between // 2 if between < 2 * margin else margin
        before[1], after[0] = before[1] + extra, after[0] - extra
    if segments:
        segments[0][0], segments[-1][1] = max(0, segments[0][0] - margin), min(length, segments[-1][1] + margin)
    return [(first, last) for first, last in segments]
