"""Comparison of the weights of two layers by gate of W, R, B and P."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, widened
from pyrnnx.comparison.distances import element_distances
from pyrnnx.errors import UnsupportedError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import (
    CANONICAL,
    SEPARATE,
    Convention,
    canonical_for,
    convert_weights,
    rearrange,
    split_bias,
)
from pyrnnx.operator.op import RecurrentOp


@dataclass(frozen=True)
class WeightBlock:
    """Difference of one gate, direction and weight between two layers.

    Attributes
    ----------
    name : str
        "W", "R", "P", "Wb", "Rb"; "b" for Wb + Rb if one of the conventions has only the sum.
    direction : str
        "forward" or "reverse".
    gate : str
        By its letter in the ONNX text: "i", "z", ...
    largest : float
        The largest absolute difference. Infinity if only one of two numbers is NaN.
    largest_relative : float
        The largest abs(a - b) / abs(b). Infinity if b is zero, and a is not.
    """

    name: str
    direction: str
    gate: str
    largest: float
    largest_relative: float


def compare_weights(a: Layer, b: Layer) -> tuple[WeightBlock, ...]:
    """Compare all blocks of two layers of the same cell, direction and sizes, in float64.

    A weight that only one has is compared with zeros. The gate that input_forget leaves unused is skipped. If the two
    couple their gates differently and cannot be converted, the blocks are compared as they are.
    """
    arrangements = _arrangements(a, b)
    first, second = (
        canonical_weights(layer, arrangement) for layer, arrangement in zip((a, b), arrangements, strict=True)
    )
    parts: list[WeightBlock] = []
    for name in (name for name in "WRBP" if name in first or name in second):
        present = (first if name in first else second)[name]
        weight_a, weight_b = (weights.get(name, np.zeros_like(present)) for weights in (first, second))
        if name == "B":
            parts += _biases(a, b, weight_a, weight_b)
        else:
            gates = CANONICAL.peepholes if name == "P" else a.op.gates
            parts += _blocks(a, name, gates, weight_a, weight_b)
    unused = {
        arrangement.coupled_gate if layer.op.input_forget else ""
        for layer, arrangement in zip((a, b), arrangements, strict=True)
    }
    return tuple([block for block in parts if unused != {block.gate}])


def directions(op: RecurrentOp) -> tuple[str, ...]:
    """Return the name of each direction of the op."""
    return tuple(["reverse" if backward else "forward" for backward in op.direction.reversed])


def differing(blocks: Iterable[WeightBlock]) -> list[WeightBlock]:
    return [block for block in blocks if block.largest > 0]


def in_lines(blocks: Iterable[WeightBlock]) -> list[str]:
    """Return one line if all blocks are the same, else one for each weight and direction that differs."""
    apart = differing(blocks)
    if not apart:
        return ["weights: the same"]
    lines: dict[str, list[str]] = {}
    for block in apart:
        is_finite = math.isfinite(block.largest_relative)  # a quantized weight may be zero where the other is not
        words = f"{block.gate} {block.largest:.3g}" + (f" ({block.largest_relative:.3g})" if is_finite else "")
        lines.setdefault(f"{block.name} {block.direction}", []).append(words)
    title = "weights: largest difference by gate (relative)"
    return [title, *(f"  {where}: {', '.join(words)}" for where, words in lines.items())]


def canonical_weights(layer: Layer, arrangement: Convention = CANONICAL) -> dict[str, AnyArray]:
    """Return W, R, B, P, widened, in canonical axes, gate order and bias form."""
    return convert_weights(
        layer.op, {name: widened(array) for name, array in layer.weights.items()}, layer.convention, arrangement
    )


def canonical_constants(layer: Layer) -> dict[str, AnyArray]:
    """Return the call arguments that are constants of a layer, in canonical axes."""
    axes = layer.convention.axes_of
    return {name: rearrange(array, axes(name), CANONICAL.axes_of(name)) for name, array in layer.constants.items()}


def _arrangements(a: Layer, b: Layer) -> tuple[Convention, Convention]:
    own = canonical_for(a.convention), canonical_for(b.convention)
    coupled = {convention.coupled_gate for layer, convention in zip((a, b), own, strict=True) if layer.op.input_forget}
    if len(coupled) < 2:
        return own
    try:
        for layer in (a, b):
            convert_weights(layer.op, {}, layer.convention, CANONICAL)
    except UnsupportedError:
        return own
    return CANONICAL, CANONICAL


def _biases(a: Layer, b: Layer, bias_a: AnyArray, bias_b: AnyArray) -> Iterator[WeightBlock]:
    """Yield Wb and Rb separately if both layers have both or the reset needs it; else their sums."""
    apart = all(layer.convention.bias == SEPARATE for layer in (a, b))
    reset = a.op.linear_before_reset and b.op.linear_before_reset
    parts, others = split_bias(bias_a, a.op, CANONICAL), split_bias(bias_b, b.op, CANONICAL)
    for gate in a.op.gates:
        if apart or (reset and gate == "h"):
            for kind in ("Wb", "Rb"):
                yield from _blocks(a, kind, gate, parts[f"{kind}_{gate}"], others[f"{kind}_{gate}"])
        else:
            with np.errstate(invalid="ignore", over="ignore"):  # inf - inf; a sum beyond the largest number
                first, second = (part[f"Wb_{gate}"] + part[f"Rb_{gate}"] for part in (parts, others))
            yield from _blocks(a, "b", gate, first, second)


def _blocks(layer: Layer, name: str, gates: str, weight_a: AnyArray, weight_b: AnyArray) -> Iterator[WeightBlock]:
    """Yield the blocks of arrays [D, G*H, ...]."""
    H = layer.op.hidden_size
    for d, direction in enumerate(directions(layer.op)):
        for k, gate in enumerate(gates):
            rows = slice(k * H, (k + 1) * H)
            distances = element_distances(weight_a[d, rows], weight_b[d, rows])
            extremes = float(distances.distance.max(initial=0)), float(distances.relative().max(initial=0))
            yield WeightBlock(name, direction, gate, *extremes)
