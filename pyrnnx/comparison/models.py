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
from pyrnnx.conventions import CALL_ARGUMENTS, CANONICAL, OPENVINO_SEQUENCE
from pyrnnx.dtypes import FLOAT_TYPES, INTEGERS, AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shortened, shown
from pyrnnx.model import Model
from pyrnnx.tensor_info import Interval, TensorInfo

OPEN_SIZE = 3  # of an open dimension, where inputs are made
_CANONICAL_NAMES = {
    convention.name_of(argument): argument
    for convention in (CANONICAL, OPENVINO_SEQUENCE)
    for argument in (*CALL_ARGUMENTS, "Y", "Y_h", "Y_c")
}


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
    """

    a: str
    b: str
    layers: Mapping[str, Comparison]
    unpaired: tuple[str, ...]
    outputs: tuple[Difference, ...]
    deviations: Mapping[str, Deviation]
    not_compared: str = ""

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

    def __str__(self) -> str:
        lines = [f"{self.a} and {self.b}"]
        for pair in self.layers.values():
            lines += ["", str(pair)]
        lines += ["", *(f"only in one of them: {name}" for name in self.unpaired)]
        lines += [f"{one.aspect}: {one.a}; {one.b}" for one in self.outputs]
        lines += [f"outputs: not compared: {self.not_compared}"] if self.not_compared else []
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
    names, matched = _matched_inputs(a, b), _matched(a.outputs, b.outputs)
    differences: list[Difference] = []
    deviations: dict[str, Deviation] = {}
    why = ""
    if any(_axes(layers_a[pair.a]) != _axes(layers_b[pair.b]) for pair in pairs):
        why = _two_conventions([*names.items(), *matched.values()])
    if why and inputs is not None:
        raise ArgumentError(
            f"{INPUTS} cannot be given to {model_label(a)} and {model_label(b)} alike: {why}; compare their layers"
        )
    values_a, values_b = ({}, {}) if why else _run(a, b, names, inputs, np.random.default_rng(seed))
    for name, (first, second) in {} if why else matched.items():
        one, other = values_a.get(first), values_b.get(second)
        found = deviation(one, other) if first and second else None
        if found is None:
            differences.append(Difference(f"output {shown(name)}", _describe(one), _describe(other)))
        else:
            deviations[name] = found
    return ModelComparison(model_label(a), model_label(b), layers, tuple(unpaired), tuple(differences), deviations, why)


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


def _matched(a: Sequence[TensorInfo], b: Sequence[TensorInfo], *, alike: bool = False) -> dict[str, tuple[str, str]]:
    """By the names that both have, then by those that two conventions have for one array, the rest in order.

    An empty name stands for none. `alike`: of the rest, only those of equal dtype and rank.
    """
    free = {info.name: info for info in b}
    by_name = {alias: info.name for info in b for alias in info.aliases} | {name: name for name in free}
    by_convention = {_CANONICAL_NAMES[name]: name for name in free if name in _CANONICAL_NAMES}
    pairs: dict[str, str] = {}
    for names in (by_name.get, lambda name: by_convention.get(_CANONICAL_NAMES.get(name, ""))):
        for info in a:
            if info.name not in pairs and (second := names(info.name)) in free:
                pairs[info.name] = free.pop(second).name
    for info in a:
        if info.name not in pairs:
            found = next((name for name, other in free.items() if not alike or _alike(info, other)), "")
            free.pop(found, None)
            pairs[info.name] = found
    return {info.name: (info.name, pairs[info.name]) for info in a} | {name: ("", name) for name in free}


def _alike(a: TensorInfo, b: TensorInfo) -> bool:
    """Whether dtype and rank are the same, as far as they are declared."""
    dtypes, shapes = {a.dtype, b.dtype} - {None}, [info.shape for info in (a, b) if info.shape is not None]
    return len(dtypes) < 2 and len({len(shape) for shape in shapes}) < 2


def _axes(layer: AnyLayer) -> Mapping[str, str]:
    return layer.convention.axes


def _two_conventions(matched: Iterable[tuple[str, str]]) -> str:
    """How the names of one array show that two models are arranged by two conventions; empty where they do not."""
    for first, second in matched:
        canonical = _CANONICAL_NAMES.get(first)
        if first != second and canonical is not None and canonical == _CANONICAL_NAMES.get(second):
            return f"they name their arrays by two conventions ({first}, {second}), and so arrange them differently"
    return ""


def _matched_inputs(a: Model, b: Model) -> dict[str, str]:
    """Of each input that a requires, its name in b."""
    required = [[info for info in model.inputs if not info.optional] for model in (a, b)]
    matched = _matched(*required, alike=True)
    for name, (first, second) in matched.items():
        if not (first and second):
            raise ArgumentError(
                f"compare: {model_label(a)} and {model_label(b)} have not the same inputs; {shown(name)} is only in one"
            )
    return dict(matched.values())


def _run(
    a: Model, b: Model, there: Mapping[str, str], given: Mapping[str, Any] | None, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The outputs of both; `there` has the names in b of what a requires."""
    made = given is None
    if given is None:
        infos_a, infos_b = ({info.name: info for info in model.inputs} for model in (a, b))
        given = {name: _random(infos_a[name], infos_b[other], rng) for name, other in there.items()}
    names = {alias: info.name for info in a.inputs for alias in (*info.aliases, info.name)}
    for name in given:
        if name not in names:
            expected = ", ".join(info.name for info in a.inputs)
            raise ArgumentError(f"{INPUTS} has {shown(name)}; expected names out of {expected}")
    try:
        return a(given), b({there.get(names[name], name): value for name, value in given.items()})
    except PyrnnxError as error:
        if not made:
            raise type(error)(f"compare: {error} (inputs=... gives both models the arrays to run on)") from error
        raise type(error)(
            f"compare: {model_label(a)} and {model_label(b)} do not both run on random inputs of the sizes that they "
            f"declare; inputs=... can give others ({error})"
        ) from error


def _random(info: TensorInfo, other: TensorInfo, rng: np.random.Generator) -> AnyArray:
    """Numbers of the input's type, of the sizes that it or the other model's declares.

    Integers are ones, which are legal as most lengths and indices.
    """
    what = f"input {shown(info.name)}"
    dimensions = info.shape or other.shape or ()
    if other.shape is not None and len(other.shape) == len(dimensions):
        pairs = zip(dimensions, other.shape, strict=True)
        dimensions = tuple(two if isinstance(two, int) and not isinstance(one, int) else one for one, two in pairs)
    shape = made_shape(what, [_size(one) for one in dimensions])
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
