"""Usual mistakes: gates in another framework's order, an input left out, a clip in another place.

The oracle computes each mistake, so a function's numbers show which mistake it makes.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyrnnx.comparison.oracle import Arguments
from pyrnnx.layers.layer import Layer
from pyrnnx.testing.same.mistakes.arrays import mistakes_of_arrays
from pyrnnx.testing.same.mistakes.attributes import mistakes_of_attributes
from pyrnnx.testing.same.mistakes.mistake import Mistake
from pyrnnx.testing.same.mistakes.rows import mistakes_of_rows
from pyrnnx.testing.same.mistakes.steps import mistakes_of_steps

__all__ = ["MOST_MISTAKES", "Mistake", "mistakes"]

MOST_MISTAKES = 80  # of an LSTM, 28 of them orders of its gates


def mistakes(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield the mistakes that a layer with these oracle arguments can show."""
    yield from mistakes_of_attributes(layer, given)
    yield from mistakes_of_rows(layer, given)
    yield from mistakes_of_arrays(layer, given)
    yield from mistakes_of_steps(layer, given)
