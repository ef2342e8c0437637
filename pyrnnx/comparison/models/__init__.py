"""Comparison of two models: paired recurrent layers, outputs and intermediate values."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

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
    kept_states,
    matched_inputs,
    matched_names,
    try_both,
    two_conventions,
)
from pyrnnx.comparison.models.tries import Tries, unvaried
from pyrnnx.comparison.result import Result
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.models.inputs import read_inputs
from pyrnnx.models.layers import AnyLayer
from pyrnnx.models.model import Model, computed_values, layer_values, run_once
from pyrnnx.operator.conventions import CANONICAL, OUTPUTS, rearrange

GROUP = 32  # values computed by one run of a model


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


class Shared(NamedTuple):
    """A value of both models: its name in the results and in each of them, and the axes where those are known."""

    name: str
    a: str
    b: str
    axes: tuple[str, str, str] | None  # of a, of b, canonical


def shared_values(a: Model, b: Model, pairs: Sequence[tuple[str, str]]) -> list[Shared]:
    """Return values with a common name and the outputs of paired layers, in the order of a.

    The outputs of paired layers are converted to canonical axes. A value with several names is listed once.
    """
    (own, internal), (others, other_internal) = computed_values(a), computed_values(b)
    values_a, values_b = layer_values(a), layer_values(b)
    arranged: dict[str, tuple[tuple[str, ...], tuple[str, str, str]]] = {}  # names in b and axes, by the names in a
    for first, second in pairs:
        mine, theirs = values_a.get(first, {}), values_b.get(second, {})
        for argument in (output for output in OUTPUTS if output in mine and output in theirs):
            axes = mine[argument].axes, theirs[argument].axes, CANONICAL.axes_of(argument)
            arranged |= dict.fromkeys(mine[argument].names, (theirs[argument].names, axes))
    shared: dict[tuple[Hashable, Hashable], Shared] = {}
    for name, value in own.items():
        if name in arranged:
            names, axes_of_pair = arranged[name]
            other = name if name in names else names[0]
            entry = Shared(name if other == name else f"{name}, {other}", name, other, axes_of_pair)
        elif name in others and (name in internal) == (name in other_internal):
            other, entry = name, Shared(name, name, name, None)
        else:
            continue
        shared.setdefault((value, others.get(other, other)), entry)
    return list(shared.values())


def compare_values(a: Model, b: Model, ran: Run, shared: Sequence[Shared]) -> tuple[dict[str, Deviation], int]:
    """Run two models on the inputs of a run; return the deviations, and how many values a model cannot compute.

    Values are computed in groups, and none of them is kept.
    """
    inputs = [
        read_inputs(model.label, model.inputs, (arrays,)) for model, arrays in ((a, ran.inputs_a), (b, ran.inputs_b))
    ]
    deviations: dict[str, Deviation] = {}
    groups = [shared[start : start + GROUP] for start in range(0, len(shared), GROUP)][::-1]
    skipped = 0
    while groups:
        group = groups.pop()
        try:
            with kept_states(a, b):
                first = run_once(a, inputs[0], tuple(dict.fromkeys(value.a for value in group)))
                second = run_once(b, inputs[1], tuple(dict.fromkeys(value.b for value in group)))
        except PyrnnxError:
            groups += [[value] for value in reversed(group)] if len(group) > 1 else []
            skipped += len(group) == 1
            continue
        for value in group:
            x, y = first[value.a], second[value.b]
            if value.axes is not None:
                x, y = (
                    rearrange(np.asarray(z), own, value.axes[2]) for z, own in zip((x, y), value.axes, strict=False)
                )
            deviations[value.name] = _deviation(x, y)
    return deviations, skipped


def _deviation(x: Any, y: Any) -> Deviation:
    """Compare two values; a scalar equals an array of one element."""
    shapes = [getattr(value, "shape", None) for value in (x, y)]
    if None not in shapes and shapes[0] != shapes[1]:
        if np.squeeze(x).shape == np.squeeze(y).shape:
            x, y = np.squeeze(x), np.squeeze(y)
        else:
            return Deviation(math.inf, unlike=f"shapes {shapes[0]} and {shapes[1]}")
    return deviation(x, y) or Deviation(math.inf, unlike=f"{described(x)} and {described(y)}")


def described(value: Any) -> str:
    """Return the kind of a value in words."""
    if isinstance(value, (list, tuple)):
        return f"a sequence of {len(value)}"
    if not isinstance(value, (np.ndarray, np.generic)):
        return "missing" if value is None else type(value).__name__
    return f"{value.dtype} {value.shape}"
