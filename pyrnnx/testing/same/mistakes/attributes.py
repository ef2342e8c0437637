"""Mistakes in attributes: left out, exchanged, or with the default of another framework."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from pyrnnx.comparison.oracle import Arguments, activations
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.op import ACTIVATIONS, CELLS, Activation, RecurrentOp
from pyrnnx.testing.same.mistakes.mistake import Mistake

_LEAST_SHIFT = 2.0**-50  # of an alpha: beyond it, no other number of a usual size
_PARAMETERS = (
    ("HardSigmoid", "alpha of HardSigmoid were 1/6, as in Keras 3 and PyTorch", 1 / 6),
    ("HardSigmoid", "alpha of HardSigmoid were 0.2", 0.2),  # in ONNX and Keras 2
    ("ThresholdedRelu", "alpha of ThresholdedRelu were 0", 0.0),
)


def mistakes_of_attributes(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield flags, clip and activations that are not those of the layer."""
    for flag in ("linear_before_reset", "input_forget"):
        if flag in given:
            yield Mistake(f"{flag} were {1 - given[flag]}", {flag: 1 - given[flag]})
    if given.get("input_forget"):
        other, meaning = ("i", "i = 1 - f") if given["coupled_gate"] == "f" else ("f", "f = 1 - i")
        yield Mistake(f"input_forget meant {meaning}", {"coupled_gate": other})
    if given["clip"] is not None:
        yield Mistake("there were no clip", {"clip": None})
    default: Arguments = {"activations": None, "activation_alpha": [], "activation_beta": []}
    yield Mistake("the activations were the default ones", default)
    for words, functions in _activations(layer.op):
        yield Mistake(words, activations(functions))
    if "ThresholdedRelu" in given["activations"]:
        yield Mistake("ThresholdedRelu were 0 at its alpha, too", {"threshold_shift": _LEAST_SHIFT})


def _activations(op: RecurrentOp) -> Iterator[tuple[str, list[Activation]]]:
    """Yield what follows "as if", and the functions of all directions that a mistake in them gives."""
    right = [function for direction in op.activations for function in direction]
    per_direction, letters = len(op.activations[0]), "fgh"
    if op.activations[-1] != op.activations[0]:
        yield "the activations of both directions were those of the first", [*op.activations[0]] * 2
    if per_direction > 1:
        for a, b in combinations(range(per_direction), 2):
            exchange = {a: b, b: a}
            exchanged = [direction[exchange.get(k, k)] for direction in op.activations for k in range(per_direction)]
            yield f"activations {letters[a]} and {letters[b]} were exchanged", exchanged
        for k, name in enumerate(CELLS[op.cell].activations):
            default = [Activation(name) if j % per_direction == k else f for j, f in enumerate(right)]
            yield f"activation {letters[k]} were {name}", default
    for parameter in ("alpha", "beta"):
        values = [getattr(function, parameter) for function in right]
        given = [value for value in values if value is not None]
        if given:
            yield f"activation_{parameter} were not given", [_with(f, parameter, None) for f in right]
            by_place = [*given, *[None] * len(right)][: len(right)]
            words = f"activation_{parameter} had a value for each activation, by its place"
            yield words, [_with(f, parameter, value) for f, value in zip(right, by_place, strict=True)]
    for name, words, alpha in _PARAMETERS:
        if any(function.name == name and function.alpha != alpha for function in right):
            yield words, [_with(f, "alpha", alpha) if f.name == name else f for f in right]


def _with(function: Activation, parameter: str, value: float | None) -> Activation:
    """Return a function with another parameter; its default for None, if it has one."""
    default = getattr(ACTIVATIONS[function.name], parameter)
    if default is None or (value is None and math.isnan(default)):
        return function
    return replace(function, alpha=value) if parameter == "alpha" else replace(function, beta=value)
