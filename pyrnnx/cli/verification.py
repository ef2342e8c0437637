"""Check of `pyrnnx convert`: the written file computes the same as its source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import LONG, agreement
from pyrnnx.comparison.calls import run_layer
from pyrnnx.comparison.distances import largest
from pyrnnx.comparison.inputs import named_after
from pyrnnx.comparison.models import try_models
from pyrnnx.comparison.models.runs import Call
from pyrnnx.comparison.models.tries import Tries, unvaried
from pyrnnx.layers.layer import Layer
from pyrnnx.load import load
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.stacks.stack import Stack
from pyrnnx.testing.models.calls import try_calls

Arrays: TypeAlias = Mapping[str, Any]


def verify(
    source: Model | Layer | Stack,
    target: Path,
    arrays: Mapping[str, AnyArray],
    dims: Mapping[str, int],
) -> dict[str, Any]:
    """Read the target, compare its outputs with the source's in several calls, and return the facts for JSON.

    Inputs of a model that are not in `arrays` are random.
    An error is raised if the models take different inputs, for example if a variable has become an input.
    """
    with named_after("convert"):
        tries, calls = _calls(source, target, arrays, dims)
        differences: dict[str, float] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        same = True
        for inputs, outputs, expected in calls:
            result = agreement(outputs, expected, LONG)
            same = same and result.apart is None
            shapes = shapes or {name: np.shape(array) for name, array in inputs.items()}
            for name, value in result.differences.items():
                differences[name] = largest((differences.get(name, math.nan), value))
    not_decided = [*tries.reasons, *unvaried(tries.spreads)]
    inputs = {name: {"shape": shape, "random": name not in arrays} for name, shape in shapes.items()}
    return {
        "verified": same and not not_decided,
        "different": not same,
        "not_decided": not_decided,
        "differences": differences,
        "checked": {"calls": list(tries.calls), "inputs": inputs},
    }


def _calls(
    source: Model | Layer | Stack, target: Path, arrays: Arrays, dims: Mapping[str, int]
) -> tuple[Tries[Any], Iterator[tuple[Arrays, Arrays, Arrays]]]:
    """Return the calls, and for each of them its inputs, the outputs of the target, and those of the source."""
    if not isinstance(source, Model):
        written: Any = load(target)
        alone = try_calls(written, {}, 0, {}, "convert")
        return alone, ((call.inputs, call.outputs, _expected(source, written, call)) for call in alone)
    matched, both = try_models(source, load(target), arrays, 0, dims)
    values = ((run, matched.values(run)) for run in both)
    return both, (
        (
            run.inputs_a if target.suffix == ".xml" else run.inputs_b,  # an IR has the names of the source
            {name: b for name, (_, b) in pairs.items()},
            {name: a for name, (a, _) in pairs.items()},
        )
        for run, pairs in values
    )


def _expected(layer: Layer | Stack, written: Model, call: Call) -> dict[str, Any]:
    """Return the outputs of a layer or stack by the names of the model that was written from it."""
    if isinstance(layer, Stack):
        return dict(zip(call.outputs, layer.run(**call.inputs), strict=True))
    (values,) = layer_values(written).values()
    arrays = {}
    for argument, value in values.items():
        for name in (name for name in value.names if name in call.inputs and argument in CALL_ARGUMENTS):
            arrays[argument] = rearrange(call.inputs[name], value.axes, CANONICAL.axes_of(argument))
    if "sequence_lens" in arrays:
        arrays["sequence_lens"] = arrays["sequence_lens"].astype(np.int32)  # IRs have several types of lengths
    expected = run_layer(layer, arrays)
    return {
        name: rearrange(expected[argument], CANONICAL.axes_of(argument), value.axes)
        for argument, value in values.items()
        for name in value.names
        if name in call.outputs and argument in expected
    }
