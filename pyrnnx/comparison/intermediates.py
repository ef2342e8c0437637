"""Intermediate values that two models share, in the order of the first, and their deviations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.comparison.distances import Deviation, deviation
from pyrnnx.comparison.model_runs import LayerValues, kept_states
from pyrnnx.errors import PyrnnxError
from pyrnnx.models.inputs import read_inputs
from pyrnnx.models.model import Model, computed_values, run_once
from pyrnnx.operator.conventions import CANONICAL, OUTPUTS, rearrange

FIRST_GROUP, LARGEST_GROUP = 1, 512  # values computed by one run of a model
GROUP_BYTES = 2**26  # of the values of a group, estimated from earlier groups
MOST_FAILURES = 32  # failed runs, in which a value cannot be computed


class Shared(NamedTuple):
    """A value of both models: its name in the results and in each of them, and the axes where those are known."""

    name: str
    a: str
    b: str
    axes: tuple[str, str, str] | None  # of a, of b, canonical


def shared_values(
    a: Model, b: Model, layers_a: LayerValues, layers_b: LayerValues, pairs: Sequence[tuple[str, str]]
) -> list[Shared]:
    """Return values with a common name and the outputs of paired layers, in the order of a.

    The outputs of paired layers are converted to canonical axes. A value with several names is listed once.
    """
    (own, internal), (others, other_internal) = computed_values(a), computed_values(b)
    arranged = _outputs(layers_a, layers_b, pairs)
    shared: list[Shared] = []
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
            shared.append(Shared(name if other == name else f"{name}, {other}", name, other, axes))
    return shared


def _outputs(
    a: LayerValues, b: LayerValues, pairs: Sequence[tuple[str, str]]
) -> dict[str, tuple[tuple[str, ...], tuple[str, str, str]]]:
    """Return, for each output name of a paired layer of a, its names in b and its axes."""
    outputs: dict[str, tuple[tuple[str, ...], tuple[str, str, str]]] = {}
    for first, second in pairs:
        mine, theirs = a.get(first, {}), b.get(second, {})
        for argument in OUTPUTS:
            if argument in mine and argument in theirs:
                axes = mine[argument].axes, theirs[argument].axes, CANONICAL.axes_of(argument)
                outputs |= dict.fromkeys(mine[argument].names, (theirs[argument].names, axes))
    return outputs


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
            mean = self._bytes // max(start, 1) + 1
            size = max(1, min(8 * size, LARGEST_GROUP, GROUP_BYTES // mean))

    def _group(self, shared: Sequence[Shared]) -> None:
        if self._failures >= MOST_FAILURES:
            self.skipped += len(shared)
            return
        try:
            with kept_states(*(model for model, _ in self._runs)):
                (a, inputs_a), (b, inputs_b) = self._runs
                first = run_once(a, inputs_a, tuple(dict.fromkeys(value.a for value in shared)))
                second = run_once(b, inputs_b, tuple(dict.fromkeys(value.b for value in shared)))
        except PyrnnxError:
            self._failures += 1
            if len(shared) == 1:
                self.skipped += 1
            else:
                self._group(shared[: len(shared) // 2])
                self._group(shared[len(shared) // 2 :])
            return
        for value in shared:
            x, y = first[value.a], second[value.b]
            self._bytes += getattr(x, "nbytes", 0) + getattr(y, "nbytes", 0)
            if value.axes is not None:
                x, y = (
                    rearrange(np.asarray(z), axes, value.axes[2]) for z, axes in zip((x, y), value.axes, strict=False)
                )
            self.deviations[value.name] = _deviation(x, y)


def _deviation(x: Any, y: Any) -> Deviation:
    """Compare two values; a scalar equals an array of one element."""
    shapes = [getattr(value, "shape", None) for value in (x, y)]
    if None not in shapes and shapes[0] != shapes[1]:
        if np.squeeze(x).shape == np.squeeze(y).shape:
            x, y = np.squeeze(x), np.squeeze(y)
        else:
            return Deviation(math.inf, unlike=f"shapes {shapes[0]} and {shapes[1]}")
    return deviation(x, y) or Deviation(math.inf, unlike=f"{described(x)} and {described(y)}")


def described(value: Any) -> str:
    """Return the kind of a value in words."""
    if isinstance(value, (list, tuple)):
        return f"a sequence of {len(value)}"
    if not isinstance(value, (np.ndarray, np.generic)):
        return "missing" if value is None else type(value).__name__
    return f"{value.dtype} {value.shape}"
