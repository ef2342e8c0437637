"""Comparison of two layers: conventions, operators, weights and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import Rule
from pyrnnx.comparison.aspects import Difference, differing_conventions, differing_operators
from pyrnnx.comparison.distances import TOLERANCES, UNLIKE, Deviation, deviation, element_distances, joined, largest
from pyrnnx.comparison.gates import Gates, Source, gates
from pyrnnx.comparison.inputs import NO_DIMS, call_inputs, converted, random_array
from pyrnnx.comparison.result import Result
from pyrnnx.comparison.steps import Place, Profile, output_profile
from pyrnnx.comparison.tries import in_words
from pyrnnx.comparison.weights import WeightBlock, compare_weights, differing, directions
from pyrnnx.errors import ArgumentError, printable, shortened, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.models.layers import AnyLayer
from pyrnnx.models.model import Model
from pyrnnx.operator.conventions import AXIS_NAMES, CANONICAL, canonical_for, convert_weights, rearrange, weight_axes

DEFAULT_SIZES = {"T": 5, "N": 3, "I": 4}


@dataclass(frozen=True)
class Comparison(Result):
    """Comparison of two layers; printed as a table.

    It references both layers until `gates` are computed, or until it is copied or pickled.

    Attributes
    ----------
    a, b : str
        The two layers, as errors name them, with their convention.
    conventions : tuple of Difference
        Differences in axes, gate order, bias form, names, required inputs, and dtype of weights.
    operators : tuple of Difference
        Differences in activations, clip and other attributes. Empty for two descriptions of one layer.
    deviations : dict
        Difference of each output, by canonical name, in the canonical arrangement.
    paired_by : str
        For layers of two models: why they are a pair, such as "equal weights".
    not_compared : str
        For layers of two models: why there are no numbers, such as weights that a convention cannot express.
    weights_source : str
        Which weights a layer without weights took; empty if both layers have weights.
    weights : tuple of WeightBlock
        Difference of each weight, direction and gate, in the canonical arrangement.
    profiles : dict
        First and largest differences of each output by step, by canonical name.
    calls : tuple of str
        Shapes and lengths of the call, in words.
    not_decided : tuple of str
        Why equal outputs do not show that the layers are the same, such as outputs that do not depend on X.
    """

    a: str
    b: str
    conventions: tuple[Difference, ...]
    operators: tuple[Difference, ...]
    deviations: Mapping[str, Deviation]
    paired_by: str = ""
    not_compared: str = ""
    weights_source: str = ""
    weights: tuple[WeightBlock, ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    not_decided: tuple[str, ...] = ()
    _source: Source | None = field(default=None, compare=False, repr=False)

    @property
    def largest_difference(self) -> float:
        """The largest absolute difference over all outputs.

        Infinity if only one of two numbers is NaN; NaN if nothing was compared: outputs without elements.
        """
        return largest(self.numbers.values())

    @property
    def first_difference(self) -> Place | None:
        """The first number of Y, else of Y_h, else of Y_c, that is beyond the tolerance of `equal` (see `Profile`)."""
        return next((profile.first for profile in self.profiles.values() if profile.first is not None), None)

    @property
    def gates(self) -> Mapping[str, Profile]:
        """Differences of the gates by name, in the order in which a step computes them.

        "i", "z", ... are the gates of the ONNX text after their activation, "i_in" the input of that activation, "H"
        and "C" the states after the step. They are computed on first access, in float64 by `pyrnnx.reference`, from the
        weights of both layers and the inputs of `compare`. So they are equal if only the arithmetic differs, as with
        `weight_dtype`, and empty if the layers and their outputs are the same. The computation is slow: if there are
        many steps, only the first are used, and `gates_note` says which.
        """
        return self._by_gate.profiles

    @property
    def first_gate(self) -> Place | None:
        """The first difference in `gates`: the earliest step, then the first gate in the order of the equations."""
        return self._by_gate.first

    @property
    def gates_note(self) -> str:
        """The steps that `gates` leave out, or why there are none; else empty."""
        return self._by_gate.note

    @cached_property
    def _by_gate(self) -> Gates:
        if self._source is None or not (self.operators or differing(self.weights) or self.largest_difference > 0):
            return Gates()
        return gates(self._source, 0 if self.first_difference is None else self.first_difference.row)

    def _complete(self) -> bool:
        return not self.not_compared

    def _deviations(self) -> Iterable[Deviation]:
        return self.deviations.values()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with computed gates instead of the layers, which may be large."""
        return {**self.__dict__, "_by_gate": self._by_gate, "_source": None}

    def __hash__(self) -> int:
        return hash((self.a, self.b, self.conventions, self.operators, frozenset(self.deviations.items())))

    def __repr__(self) -> str:
        return self._repr(f"{printable(shortened(self.a))} and {printable(shortened(self.b))}")


