"""Two whole models side by side: their recurrent layers in pairs, and the numbers of their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from pyrnnx.compare_layers import AnyLayer, Comparison, Difference, compare_layers, largest_difference
from pyrnnx.conventions import INTEGERS, AnyArray
from pyrnnx.dtypes import FLOAT_TYPES
from pyrnnx.errors import ArgumentError, PyrnnxError
from pyrnnx.layer import Layer
from pyrnnx.model import Interval, Model, TensorInfo

OPEN_SIZE = 3  # of an open dimension, where inputs are made


@dataclass(frozen=True)
class ModelComparison:
    """What `compare` found in two models; printed as text.

    Attributes
    ----------
    a, b : str
        The two models, as errors name them.
    layers : dict
        The comparison of each pair of recurrent layers, by their names.
    unpaired : tuple of str
        Recurrent layers for which the other model has no counterpart of the same cell, direction and sizes.
    outputs : tuple of Difference
        Outputs that are not in both models, or of other shapes.
    numbers : dict
        For each output that both have: the largest absolute difference.
    """

    a: str
    b: str
    layers: Mapping[str, Comparison]
    unpaired: tuple[str, ...]
    outputs: tuple[Difference, ...]
    numbers: Mapping[str, float]

    @property
    def largest_difference(self) -> float:
        """The largest absolute difference over all outputs; NaN if one has a NaN where the other has none."""
        return float(np.max(list(self.numbers.values()), initial=0))

    def __str__(self) -> str:
        lines = [f"{self.a} and {self.b}"]
        for comparison in self.layers.values():
            lines += ["", str(comparison)]
        lines += ["", *(f"only in one of them: {label}" for label in self.unpaired)]
        lines += [f"{one.aspect}: {one.a}; {one.b}" for one in self.outputs]
        lines += [f"largest difference of output {name!r}: {value:.3g}" for name, value in self.numbers.items()]
        return "\n".join(lines)


def compare_models(a: Model, b: Model, inputs: Mapping[str, Any] | None, seed: int) -> ModelComparison:
    """As `compare`, of two models."""
    pairs, unpaired = _pairs(a, b)
    layers = {
        ", ".join({first: None, second: None}): compare_layers(a.layers[first], b.layers[second], None, seed)
        for first, second in pairs
    }
    values_a, values_b = _run(a, b, inputs, np.random.default_rng(seed))
    differences: list[Difference] = []
    numbers: dict[str, float] = {}
    for name, (first, second) in _matched(a.outputs, b.outputs).items():
        one, other = values_a.get(first), values_b.get(second)
        if _is_number(one) and _is_number(other) and one.shape == other.shape:
            numbers[name] = largest_difference(one, other)
        else:
            differences.append(Difference(f"output {name!r}", _describe(one), _describe(other)))
    return ModelComparison(a.label, b.label, layers, unpaired, tuple(differences), numbers)


def _is_number(value: Any) -> TypeGuard[AnyArray]:
    return isinstance(value, np.ndarray) and (value.dtype.kind in "biuf" or value.dtype.name in FLOAT_TYPES)


def _describe(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return "missing" if value is None else type(value).__name__
    return f"{value.dtype} {value.shape}"


def _signature(layer: AnyLayer) -> tuple[Any, ...]:
    size = layer.input_size if isinstance(layer, Layer) else layer.sizes.get("I")
    op = layer.op
    return op.cell, op.direction, op.hidden_size, size


def _pairs(a: Model, b: Model) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Layers of the same name, then those that follow each other in order, where sizes and direction fit."""
    rest_a, rest_b = (
        {name: _signature(layer) for name, layer in model.layers.items() if layer.op is not None} for model in (a, b)
    )
    partner = {name: name for name, signature in rest_a.items() if rest_b.get(name) == signature}
    free = [name for name in rest_b if name not in partner]
    for name, signature in rest_a.items():
        if name not in partner:
            found = next((other for other in free if rest_b[other] == signature), None)
            if found is not None:
                partner[name] = found
                free.remove(found)
    taken = set(partner.values())
    alone = [a.layers[name].label for name in a.layers if name not in partner]
    alone += [b.layers[name].label for name in b.layers if name not in taken]
    return [(name, partner[name]) for name in rest_a if name in partner], tuple(alone)


def _matched(a: Sequence[TensorInfo], b: Sequence[TensorInfo]) -> dict[str, tuple[str, str]]:
    """By name where both have the same names, else by order; an empty name stands for none."""
    names_a, names_b = ([info.name for info in infos] for infos in (a, b))
    if set(names_a) == set(names_b):
        return {name: (name, name) for name in names_a}
    longest = max(len(names_a), len(names_b))
    padded = zip(names_a + [""] * (longest - len(names_a)), names_b + [""] * (longest - len(names_b)), strict=True)
    return {first or second: (first, second) for first, second in padded}


def _run(
    a: Model, b: Model, given: Mapping[str, Any] | None, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any]]:
    required = [[info for info in model.inputs if not info.optional] for model in (a, b)]
    matched = _matched(*required)
    for name, (first, second) in matched.items():
        if not (first and second):
            raise ArgumentError(f"compare: {a.label} and {b.label} have not the same inputs; {name!r} is only in one")
    if given is None:
        infos = {info.name: info for info in required[0]}
        given = {first: _random(infos[first], rng) for first, _ in matched.values()}
    unknown = [name for name in given if name not in {info.name for info in a.inputs}]
    if unknown:
        expected = ", ".join(info.name for info in a.inputs)
        raise ArgumentError(f"compare: inputs has {unknown[0]!r}; expected names out of {expected}")
    there = dict(matched.values())
    try:
        return a(given), b({there.get(name, name): value for name, value in given.items()})
    except PyrnnxError as error:
        raise type(error)(f"compare: {error} (inputs=... gives both models the arrays to run on)") from error


def _random(info: TensorInfo, rng: np.random.Generator) -> AnyArray:
    """Numbers of the input's type; ones for integers, which are legal as most lengths and indices."""
    shape = [_size(one) for one in info.shape or ()]
    if info.dtype in FLOAT_TYPES:
        return rng.normal(size=shape).astype(info.dtype)
    if info.dtype in (*INTEGERS, "bool"):
        return np.ones(shape, info.dtype)
    raise ArgumentError(f"compare: input {info.name!r} has type {info.dtype}; inputs=... must give it")


def _size(dimension: Any) -> int:
    if isinstance(dimension, Interval):
        low, high = dimension
        return max(low, OPEN_SIZE if high is None else min(OPEN_SIZE, high))
    return dimension if isinstance(dimension, int) else OPEN_SIZE
