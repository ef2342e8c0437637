"""Usual mistakes: gates in another framework's order, an input left out, a bias added once.

The oracle computes each mistake, so a function's numbers show which mistake it makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.oracle import Arguments
from pyrnnx.layers.layer import Layer

MOST_MISTAKES = 40  # of an LSTM, 23 of them orders of its gates


def mistakes(layer: Layer, given: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield each mistake in words that follow "as if", and as oracle arguments; the likeliest first."""
    yield from _attributes(given)
    yield from _inputs(given)
    yield from _directions(given)
    yield from _biases(layer, given)
    yield from _gates(layer, given)


def _attributes(given: Arguments) -> Iterator[tuple[str, Arguments]]:
    for flag in ("linear_before_reset", "input_forget"):
        if flag in given:
            yield f"{flag} were {1 - given[flag]}", given | {flag: 1 - given[flag]}
    if given.get("input_forget"):
        other, meaning = ("i", "i = 1 - f") if given["coupled_gate"] == "f" else ("f", "f = 1 - i")
        yield f"input_forget meant {meaning}", given | {"coupled_gate": other}
    if given["clip"] is not None:
        yield "there were no clip", given | {"clip": None}
    default = given | {"activations": None, "activation_alpha": [], "activation_beta": []}
    yield "the activations were the default ones", default


def _inputs(given: Arguments) -> Iterator[tuple[str, Arguments]]:
    T, N, _ = given["X"].shape
    yield "every row had all time steps, whatever sequence_lens says", given | {"sequence_lens": np.full(N, T)}
    states = [name for name in ("initial_h", "initial_c") if name in given]
    zeros = {name: np.zeros_like(given[name]) for name in states}
    for name in states:
        yield f"{name} were zero", given | {name: zeros[name]}
    if len(states) == 2:
        yield "initial_h and initial_c were zero", given | zeros
        exchanged = {"initial_h": given["initial_c"], "initial_c": given["initial_h"]}
        yield "initial_h and initial_c were exchanged", given | exchanged


def _directions(given: Arguments) -> Iterator[tuple[str, Arguments]]:
    if given["direction"] != "bidirectional":
        other = "reverse" if given["direction"] == "forward" else "forward"
        yield f"the direction were {other}", given | {"direction": other}
        return
    weights = {name: given[name][::-1] for name in ("W", "R", "B", "P") if name in given}
    yield "the weights of the two directions were exchanged", given | weights


def _biases(layer: Layer, given: Arguments) -> Iterator[tuple[str, Arguments]]:
    if "B" in given:
        halves = np.split(given["B"], 2, axis=1)
        zero = np.zeros_like(halves[0])
        yield "Rb were zero", given | {"B": np.concatenate([halves[0], zero], axis=1)}
        yield "Wb were zero", given | {"B": np.concatenate([zero, halves[1]], axis=1)}
        yield "B were zero", given | {"B": np.zeros_like(given["B"])}
    if "P" in given:
        yield "P were zero", given | {"P": np.zeros_like(given["P"])}
    R = _by_gate(given["R"], layer)
    yield "R were transposed, gate by gate", given | {"R": R.swapaxes(2, 3).reshape(given["R"].shape)}


def _gates(layer: Layer, given: Arguments) -> Iterator[tuple[str, Arguments]]:
    if layer.op.cell == "GRU":
        yield "z and 1 - z were exchanged", given | _negated(layer, given, "z")
    own = layer.convention.gate_order(layer.op.cell)
    orders = ["".join(order) for order in permutations(own) if "".join(order) != own]
    for order in orders:
        yield (
            f"the gates of W, R and B were in the order {', '.join(order)}",
            given | _misordered(layer, given, own, order),
        )


def _negated(layer: Layer, given: Arguments, gate: str) -> dict[str, AnyArray]:
    """Negate weights: sigmoid(-x) = 1 - sigmoid(x)."""
    result: dict[str, AnyArray] = {}
    for name in ("W", "R", "B"):
        if name in given:
            blocks = _by_gate(given[name], layer).copy()
            blocks[:, layer.op.gates.index(gate) :: len(layer.op.gates)] *= -1
            result[name] = blocks.reshape(given[name].shape)
    return result


def _misordered(layer: Layer, given: Arguments, own: str, order: str) -> dict[str, AnyArray]:
    """Return weights in the order `own`, read as if they were in `order`."""
    gates = layer.op.gates
    places = [gates.index(own[order.index(gate)]) for gate in gates]
    result: dict[str, AnyArray] = {}
    for name in ("W", "R", "B"):
        if name in given:
            count = 2 if name == "B" else 1
            chosen = [half * len(gates) + place for half in range(count) for place in places]
            result[name] = _by_gate(given[name], layer)[:, chosen].reshape(given[name].shape)
    return result


def _by_gate(array: AnyArray, layer: Layer) -> AnyArray:
    """Reshape to [D, blocks, H, last axis]; the last axis of B is 1."""
    H = layer.op.hidden_size
    blocks: AnyArray = array.reshape(array.shape[0], array.shape[1] // H, H, -1)
    return blocks