def compare_layers(
    a: AnyLayer,
    b: AnyLayer,
    inputs: Mapping[str, Any] | None,
    seed: int,
    dims: Mapping[str, int] = NO_DIMS,
) -> Comparison:
    """Compare two layers: see `pyrnnx.compare`."""
    bound, arrays = prepared_call(a, b, inputs, seed, dims)
    bound_a, bound_b = bound
    calls = ragged_calls(bound, arrays, inputs or {})
    parts: dict[str, list[Deviation]] = {}
    profiles: dict[str, Profile] = {}
    reasons: tuple[str, ...] = ()
    for place, call in enumerate(calls):
        outputs = [run_layer(layer, call) for layer in bound]
        differs = any(profile.first is not None for profile in profiles.values())
        for name, first in outputs[0].items():
            second = outputs[1][name]
            parts.setdefault(name, []).append(deviation(first, second, TOLERANCES) or UNLIKE)
            if not differs:
                arrays = call
                limits = Rule().between(first, second)._asdict()
                names, lengths = directions(bound_a.op), call["sequence_lens"]
                profiles[name] = output_profile(name, first, second, names, lengths, **limits)
        if place == 0 and "X" not in (inputs or {}):
            reasons = undecided(outputs, call["sequence_lens"])
    return Comparison(
        with_convention(a),
        with_convention(b),
        differing_conventions(bound_a, bound_b, a.convention, b.convention),
        differing_operators(bound_a.op, bound_b.op),
        {name: joined(apart) for name, apart in parts.items()},
        weights_source=_weights_source(a, b),
        weights=compare_weights(bound_a, bound_b),
        profiles=profiles,
        calls=tuple(in_words({name: call[name] for name in ("X", "sequence_lens")}) for call in calls),
        not_decided=reasons,
        _source=Source(bound_a, bound_b, arrays),
    )


def ragged_calls(
    layers: Iterable[Layer], arrays: dict[str, AnyArray], inputs: Mapping[str, Any], least: int = 0
) -> list[dict[str, AnyArray]]:
    """Return a call, and as many others with other lengths as few rows need to have 0, 1 and all time steps."""
    T, N, _ = arrays["X"].shape
    lengths = arrays["sequence_lens"]
    takes_lengths = all(layer.convention.axes_of("sequence_lens") for layer in layers)
    if inputs.get("sequence_lens") is not None or not takes_lengths or not N:
        return [arrays]
    left = [length for length in (min(T, 1), least, T) if length not in lengths]
    more = [np.resize(left[start:], N).astype(lengths.dtype) for start in range(0, len(set(left)), N)]
    return [arrays, *({**arrays, "sequence_lens": other} for other in more)]


def undecided(sides: Iterable[Mapping[str, AnyArray]], lengths: AnyArray) -> tuple[str, ...]:
    """Return which canonical outputs are the same for all random rows of X, in words."""
    rows = np.flatnonzero(lengths)
    constant: dict[str, None] = {}
    for name, array in chain.from_iterable(outputs.items() for outputs in sides):
        of_rows = (array[0] if array.ndim == 4 else array)[:, rows]
        if len(rows) > 1 and of_rows.size and not element_distances(of_rows, of_rows[:, :1]).distance.any():
            constant[name] = None
    return tuple(f"{name} is constant in every row" for name in constant)


def prepared_call(
    a: AnyLayer,
    b: AnyLayer,
    inputs: Mapping[str, Any] | None,
    seed: int,
    dims: Mapping[str, int] = NO_DIMS,
    least: int = 0,
) -> tuple[tuple[Layer, Layer], dict[str, AnyArray]]:
    """Return the two layers with weights, and the canonical arrays of their call by canonical name.

    Random lengths are at least `least`.

    Raises
    ------
    PyrnnxError
        Layers for which no input fits both; inputs that do not fit; weights that a convention cannot express.
    """
    _same_kind(a, b)
    rng = np.random.default_rng(seed)
    bound = _bind(a, b, rng)
    if bound[0].input_size != bound[1].input_size:
        raise _mismatch("input_size", a, bound[0].input_size, b, bound[1].input_size)
    one_step = next((label(layer) for layer in bound if "T" not in layer.convention.axes_of("X")), "")
    sizes = _sizes(a, b) | _chosen(dims, one_step) | {"I": bound[0].input_size}
    dtypes = [layer.dtype.name for layer in bound]
    return bound, call_inputs(inputs or {}, bound[0].op, sizes, dtypes, rng, one_step, least)


def _chosen(dims: Mapping[str, int], one_step: str) -> dict[str, int]:
    """Return the sizes of T and N that a caller sets."""
    names = {AXIS_NAMES[axis]: axis for axis in "TN"}
    for name, size in dims.items():
        if name not in names:
            raise ArgumentError(
                f"compare: dims has {shown(name)}; expected, for layers, {', '.join(names)}", argument="dims"
            )
        if names[name] == "T" and one_step and size != 1:
            raise ArgumentError(
                f"compare: dims has {name} {size}; expected 1: {one_step} runs one step", argument="dims"
            )
    return {names[name]: size for name, size in dims.items()}


