"""Comparison of two layers: conventions, operators, weights and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import Rule
from pyrnnx.comparison.aspects import Difference, differing_conventions, differing_operators
from pyrnnx.comparison.calls import label, prepared_call, ragged_calls, run_layer
from pyrnnx.comparison.distances import TOLERANCES, UNLIKE, Deviation, deviation, element_distances, joined, largest
from pyrnnx.comparison.inputs import NO_DIMS, in_words
from pyrnnx.comparison.result import Result
from pyrnnx.comparison.steps import Gates, Place, Profile, gates, output_profile
from pyrnnx.comparison.weights import WeightBlock, compare_weights, differing, directions
from pyrnnx.errors import printable, shortened
from pyrnnx.layers.layer import Layer
from pyrnnx.models.layers import AnyLayer


@dataclass(frozen=True, eq=False)
class LayerCall:
    """Two layers, canonical arrays of a call, and canonical outputs of each side by canonical name."""

    layers: tuple[Layer, Layer]
    arrays: Mapping[str, AnyArray]
    outputs: tuple[Mapping[str, AnyArray], Mapping[str, AnyArray]]


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Comparison of two layers; printed as a table. It references both layers.

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
    call : LayerCall or None
        The layers, arrays and outputs of the first call that differs, else of the last one.
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
    call: LayerCall | None = field(default=None, repr=False)

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
        `weight_dtype`, and empty if the layers and their outputs are the same. The computation is slow: for many steps
        or rows, there are none, and `gates_note` says so.
        """
        return self._by_gate.profiles

    @property
    def first_gate(self) -> Place | None:
        """The first difference in `gates`: the earliest step, then the first gate in the order of the equations."""
        return self._by_gate.first

    @property
    def gates_note(self) -> str:
        """Why there are no `gates`; else empty."""
        return self._by_gate.note

    @cached_property
    def _by_gate(self) -> Gates:
        if self.call is None or not (self.operators or differing(self.weights) or self.largest_difference > 0):
            return Gates()
        return gates(*self.call.layers, self.call.arrays)

    def _complete(self) -> bool:
        return not self.not_compared

    def _deviations(self) -> Iterable[Deviation]:
        return self.deviations.values()

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
    layers, arrays = prepared_call(a, b, inputs, seed, dims)
    calls = [
        LayerCall(layers, call, (run_layer(layers[0], call), run_layer(layers[1], call)))
        for call in ragged_calls(layers, arrays, inputs or {})
    ]
    return compare_calls(a, b, calls, is_random="X" not in (inputs or {}))


def compare_calls(
    a: AnyLayer, b: AnyLayer, calls: Sequence[LayerCall], rule: Rule | None = None, *, is_random: bool
) -> Comparison:
    """Compare the outputs of calls, with the arrays of both, by a tolerance; a and b are the layers before binding."""
    rule = rule or Rule()
    bound_a, bound_b = calls[0].layers
    parts: dict[str, list[Deviation]] = {}
    profiles: dict[str, Profile] = {}
    chosen = calls[0]
    for call in calls:
        differs = any(profile.first is not None for profile in profiles.values())
        for name, first in call.outputs[0].items():
            second = call.outputs[1][name]
            parts.setdefault(name, []).append(deviation(first, second, TOLERANCES) or UNLIKE)
            if not differs:
                chosen, (atol, rtol), lengths = call, rule.between(first, second), call.arrays["sequence_lens"]
                profiles[name] = output_profile(
                    name, first, second, directions(bound_a.op), lengths, atol=atol, rtol=rtol
                )
    lengths = calls[0].arrays["sequence_lens"]
    return Comparison(
        with_convention(a),
        with_convention(b),
        differing_conventions(bound_a, bound_b, a.convention, b.convention),
        differing_operators(bound_a.op, bound_b.op),
        {name: joined(apart) for name, apart in parts.items()},
        weights_source=_weights_source(a, b),
        weights=compare_weights(bound_a, bound_b),
        profiles=profiles,
        calls=tuple(in_words({name: call.arrays[name] for name in ("X", "sequence_lens")}) for call in calls),
        not_decided=undecided(calls[0].outputs, lengths) if is_random else (),
        call=chosen,
    )


def undecided(sides: Iterable[Mapping[str, AnyArray]], lengths: AnyArray) -> tuple[str, ...]:
    """Return which canonical outputs are the same for all random rows of X, in words."""
    rows = np.flatnonzero(lengths)
    constant: dict[str, None] = {}
    for name, array in (item for outputs in sides for item in outputs.items()):
        of_rows = (array[0] if array.ndim == 4 else array)[:, rows]
        if len(rows) > 1 and of_rows.size and not element_distances(of_rows, of_rows[:, :1]).distance.any():
            constant[name] = None
    return tuple(f"{name} is constant in every row" for name in constant)


def with_convention(layer: AnyLayer) -> str:
    """Return the name of a layer in a table."""
    return f"{label(layer)} ({layer.convention.name})"


def _weights_source(a: AnyLayer, b: AnyLayer) -> str:
    if isinstance(a, Layer) and isinstance(b, Layer):
        return ""
    owner = next((layer for layer in (a, b) if isinstance(layer, Layer)), None)
    return "random, because neither layer has weights" if owner is None else f"those of {label(owner)}"
