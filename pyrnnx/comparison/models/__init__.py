"""Comparison of two models: paired recurrent layers, outputs and intermediate values."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pyrnnx.comparison.agreement import first_apart
from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.calls import label
from pyrnnx.comparison.distances import Deviation, deviation, joined, largest
from pyrnnx.comparison.inputs import INPUTS, NO_DIMS
from pyrnnx.comparison.layers import Comparison, compare_layers, with_convention
from pyrnnx.comparison.models.pairs import Pair, pair_layers, turned_layers
from pyrnnx.comparison.models.runs import (
    Matched,
    Run,
    axes_of_layers,
    by_own_names,
    matched_inputs,
    matched_names,
    try_both,
    two_conventions,
)
from pyrnnx.comparison.models.tries import Tries, unvaried
from pyrnnx.comparison.models.values import compare_values, described, shared_values
from pyrnnx.comparison.result import Result
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.models.layers import AnyLayer
from pyrnnx.models.model import Model, layer_values


@dataclass(frozen=True, eq=False)
class ModelComparison(Result):
    """Comparison of two models; printed as text.

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
        Difference of each output that both have.
    not_compared : str
        Why there are no outputs: the models use two conventions, which arrange arrays differently.
    values : dict
        Difference of each shared intermediate value, in the order in which a computes them. Values are matched by name.
        Outputs of paired layers, whose names may differ, are compared in canonical arrangement. Dimensions of size 1
        are ignored; for other shape differences see `Deviation.unlike`. Values that depend on no input are left out.
        Empty if `compare` did not compare intermediate values.
    values_skipped : int
        How many such values a model could not compute.
    input_shapes : dict
        Shapes of the inputs in the first call, by the names of a.
    calls : tuple of str
        Shapes of the inputs in each call, with the numbers of lengths and other small integers, in words.
    not_decided : tuple of str
        Why equal outputs do not show that the models are the same, in words: an output that is empty, missing or
        constant, an integer input that did not vary, or a layer that runs in another direction.
    spreads : dict
        How far each output varied between calls on random inputs. One that varies by no more than the tolerance is not
        decided, as a constant one.
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
    calls: tuple[str, ...] = ()
    not_decided: tuple[str, ...] = ()
    spreads: Mapping[str, Deviation] = field(default_factory=dict)

    def undecided(self, atol: float | None = None, rtol: float | None = None) -> list[str]:
        return [*self.not_decided, *unvaried(self.spreads, atol, rtol)]

    @property
    def first_difference(self) -> str | None:
        """The name of the first of `values` that is beyond the tolerance of `equal`; None: there is none."""
        return first_apart(self.values)

    @property
    def largest_difference(self) -> float:
        """The largest absolute difference over all outputs, and over those of all pairs of layers.

        Infinity if an output is in only one model, an output has two shapes or kinds, or only one of two numbers is
        NaN. NaN if nothing was compared. Layers without a counterpart do not count.
        """
        if self.outputs:
            return math.inf
        return largest([*self.numbers.values(), *(pair.largest_difference for pair in self.layers.values())])

    def _complete(self) -> bool:
        return not self.not_compared and all(pair._complete() for pair in self.layers.values())

    def _different(self) -> bool:
        return bool(self.outputs)

    def _deviations(self) -> Iterable[Deviation]:
        yield from self.deviations.values()
        for pair in self.layers.values():
            yield from pair._deviations()

    def __repr__(self) -> str:
        count = len(self.layers)
        return self._repr(f"{shown(self.a)} and {shown(self.b)}: {count} {'pair' if count == 1 else 'pairs'} of layers")


def compare_models(
    a: Model,
    b: Model,
    inputs: Mapping[str, Any] | None,
    seed: int,
    intermediates: bool | None = None,
    dims: Mapping[str, int] = NO_DIMS,
    chosen: Callable[[Collection[str]], Collection[str]] = list,
) -> ModelComparison:
    """Compare two models as `pyrnnx.compare` does; `chosen` returns which of the outputs count."""
    result, names = _compare_layers(a, b, seed)
    match, outputs = _matched(a, b, names)
    wanted = chosen(outputs.names)
    outputs = outputs._replace(names={name: both for name, both in outputs.names.items() if name in wanted})
    why = ""
    if any(a.layers[first].convention.axes != b.layers[second].convention.axes for first, second in names):
        why = two_conventions(match, outputs)
    if why and inputs is not None:
        raise ArgumentError(
            f"{INPUTS}: {label(a)} and {label(b)} cannot run on the same arrays: {why}; expected no inputs, which "
            "compares only their layers"
        )
    if why:
        return replace(result, not_compared=why)
    given = by_own_names(a, inputs or {}, INPUTS)
    result, ran = _compared(result, outputs, try_both(a, b, match, outputs, seed, dims, given))
    if intermediates is None:
        intermediates = bool(result.outputs) or first_apart(result.deviations) is not None
    if intermediates:
        values, skipped = compare_values(a, b, ran, shared_values(a, b, names))
        result = replace(result, values=values, values_skipped=skipped)
    return result


