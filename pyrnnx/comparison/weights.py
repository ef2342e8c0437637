"""The weights of two layers side by side, block by block: which gate of W, R, B and P differs, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pyrnnx.comparison.numbers import distances
from pyrnnx.conventions import CANONICAL, SEPARATE, Convention, canonical_for, convert_weights, split_bias
from pyrnnx.dtypes import AnyArray, widened
from pyrnnx.errors import UnsupportedError
from pyrnnx.layer import Layer
from pyrnnx.op import RecurrentOp


@dataclass(frozen=True)
class WeightBlock:
    """What one gate of one direction has of a weight, in two layers.

    Attributes
    ----------
    name : str
        "W", "R", "P", "Wb", "Rb"; "b" for Wb + Rb, where one of the two conventions has only the sum.
    direction : str
        "forward" or "reverse".
    gate : str
        By its letter in the ONNX text: "i", "z", ...
    largest : float
        The largest absolute difference. Infinity where one has a NaN, and the other a number.
    largest_relative : float
        The largest abs(a - b) / abs(b). Infinity where b is zero, and a is not.
    absent : str
        "a" or "b": the layer that has no such weight, for which zeros stand here. Else empty.
    """

    name: str
    direction: str
    gate: str
    largest: float
    largest_relative: float
    absent: str = ""


def compare_weights(a: Layer, b: Layer) -> tuple[WeightBlock, ...]:
    """All blocks of two layers of the same cell, direction and sizes, in canonical arrangement and float64.

    The gate that input_forget leaves unused has none. Where the two couple their gates differently, and one cannot be
    said in the other's way, the blocks are compared as they are.
    """
    arrangements = _arrangements(a, b)
    unused = [
        one.coupled_gate if layer.op.input_forget else "" for layer, one in zip((a, b), arrangements, strict=True)
    ]
    skipped = unused[0] if unused[0] == unused[1] else ""
    first, second = (canonical_weights(layer, one) for layer, one in zip((a, b), arrangements, strict=True))
    parts: list[WeightBlock] = []
    for name, gates in (("W", a.op.gates), ("R", a.op.gates), ("B", ""), ("P", CANONICAL.peepholes)):
        if name in first or name in second:
            absent = "a" if name not in first else "b" if name not in second else ""
            present = (first if name in first else second)[name]
            one, other = (weights.get(name, np.zeros_like(present)) for weights in (first, second))
            parts += _biases(a, b, one, other, absent) if name == "B" else _blocks(a, name, gates, one, other, absent)
    return tuple([block for block in parts if block.gate != skipped])


def directions(op: RecurrentOp) -> tuple[str, ...]:
    """What each of the op's directions is called."""
    return tuple(["reverse" if backward else "forward" for backward in op.direction.reversed])


def differing(blocks: Iterable[WeightBlock]) -> list[WeightBlock]:
    return [block for block in blocks if block.largest > 0]


def in_lines(blocks: Iterable[WeightBlock]) -> list[str]:
    """For a table: one line where all are the same; else a line for each weight and direction that differs."""
    blocks = list(blocks)
    apart = differing(blocks)
    absent = {("B" if "b" in block.name else block.name): block.absent for block in blocks if block.absent}
    notes = [f"{name} is absent in {which}" for name, which in absent.items()]
    if not apart:
        return [f"weights: the same ({', '.join(notes)}, zero in the other)" if notes else "weights: the same"]
    lines: dict[str, list[str]] = {}
    for block in apart:
        words = f"{block.gate} {block.largest:.3g} ({block.largest_relative:.3g})"
        lines.setdefault(f"{block.name} {block.direction}", []).append(words)
    title = "weights: largest difference by gate (relative)" + "".join(f"; {note}" for note in notes)
    return [title, *(f"  {where}: {', '.join(words)}" for where, words in lines.items())]


def canonical_weights(layer: Layer, arrangement: Convention = CANONICAL) -> dict[str, AnyArray]:
    """W, R, B, P as computed with, in canonical axes, gate order and form of the bias.

    Raises
    ------
    UnsupportedError
        Coupled gates that the arrangement cannot say.
    """
    return convert_weights(
        layer.op, {name: widened(array) for name, array in layer.weights.items()}, layer.convention, arrangement
    )


def _arrangements(a: Layer, b: Layer) -> tuple[Convention, Convention]:
    own = canonical_for(a.convention), canonical_for(b.convention)
    coupled = {one.coupled_gate for layer, one in zip((a, b), own, strict=True) if layer.op.input_forget}
    if len(coupled) < 2:
        return own
    try:
        for layer in (a, b):
            convert_weights(layer.op, {}, layer.convention, CANONICAL)
    except UnsupportedError:
        return own
    return CANONICAL, CANONICAL


def _biases(a: Layer, b: Layer, one: AnyArray, other: AnyArray, absent: str) -> Iterator[WeightBlock]:
    """Wb and Rb apart where both layers have them so, or need them so; else their sums."""
    apart = all(layer.convention.bias == SEPARATE for layer in (a, b))
    reset = a.op.linear_before_reset and b.op.linear_before_reset
    parts, others = split_bias(one, a.op, CANONICAL), split_bias(other, b.op, CANONICAL)
    for gate in a.op.gates:
        if apart or (reset and gate == "h"):
            for kind in ("Wb", "Rb"):
                yield from _blocks(a, kind, gate, parts[f"{kind}_{gate}"], others[f"{kind}_{gate}"], absent)
        else:
            with np.errstate(invalid="ignore", over="ignore"):  # inf - inf; a sum beyond the largest number
                first, second = (part[f"Wb_{gate}"] + part[f"Rb_{gate}"] for part in (parts, others))
            yield from _blocks(a, "b", gate, first, second, absent)


def _blocks(layer: Layer, name: str, gates: str, one: AnyArray, other: AnyArray, absent: str) -> Iterator[WeightBlock]:
    """Of arrays [D, G*H, ...]."""
    H = layer.op.hidden_size
    for d, direction in enumerate(directions(layer.op)):
        for k, gate in enumerate(gates):
            rows = slice(k * H, (k + 1) * H)
            yield WeightBlock(name, direction, gate, *_extremes(one[d, rows], other[d, rows]), absent)


def _extremes(one: AnyArray, other: AnyArray) -> tuple[float, float]:
    if np.array_equal(one, other):
        return 0.0, 0.0
    found = distances(one, other)
    assert found is not None  # numbers of one shape
    return float(found.distance.max()), float(found.relative().max())
