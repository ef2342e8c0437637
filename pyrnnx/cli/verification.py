"""Check of `pyrnnx convert`: the written file computes the same as its source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.cli.arrays import given_inputs
from pyrnnx.comparison.agreement import LONG, agreement
from pyrnnx.comparison.distances import largest
from pyrnnx.comparison.layers import run_layer
from pyrnnx.comparison.model_runs import Call, try_alone
from pyrnnx.comparison.models import try_models
from pyrnnx.comparison.tries import Tries, unvaried
from pyrnnx.errors import ArgumentError
from pyrnnx.layers.layer import Layer
from pyrnnx.load import load
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.stacks.stack import Stack

Pairs: TypeAlias = dict[str, tuple[Any, Any]]  # outputs of the target and of the source, by name
Compared: TypeAlias = tuple[Pairs, Mapping[str, Any]]  # and the inputs of the call


class Verified(NamedTuple):
    """Result of the check.

    Attributes
    ----------
    differences : mapping
        Largest difference of each output of the target from the source, in all calls.
    same : bool
        Whether all differences are within tolerance.
    not_decided : sequence of str
        Why small differences do not show that both are the same.
    inputs : mapping
        Shapes of the inputs of the first call by name.
    calls : sequence of str
        Shapes of the inputs of each call, with the numbers of lengths and other small integers, in words.
    """

    differences: Mapping[str, float]
    same: bool
    not_decided: Sequence[str]
    inputs: Mapping[str, tuple[int, ...]]
    calls: Sequence[str]


def provided(source: Model | Layer | Stack, texts: Sequence[str] | None) -> dict[str, AnyArray]:
    """Return the arrays of ``--input`` by the names of a model's inputs.

    Raises
    ------
    ArgumentError
        The source is no whole model, or a text is rejected by `given_inputs`.
    """
    if texts and not isinstance(source, Model):
        raise ArgumentError(
            "convert: --input was given; expected it only for whole models, because layers are checked on random inputs"
        )
    return given_inputs("convert: --input", texts, source.inputs) if isinstance(source, Model) else {}


def verify(
    source: Model | Layer | Stack, target: Path, arrays: Mapping[str, AnyArray], runtime: str | None
) -> Verified:
    """Read the target, and compare its outputs with the source's on the same inputs, in several calls.

    Inputs of a model that are not in `arrays` are random. With a `runtime`, a session of ONNX Runtime runs the target.

    Raises
    ------
    PyrnnxError
        The models take different inputs, for example if a variable has become an input.
    """
    if runtime is not None:
        assert isinstance(source, Model)  # by check_target
        return _verify_session(source, target, arrays)
    written: Any = load(target)
    if not isinstance(source, Model):
        tries = try_alone(written, {}, 0, {}, "convert", "--input")
        return verified(((_pairs(source, written, call), call.inputs) for call in tries), tries)
    matched, both = try_models(source, written, arrays, 0)
    of_source = target.suffix == ".xml"

    def compared() -> Iterator[Compared]:
        for ran in both:
            pairs = {name: (b, a) for name, (a, b) in matched.values(ran).items()}
            yield pairs, ran.inputs_a if of_source else ran.inputs_b

    return verified(compared(), both)


def _verify_session(source: Model, target: Path, arrays: Mapping[str, AnyArray]) -> Verified:
    import onnxruntime

    from pyrnnx.onnxruntime import library

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(library())
    options.log_severity_level = 4  # errors raise
    session = onnxruntime.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    tries = try_alone(
        source,
        arrays,
        0,
        {},
        "convert",
        "--input",
        lambda error: f"it does not run on random inputs of the declared sizes; pass arrays by --input: {error}",
    )

    def compared() -> Iterator[Compared]:
        for call in tries:
            results = dict(zip(names, session.run(names, call.inputs), strict=True))
            yield {name: (array, call.outputs[name]) for name, array in results.items()}, call.inputs

    return verified(compared(), tries)


def verified(calls: Iterable[Compared], tries: Tries[Any]) -> Verified:
    """Compare outputs by name in all calls."""
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
        results = layer.run(**call.inputs)
        return dict(zip(call.outputs, zip(call.outputs.values(), results, strict=True), strict=True))
    (values,) = layer_values(written).values()
    arrays = {}
    for argument, value in values.items():
        for name in (name for name in value.names if name in call.inputs and argument in CALL_ARGUMENTS):
            arrays[argument] = rearrange(call.inputs[name], value.axes, CANONICAL.axes_of(argument))
    if "sequence_lens" in arrays:
        arrays["sequence_lens"] = arrays["sequence_lens"].astype(np.int32)  # IRs have several types of lengths
    expected = run_layer(layer, arrays)
    pairs = {}
    for argument, value in values.items():
        for output in (name for name in value.names if name in call.outputs and argument in expected):
            pairs[output] = (
                call.outputs[output],
                rearrange(expected[argument], CANONICAL.axes_of(argument), value.axes),
            )
    return pairs
