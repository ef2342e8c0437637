"""Check of `pyrnnx convert`: the written file computes the same as its source."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import LONG, agreement
from pyrnnx.comparison.calls import run_layer
from pyrnnx.comparison.distances import largest
from pyrnnx.comparison.models import try_models
from pyrnnx.comparison.models.runs import Call, try_alone
from pyrnnx.comparison.models.tries import Tries, unvaried
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.layer import Layer
from pyrnnx.load import load
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.stacks.stack import Stack

Pairs: TypeAlias = dict[str, tuple[Any, Any]]  # outputs of the target and of the source, by name


class Verified(NamedTuple):
    """Result of the check."""

    differences: Mapping[str, float]  # largest of each output of the target from the source, in all calls
    same: bool  # all differences are within tolerance
    not_decided: Sequence[str]  # why small differences do not show that both are the same
    inputs: Mapping[str, tuple[int, ...]]  # shapes of the first call
    calls: Sequence[str]  # shapes of each call, with the numbers of lengths and other small integers, in words


def verify(
    source: Model | Layer | Stack, target: Path, arrays: Mapping[str, AnyArray], runtime: str | None
) -> Verified:
    """Read the target, and compare its outputs with the source's on the same inputs, in several calls.

    Inputs of a model that are not in `arrays` are random. With a `runtime`, a session of ONNX Runtime runs the target.
    An error is raised if the models take different inputs, for example if a variable has become an input.
    """
    if not isinstance(source, Model):
        written: Any = load(target)
        tries = try_alone(written, {}, 0, {}, "convert", "--input")
        return verified(((_pairs(source, written, call), call.inputs) for call in tries), tries)
    if runtime is not None:
        run = _session(target)
        tries = try_alone(source, arrays, 0, {}, "convert", "--input", _not_run)
        return verified(((_paired(run(call.inputs), call.outputs), call.inputs) for call in tries), tries)
    matched, both = try_models(source, load(target), arrays, 0)
    of_source = target.suffix == ".xml"  # whose inputs have the names of the source
    calls = (
        ({name: (b, a) for name, (a, b) in matched.values(run).items()}, run.inputs_a if of_source else run.inputs_b)
        for run in both
    )
    return verified(calls, both)


def _session(target: Path) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that runs a model with operators of pyrnnx in ONNX Runtime."""
    import onnxruntime

    from pyrnnx.onnxruntime import library

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(library())
    options.log_severity_level = 4  # errors raise
    session = onnxruntime.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def _not_run(error: PyrnnxError) -> str:
    return f"it does not run on random inputs of the declared sizes; pass arrays by --input: {error}"


def _paired(outputs: Mapping[str, Any], expected: Mapping[str, Any]) -> Pairs:
    return {name: (array, expected[name]) for name, array in outputs.items()}


def verified(calls: Iterable[tuple[Pairs, Mapping[str, Any]]], tries: Tries[Any]) -> Verified:
    """Compare the outputs of all calls, which have their inputs, too."""
    differences: dict[str, float] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    same = True
    for pairs, inputs in calls:
        outputs, expected = ({name: pair[place] for name, pair in pairs.items()} for place in (0, 1))
        result = agreement(outputs, expected, LONG)
        same = same and result.apart is None
        shapes = shapes or {name: np.shape(array) for name, array in inputs.items()}
        for name, value in result.differences.items():
            differences[name] = largest((differences.get(name, math.nan), value))
    return Verified(differences, same, [*tries.reasons, *unvaried(tries.spreads)], shapes, tries.calls)


def _pairs(layer: Layer | Stack, written: Model, call: Call) -> Pairs:
    """Return the outputs of a model of a layer or stack, and of the layer or stack."""
    if isinstance(layer, Stack):
        return _paired(call.outputs, dict(zip(call.outputs, layer.run(**call.inputs), strict=True)))
    (values,) = layer_values(written).values()
    arrays = {}
    for argument, value in values.items():
        for name in (name for name in value.names if name in call.inputs and argument in CALL_ARGUMENTS):
            arrays[argument] = rearrange(call.inputs[name], value.axes, CANONICAL.axes_of(argument))
    if "sequence_lens" in arrays:
        arrays["sequence_lens"] = arrays["sequence_lens"].astype(np.int32)  # IRs have several types of lengths
    expected = run_layer(layer, arrays)
    return {
        name: (call.outputs[name], rearrange(expected[argument], CANONICAL.axes_of(argument), value.axes))
        for argument, value in values.items()
        for name in value.names
        if name in call.outputs and argument in expected
    }
