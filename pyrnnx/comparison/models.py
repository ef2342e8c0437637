"""Comparison of two models: paired recurrent layers, outputs and intermediate values."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyrnnx.comparison.agreement import DEFAULT, first_apart
from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.distances import Deviation, deviation, joined, largest
from pyrnnx.comparison.inputs import INPUTS, NO_DIMS
from pyrnnx.comparison.intermediates import Values as Intermediates
from pyrnnx.comparison.intermediates import described, shared_values
from pyrnnx.comparison.layers import Comparison, compare_layers, label, with_convention
from pyrnnx.comparison.model_runs import (
    LayerValues,
    Matched,
    Run,
    axes_of_layers,
    by_own_names,
    matched_inputs,
    matched_outputs,
    try_both,
    try_given,
    two_conventions,
)
from pyrnnx.comparison.pairs import Pair, pair_layers, turned_layers
from pyrnnx.comparison.result import Result
from pyrnnx.comparison.tries import Tries, unvaried
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.models.layers import AnyLayer
from pyrnnx.models.model import Model, layer_values

Values: TypeAlias = Mapping[str, tuple[Any, Any]]  # outputs of a call of two models, by name
Differs: TypeAlias = Callable[[Values], bool]


@dataclass(frozen=True)
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

    def __hash__(self) -> int:
        layers, deviations = frozenset(self.layers.items()), frozenset(self.deviations.items())
        return hash((self.a, self.b, layers, self.unpaired, self.outputs, deviations, self.not_compared))

    def __repr__(self) -> str:
        count = len(self.layers)
        return self._repr(f"{shown(self.a)} and {shown(self.b)}: {count} {'pair' if count == 1 else 'pairs'} of layers")


def differing(values: Values) -> bool:
    """Return whether outputs are apart by more than the default tolerance of `equal`."""
    return any(apart is None or not apart.within(*DEFAULT) for apart in (deviation(*both) for both in values.values()))


def compare_models(
    a: Model,
    b: Model,
    inputs: Mapping[str, Any] | None,
    seed: int,
    intermediates: bool | None = None,
    dims: Mapping[str, int] = NO_DIMS,
    differs: Differs = differing,
    chosen: Callable[[Collection[str]], Collection[str]] = list,
) -> tuple[ModelComparison, Matched, Run | None]:
    """Compare two models as `pyrnnx.compare` does.

    `chosen` returns which of the outputs count. Return the comparison, the matched outputs, and the first run whose
    outputs `differs` rejects, else the first run, if any.
    """
    match = _matched(a, b)
    wanted = chosen(match.outputs.names)
    names = {name: both for name, both in match.outputs.names.items() if name in wanted}
    match = match._replace(outputs=match.outputs._replace(names=names))
    layers_a, layers_b = dict(a.layers), dict(b.layers)
    layers: dict[str, Comparison] = {}
    for pair in match.pairs:
        layers[_free_key(pair, layers)] = _compare_pair(pair, layers_a[pair.a], layers_b[pair.b], seed)
    why = ""
    if any(layers_a[pair.a].convention.axes != layers_b[pair.b].convention.axes for pair in match.pairs):
        why = two_conventions(match.inputs, match.outputs)
    if why and inputs is not None:
        raise ArgumentError(
            f"{INPUTS}: {label(a)} and {label(b)} cannot run on the same arrays: {why}; expected no inputs, which "
            "compares only their layers"
        )
    result = ModelComparison(
        label(a), label(b), layers, match.unpaired, (), {}, why, not_decided=_turned(match, layers_a, layers_b)
    )
    if why:
        return result, match.outputs, None
    result, ran = _compared(result, match, _tries(a, b, match, inputs, seed, dims), differs)
    if intermediates is None:
        intermediates = bool(result.outputs) or first_apart(result.deviations) is not None
    if intermediates:
        values = Intermediates(a, b, ran.inputs_a, ran.inputs_b)
        values.compare(shared_values(a, b, *match.inside, match.names))
        result = replace(result, values=values.deviations, values_skipped=values.skipped)
    return result, match.outputs, ran


def try_models(a: Model, b: Model, given: Mapping[str, Any], seed: int) -> tuple[Matched, Tries[Run]]:
    """Return which outputs of b belong to those of a, and the calls of both; inputs that are not given are random.

    Raises
    ------
    PyrnnxError
        As of `compare`, partly when iterating.
    """
    match = _matched(a, b)
    outputs = match.outputs._replace(names={name: both for name, both in match.outputs.names.items() if both[0]})
    return outputs, try_both(a, b, match.inputs, outputs, seed, NO_DIMS, given)


class _Match(NamedTuple):
    """Paired layers, inputs and outputs of two models."""

    pairs: list[Pair]
    rest: tuple[list[str], list[str]]  # names of other layers
    unpaired: tuple[str, ...]  # their labels
    inside: tuple[LayerValues, LayerValues]  # what the layers take and return in their models
    inputs: Matched
    outputs: Matched

    @property
    def names(self) -> list[tuple[str, str]]:
        """The names of paired layers."""
        return [(pair.a, pair.b) for pair in self.pairs]


def _matched(a: Model, b: Model) -> _Match:
    layers = dict(a.layers), dict(b.layers)
    pairs, *others = pair_layers(*layers)
    rest = others[0], others[1]
    unpaired = tuple([label(own[name]) for own, names in zip(layers, rest, strict=True) for name in names])
    inside = (layer_values(a), layer_values(b)) if pairs else ({}, {})
    axes = axes_of_layers(*inside, [(pair.a, pair.b) for pair in pairs])
    return _Match(pairs, rest, unpaired, inside, matched_inputs(a, b, axes), matched_outputs(a, b, axes))


def _tries(
    a: Model, b: Model, match: _Match, inputs: Mapping[str, Any] | None, seed: int, dims: Mapping[str, int]
) -> Tries[Run]:
    given = {name: np.asarray(array) for name, array in by_own_names(a, inputs or {}, INPUTS).items()}
    if inputs is None or {both[0] for both in match.inputs.names.values()} - given.keys():
        return try_both(a, b, match.inputs, match.outputs, seed, dims, given)
    return try_given(a, b, match.inputs, match.outputs, inputs)


def _turned(match: _Match, a: Mapping[str, AnyLayer], b: Mapping[str, AnyLayer]) -> tuple[str, ...]:
    """Return, in words, which layers have a counterpart that runs in another direction."""
    return tuple(
        f"{label(a[first])} of a, {_direction(a[first])}, has the weights of {label(b[second])} of b, which runs in "
        f"another direction, {_direction(b[second])}"
        for first, second in turned_layers(a, b, *match.rest)
    )


def _direction(layer: AnyLayer) -> str:
    return "" if layer.op is None else layer.op.direction.value


def _compared(
    result: ModelComparison, match: _Match, tries: Tries[Run], differs: Differs
) -> tuple[ModelComparison, Run]:
    """Return the comparison with the outputs of all calls, and the first call that differs, else the first."""
    parts: dict[str, list[Deviation]] = {}
    differences: dict[str, Difference] = {}
    chosen: Run | None = None
    is_chosen = False
    shapes: dict[str, tuple[int, ...]] = {}
    for ran in tries:
        values = match.outputs.values(ran)
        if chosen is None:
            chosen, shapes = ran, {name: np.shape(array) for name, array in ran.inputs_a.items()}
        if not is_chosen and differs(values):
            chosen, is_chosen = ran, True
        for name, both in values.items():
            apart = deviation(*both) if all(match.outputs.names[name]) else None
            if apart is None:
                words = Difference(f"output {shown(name)}", *map(described, both))
                differences.setdefault(name, words)
            else:
                parts.setdefault(name, []).append(apart)
    assert chosen is not None  # there is a call
    deviations = {name: joined(apart) for name, apart in parts.items() if name not in differences}
    result = replace(
        result,
        outputs=tuple(differences.values()),
        deviations=deviations,
        input_shapes=shapes,
        calls=tuple(tries.calls),
        not_decided=(*result.not_decided, *tries.reasons),
        spreads=tries.spreads,
    )
    return result, chosen


def _free_key(pair: Pair, layers: Mapping[str, Comparison]) -> str:
    """Return both names, with a number if two pairs would have one key."""
    stem = key = ", ".join({pair.a: None, pair.b: None})
    number = 1
    while key in layers:
        number += 1
        key = f"{stem}#{number}"
    return key


def _compare_pair(pair: Pair, a: AnyLayer, b: AnyLayer, seed: int) -> Comparison:
    """Report layers that cannot be compared instead of raising, so that the others still are."""
    try:
        return replace(compare_layers(a, b, None, seed), paired_by=pair.by)
    except PyrnnxError as error:
        return Comparison(with_convention(a), with_convention(b), (), (), {}, pair.by, str(error))
