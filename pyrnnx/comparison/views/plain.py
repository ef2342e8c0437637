"""Comparisons as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from pyrnnx.comparison.distances import Deviation
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.steps import Profile
from pyrnnx.comparison.views.text import first_pair


def layer_dict(comparison: Comparison, *, gates: bool = True) -> dict[str, Any]:
    """Return a comparison of layers as JSON values; `gates` adds the gates, which must be computed."""
    nothing: dict[str, Any] = {"first": None, "by_step": []}
    outputs = {name: {**_plain(deviation), **nothing} for name, deviation in comparison.deviations.items()}
    for name, profile in comparison.profiles.items():
        outputs[name] |= _plain(profile)
    values = {
        **_common(comparison, "paired_by"),
        **_attributes(comparison, "conventions", "operators", "weights_source", "weights"),
        "outputs": outputs,
    }
    if gates:
        values["gates"] = {
            name: {"largest": _plain(profile.largest), **_plain(profile)} for name, profile in comparison.gates.items()
        }
        values |= _attributes(comparison, "first_gate", "gates_note")
    return values


def model_dict(comparison: ModelComparison) -> dict[str, Any]:
    """Return a comparison of models as JSON values."""
    first = first_pair(comparison)
    return {
        **_common(comparison),
        "layers": {name: layer_dict(pair, gates=pair is first) for name, pair in comparison.layers.items()},
        **_attributes(comparison, "unpaired", "input_shapes"),
        "different_outputs": _plain(comparison.outputs),
        "outputs": _plain(comparison.deviations),
        **_attributes(comparison, "values", "values_skipped", "first_difference"),
    }


def _common(comparison: Comparison | ModelComparison, *more: str) -> dict[str, Any]:
    verdict = comparison.verdict()
    return {
        **_attributes(comparison, "a", "b"),
        **{"equal": verdict == "same", "verdict": verdict, "not_decided": comparison.undecided()},
        **_attributes(comparison, "calls", *more, "not_compared", "largest_difference"),
    }


def _attributes(comparison: Comparison | ModelComparison, *names: str) -> dict[str, Any]:
    return {name: _plain(getattr(comparison, name)) for name in names}


def _plain(value: Any) -> Any:
    """Return a value of JSON, which has no NaN and no infinities: they are "nan", "inf" and "-inf"."""
    if isinstance(value, Deviation):
        numbers = {"largest": value.largest, "largest_relative": value.largest_relative}
        value = numbers | ({"unlike": value.unlike} if value.unlike else {})
    elif isinstance(value, Profile):
        value = {"first": value.first, "by_step": value.by_step.tolist()}
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else str(float(value))
    return value
