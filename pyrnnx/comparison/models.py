"""Two whole models side by side: their recurrent layers in pairs, and the numbers of their outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyrnnx.comparison.inputs import INPUTS, made_shape, random_array
from pyrnnx.comparison.layers import AnyLayer, Comparison, Difference, compare_layers, label, with_convention
from pyrnnx.comparison.numbers import Deviation, Verdict, deviation, in_words, largest
from pyrnnx.comparison.pairs import Pair, pair_layers
from pyrnnx.conventions import INTEGERS, AnyArray
from pyrnnx.dtypes import FLOAT_TYPES
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shortened, shown
from pyrnnx.model import Model
from pyrnnx.tensor_info import Interval, TensorInfo

OPEN_SIZE = 3  # of an open dimension, where inputs are made


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
    """

    a: str
    b: str
    layers: Mapping[str, Comparison]
    unpaired: tuple[str, ...]
    outputs: tuple[Difference, ...]
    deviations: Mapping[str, Deviation]

    @property
    def numbers(self) -> dict[str, float]:
        """For each output that both have: the largest absolute difference (see `Deviation.largest`)."""
        return {name: one.largest for name, one in self.deviations.items()}

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
        return not (self.unpaired or self.outputs) and all(pair._complete() for pair in self.layers.values())

    def _deviations(self) -> Iterable[Deviation]:
        yield from self.deviations.values()
        for pair in self.layers.values():
            yield from pair._deviations()

    def __hash__(self) -> int:
        layers, deviations = frozenset(self.layers.items()), frozenset(self.deviations.items())
        return hash((self.a, self.b, layers, self.unpaired, self.outputs, deviations))

    def __str__(self) -> str:
        lines = [f"{self.a} and {self.b}"]
        for pair in self.layers.values():
            lines += ["", str(pair)]
        lines += ["", *(f"only in one of them: {name}" for name in self.unpaired)]
        lines += [f"{one.aspect}: {one.a}; {one.b}" for one in self.outputs]
        lines += [
            f"largest difference of output {shown(name)}: {in_words(value)}" for name, value in self.numbers.items()
        ]
        return "\n".join(lines)


def compare_models(a: Model, b: Model, inputs: Mapping[str, Any] | None, seed: int) -> ModelComparison:
    """As `compare`, of two models."""
    layers_a, layers_b = dict(a.layers), dict(b.layers)
    pairs, only_a, only_b = pair_layers(layers_a, layers_b)
    layers: dict[str, Comparison] = {}
    for pair in pairs:
        layers[_free_key(pair, layers)] = _compare_pair(pair, layers_a[pair.a], layers_b[pair.b], seed)
    unpaired = [label(layers_a[name]) for name in only_a] + [label(layers_b[name]) for name in only_b]
    values_a, values_b = _run(a, b, inputs, np.random.default_rng(seed))
    differences: list[Difference] = []
    deviations: dict[str, Deviation] = {}
    for name, (first, second) in _matched(a.outputs, b.outputs).items():
        one, other = values_a.get(first), values_b.get(second)
        found = deviation(one, other) if first and second else None
        if found is None:
            differences.append(Difference(f"output {shown(name)}", _describe(one), _describe(other)))
        else:
            deviations[name] = found
    return ModelComparison(model_label(a), model_label(b), layers, tuple(unpaired), tuple(differences), deviations)


def model_label(model: Model) -> str:
    """How errors and tables name a model."""
    return printable(shortened(model.label))


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


def _describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a sequence of {len(value)}"
    if not isinstance(value, (np.ndarray, np.generic)):
        return "missing" if value is None else type(value).__name__
    return f"{value.dtype} {value.shape}"


def _matched(a: Sequence[TensorInfo], b: Sequence[TensorInfo]) -> dict[str, tuple[str, str]]:
    """By the names that both have, the rest in order; an empty name stands for none."""
    names_b = {info.name: info.name for info in b}
    by_name = {alias: info.name for info in b for alias in info.aliases} | names_b
    pairs: dict[str, str] = {}
    for info in a:
        if (second := by_name.get(info.name)) in names_b:
            pairs[info.name] = names_b.pop(second)
    free = iter(names_b)
    matched = {info.name: (info.name, pairs.get(info.name) or next(free, "")) for info in a}
    return matched | {name: ("", name) for name in free}


def _run(
    a: Model, b: Model, given: Mapping[str, Any] | None, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any]]:
    required = [[info for info in model.inputs if not info.optional] for model in (a, b)]
    matched = _matched(*required)
    for name, (first, second) in matched.items():
        if not (first and second):
            raise ArgumentError(
                f"compare: {model_label(a)} and {model_label(b)} have not the same inputs; {shown(name)} is only in one"
            )
    if given is None:
        infos = {info.name: info for info in required[0]}
        given = {first: _random(infos[first], rng) for first, _ in matched.values()}
    names = {alias: info.name for info in a.inputs for alias in (*info.aliases, info.name)}
    for name in given:
        if name not in names:
            expected = ", ".join(info.name for info in a.inputs)
            raise ArgumentError(f"{INPUTS} has {shown(name)}; expected names out of {expected}")
    there = dict(matched.values())
    try:
        return a(given), b({there.get(names[name], name): value for name, value in given.items()})
    except PyrnnxError as error:
        raise type(error)(f"compare: {error} (inputs=... gives both models the arrays to run on)") from error


def _random(info: TensorInfo, rng: np.random.Generator) -> AnyArray:
    """Numbers of the input's type; ones for integers, which are legal as most lengths and indices."""
    what = f"input {shown(info.name)}"
    shape = made_shape(what, [_size(one) for one in info.shape or ()])
    if info.dtype in FLOAT_TYPES:
        return random_array(what, shape, [str(info.dtype)], rng)
    if info.dtype in (*INTEGERS, "bool"):
        return np.ones(shape, info.dtype)
    raise ArgumentError(f"compare: {what} has type {info.dtype}; inputs=... must give it")


def _size(dimension: Any) -> int:
    if isinstance(dimension, Interval):
        low, high = dimension
        return max(low, OPEN_SIZE if high is None else min(OPEN_SIZE, high))
    return dimension if isinstance(dimension, int) else OPEN_SIZE
