"""Two recurrent layers, or a layer and a function: both run on the same arrays, and the first output that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx.comparison.inputs import converted
from pyrnnx.comparison.layers import Comparison, compare_layers, prepared_call, run_layer
from pyrnnx.comparison.steps import Place, output_profile
from pyrnnx.comparison.weights import directions
from pyrnnx.conventions import AXIS_NAMES, CANONICAL, Convention, rearrange
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.layer import Layer
from pyrnnx.testing.same import torch_modules
from pyrnnx.testing.same.arrays import named_results
from pyrnnx.testing.same.signatures import Call
from pyrnnx.testing.same.subjects import WEIGHTS, FunctionSubject, LayerSubject, own_weights
from pyrnnx.testing.same.tolerances import Tolerances

Arrays = Mapping[str, AnyArray]


@dataclass(frozen=True)
class Side:
    """One of two that are compared, and what it gave.

    Attributes
    ----------
    letter : str
        "a" or "b".
    label : str
    convention : Convention
        How its arrays are arranged: a function's as those of the layer beside it.
    layer : Layer or None
        None of a function.
    outputs : mapping
        By canonical name, in its own arrangement.
    """

    letter: str
    label: str
    convention: Convention
    layer: Layer | None
    outputs: Arrays

    def canonical(self, name: str) -> AnyArray:
        return rearrange(self.outputs[name], self.convention.axes_of(name), CANONICAL.axes_of(name))


@dataclass(frozen=True)
class Parting:
    """The first output in which two sides differ.

    Attributes
    ----------
    name : str
        The canonical name.
    problem : str
        What keeps it from being compared: an output that is missing, or has another shape. Else empty.
    place : Place or None
        Where the numbers part first.
    apart : int
        How many numbers do.
    """

    name: str
    problem: str = ""
    place: Place | None = None
    apart: int = 0


@dataclass(frozen=True)
class Run:
    """Both sides on the same arrays (canonical, by canonical name)."""

    a: Side
    b: Side
    arrays: Arrays
    names: tuple[str, ...]

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
        """As `pyrnnx.compare` has it; None where one side is a function."""
        if self.a.layer is None or self.b.layer is None:
            return None
        return compare_layers(self.a.layer, self.b.layer, self.arrays, 0)


def run_both(
    a: LayerSubject | FunctionSubject,
    b: LayerSubject | FunctionSubject,
    inputs: Mapping[str, Any] | None,
    outputs: Sequence[str] | None,
    seed: int,
) -> Run:
    """Run both; one of them is a layer.

    Raises
    ------
    PyrnnxError
        Inputs that do not fit, layers for which no input fits both, functions that cannot be called.
    """
    owner = next(one for one in (a, b) if isinstance(one, LayerSubject))
    given, weights = owner.read_inputs(inputs or {})
    subjects = [one.bind(weights) if one is owner and isinstance(one, LayerSubject) else one for one in (a, b)]
    layers = [one.layer for one in subjects if isinstance(one, LayerSubject)]
    bound, arrays = prepared_call(layers[0], layers[-1], given, seed)
    if not arrays["sequence_lens"].any():
        shape = arrays["X"].shape
        raise ArgumentError(
            f"assert_same: inputs have no step to compare: X has [seq_length, batch_size, input_size] {shape}, "
            f"sequence_lens is {shown(arrays['sequence_lens'].tolist())}; expected a row with a length of 1 or more"
        )
    owner = LayerSubject(bound[0], owner.node_names, owner.module)
    calls = [one.read_call(owner.order, owner.names) for one in subjects if isinstance(one, FunctionSubject)]
    taken: Arrays = arrays
    for call in calls:
        taken = _only_taken(call, arrays, given, owner)
    names = _chosen(outputs, owner, bound[0].output_names if not calls else owner.outputs)
    first, second = (
        _layer_side(letter, LayerSubject(layer, one.node_names, one.module), taken)
        if isinstance(one, LayerSubject)
        else _function_side(letter, one, calls[0], owner, taken)
        for letter, one, layer in zip("ab", subjects, bound, strict=True)
    )
    return Run(first, second, taken, names)


def _only_taken(call: Call, arrays: Arrays, given: Arrays, owner: LayerSubject) -> Arrays:
    """The arrays of a call, those that a function does not take as if they had been left out."""
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
            axes = layer.convention.axes_of(name), CANONICAL.axes_of(name)
            result[name] = rearrange(layer.constants[name], *axes)
        elif name == "sequence_lens":
            result[name] = np.full_like(arrays[name], len(arrays["X"]))
        else:
            result[name] = np.zeros_like(arrays[name])
    return result


def _chosen(outputs: Sequence[str] | None, owner: LayerSubject, names: tuple[str, ...]) -> tuple[str, ...]:
    if outputs is None:
        return names
    known = {owner.convention.name_of(name): name for name in names} | {name: name for name in names}
    unknown = [name for name in outputs if name not in known]
    if isinstance(outputs, str) or unknown or not outputs:
        given = outputs if isinstance(outputs, str) else ", ".join(map(str, unknown)) or "empty"
        raise ArgumentError(f"assert_same: outputs is or has {given}; expected names out of {', '.join(known)}")
    return tuple(name for name in names if name in {known[one] for one in outputs})


def _layer_side(letter: str, subject: LayerSubject, arrays: Arrays) -> Side:
    layer = subject.layer
    assert isinstance(layer, Layer)
    if subject.module is None:
        results = {
            name: rearrange(array, CANONICAL.axes_of(name), layer.convention.axes_of(name))
            for name, array in run_layer(layer, arrays).items()
        }
    else:
        results = torch_modules.run_layer(subject.module, _arranged(layer, arrays))
    return Side(letter, subject.label, layer.convention, layer, results)


def _arranged(layer: Layer, arrays: Arrays) -> dict[str, AnyArray]:
    """Canonical arrays as a layer is called with them: in its axes and dtype; copies, for a function may write."""
    arranged = {}
    for name, array in arrays.items():
        if axes := layer.convention.axes_of(name):
            typed = array if name == "sequence_lens" else converted(name, array, layer.dtype, layer.label)
            arranged[name] = np.array(rearrange(typed, CANONICAL.axes_of(name), axes), order="C")
    return arranged


def _function_side(letter: str, subject: FunctionSubject, call: Call, owner: LayerSubject, arrays: Arrays) -> Side:
    layer = owner.layer
    assert isinstance(layer, Layer)
    given = _arranged(layer, arrays)
    if any(name in call.takes for name in WEIGHTS):
        given |= own_weights(layer)
    spellings = {name: (layer.convention.name_of(name), name) for name in owner.outputs}
    results = named_results(subject.label, subject(call, given), owner.outputs, spellings)
    if "Y" in results and torch_modules.joins_directions(layer.convention):
        results["Y"] = torch_modules.split_directions(results["Y"], layer.op.num_directions)
    return Side(letter, subject.label, layer.convention, None, results)


def first_parting(run: Run, tolerances: Tolerances) -> Parting | None:
    """The first output that is missing, has another shape, or numbers beyond the tolerances; None: there is none."""
    for name in run.names:
        if problem := problem_of(run, name):
            return Parting(name, problem)
        a, b = (side.canonical(name) for side in run.sides)
        place, apart = first_place(run, name, a, b, tolerances)
        if place is not None:
            return Parting(name, "", place, apart)
    return None


def first_place(run: Run, name: str, a: AnyArray, b: AnyArray, tolerances: Tolerances) -> tuple[Place | None, int]:
    """Where two canonical arrays of one output part first, and how many numbers are apart."""
    beyond = tolerances.beyond(a, b)
    if not beyond.any():
        return None, 0
    atol, rtol = tolerances.of(a, b)
    profile = output_profile(name, a, b, directions(run.layer.op), run.arrays["sequence_lens"], atol=atol, rtol=rtol)
    return profile.first, int(beyond.sum())


def problem_of(run: Run, name: str) -> str:
    """What keeps the numbers of an output from being compared; empty where nothing does."""
    missing = [side for side in run.sides if name not in side.outputs]
    for side in missing:
        returned = ", ".join(map(side.convention.name_of, side.outputs)) or "nothing"
        return f"{side.convention.name_of(name)} is missing in {side.letter}, which gave {returned}"
    for side in run.sides:
        axes, given = side.convention.axes_of(name), side.outputs[name]
        expected = _expected_shape(run, axes)
        if given.shape != expected:
            words = ", ".join(AXIS_NAMES[axis] for axis in axes)
            own = side.convention.name_of(name)
            return f"{own} has shape {given.shape} in {side.letter}; expected {expected}: {words}"
        if given.dtype.kind not in "biufV":
            return f"{side.convention.name_of(name)} has dtype {given.dtype} in {side.letter}; expected real numbers"
    return ""


def _expected_shape(run: Run, axes: str) -> tuple[int, ...]:
    T, N, _ = run.arrays["X"].shape
    sizes = {"T": T, "N": N, "D": run.layer.op.num_directions, "H": run.layer.op.hidden_size}
    return tuple(sizes[axis] for axis in axes)
