"""Mistakes in the arrangement of arrays: axes, gates and biases in another order, or left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.oracle import Arguments
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import AXIS_NAMES, CANONICAL, SEPARATE, rearrange
from pyrnnx.testing.same.mistakes.mistake import Mistake


def mistakes_of_arrays(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield arrays that are read as if they were arranged in another way."""
    yield from _axes(layer, given)
    yield from _biases(layer, given)
    yield from _gates(layer, given)


def _axes(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield arrays whose elements are read in the order of the other layout."""
    states = [name for name in ("initial_h", "initial_c") if name in given]
    for names, layouts in ((["X"], ("TNI", "NTI")), (states, ("DNH", "NDH"))):
        axes = layer.convention.axes_of(names[0])
        if axes not in layouts:
            continue
        other, read = layouts[1 - layouts.index(axes)], {}
        for name in names:
            sizes = dict(zip(layouts[0], given[name].shape, strict=True))
            elements = rearrange(given[name], layouts[0], axes).reshape([sizes[axis] for axis in other])
            read[name] = rearrange(elements, other, layouts[0])
        listed = ", ".join(AXIS_NAMES[axis] for axis in other)
        yield Mistake(f"{' and '.join(names)} had the axes [{listed}]", read)


def _biases(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    gates, own = layer.op.gates, layer.convention.gate_order(layer.op.cell)
    if "B" in given:
        B = given["B"]
        Wb, Rb = np.split(B, 2, axis=1)
        zero = np.zeros_like(Wb)
        yield Mistake("Rb were zero", {"B": np.concatenate([Wb, zero], axis=1)})
        yield Mistake("Wb were zero", {"B": np.concatenate([zero, Rb], axis=1)})
        yield Mistake("B were zero", {"B": np.zeros_like(B)})
        blocks = _by_gate(layer, _reordered(layer, B, gates, own))
        if len(gates) > 1 and layer.convention.bias == SEPARATE:
            paired = np.concatenate([blocks[:, ::2], blocks[:, 1::2]], axis=1).reshape(B.shape)
            words = "B had Wb and Rb of each gate next to each other"
            yield Mistake(words, {"B": _reordered(layer, paired, own, gates)})
        if len(gates) > 1:
            read = {name: _unit_by_unit(layer, given[name]) for name in ("W", "R", "B")}
            yield Mistake("B had all gates of a unit next to each other", {"B": read["B"]})
            yield Mistake("W, R and B had all gates of a unit next to each other", read)
        if given.get("linear_before_reset"):
            moved, place = _by_gate(layer, B).copy(), gates.index("h")
            moved[:, place] += moved[:, len(gates) + place]
            moved[:, len(gates) + place] = 0
            yield Mistake("the reset gate did not scale Rb of h", {"B": moved.reshape(B.shape)})
    if "P" in given:
        yield Mistake("P were zero", {"P": np.zeros_like(given["P"])})
        own = layer.convention.peepholes
        for order in _other_orders(own):
            read = {"P": _as_if(layer, given["P"], CANONICAL.peepholes, own, order)}
            yield Mistake(f"the gates of P were in the order {', '.join(order)}", read)
    transposed = _by_gate(layer, given["R"]).swapaxes(2, 3).reshape(given["R"].shape)
    yield Mistake("R were transposed, gate by gate", {"R": transposed})


def _gates(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    weights: Arguments = {name: given[name] for name in ("W", "R", "B") if name in given}
    gates, own = layer.op.gates, layer.convention.gate_order(layer.op.cell)
    if layer.op.cell == "GRU":  # sigmoid(-x) = 1 - sigmoid(x)
        negated = {name: _by_gate(layer, weight).copy() for name, weight in weights.items()}
        for blocks in negated.values():
            blocks[:, gates.index("z") :: len(gates)] *= -1
        changes: Arguments = {name: blocks.reshape(weights[name].shape) for name, blocks in negated.items()}
        yield Mistake("z and 1 - z were exchanged", changes)
    for order in _other_orders(own):
        read = {name: _as_if(layer, weight, gates, own, order) for name, weight in weights.items()}
        yield Mistake(f"the gates of W, R and B were in the order {', '.join(order)}", read)


def _other_orders(own: str) -> list[str]:
    return [order for order in map("".join, permutations(own)) if order != own]


def _unit_by_unit(layer: Layer, array: AnyArray) -> AnyArray:
    """Return W, R or B, whose rows in the layer's own order are read as if all gates of a unit were in a row."""
    H, G = layer.op.hidden_size, len(layer.op.gates)
    gates, own = layer.op.gates, layer.convention.gate_order(layer.op.cell)
    rows = _reordered(layer, array, gates, own).reshape(len(array), -1, H, G, *array.shape[2:])
    return _reordered(layer, rows.swapaxes(2, 3).reshape(array.shape), own, gates)


def _as_if(layer: Layer, array: AnyArray, gates: str, own: str, order: str) -> AnyArray:
    """Return an array with the gates `gates`, whose blocks in the order `own` are read as if in `order`."""
    return _chosen(layer, array, [gates.index(own[order.index(gate)]) for gate in gates])


def _reordered(layer: Layer, array: AnyArray, before: str, after: str) -> AnyArray:
    return _chosen(layer, array, [before.index(gate) for gate in after])


def _chosen(layer: Layer, array: AnyArray, places: Sequence[int]) -> AnyArray:
    """Return an array [D, k*gates*H, ...] with the blocks at these places of each of its k parts."""
    blocks = _by_gate(layer, array)
    starts = range(0, blocks.shape[1], len(places))
    return blocks[:, [start + place for start in starts for place in places]].reshape(array.shape)


def _by_gate(layer: Layer, array: AnyArray) -> AnyArray:
    """Reshape to [D, blocks, H, last axis]; the last axis of B and P is 1."""
    H = layer.op.hidden_size
    blocks: AnyArray = array.reshape(array.shape[0], array.shape[1] // H, H, -1)
    return blocks
