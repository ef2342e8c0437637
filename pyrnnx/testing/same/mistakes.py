"""Usual mistakes: gates in another framework's order, an input left out, a clip in another place.

The oracle computes each mistake, so a function's numbers show which mistake it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.comparison.oracle import Arguments
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import AXIS_NAMES, CANONICAL, SEPARATE
from pyrnnx.reference.cells import STEPS
from pyrnnx.testing.same import wrong_arrays, wrong_results, wrong_steps

MOST_MISTAKES = 80  # of an LSTM, 28 of them orders of its gates
Outputs = Mapping[str, AnyArray]


class Mistake(NamedTuple):
    """Mistake as a computation: the oracle with changed arguments, or changed results of it."""

    words: str  # that follow "as if"
    changes: Arguments  # of the oracle's arguments
    results: Callable[[Outputs, Outputs], Outputs] | None = None  # from the changed results and the right ones

    def outputs(self, layer: Layer, given: Arguments, right: Outputs) -> Outputs:
        """Return the outputs of a layer with this mistake."""
        changed = oracle.outputs(layer, given | self.changes) if self.changes else right
        return changed if self.results is None else self.results(changed, right)


def mistakes(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield the mistakes that a layer with these oracle arguments can show, the likeliest first."""
    yield from _attributes(given)
    yield from _inputs(given)
    yield from _axes(layer, given)
    yield from _directions(given)
    yield from _lengths(given)
    yield from _last_states(layer, given)
    yield from _biases(layer, given)
    yield from _gates(layer, given)
    yield from _steps(layer, given)
    yield from _activations(layer, given)


def _attributes(given: Arguments) -> Iterator[Mistake]:
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


def _inputs(given: Arguments) -> Iterator[Mistake]:
    states = _states(given)
    zeros = {name: np.zeros_like(given[name]) for name in states}
    for name in states:
        yield Mistake(f"{name} were zero", {name: zeros[name]})
    if len(states) == 2:
        yield Mistake("initial_h and initial_c were zero", zeros)
        exchanged = {"initial_h": given["initial_c"], "initial_c": given["initial_h"]}
        yield Mistake("initial_h and initial_c were exchanged", exchanged)


