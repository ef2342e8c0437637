"""Comparison of two recurrent layers, or a layer and a function, run on the same arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import Rule
from pyrnnx.comparison.layers import (
    Comparison,
    arranged,
    compare_layers,
    prepared_call,
    ragged_calls,
    run_arranged,
    undecided,
)
from pyrnnx.comparison.steps import Place, output_profile
from pyrnnx.comparison.weights import canonical_constants, directions
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import AXIS_NAMES, CANONICAL, Convention, rearrange
from pyrnnx.testing.same import torch_modules
from pyrnnx.testing.same.arrays import check_outputs, named_results
from pyrnnx.testing.same.signatures import Call
from pyrnnx.testing.same.subjects import WEIGHTS, FunctionSubject, LayerSubject, own_weights

Arrays = Mapping[str, AnyArray]


@dataclass(frozen=True)
class Side:
    """One of two that are compared, and its outputs by canonical name, in its own arrangement."""

    letter: str  # "a" or "b"
    label: str
    convention: Convention  # a function has that of the other layer
    layer: Layer | None  # None of a function
    outputs: Arrays

    def canonical(self, name: str) -> AnyArray:
        return rearrange(self.outputs[name], self.convention.axes_of(name), CANONICAL.axes_of(name))


@dataclass(frozen=True)
class Parting:
    """The first output in which two sides differ, by its canonical name."""

    name: str
    problem: str = ""  # why it cannot be compared: it is missing, or has another shape
    place: Place | None = None  # of the first number that is apart
    apart: int = 0  # how many numbers are apart


@dataclass(frozen=True)
class Run:
    """Both sides on the same canonical arrays."""

    a: Side
    b: Side
    arrays: Arrays
    names: tuple[str, ...]
    undecided: tuple[str, ...] = ()  # why equal outputs would not show that the two are the same

    @property
    def comparable(self) -> tuple[str, ...]:
        """The outputs that both sides have, of the shape that they must have."""
        return tuple(name for name in self.names if not problem_of(self, name))

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.a, self.b

    @property
    def layer(self) -> Layer:
        """The layer, the first if both are."""
        layer = self.a.layer or self.b.layer
        assert layer is not None
        return layer

    def compare(self) -> Comparison | None:
        """Return the result of `pyrnnx.compare`; None if one side is a function."""
        if self.a.layer is None or self.b.layer is None:
            return None
        return compare_layers(self.a.layer, self.b.layer, self.arrays, 0)


def run_both(
    a: LayerSubject | FunctionSubject,
    b: LayerSubject | FunctionSubject,
    inputs: Mapping[str, Any] | None,
    outputs: Sequence[str] | None,
    seed: int,
) -> list[Run]:
    """Run both, once or on several lengths; one of them is a layer.

    Functions may refuse rows of length 0, as PyTorch does; they are then called without such rows.

    Raises
    ------
    PyrnnxError
        Inputs that do not fit, layers for which no input fits both, functions that cannot be called.
    """
    least = int(any(subject.module is not None for subject in (a, b) if isinstance(subject, LayerSubject)))
    try:
        return _runs(a, b, inputs, outputs, seed, least)
    except Exception:
        return _runs(a, b, inputs, outputs, seed, 1)


def _runs(
    a: LayerSubject | FunctionSubject,
    b: LayerSubject | FunctionSubject,
    inputs: Mapping[str, Any] | None,
    outputs: Sequence[str] | None,
    seed: int,
    least: int,
) -> list[Run]:
    """Run both on random lengths that are at least `least`."""
    owner = next(subject for subject in (a, b) if isinstance(subject, LayerSubject))
    given, weights = owner.read_inputs(inputs or {})
    subjects = [
        subject.bind(weights) if subject is owner and isinstance(subject, LayerSubject) else subject
        for subject in (a, b)
    ]
    layers = [subject.layer for subject in subjects if isinstance(subject, LayerSubject)]
    bound, arrays = prepared_call(layers[0], layers[-1], given, seed, least=least)
    if not arrays["sequence_lens"].any():
        shape = arrays["X"].shape
        raise ArgumentError(
            f"assert_same: inputs have no step to compare: X has [seq_length, batch_size, input_size] {shape}, "
            f"sequence_lens is {shown(arrays['sequence_lens'].tolist())}; expected a row with a length of 1 or more"
        )
    owner = LayerSubject(bound[0], owner.node_names, owner.module)
    held = [name for name in WEIGHTS if name in bound[0].weights]
    calls = [
        subject.read_call(owner.order, owner.names, held)
        for subject in subjects
        if isinstance(subject, FunctionSubject)
    ]
    runs = []
    for each in ragged_calls(bound, arrays, given, least):
        taken: Arrays = each
        for call in calls:
            taken = _only_taken(call, each, given, owner)
        names = _chosen(outputs, owner, bound[0].output_names if not calls else owner.outputs)
        first, second = (
            _layer_side(letter, LayerSubject(layer, subject.node_names, subject.module), taken)
            if isinstance(subject, LayerSubject)
            else _function_side(letter, subject, calls[0], owner, taken)
            for letter, subject, layer in zip("ab", subjects, bound, strict=True)
        )
        run = Run(first, second, taken, names)
        if "X" not in given and all(name in run.comparable for name in names):
            sides = [{name: side.canonical(name) for name in names} for side in run.sides]
            run = replace(run, undecided=undecided(sides, taken["sequence_lens"]))
        runs.append(run)
    return runs


def _only_taken(call: Call, arrays: Arrays, given: Arrays, owner: LayerSubject) -> Arrays:
    """Return the arrays of a call, with defaults for those that a function does not take."""
    layer = owner.layer
    assert isinstance(layer, Layer)
    result = dict(arrays)
    for name in arrays:
        if name in call.takes:
            continue
        if name in given or name == "X":
            raise ArgumentError(
                f"assert_same: inputs has {layer.convention.name_of(name)}, which the function does not take; it takes "
                f"{', '.join(call.takes) or 'nothing'}"
            )
        if name in layer.constants:
            result[name] = canonical_constants(layer)[name]
        elif name == "sequence_lens":
            result[name] = np.full_like(arrays[name], len(arrays["X"]))
        else:
            result[name] = np.zeros_like(arrays[name])
    return result


def _chosen(outputs: Sequence[str] | None, owner: LayerSubject, names: tuple[str, ...]) -> tuple[str, ...]:
    if outputs is None:
        return names
    known = {owner.convention.name_of(name): name for name in names} | {name: name for name in names}
    check_outputs(outputs, known)
    return tuple(name for name in names if name in {known[output] for output in outputs})


def _layer_side(letter: str, subject: LayerSubject, arrays: Arrays) -> Side:
    layer = subject.layer
    assert isinstance(layer, Layer)
    if subject.module is None:
        outputs = run_arranged(layer, arrays)
    else:
        outputs = torch_modules.run_layer(subject.module, _copied(layer, arrays))
    return Side(letter, subject.label, layer.convention, layer, outputs)


def _copied(layer: Layer, arrays: Arrays) -> dict[str, AnyArray]:
    """Return arrays as a call of the layer takes them: copies, for a function may write to them."""
    return {name: np.array(array, order="C") for name, array in arranged(layer, arrays).items()}


def _function_side(letter: str, subject: FunctionSubject, call: Call, owner: LayerSubject, arrays: Arrays) -> Side:
    layer = owner.layer
    assert isinstance(layer, Layer)
    given = _copied(layer, arrays)
    if any(name in call.takes for name in WEIGHTS):
        given |= own_weights(layer)
    spellings = {name: (layer.convention.name_of(name), name) for name in owner.outputs}
    results = named_results(subject.label, subject(call, given), owner.outputs, spellings)
    if "Y" in results and torch_modules.joins_directions(layer.convention):
        results["Y"] = torch_modules.split_directions(results["Y"], layer.op.num_directions)
    return Side(letter, subject.label, layer.convention, None, results)


def first_parting(run: Run, rule: Rule) -> Parting | None:
    """Return the first output that is missing, has another shape, or numbers apart; None if there is none."""
    for name in run.names:
        if problem := problem_of(run, name):
            return Parting(name, problem)
        a, b = (side.canonical(name) for side in run.sides)
        beyond = rule.beyond(a, b)
        if beyond.any():
            lengths, names = run.arrays["sequence_lens"], directions(run.layer.op)
            profile = output_profile(name, a, b, names, lengths, **rule.between(a, b)._asdict())
            return Parting(name, "", profile.first, int(beyond.sum()))
    return None


def problem_of(run: Run, name: str) -> str:
    """Return why the numbers of an output cannot be compared; empty if they can."""
    for side in (side for side in run.sides if name not in side.outputs):
        returned = ", ".join(map(side.convention.name_of, side.outputs)) or "nothing"
        return f"{side.convention.name_of(name)} is missing in {side.letter}, which gave {returned}"
    T, N, _ = run.arrays["X"].shape
    sizes = {"T": T, "N": N, "D": run.layer.op.num_directions, "H": run.layer.op.hidden_size}
    for side in run.sides:
        axes, array, own = side.convention.axes_of(name), side.outputs[name], side.convention.name_of(name)
        expected = tuple(sizes[axis] for axis in axes)
        if array.shape != expected:
            words = ", ".join(AXIS_NAMES[axis] for axis in axes)
            return f"{own} has shape {array.shape} in {side.letter}; expected {expected}: {words}"
        if array.dtype.kind not in "biufV":
            return f"{own} has dtype {array.dtype} in {side.letter}; expected real numbers"
    return ""
