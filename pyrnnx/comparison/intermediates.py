"""The values inside two models: those that both have, in the order of the first, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.comparison.model_runs import LayerValues, kept_states
from pyrnnx.comparison.numbers import Deviation, deviation
from pyrnnx.conventions import CANONICAL, OUTPUTS, rearrange
from pyrnnx.errors import PyrnnxError
from pyrnnx.model import Model
from pyrnnx.model_inputs import read_inputs

FIRST_GROUP, LARGEST_GROUP = 1, 512  # values that one run of a model gives
GROUP_BYTES = 2**26  # of the values of a group, as far as those before it tell
MOST_FAILURES = 32  # runs that give nothing, for a value in them cannot be computed


class Shared(NamedTuple):
    """A value of both models: its name in the results and in each of them, and the axes where those are known."""

    name: str
    a: str
    b: str
    axes: tuple[str, str, str] | None  # of a, of b, canonical


def shared_values(
    a: Model, b: Model, layers_a: LayerValues, layers_b: LayerValues, pairs: Sequence[tuple[str, str]]
) -> list[Shared]:
    """Values that have a name in common, and the outputs of paired layers; in the order of a.

    The outputs of paired layers are brought to canonical axes. Of a value with several names, one is taken.
    """
    (own, internal), (others, other_internal) = a._computed_values(), b._computed_values()
    arranged = _outputs(layers_a, layers_b, pairs)
    found: list[Shared] = []
    seen = set()
    for name, value in own.items():
        if name in arranged:
            names, axes = arranged[name]
            other = name if name in names else names[0]
        elif name in others and (name in internal) == (name in other_internal):
            other, axes = name, None
        else:
            continue
        if (value, others.get(other, other)) not in seen:
            seen.add((value, others.get(other, other)))
            found.append(Shared(name if other == name else f"{name}, {other}", name, other, axes))
    return found


def _outputs(
    a: LayerValues, b: LayerValues, pairs: Sequence[tuple[str, str]]
) -> dict[str, tuple[tuple[str, ...], tuple[str, str, str]]]:
    """For each name of an output of a paired layer of a: its names in b, and its axes."""
    found: dict[str, tuple[tuple[str, ...], tuple[str, str, str]]] = {}
    for first, second in pairs:
        mine, theirs = a.get(first, {}), b.get(second, {})
        for argument in OUTPUTS:
            if argument in mine and argument in theirs:
                axes = mine[argument].axes, theirs[argument].axes, CANONICAL.axes_of(argument)
                found |= dict.fromkeys(mine[argument].names, (theirs[argument].names, axes))
    return found


class Values:
    """Runs two models on the same inputs, a group of values at a time, and keeps none of them."""

    def __init__(self, a: Model, b: Model, inputs_a: Mapping[str, Any], inputs_b: Mapping[str, Any]) -> None:
        self._runs = [
            (model, read_inputs(model.label, model.inputs, (inputs,)))
            for model, inputs in ((a, inputs_a), (b, inputs_b))
        ]
        self._failures = 0
        self._bytes = 0
        self.deviations: dict[str, Deviation] = {}
        self.skipped = 0

    def compare(self, shared: Sequence[Shared]) -> None:
        """Fill `deviations`, and count those that a model cannot compute."""
        size, start = FIRST_GROUP, 0
        while start < len(shared):
            self._group(shared[start : start + size])
            start += size
            each = self._bytes // max(start, 1) + 1
            size = max(1, min(8 * size, LARGEST_GROUP, GROUP_BYTES // each))

    def _group(self, shared: Sequence[Shared]) -> None:
        if self._failures >= MOST_FAILURES:
            self.skipped += len(shared)
            return
        try:
            with kept_states(*(model for model, _ in self._runs)):
                (a, inputs_a), (b, inputs_b) = self._runs
                first = a._run_once(inputs_a, tuple(dict.fromkeys(one.a for one in shared)))
                second = b._run_once(inputs_b, tuple(dict.fromkeys(one.b for one in shared)))
        except PyrnnxError:
            self._failures += 1
            if len(shared) == 1:
                self.skipped += 1
            else:
                self._group(shared[: len(shared) // 2])
                self._group(shared[len(shared) // 2 :])
            return
        for one in shared:
            x, y = first[one.a], second[one.b]
            self._bytes += getattr(x, "nbytes", 0) + getattr(y, "nbytes", 0)
            if one.axes is not None:
                x, y = (rearrange(np.asarray(z), axes, one.axes[2]) for z, axes in zip((x, y), one.axes, strict=False))
            self.deviations[one.name] = _deviation(x, y)


def _deviation(x: Any, y: Any) -> Deviation:
    """Of two values inside; two formats may hold one number as a scalar and as an array of one element."""
    shapes = [getattr(value, "shape", None) for value in (x, y)]
    if None not in shapes and shapes[0] != shapes[1]:
        if np.squeeze(x).shape == np.squeeze(y).shape:
            x, y = np.squeeze(x), np.squeeze(y)
        else:
            return Deviation(math.inf, unlike=f"shapes {shapes[0]} and {shapes[1]}")
    return deviation(x, y) or Deviation(math.inf, unlike=f"{described(x)} and {described(y)}")


def described(value: Any) -> str:
    """What kind of value it is, in words."""
    if isinstance(value, (list, tuple)):
        return f"a sequence of {len(value)}"
    if not isinstance(value, (np.ndarray, np.generic)):
        return "missing" if value is None else type(value).__name__
    return f"{value.dtype} {value.shape}"
