"""Comparisons as values of JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.numbers import Deviation
from pyrnnx.comparison.steps import Place, Profile
from pyrnnx.comparison.views.text import first_pair

if TYPE_CHECKING:
    from pyrnnx.comparison.layers import Comparison
    from pyrnnx.comparison.models import ModelComparison


def layer_dict(one: Comparison, *, gates: bool = True) -> dict[str, Any]:
    """Of two layers; `gates`: with those, which have to be computed."""
    outputs = {name: {**_deviation(each), "first": None, "by_step": []} for name, each in one.deviations.items()}
    for name, each in one.profiles.items():
        outputs[name] |= _profile(each)
    found = {
        "gates": {name: {"largest": _number(each.largest), **_profile(each)} for name, each in one.gates.items()},
        "first_gate": _place(one.first_gate),
        "gates_note": one.gates_note,
    }
    return {
        "a": one.a,
        "b": one.b,
        "equal": one.equal(),
        "paired_by": one.paired_by,
        "not_compared": one.not_compared,
        "largest_difference": _number(one.largest_difference),
        "conventions": _differences(one.conventions),
        "operators": _differences(one.operators),
        "weights": [_numbers(asdict(block)) for block in one.weights],
        "outputs": outputs,
        **(found if gates else {}),
    }


def model_dict(one: ModelComparison) -> dict[str, Any]:
    """Of two models."""
    first = first_pair(one)
    return {
        "a": one.a,
        "b": one.b,
        "equal": one.equal(),
        "not_compared": one.not_compared,
        "largest_difference": _number(one.largest_difference),
        "layers": {name: layer_dict(pair, gates=pair is first) for name, pair in one.layers.items()},
        "unpaired": list(one.unpaired),
        "input_shapes": {name: list(shape) for name, shape in one.input_shapes.items()},
        "different_outputs": _differences(one.outputs),
        "outputs": {name: _deviation(each) for name, each in one.deviations.items()},
        "values": {name: _deviation(each) for name, each in one.values.items()},
        "values_skipped": one.values_skipped,
        "first_difference": one.first_difference,
    }


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinities: they are "nan", "inf" and "-inf"."""
    return float(value) if math.isfinite(value) else str(float(value))


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(value) if isinstance(value, float) else value for name, value in values.items()}


def _differences(given: Iterable[Difference]) -> list[dict[str, Any]]:
    return [asdict(one) for one in given]


def _deviation(one: Deviation) -> dict[str, Any]:
    found = _numbers({"largest": one.largest, "largest_relative": one.largest_relative})
    return found | ({"unlike": one.unlike} if one.unlike else {})


def _place(one: Place | None) -> dict[str, Any] | None:
    return None if one is None else _numbers(asdict(one))


def _profile(one: Profile) -> dict[str, Any]:
    return {"first": _place(one.first), "by_step": [[_number(value) for value in row] for row in one.by_step.tolist()]}