def _axes(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield arrays whose elements are read in the order of the other layout."""
    for names, layouts in ((["X"], ("TNI", "NTI")), (_states(given), ("DNH", "NDH"))):
        axes = layer.convention.axes_of(names[0])
        if axes in layouts:
            other = layouts[1 - layouts.index(axes)]
            listed = ", ".join(AXIS_NAMES[axis] for axis in other)
            read = {name: wrong_arrays.other_axes(given[name], layouts[0], axes, other) for name in names}
            yield Mistake(f"{' and '.join(names)} had the axes [{listed}]", read)


def _directions(given: Arguments) -> Iterator[Mistake]:
    if given["direction"] != "bidirectional":
        other = "reverse" if given["direction"] == "forward" else "forward"
        yield Mistake(f"the direction were {other}", {"direction": other})
        return
    weights: Arguments = {name: given[name][::-1] for name in ("W", "R", "B", "P") if name in given}
    yield Mistake("the weights of the two directions were exchanged", weights)
    yield Mistake("both directions had the weights of the first", {name: given[name][[0, 0]] for name in weights})
    turned = {"X": wrong_results.backwards(given["X"], given["sequence_lens"], 1)}
    forward = wrong_results.of_rows(wrong_results.reverse_runs_forward, given)
    yield Mistake("the reverse direction ran forward", turned, forward)
    states = _states(given)
    exchanged = {name: given[name][::-1] for name in states}
    first = {name: given[name][[0, 0]] for name in states}
    yield Mistake("the initial states of the two directions were exchanged", exchanged)
    yield Mistake("both directions began with the initial states of the first", first)


def _lengths(given: Arguments) -> Iterator[Mistake]:
    lengths, (T, N, _) = given["sequence_lens"], given["X"].shape
    every = {"sequence_lens": np.full(N, T)}
    yield Mistake("every row had all time steps, whatever sequence_lens says", every)
    for words, changes, results in (
        ("the states were not frozen beyond a row's length, with Y zero there", every, wrong_results.y_zero_in_padding),
        ("Y were not zero beyond a row's length, with the states frozen", every, wrong_results.states_right),
        ("Y beyond a row's length were its last state", {}, wrong_results.y_repeats_last_state),
    ):
        yield Mistake(words, changes, wrong_results.of_rows(results, given))
    if not (lengths > 0).all():
        kept = wrong_results.of_rows(wrong_results.empty_rows_keep_states, given)
        yield Mistake("the last states of a row of length 0 were its initial ones", {}, kept)
        yield Mistake("a row of length 0 had one step", {"sequence_lens": np.maximum(lengths, min(1, T))})
    if given["direction"] != "forward":
        begins_late = wrong_results.of_rows(wrong_results.reverse_begins_late, given)
        words = "the reverse direction began at the last time step of X, whatever sequence_lens says"
        yield Mistake(words, {"X": wrong_results.late(given["X"], lengths)}, begins_late)


def _last_states(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    if "T" not in layer.convention.axes_of("X"):
        return
    rows: list[tuple[str, Any]] = [
        ("Y_h were Y at the last time step", wrong_results.y_h_at_the_last_step),
        ("Y_h were Y at the first time step", wrong_results.y_h_at_the_first_step),
    ]
    if given["direction"] != "forward":
        rows += [
            ("Y_h of the reverse direction were Y where a row ends in time", wrong_results.y_h_where_rows_end),
            ("Y of the reverse direction were in the order in which it runs", wrong_results.y_as_it_runs),
        ]
    for words, results in rows:
        yield Mistake(words, {}, wrong_results.of_rows(results, given))


def _biases(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    if "B" in given:
        Wb, Rb = np.split(given["B"], 2, axis=1)
        zero = np.zeros_like(Wb)
        yield Mistake("Rb were zero", {"B": np.concatenate([Wb, zero], axis=1)})
        yield Mistake("Wb were zero", {"B": np.concatenate([zero, Rb], axis=1)})
        yield Mistake("B were zero", {"B": np.zeros_like(given["B"])})
        if len(layer.op.gates) > 1:
            yield from _interleaved(layer, given)
        if given.get("linear_before_reset"):
            moved = wrong_arrays.moved_to_input_bias(layer, given["B"], "h")
            yield Mistake("the reset gate did not scale Rb of h", {"B": moved})
    if "P" in given:
        yield Mistake("P were zero", {"P": np.zeros_like(given["P"])})
        own = layer.convention.peepholes
        for order in wrong_arrays.other_orders(own):
            read = wrong_arrays.other_gates(layer, given["P"], CANONICAL.peepholes, own, order)
            yield Mistake(f"the gates of P were in the order {', '.join(order)}", {"P": read})
    yield Mistake("R were transposed, gate by gate", {"R": wrong_arrays.transposed(layer, given["R"])})


def _interleaved(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    if layer.convention.bias == SEPARATE:
        paired = wrong_arrays.paired_biases(layer, given["B"])
        yield Mistake("B had Wb and Rb of each gate next to each other", {"B": paired})
    read = {name: wrong_arrays.unit_by_unit(layer, given[name]) for name in ("W", "R", "B")}
    yield Mistake("B had all gates of a unit next to each other", {"B": read["B"]})
    yield Mistake("W, R and B had all gates of a unit next to each other", read)


def _gates(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    weights: Arguments = {name: given[name] for name in ("W", "R", "B") if name in given}
    if layer.op.cell == "GRU":
        negated = {name: wrong_arrays.negated(layer, weight, "z") for name, weight in weights.items()}
        yield Mistake("z and 1 - z were exchanged", negated)
    gates, own = layer.op.gates, layer.convention.gate_order(layer.op.cell)
    for order in wrong_arrays.other_orders(own):
        read = {name: wrong_arrays.other_gates(layer, weight, gates, own, order) for name, weight in weights.items()}
        yield Mistake(f"the gates of W, R and B were in the order {', '.join(order)}", read)


def _steps(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    step = STEPS[layer.op.cell]
    rows: list[tuple[str, Any]] = []
    if given["clip"] is not None:
        rows += wrong_steps.CLIPS.items()
        rows += wrong_steps.CELL_CLIPS.items() if layer.op.has_cell_state else []
    if "P" in given:
        rows += wrong_steps.PEEPHOLES.items()
    if layer.op.cell == "GRU" and not given["linear_before_reset"] and "B" in given:
        rows += wrong_steps.RESETS.items()
    for words, wrong in rows:
        yield Mistake(words, {"step": wrong(step)})


def _activations(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    for words, functions in wrong_steps.functions(layer.op):
        yield Mistake(words, oracle.activations(functions))
    if "ThresholdedRelu" in given["activations"]:
        yield Mistake("ThresholdedRelu were 0 at its alpha, too", {"threshold_shift": wrong_steps.LEAST_SHIFT})


def _states(given: Arguments) -> list[str]:
    return [name for name in ("initial_h", "initial_c") if name in given]