def _compare_layers(a: Model, b: Model, seed: int) -> tuple[ModelComparison, list[tuple[str, str]]]:
    """Return a comparison of the layers alone, and the names of those that are paired."""
    layers_a, layers_b = dict(a.layers), dict(b.layers)
    pairs, *rest = pair_layers(layers_a, layers_b)
    layers: dict[str, Comparison] = {}
    for pair in pairs:
        key = ", ".join({pair.a: None, pair.b: None})
        while key in layers:  # a name may have a comma
            key += "*"
        layers[key] = _compare_pair(pair, layers_a[pair.a], layers_b[pair.b], seed)
    unpaired = [label(own[name]) for own, left in zip((layers_a, layers_b), rest, strict=True) for name in left]
    turned = [
        f"{label(first)} of a, {_direction(first)}, has the weights of {label(second)} of b, which runs in another "
        f"direction, {_direction(second)}"
        for first, second in turned_layers(layers_a, layers_b, *rest)
    ]
    result = ModelComparison(label(a), label(b), layers, tuple(unpaired), (), {}, not_decided=tuple(turned))
    return result, [(pair.a, pair.b) for pair in pairs]


def try_models(
    a: Model, b: Model, given: Mapping[str, Any], seed: int, dims: Mapping[str, int]
) -> tuple[Matched, Tries[Run]]:
    """Return which outputs of b belong to those of a, and the calls of both; inputs that are not given are random.

    Raises
    ------
    PyrnnxError
        As of `compare`, partly when iterating.
    """
    pairs, *_ = pair_layers(dict(a.layers), dict(b.layers))
    match, outputs = _matched(a, b, [(pair.a, pair.b) for pair in pairs])
    outputs = outputs._replace(names={name: both for name, both in outputs.names.items() if both[0]})
    return outputs, try_both(a, b, match, outputs, seed, dims, given)


def _matched(a: Model, b: Model, pairs: Sequence[tuple[str, str]]) -> tuple[Matched, Matched]:
    """Return the matched inputs and outputs of two models with these pairs of layers."""
    axes = axes_of_layers(layer_values(a), layer_values(b), pairs)
    return matched_inputs(a, b, axes), Matched(matched_names(a.outputs, b.outputs), axes)


def _direction(layer: AnyLayer) -> str:
    return "" if layer.op is None else layer.op.direction.value


def _compared(result: ModelComparison, outputs: Matched, tries: Tries[Run]) -> tuple[ModelComparison, Run]:
    """Return the comparison with the outputs of all calls, and the first call that differs, else the first."""
    parts: dict[str, list[Deviation]] = {}
    differences: dict[str, Difference] = {}
    first: Run | None = None
    differing: Run | None = None
    for ran in tries:
        first = first or ran
        for name, both in outputs.values(ran).items():
            apart = deviation(*both) if all(outputs.names[name]) else None
            if apart is None:
                differences.setdefault(name, Difference(f"output {shown(name)}", *map(described, both)))
            else:
                parts.setdefault(name, []).append(apart)
            if apart is None or not apart.within():
                differing = differing or ran
    assert first is not None  # there is a call
    result = replace(
        result,
        outputs=tuple(differences.values()),
        deviations={name: joined(apart) for name, apart in parts.items() if name not in differences},
        input_shapes={name: np.shape(array) for name, array in first.inputs_a.items()},
        calls=tuple(tries.calls),
        not_decided=(*result.not_decided, *tries.reasons),
        spreads=tries.spreads,
    )
    return result, differing or first


def _compare_pair(pair: Pair, a: AnyLayer, b: AnyLayer, seed: int) -> Comparison:
    """Report layers that cannot be compared instead of raising, so that the others still are."""
    try:
        return replace(compare_layers(a, b, None, seed), paired_by=pair.by)
    except PyrnnxError as error:
        return Comparison(with_convention(a), with_convention(b), (), (), {}, pair.by, str(error))