def with_convention(layer: AnyLayer) -> str:
    """Return the name of a layer in a table."""
    return f"{label(layer)} ({layer.convention.name})"


def label(subject: AnyLayer | Model) -> str:
    """Return the name of a layer or model in errors and tables."""
    return printable(shortened(subject.label))


def _same_kind(a: AnyLayer, b: AnyLayer) -> None:
    """Reject layers for which no input fits both."""
    for layer in (a, b):
        if layer.op is None:
            raise ArgumentError(
                f"compare: {label(layer)} has no hidden_size; expected a layer with hidden_size or weights"
            )
    for aspect in ("cell", "direction", "hidden_size"):
        first, second = (getattr(layer.op, aspect) for layer in (a, b))
        if first != second:
            raise _mismatch(aspect, a, first, b, second)


def _mismatch(aspect: str, a: AnyLayer, first: Any, b: AnyLayer, second: Any) -> ArgumentError:
    first, second = (getattr(value, "value", value) for value in (first, second))
    return ArgumentError(f"compare: {aspect} is {first} in {label(a)} and {second} in {label(b)}; expected the same")


def _bind(a: AnyLayer, b: AnyLayer, rng: np.random.Generator) -> tuple[Layer, Layer]:
    if isinstance(a, Layer) and isinstance(b, Layer):
        return a, b
    owner = next((layer for layer in (a, b) if isinstance(layer, Layer)), None)
    arrangement = canonical_for((owner or a).convention)
    if owner is None:
        weights = _random_weights(a, b, rng)
    else:
        weights = convert_weights(owner.op, owner.weights, owner.convention, arrangement)
    layers = []
    for layer in (a, b):
        if isinstance(layer, Layer):
            layers.append(layer)
            continue
        assert layer.op is not None  # by _same_kind
        if "B" in weight_axes(layer.op, layer.convention) and "B" not in weights:
            D, GH = weights["W"].shape[:2]
            weights = {**weights, "B": np.zeros((D, 2 * GH), weights["W"].dtype)}
        layers.append(layer.bind(**convert_weights(layer.op, weights, arrangement, layer.convention, layer.label)))
    return layers[0], layers[1]


def _weights_source(a: AnyLayer, b: AnyLayer) -> str:
    if isinstance(a, Layer) and isinstance(b, Layer):
        return ""
    owner = next((layer for layer in (a, b) if isinstance(layer, Layer)), None)
    return "random, because neither layer has weights" if owner is None else f"those of {label(owner)}"


def _random_weights(a: AnyLayer, b: AnyLayer, rng: np.random.Generator) -> dict[str, AnyArray]:
    op = a.op
    assert op is not None  # by _same_kind
    I = _sizes(b, a)["I"]
    D, H, G = op.num_directions, op.hidden_size, len(op.gates)
    shapes = {"W": (D, G * H, I), "R": (D, G * H, H), "B": (D, 2 * G * H)}
    if all("P" in getattr(layer, "arguments", ()) for layer in (a, b)):
        shapes["P"] = (D, 3 * H)
    dtype = str(a.dtype or b.dtype or "float32")
    scale, what = H**-0.5, f"of {label(a)}"
    return {name: random_array(f"compare: {name} {what}", shape, [dtype], rng, scale) for name, shape in shapes.items()}


def _sizes(*layers: AnyLayer) -> dict[str, int]:
    """Return the sizes of the axes of X: of two layers that fix one, the last decides."""
    sizes = dict(DEFAULT_SIZES)
    for layer in layers:
        sizes |= getattr(layer, "sizes", {})
    return sizes


def run_layer(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Run a layer of any convention on canonical arrays, and return canonical outputs by canonical name."""
    outputs = run_arranged(layer, arrays)
    axes = layer.convention.axes_of
    return {name: rearrange(array, axes(name), CANONICAL.axes_of(name)) for name, array in outputs.items()}


def run_arranged(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Run a layer on canonical arrays, and return its outputs by canonical name, in its own arrangement."""
    call: dict[str, Any] = arranged(layer, arrays)
    return dict(zip(layer.output_names, layer.run(**call), strict=True))


def arranged(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return canonical arrays in the axes and dtype of the layer's call.

    Raises
    ------
    ArgumentError
        Finite numbers that the dtype does not hold.
    """
    call = {}
    for name, array in arrays.items():
        if axes := layer.convention.axes_of(name):
            typed = array if name == "sequence_lens" else converted(name, array, layer.dtype, label(layer))
            call[name] = rearrange(typed, CANONICAL.axes_of(name), axes)
    return call
