"""Mistakes in the equations of a step: clip or peepholes in a wrong place.

A wrong step calls the oracle's own with changed parameters, or changes its values; so it has no equations of its own,
but for the LSTM's last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pyrnnx.comparison.oracle import Arguments
from pyrnnx.layers.layer import Layer
from pyrnnx.reference.arguments import Array
from pyrnnx.reference.cells import STEPS, Direction, Step
from pyrnnx.testing.same.mistakes.mistake import Mistake

Values = dict[str, Array]


def mistakes_of_steps(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield steps that clip, reset or look elsewhere."""
    rows: list[tuple[str, Callable[..., Any]]] = []
    if given["clip"] is not None:
        results = "clip bounded the results of the activations, not their arguments"
        rows = [(results, _results_clipped), ("clip bounded H, too", _hidden_clipped)]
        if layer.op.has_cell_state:
            rows.append(("clip bounded C, too", _cell_clipped))
            rows.append(("clip bounded the argument of h, too", _argument_of_h_clipped))
    if "P" in given:
        rows.append(("the peephole of o read C of the step before", _old_cell_state))
    if layer.op.cell == "GRU" and not given["linear_before_reset"] and "B" in given:
        rows.append(("the reset gate scaled Rb of h", _reset_before_bias))
    for words, wrong in rows:
        yield Mistake(words, {"step": partial(wrong, STEPS[layer.op.cell])})


def _results_clipped(step: Step, p: Direction, Xt: Array, *states: Array) -> Values:
    functions = [lambda x, function=function: p.clipped(function(x)) for function in p.functions]
    return step(replace(p, clip=np.inf, functions=functions), Xt, *states)


def _hidden_clipped(step: Step, p: Direction, Xt: Array, *states: Array) -> Values:
    values = step(p, Xt, *states)
    return {**values, "H": p.clipped(values["H"])}


def _cell_clipped(step: Step, p: Direction, Xt: Array, Ht_1: Array, Ct_1: Array) -> Values:
    """Clip C before o and h read it."""
    C = p.clipped(step(p, Xt, Ht_1, Ct_1)["C"])
    values = step(_peephole_of_o(p, C), Xt, Ht_1, Ct_1)
    return {**values, "C": C, "H": values["o"] * p.functions[2](C)}


def _argument_of_h_clipped(step: Step, p: Direction, Xt: Array, *states: Array) -> Values:
    values = step(p, Xt, *states)
    return {**values, "H": values["o"] * p.functions[2](p.clipped(values["C"]))}


def _reset_before_bias(step: Step, p: Direction, Xt: Array, Ht_1: Array) -> Values:
    """Scale Rb of h by the reset gate of a GRU without linear_before_reset."""
    r = step(p, Xt, Ht_1)["r"]
    return step(replace(p, Rb={**p.Rb, "h": r * p.Rb["h"]}), Xt, Ht_1)


def _old_cell_state(step: Step, p: Direction, Xt: Array, Ht_1: Array, Ct_1: Array) -> Values:
    return step(_peephole_of_o(p, Ct_1), Xt, Ht_1, Ct_1)


def _peephole_of_o(p: Direction, C: Array) -> Direction:
    """Return parameters with which o reads another cell state, as a bias of each row."""
    zero = np.zeros_like(p.P["o"])
    return replace(p, P={**p.P, "o": zero}, Rb={**p.Rb, "o": p.Rb["o"] + p.P["o"] * C})
