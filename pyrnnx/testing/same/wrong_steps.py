"""Equations of a step with clip or peepholes in a wrong place, and activations with wrong parameters.

A wrong step calls the oracle's own with changed parameters, or changes its values; so it has no equations of its own,
but for the LSTM's last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from pyrnnx.operator.op import ACTIVATIONS, CELLS, Activation, RecurrentOp
from pyrnnx.reference.arguments import Array
from pyrnnx.reference.cells import Direction, Step

Values = dict[str, Array]
LEAST_SHIFT = 2.0**-50  # of an alpha: beyond it, no other number of a usual size
KERAS_HARD_SIGMOID = 1 / 6  # alpha in Keras 3 and PyTorch; 0.2 in ONNX and Keras 2


def _results_clipped(step: Step) -> Step:
    """Return a step that clips what the activations return, instead of their arguments."""

    def wrong(p: Direction, Xt: Array, *states: Array) -> Values:
        functions = [lambda x, function=function: p.clipped(function(x)) for function in p.functions]
        return step(replace(p, clip=np.inf, functions=functions), Xt, *states)

    return wrong


def _hidden_clipped(step: Step) -> Step:
    def wrong(p: Direction, Xt: Array, *states: Array) -> Values:
        values = step(p, Xt, *states)
        return {**values, "H": p.clipped(values["H"])}

    return wrong


def _cell_clipped(step: Step) -> Step:
    """Return a step that clips C before o and h read it."""

    def wrong(p: Direction, Xt: Array, Ht_1: Array, Ct_1: Array) -> Values:
        C = p.clipped(step(p, Xt, Ht_1, Ct_1)["C"])
        values = step(_peephole_of_o(p, C), Xt, Ht_1, Ct_1)
        return {**values, "C": C, "H": values["o"] * p.functions[2](C)}

    return wrong


def _argument_of_h_clipped(step: Step) -> Step:
    def wrong(p: Direction, Xt: Array, *states: Array) -> Values:
        values = step(p, Xt, *states)
        return {**values, "H": values["o"] * p.functions[2](p.clipped(values["C"]))}

    return wrong


def _reset_before_bias(step: Step) -> Step:
    """Return a step of a GRU without linear_before_reset whose reset gate scales Rb of h."""

    def wrong(p: Direction, Xt: Array, Ht_1: Array) -> Values:
        r = step(p, Xt, Ht_1)["r"]
        return step(replace(p, Rb={**p.Rb, "h": r * p.Rb["h"]}), Xt, Ht_1)

    return wrong


def _old_cell_state(step: Step) -> Step:
    def wrong(p: Direction, Xt: Array, Ht_1: Array, Ct_1: Array) -> Values:
        return step(_peephole_of_o(p, Ct_1), Xt, Ht_1, Ct_1)

    return wrong


def _peephole_of_o(p: Direction, C: Array) -> Direction:
    """Return parameters with which o reads another cell state, as a bias of each row."""
    zero = np.zeros_like(p.P["o"])
    return replace(p, P={**p.P, "o": zero}, Rb={**p.Rb, "o": p.Rb["o"] + p.P["o"] * C})


# Text after "as if" -> function that turns the right step into the wrong one.
Wrong = Mapping[str, Callable[[Step], Step]]
CLIPS: Wrong = {
    "clip bounded the results of the activations, not their arguments": _results_clipped,
    "clip bounded H, too": _hidden_clipped,
}
CELL_CLIPS: Wrong = {
    "clip bounded C, too": _cell_clipped,
    "clip bounded the argument of h, too": _argument_of_h_clipped,
}
RESETS: Wrong = {"the reset gate scaled Rb of h": _reset_before_bias}
PEEPHOLES: Wrong = {"the peephole of o read C of the step before": _old_cell_state}


def functions(op: RecurrentOp) -> Iterator[tuple[str, list[Activation]]]:
    """Yield what follows "as if", and the functions of all directions that a mistake in them gives."""
    right = [function for direction in op.activations for function in direction]
    per_direction = len(op.activations[0])
    if op.activations[-1] != op.activations[0]:
        yield "the activations of both directions were those of the first", [*op.activations[0]] * 2
    if per_direction > 1:
        yield from _exchanged(op)
        yield from _left_out(op)
    for parameter in ("alpha", "beta"):
        values = [getattr(function, parameter) for function in right]
        if any(value is not None for value in values):
            yield f"activation_{parameter} were not given", [_with(f, parameter, None) for f in right]
            given = [value for value in values if value is not None]
            by_place = [given[k] if k < len(given) else None for k in range(len(right))]
            words = f"activation_{parameter} had a value for each activation, by its place"
            yield words, [_with(f, parameter, value) for f, value in zip(right, by_place, strict=True)]
    yield from _constants(right)


def _exchanged(op: RecurrentOp) -> Iterator[tuple[str, list[Activation]]]:
    letters = "fgh"[: len(op.activations[0])]
    for a in range(len(letters)):
        for b in range(a + 1, len(letters)):
            places = [{a: b, b: a}.get(k, k) for k in range(len(letters))]
            exchanged = [direction[k] for direction in op.activations for k in places]
            yield f"activations {letters[a]} and {letters[b]} were exchanged", exchanged


def _left_out(op: RecurrentOp) -> Iterator[tuple[str, list[Activation]]]:
    for k, name in enumerate(CELLS[op.cell].activations):
        changed = [Activation(name) if j == k else f for direction in op.activations for j, f in enumerate(direction)]
        yield f"activation {'fgh'[k]} were {name}", changed


def _constants(right: list[Activation]) -> Iterator[tuple[str, list[Activation]]]:
    for name, words, alpha in (
        ("HardSigmoid", "alpha of HardSigmoid were 1/6, as in Keras 3 and PyTorch", KERAS_HARD_SIGMOID),
        ("HardSigmoid", "alpha of HardSigmoid were 0.2", 0.2),
        ("ThresholdedRelu", "alpha of ThresholdedRelu were 0", 0.0),
    ):
        if any(function.name == name and function.alpha != alpha for function in right):
            yield words, [_with(f, "alpha", alpha) if f.name == name else f for f in right]


def _with(function: Activation, parameter: str, value: float | None) -> Activation:
    """Return a function with another parameter; its default for None, if it has one."""
    default = getattr(ACTIVATIONS[function.name], parameter)
    if default is None or (value is None and math.isnan(default)):
        return function
    return replace(function, alpha=value) if parameter == "alpha" else replace(function, beta=value)
