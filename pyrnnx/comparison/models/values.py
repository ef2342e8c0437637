"""Intermediate values that two models share, in the order of the first, and their deviations."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.comparison.distances import Deviation, deviation
from pyrnnx.comparison.models.runs import Run, kept_states
from pyrnnx.errors import PyrnnxError
from pyrnnx.models.inputs import read_inputs
from pyrnnx.models.model import Model, computed_values, layer_values, run_once
from pyrnnx.operator.conventions import CANONICAL, OUTPUTS, rearrange

GROUP = 32  # values computed by one run of a model


class Shared(NamedTuple):
    """A value of both models: its name in the results and in each of them, and the axes where those are known."""

    name: str
    a: str
    b: str
    axes: tuple[str, str, str] | None  # of a, of b, canonical


def shared_values(a: Model, b: Model, pairs: Sequence[tuple[str, str]]) -> list[Shared]:
    """Return values with a common name and the outputs of paired layers, in the order of a.

    The outputs of paired layers are converted to canonical axes. A value with several names is listed once.
    """
    (own, internal), (others, other_internal) = computed_values(a), computed_values(b)
    values_a, values_b = layer_values(a), layer_values(b)
    arranged: dict[str, tuple[tuple[str, ...], tuple[str, str, str]]] = {}  # names in b and axes, by the names in a
    for first, second in pairs:
        mine, theirs = values_a.get(first, {}), values_b.get(second, {})
        for argument in (output for output in OUTPUTS if output in mine and output in theirs):
            axes = mine[argument].axes, theirs[argument].axes, CANONICAL.axes_of(argument)
            arranged |= dict.fromkeys(mine[argument].names, (theirs[argument].names, axes))
    shared: dict[tuple[Hashable, Hashable], Shared] = {}
    for name, value in own.items():
        if name in arranged:
            names, axes_of_pair = arranged[name]
            other = name if name in names else names[0]
            entry = Shared(name if other == name else f"{name}, {other}", name, other, axes_of_pair)
        elif name in others and (name in internal) == (name in other_internal):
            other, entry = name, Shared(name, name, name, None)
        else:
            continue
        shared.setdefault((value, others.get(other, other)), entry)
    return list(shared.values())


def compare_values(a: Model, b: Model, ran: Run, shared: Sequence[Shared]) -> tuple[dict[str, Deviation], int]:
    """Run two models on the inputs of a run; return the deviations, and how many values a model cannot compute.

    Values are computed in groups, and none of them is kept.
    """
    inputs = [
        read_inputs(model.label, model.inputs, (arrays,)) for model, arrays in ((a, ran.inputs_a), (b, ran.inputs_b))
    ]
    deviations: dict[str, Deviation] = {}
    groups = [shared[start : start + GROUP] for start in range(0, len(shared), GROUP)][::-1]
    skipped = 0
    while groups:
        group = groups.pop()
        try:
            with kept_states(a, b):
                first = run_once(a, inputs[0], tuple(dict.fromkeys(value.a for value in group)))
                second = run_once(b, inputs[1], tuple(dict.fromkeys(value.b for value in group)))
        except PyrnnxError:
            groups += [[value] for value in reversed(group)] if len(group) > 1 else []
            skipped += len(group) == 1
            continue
        for value in group:
            x, y = first[value.a], second[value.b]
            if value.axes is not None:
                x, y = (
                    rearrange(np.asarray(z), own, value.axes[2]) for z, own in zip((x, y), value.axes, strict=False)
                )
            deviations[value.name] = _deviation(x, y)
    return deviations, skipped


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
