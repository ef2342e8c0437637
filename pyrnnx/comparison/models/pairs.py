"""Pairs of recurrent layers of two models, matched by weights first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, widened
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.layer import Layer
from pyrnnx.models.layers import AnyLayer
from pyrnnx.operator.conventions import KERNELS, convert_weights

NEAR = 1 / 64  # of the norm: bfloat16 rounds by 2^-9 and int8 by some 2^-7, other weights are about 2^0.5 away
_SAMPLES = 16  # elements of each weight by which the nearest layer is looked for

Layers = Mapping[str, AnyLayer]


class Pair(NamedTuple):
    """Two layers by their names, and what makes them a pair."""

    a: str
    b: str
    by: str


def pair_layers(a: Layers, b: Layers) -> tuple[list[Pair], list[str], list[str]]:
    """Return pairs of layers of the same cell, direction and sizes, and the unpaired ones of a and b.

    Layers are paired by equal weights, by nearly equal W and R (another bias, or one model in fewer bits), by name, by
    operator and sizes, and by order. If several match, the name decides, then the order.
    """
    rest_a, rest_b = dict(a), dict(b)
    pairs: dict[str, Pair] = {}
    for pairs_of in (_by_weights, _by_name, _by_operator, _by_order):
        for pair in list(pairs_of(rest_a, rest_b)):
            pairs[pair.a] = pair
            del rest_a[pair.a], rest_b[pair.b]
    return [pairs[name] for name in a if name in pairs], list(rest_a), list(rest_b)


def turned_layers(
    a: Layers, b: Layers, rest_a: Iterable[str], rest_b: Iterable[str]
) -> Iterator[tuple[AnyLayer, AnyLayer]]:
    """Yield unpaired layers of a and b whose W and R are equal, so that only their directions differ."""
    others = [layer for name in rest_b if isinstance(layer := b[name], Layer)]
    for first in (layer for name in rest_a if isinstance(layer := a[name], Layer)):
        for second in others:
            if first.op.cell == second.op.cell and _equal(_weights(first, "WR"), _weights(second, "WR")):
                yield first, second
                break


def _by_weights(a: Layers, b: Layers) -> Iterator[Pair]:
    """Yield the layers that are nearest to each other, if they are near."""
    samples_a, samples_b = (
        {name: _sample(layer) for name, layer in layers.items() if isinstance(layer, Layer)} for layers in (a, b)
    )
    distances = []
    for first, mine in samples_a.items():
        for second, theirs in samples_b.items():
            if _fits(a[first], b[second]):
                with np.errstate(invalid="ignore", over="ignore"):  # weights may be infinite
                    distance = float(np.abs(mine - theirs).sum())
                if np.isfinite(distance):
                    distances.append((distance, first != second, first, second))
    for _, _, first, second in sorted(distances, key=lambda entry: entry[:2]):  # in order if the rest is the same
        if first in samples_a and second in samples_b:
            layers = a[first], b[second]
            if _equal(*(_weights(layer, "WRBP") for layer in layers)):
                by = "equal weights"
            elif _near(*(_weights(layer, "WR") for layer in layers)):
                by = "nearly equal W and R"
            else:
                continue
            del samples_a[first], samples_b[second]
            yield Pair(first, second, by)


def _by_name(a: Layers, b: Layers) -> Iterator[Pair]:
    yield from (Pair(name, name, "name") for name in a if name in b and _fits(a[name], b[name]))


def _by_operator(a: Layers, b: Layers) -> Iterator[Pair]:
    yield from _in_order(
        a, b, lambda first, second: first.op == second.op and _fits(first, second), "operator and sizes"
    )


def _by_order(a: Layers, b: Layers) -> Iterator[Pair]:
    yield from _in_order(a, b, _fits, "order")


def _in_order(a: Layers, b: Layers, fits: Callable[[AnyLayer, AnyLayer], bool], by: str) -> Iterator[Pair]:
    free = dict(b)
    for name, layer in a.items():
        second = next((other for other in free if fits(layer, b[other])), None)
        if second is not None:
            del free[second]
            yield Pair(name, second, by)


def _equal(a: Mapping[str, AnyArray], b: Mapping[str, AnyArray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)


def _near(a: Mapping[str, AnyArray], b: Mapping[str, AnyArray]) -> bool:
    """Return whether weights as a whole differ by little."""
    distance = norm = 0.0
    for first, second in zip(a.values(), b.values(), strict=True):
        if first.shape != second.shape:  # one of them in a convention of its own
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            distance += float(np.sum(np.square(first - second), dtype=np.float64))
            norm += float(np.sum(np.square(second), dtype=np.float64))
    return distance <= NEAR**2 * norm < np.inf


def _sample(layer: AnyLayer) -> AnyArray:
    """Return a sample of the weights, at the same positions for all layers of one shape; absent ones are zero."""
    sample, weights = np.zeros((4, _SAMPLES)), _weights(layer, "WRBP")
    for row, name in zip(sample, "WRBP", strict=True):
        flat = weights.get(name, np.zeros(1)).ravel()
        with np.errstate(invalid="ignore"):  # a signalling NaN is made a quiet one
            row[: flat.size] = flat[np.linspace(0, flat.size - 1, min(flat.size, _SAMPLES)).astype(int)]
    return sample


def _weights(layer: AnyLayer, names: str) -> dict[str, AnyArray]:
    """Return the named weights in one convention, widened; B and P of zeros count as absent."""
    assert isinstance(layer, Layer)
    wide = {name: widened(layer.weights[name]) for name in names if name in layer.weights}
    present: dict[str, AnyArray] = {name: array for name, array in wide.items() if name in "WR" or array.any()}
    try:
        return convert_weights(layer.op, present, layer.convention, KERNELS)
    except PyrnnxError:  # what the convention says cannot be said in another: equal to its own kind only
        return present


def _kind(layer: AnyLayer) -> Hashable:
    op = layer.op
    return (layer.convention.name,) if op is None else (op.cell, op.direction, op.hidden_size)


def _fits(a: AnyLayer, b: AnyLayer) -> bool:
    sizes = {_input_size(layer) for layer in (a, b)} - {None}
    return _kind(a) == _kind(b) and len(sizes) < 2


def _input_size(layer: AnyLayer) -> int | None:
    """Return None if the size is open."""
    return layer.input_size if isinstance(layer, Layer) else layer.sizes.get("I")
