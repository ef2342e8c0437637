"""Arguments of the oracle that are read in a wrong arrangement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import rearrange


def other_orders(own: str) -> list[str]:
    """Return all other orders of some letters."""
    return [order for order in map("".join, permutations(own)) if order != own]


def other_axes(array: AnyArray, canonical: str, own: str, other: str) -> AnyArray:
    """Return a canonical array whose elements, in the axes `own`, are read as if they had the axes `other`."""
    sizes = dict(zip(canonical, array.shape, strict=True))
    elements = rearrange(array, canonical, own)
    return rearrange(elements.reshape([sizes[axis] for axis in other]), other, canonical)


def other_gates(layer: Layer, array: AnyArray, gates: str, own: str, order: str) -> AnyArray:
    """Return an array with the gates `gates`, whose blocks in the order `own` are read as if in `order`."""
    return _chosen(layer, array, [gates.index(own[order.index(gate)]) for gate in gates])


def unit_by_unit(layer: Layer, array: AnyArray) -> AnyArray:
    """Return W, R or B, whose rows in the layer's own order are read as if all gates of a unit were in a row."""
    H, G = layer.op.hidden_size, len(layer.op.gates)
    own = _in_own_order(layer, array)
    read = own.reshape(len(array), -1, H, G, *array.shape[2:]).swapaxes(2, 3).reshape(array.shape)
    return _in_canonical_order(layer, read)


def paired_biases(layer: Layer, B: AnyArray) -> AnyArray:
    """Return B, whose blocks in the layer's own order are read as Wb and Rb of the first gate, of the second, ..."""
    blocks = _by_gate(layer, _in_own_order(layer, B))
    read = np.concatenate([blocks[:, ::2], blocks[:, 1::2]], axis=1).reshape(B.shape)
    return _in_canonical_order(layer, read)


def moved_to_input_bias(layer: Layer, B: AnyArray, gate: str) -> AnyArray:
    """Return B with Rb of a gate added to its Wb."""
    blocks, place = _by_gate(layer, B).copy(), layer.op.gates.index(gate)
    blocks[:, place] += blocks[:, len(layer.op.gates) + place]
    blocks[:, len(layer.op.gates) + place] = 0
    return blocks.reshape(B.shape)


def negated(layer: Layer, array: AnyArray, gate: str) -> AnyArray:
    """Return W, R or B with the numbers of a gate negated: sigmoid(-x) = 1 - sigmoid(x)."""
    blocks = _by_gate(layer, array).copy()
    blocks[:, layer.op.gates.index(gate) :: len(layer.op.gates)] *= -1
    return blocks.reshape(array.shape)


def transposed(layer: Layer, R: AnyArray) -> AnyArray:
    """Return R with the matrix of each gate transposed."""
    return _by_gate(layer, R).swapaxes(2, 3).reshape(R.shape)


def _in_own_order(layer: Layer, array: AnyArray) -> AnyArray:
    gates = layer.op.gates
    return _chosen(layer, array, [gates.index(gate) for gate in layer.convention.gate_order(layer.op.cell)])


def _in_canonical_order(layer: Layer, array: AnyArray) -> AnyArray:
    own = layer.convention.gate_order(layer.op.cell)
    return _chosen(layer, array, [own.index(gate) for gate in layer.op.gates])


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
