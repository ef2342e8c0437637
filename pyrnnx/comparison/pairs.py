"""Pairs of recurrent layers of two models, matched by weights first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, widened
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.layer import Layer
from pyrnnx.models.layers import AnyLayer
from pyrnnx.operator.conventions import KERNELS, convert_weights

NEAR = 1 / 64  # of the norm: bfloat16 rounds by 2^-9 and int8 by some 2^-7, other weights are about 2^0.5 away
_SAMPLES = 16  # elements of W and of R by which the nearest is looked for

Layers = Mapping[str, AnyLayer]
Names = Iterator[tuple[str, str]]
Key = Callable[[AnyLayer], Hashable]  # None: none


class Pair(NamedTuple):
    """Two layers by their names, and what makes them a pair."""

    a: str
    b: str
    by: str


def pair_layers(a: Layers, b: Layers) -> tuple[list[Pair], list[str], list[str]]:
    """Return pairs of layers of the same cell, direction and sizes, and the unpaired ones of a and b.

    Layers are paired by equal weights, by equal W and R, by nearly equal W and R (one model in fewer bits), by name, as
    the only ones with their operator and sizes, and by order. If several match, the name decides, then the order.
    """
    rest_a, rest_b = dict(a), dict(b)
    pairs: dict[str, Pair] = {}
    for by, pairs_of in _STAGES:
        for first, second in list(pairs_of(rest_a, rest_b)):
            pairs[first] = Pair(first, second, by)
            del rest_a[first], rest_b[second]
    return [pairs[name] for name in a if name in pairs], list(rest_a), list(rest_b)


def _by_key(key: Key, a: Layers, b: Layers, *, only: bool = False) -> Names:
    """Yield layers with the same key, by name, then in order; `only` skips ambiguous ones."""
    groups_a, groups_b = _grouped(key, a), _grouped(key, b)
    for value, names_a in groups_a.items():
        names_b = groups_b.get(value, {})
        if only and (len(names_a) > 1 or len(names_b) > 1):
            continue
        yield from ((name, name) for name in names_a if name in names_b)
        yield from zip(
            (name for name in names_a if name not in names_b),
            (name for name in names_b if name not in names_a),
            strict=False,
        )


def _grouped(key: Key, layers: Layers) -> dict[Hashable, dict[str, None]]:
    """Return names by key, in order; a dict without values is an ordered set."""
    groups: dict[Hashable, dict[str, None]] = {}
    for name, layer in layers.items():
        if (value := key(layer)) is not None:
            groups.setdefault(value, {})[name] = None
    return groups


def _by_name(a: Layers, b: Layers) -> Names:
    yield from ((name, name) for name in a if name in b and _fits(a[name], b[name]))


def _by_order(a: Layers, b: Layers) -> Names:
    groups = _grouped(_kind, b)
    for name, layer in a.items():
        free = groups.get(_kind(layer), {})
        second = next((other for other in free if _fits(layer, b[other])), None)
        if second is not None:
            del free[second]
            yield name, second


def _by_nearest(a: Layers, b: Layers) -> Names:
    groups = _grouped(_exact_kind, b)
    for kind, names_a in _grouped(_exact_kind, a).items():
        names_b = list(groups.get(kind, ()))
        yield from _nearest([(name, a[name]) for name in names_a], [(name, b[name]) for name in names_b])


def _nearest(a: list[tuple[str, AnyLayer]], b: list[tuple[str, AnyLayer]]) -> Names:
    if not b:
        return
    samples = np.stack([_sample(layer) for _, layer in b])
    taken = np.zeros(len(b), bool)
    for name, layer in a:
        with np.errstate(invalid="ignore", over="ignore"):  # weights may be infinite
            distances = np.abs(samples - _sample(layer)).sum(axis=1)
        distances[taken | np.isnan(distances)] = np.inf
        best = np.flatnonzero(distances == distances.min())
        place = next((place for place in best if b[place][0] == name), best[0])
        if not taken[place] and _near(layer, b[place][1]):
            taken[place] = True
            yield name, b[place][0]


def _near(a: AnyLayer, b: AnyLayer) -> bool:
    """Return whether W and R as a whole differ by little."""
    distance = norm = 0.0
    for first, second in zip(_weights(a, "WR").values(), _weights(b, "WR").values(), strict=True):
        if first.shape != second.shape:  # one of them in a convention of its own
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            distance += float(np.sum(np.square(first - second), dtype=np.float64))
            norm += float(np.sum(np.square(second), dtype=np.float64))
    return distance <= NEAR**2 * norm < np.inf


def _sample(layer: AnyLayer) -> AnyArray:
    """Return a sample of the weights, at the same positions for all layers of one shape."""
    parts = [array.ravel() for array in _weights(layer, "WR").values()]
    parts = [part[np.linspace(0, part.size - 1, min(part.size, _SAMPLES)).astype(int)] for part in parts]
    with np.errstate(invalid="ignore"):  # a signalling NaN is made a quiet one
        sample: AnyArray = np.concatenate(parts).astype(np.float64)
    return sample


def turned_layers(a: Layers, b: Layers, rest_a: Iterable[str], rest_b: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield unpaired layers of a and b whose W and R are equal, so that only their directions differ."""
    others = {_turned(b[name]): name for name in rest_b}
    for name in rest_a:
        key = _turned(a[name])
        if key is not None and key in others:
            yield name, others[key]


def _turned(layer: AnyLayer) -> Hashable:
    """Return a digest of W and R of a layer of any direction; None without weights."""
    if layer.op is None or not isinstance(layer, Layer):
        return None
    return layer.op.cell, layer.op.hidden_size, _digest_of(layer, "WR")


def _digest(layer: AnyLayer, names: str) -> Hashable:
    """Return a digest of weight values, independent of convention and dtype; None without weights."""
    kind = _exact_kind(layer)
    return None if kind is None else (kind, _digest_of(layer, names))


def _digest_of(layer: AnyLayer, names: str) -> bytes:
    digest = blake2b()
    for name, array in _weights(layer, names).items():
        digest.update(f"{name} {array.shape}".encode())
        with np.errstate(invalid="ignore"):
            digest.update(array.astype(np.float64).tobytes())
    return digest.digest()


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


def _exact_kind(layer: AnyLayer) -> Hashable:
    """Return None if the layer has no weights."""
    return (_kind(layer), layer.input_size) if isinstance(layer, Layer) else None


def _operator(layer: AnyLayer) -> Hashable:
    return None if layer.op is None else (layer.op, _input_size(layer))


def _input_size(layer: AnyLayer) -> int | None:
    """Return None if the size is open."""
    return layer.input_size if isinstance(layer, Layer) else layer.sizes.get("I")


def _fits(a: AnyLayer, b: AnyLayer) -> bool:
    sizes = {_input_size(layer) for layer in (a, b)} - {None}
    return _kind(a) == _kind(b) and len(sizes) < 2


_STAGES: tuple[tuple[str, Callable[[Layers, Layers], Names]], ...] = (
    ("equal weights", partial(_by_key, partial(_digest, names="WRBP"))),
    ("equal W and R", partial(_by_key, partial(_digest, names="WR"))),
    ("nearly equal W and R", _by_nearest),
    ("name", _by_name),
    ("operator and sizes", partial(_by_key, _operator, only=True)),
    ("order", partial(_by_key, _operator)),
    ("order", _by_order),
)
