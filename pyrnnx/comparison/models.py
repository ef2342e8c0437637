"""Two whole models side by side: their recurrent layers in pairs, and the numbers of their outputs and values."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.inputs import INPUTS, NO_DIMS
from pyrnnx.comparison.intermediates import Values, described, shared_values
from pyrnnx.comparison.layers import AnyLayer, Comparison, compare_layers, label, with_convention
from pyrnnx.comparison.model_runs import (
    LayerValues,
    Matched,
    Run,
    axes_of_layers,
    matched_inputs,
    matched_outputs,
    model_label,
    run_at_random,
    run_on,
    two_conventions,
)
from pyrnnx.comparison.numbers import DEFAULT, Deviation, Verdict, deviation, first_apart, largest
from pyrnnx.comparison.pairs import Pair, pair_layers
from pyrnnx.comparison.views.text import model_lines
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.model import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ModelComparison(Verdict):
    """What `compare` found in two models; printed as text.

    Attributes
    ----------
    a, b : str
        The two models, as errors name them.
    layers : dict
        The comparison of each pair of recurrent layers, by their names: "lstm", or "lstm, rnn" where they differ.
    unpaired : tuple of str
        Recurrent layers for which the other model has no counterpart of the same cell, direction and sizes.
    outputs : tuple of Difference
        Outputs that are not in both models, or of other shapes or kinds.
    deviations : dict
        For each output that both have: how far the two are from each other.
    not_compared : str
        Why there are no outputs: the models name theirs by two conventions, which arrange arrays differently.
    values : dict
        For each value inside that both have, in the order in which a computes them: how far the two are from each
        other. Values are the same by their names; outputs of paired layers, whose names may differ, are compared in
        canonical arrangement; shapes that differ in dimensions of size 1 alone are the same, for others
        `Deviation.unlike` says how they differ. What depends on no input is left out. Empty where `compare` was not to
        look at them.
    values_skipped : int
        How many such values a model could not compute.
    input_shapes : dict
        What the models were run on, by the names of a.
    """

    a: str
    b: str
    layers: Mapping[str, Comparison]
    unpaired: tuple[str, ...]
    outputs: tuple[Difference, ...]
    deviations: Mapping[str, Deviation]
    not_compared: str = ""
    values: Mapping[str, Deviation] = field(default_factory=dict)
    values_skipped: int = 0
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def first_difference(self) -> str | None:
        """The name of the first of `values` that is beyond the tolerance of `equal`; None: there is none."""
        return first_apart(self.values)

    @property
    def largest_difference(self) -> float:
        """The largest absolute difference over all outputs, and over those of all pairs of layers.

        Infinity where an output or a layer is in one model only, an output has two shapes or kinds, or one has a NaN
        and the other a number; NaN where nothing was compared.
        """
        if self.unpaired or self.outputs:
            return math.inf
        return largest([*self.numbers.values(), *(pair.largest_difference for pair in self.layers.values())])

    def _complete(self) -> bool:
        return not (self.unpaired or self.outputs or self.not_compared) and all(
            pair._complete() for pair in self.layers.values()
        )

    def _deviations(self) -> Iterable[Deviation]:
        yield from self.deviations.values()
        for pair in self.layers.values():
            yield from pair._deviations()

    def __hash__(self) -> int:
        layers, deviations = frozenset(self.layers.items()), frozenset(self.deviations.items())
        return hash((self.a, self.b, layers, self.unpaired, self.outputs, deviations, self.not_compared))

    def __repr__(self) -> str:
        count = len(self.layers)
        return self._repr(f"{shown(self.a)} and {shown(self.b)}: {count} {'pair' if count == 1 else 'pairs'} of layers")

    def __str__(self) -> str:
        return "\n".join(model_lines(self))

    def to_dict(self) -> dict[str, Any]:
        from pyrnnx.comparison.views.plain import model_dict

        return model_dict(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """A picture of the largest difference of each of `values` in order, or of the outputs where there are none.

        Those of two layers over time and hidden units are pictures of their own: ``comparison.layers[name].plot()``.

        Parameters
        ----------
        path : path, optional
            A file to write the picture to; its suffix says in which format, such as .png or .svg.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        PyrnnxError
            As of `Comparison.plot`.
        """
        from pyrnnx.comparison.views.plot import plot_models

        return plot_models(self, path)

    def _repr_html_(self) -> str:
        from pyrnnx.comparison.views.notebook import model_html

        return model_html(self)


def compare_models(
    a: Model,
    b: Model,
    inputs: Mapping[str, Any] | None,
    seed: int,
    intermediates: bool | None = None,
    dims: Mapping[str, int] = NO_DIMS,
) -> tuple[ModelComparison, Matched, Run | None]:
    """As `compare`, of two models; and which outputs belong together, and what they are, where both ran."""
    layers_a, layers_b = dict(a.layers), dict(b.layers)
    pairs, only_a, only_b = pair_layers(layers_a, layers_b)
    layers: dict[str, Comparison] = {}
    for pair in pairs:
        layers[_free_key(pair, layers)] = _compare_pair(pair, layers_a[pair.a], layers_b[pair.b], seed)
    unpaired = [label(layers_a[name]) for name in only_a] + [label(layers_b[name]) for name in only_b]
    names, inside = _layer_values(a, b, pairs)
    axes = axes_of_layers(*inside, names)
    taken, given = matched_inputs(a, b, axes), matched_outputs(a, b, axes)
    why = ""
    if any(_axes(layers_a[pair.a]) != _axes(layers_b[pair.b]) for pair in pairs):
        why = two_conventions(taken, given)
    if why and inputs is not None:
        raise ArgumentError(
            f"{INPUTS} cannot be given to {model_label(a)} and {model_label(b)} alike: {why}; compare their layers"
        )
    found = ModelComparison(model_label(a), model_label(b), layers, tuple(unpaired), (), {}, why)
    if why:
        return found, given, None
    ran = _run(a, b, taken, inputs, seed, dims)
    found = replace(found, **_outputs(given, ran), input_shapes={name: np.shape(one) for name, one in ran[0].items()})
    if intermediates is None:
        apart = any(_apart(one) for one in found.deviations.values())
        intermediates = bool(found.outputs) or apart
    if intermediates:
        values = Values(a, b, ran.inputs_a, ran.inputs_b)
        values.compare(shared_values(a, b, *inside, names))
        found = replace(found, values=values.deviations, values_skipped=values.skipped)
    return found, given, ran


def run_models(a: Model, b: Model, inputs: Mapping[str, Any] | None, seed: int) -> tuple[Matched, Run]:
    """Which outputs of two models belong together, and what they are on the inputs that `compare_models` takes.

    Raises
    ------
    PyrnnxError
        As of `compare`.
    """
    pairs, _, _ = pair_layers(dict(a.layers), dict(b.layers))
    names, inside = _layer_values(a, b, pairs)
    axes = axes_of_layers(*inside, names)
    return matched_outputs(a, b, axes), _run(a, b, matched_inputs(a, b, axes), inputs, seed)


def _layer_values(
    a: Model, b: Model, pairs: Sequence[Pair]
) -> tuple[list[tuple[str, str]], tuple[LayerValues, LayerValues]]:
    """The names of paired layers, and what these take and give in their models."""
    return [(pair.a, pair.b) for pair in pairs], (a._layer_values(), b._layer_values()) if pairs else ({}, {})


def _run(
    a: Model,
    b: Model,
    taken: Matched,
    inputs: Mapping[str, Any] | None,
    seed: int,
    dims: Mapping[str, int] = NO_DIMS,
) -> Run:
    return run_at_random(a, b, taken, seed, dims) if inputs is None else run_on(a, b, taken, inputs)


def _outputs(matched: Matched, ran: Run) -> dict[str, Any]:
    """The fields `outputs` and `deviations`."""
    differences: list[Difference] = []
    deviations: dict[str, Deviation] = {}
    for name, (first, second) in matched.names.items():
        one, other = ran.outputs_a.get(first), matched.in_a(first, second, ran.outputs_b.get(second))
        apart = deviation(one, other) if first and second else None
        if apart is None:
            differences.append(Difference(f"output {shown(name)}", described(one), described(other)))
        else:
            deviations[name] = apart
    return {"outputs": tuple(differences), "deviations": deviations}


def _apart(one: Deviation) -> bool:
    return not one.within(*DEFAULT)


def _free_key(pair: Pair, layers: Mapping[str, Comparison]) -> str:
    """Both names; with a number where two pairs would have one key."""
    stem = key = ", ".join({pair.a: None, pair.b: None})
    number = 1
    while key in layers:
        number += 1
        key = f"{stem}#{number}"
    return key


def _compare_pair(pair: Pair, a: AnyLayer, b: AnyLayer, seed: int) -> Comparison:
    """What keeps two layers from being compared is a finding, not a failure: the rest of the models can be."""
    try:
        return replace(compare_layers(a, b, None, seed), paired_by=pair.by)
    except PyrnnxError as error:
        return Comparison(with_convention(a), with_convention(b), (), (), {}, pair.by, str(error))


def _axes(layer: AnyLayer) -> Mapping[str, str]:
    return layer.convention.axes
