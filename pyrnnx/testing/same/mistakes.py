"""Usual mistakes: a term of an equation left out, gates in another framework's order, a row of the wrong length.

An interpreter of the equations computes each mistake, so a function's numbers show which mistake it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import in_range
from pyrnnx.comparison.oracle import Arguments, activations
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import AXIS_NAMES, CANONICAL, SEPARATE, rearrange
from pyrnnx.operator.op import ACTIVATIONS, Activation
from pyrnnx.testing.same.equations import changed_equations, equations_of, run

Outputs = Mapping[str, AnyArray]
_LEAST_SHIFT = 2.0**-50  # of an alpha: beyond it, no other number of a usual size


class Mistake(NamedTuple):
    """Mistake: the equations with changed arguments, or changed results of them."""

    words: str  # that follow "as if"
    changes: Arguments  # of `equations.run`
    results: Callable[[Outputs, Outputs], Outputs] | None = None  # from the changed results and the right ones

    def outputs(
        self, layer: Layer, given: Arguments, right: Outputs, is_apart: Callable[[AnyArray, Any], bool] | None = None
    ) -> Outputs:
        """Return the outputs of a layer with this mistake; none as soon as `is_apart` of some of Y and their index."""
        if not self.changes:
            return right if self.results is None else self.results(right, right)
        changed = run(layer.op.cell, {**given, **self.changes}, is_apart if self.results is None else None)
        changed = {name: in_range(changed[name], layer.dtype) for name in right if changed}
        return changed if self.results is None else self.results(changed, right)


def mistakes(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    """Yield the mistakes that a layer with these arguments of the oracle can show."""
    yield from _attributes(layer, given)
    yield from _rows(layer, given)
    yield from _arrays(layer, given)
    for words, changes in changed_equations(*equations_of(layer.op.cell, given).values()):
        yield Mistake(words, changes)


# Attributes that are left out, exchanged, or clip other values


def _attributes(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    for flag in ("linear_before_reset", "input_forget"):
        if flag in given:
            yield Mistake(f"{flag} were {1 - given[flag]}", {flag: 1 - given[flag]})
    if given.get("input_forget"):
        other, meaning = ("i", "i = 1 - f") if given["coupled_gate"] == "f" else ("f", "f = 1 - i")
        yield Mistake(f"input_forget meant {meaning}", {"coupled_gate": other})
    if given["clip"] is not None:
        gates = [row.result for row in equations_of(layer.op.cell, given).values() if row.is_gate]
        arguments = [f"{gate}_in" for gate in gates]
        yield Mistake("there were no clip", {"clip": None})
        yield Mistake("clip bounded the results of the activations, not their arguments", {"clipped": gates})
        for name, words in {"H": "H", "C": "C", "k_in": "the argument of h"}.items():
            if layer.op.has_cell_state or name == "H":
                yield Mistake(f"clip bounded {words}, too", {"clipped": [*arguments, name]})
    if "ThresholdedRelu" in given["activations"]:
        yield Mistake("ThresholdedRelu were 0 at its alpha, too", {"threshold_shift": _LEAST_SHIFT})
    default: Arguments = {"activations": None, "activation_alpha": [], "activation_beta": []}
    yield Mistake("the activations were the default ones", default)
    functions = layer.op.activations
    if functions[-1] != functions[0]:
        yield Mistake("the activations of both directions were those of the first", activations([*functions[0]] * 2))
    for a, b in combinations(range(len(functions[0])), 2):
        places = [{a: b, b: a}.get(k, k) for k in range(len(functions[0]))]
        exchanged = activations(direction[k] for direction in functions for k in places)
        yield Mistake(f"activations {'fgh'[a]} and {'fgh'[b]} were exchanged", exchanged)
    right = [function for direction in functions for function in direction]
    for parameter in ("alpha", "beta"):
        values = [value for function in right if (value := getattr(function, parameter)) is not None]
        if values:
            none = activations(_with(function, parameter, None) for function in right)
            yield Mistake(f"activation_{parameter} were not given", none)
            by_place = zip(right, [*values, *[None] * len(right)], strict=False)
            words = f"activation_{parameter} had a value for each activation, by its place"
            yield Mistake(words, activations(_with(function, parameter, value) for function, value in by_place))


def _with(function: Activation, parameter: str, value: float | None) -> Activation:
    """Return a function with another parameter; its default for None, if it has one."""
    default = getattr(ACTIVATIONS[function.name], parameter)
    if default is None or (value is None and np.isnan(default)):
        return function
    return replace(function, alpha=value) if parameter == "alpha" else replace(function, beta=value)


# States that are left out, directions that run elsewhere, and rows of other lengths


def _rows(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    states: list[str] = [name for name in ("initial_h", "initial_c") if name in given]
    zeros: Arguments = {name: np.zeros_like(given[name]) for name in states}
    for name in states:
        yield Mistake(f"{name} were zero", {name: zeros[name]})
    if len(states) == 2:
        yield Mistake("initial_h and initial_c were zero", zeros)
        exchanged = {"initial_h": given["initial_c"], "initial_c": given["initial_h"]}
        yield Mistake("initial_h and initial_c were exchanged", exchanged)
        yield Mistake("Y_c were Y_h", {}, lambda changed, right: {**right, "Y_c": right["Y_h"]})
        yield Mistake("Y_h were Y_c", {}, lambda changed, right: {**right, "Y_h": right["Y_c"]})
    if given["direction"] == "bidirectional":
        weights = [name for name in ("W", "R", "B", "P") if name in given]
        for names, words in ((states, "initial states"), (weights, "weights")):
            swapped = {name: given[name][::-1] for name in names}
            yield Mistake(f"the {words} of the two directions were exchanged", swapped)
            first = {name: given[name][[0, 0]] for name in names}
            yield Mistake(f"both directions had the {words} of the first", first)
        yield Mistake("the reverse direction ran forward", {"backward": (False, False)})
    else:
        other = "reverse" if given["direction"] == "forward" else "forward"
        yield Mistake(f"the direction were {other}", {"direction": other})
    yield from _lengths(given)
    if "T" in layer.convention.axes_of("X"):
        yield from _last_states(given)


def _lengths(given: Arguments) -> Iterator[Mistake]:
    lengths, T = given["sequence_lens"], len(given["X"])
    every = {"sequence_lens": np.full_like(lengths, T)}
    padding = (np.arange(T)[:, None] >= lengths)[:, None, :, None]  # of Y [T, D, N, H]
    yield Mistake("every row had all time steps, whatever sequence_lens says", every)
    yield Mistake(
        "the states were not frozen beyond a row's length, with Y zero there",
        every,
        lambda changed, right: {**changed, "Y": np.where(padding, 0, changed["Y"])},
    )
    yield Mistake(
        "Y were not zero beyond a row's length, with the states frozen",
        every,
        lambda changed, right: {**right, "Y": changed["Y"]},
    )
    yield Mistake(
        "Y beyond a row's length were its last state",
        {},
        lambda changed, right: {**right, "Y": np.where(padding, right["Y_h"], right["Y"])},
    )
    if not (lengths > 0).all():
        initial = {f"Y_{name[-1]}": given[name] for name in ("initial_h", "initial_c") if name in given}
        empty = (lengths == 0)[:, None]
        yield Mistake(
            "the last states of a row of length 0 were its initial ones",
            {},
            lambda changed, right: {
                **right,
                **{name: np.where(empty, state, right[name]) for name, state in initial.items()},
            },
        )
        yield Mistake("a row of length 0 had one step", {"sequence_lens": np.maximum(lengths, min(1, T))})
    if given["direction"] != "forward":
        words = "the reverse direction began at the last time step of X, whatever sequence_lens says"
        yield Mistake(words, {"ends": np.full_like(lengths, T)})


def _last_states(given: Arguments) -> Iterator[Mistake]:
    lengths = given["sequence_lens"]
    ends, rows = np.maximum(lengths - 1, 0), np.arange(len(lengths))
    yield Mistake("Y_h were Y at the last time step", {}, lambda changed, right: {**right, "Y_h": right["Y"][-1]})
    yield Mistake("Y_h were Y at the first time step", {}, lambda changed, right: {**right, "Y_h": right["Y"][0]})
    if given["direction"] != "forward":
        yield Mistake(
            "Y_h of the reverse direction were Y where a row ends in time",
            {},
            lambda changed, right: {**right, "Y_h": right["Y"][ends, :, rows].swapaxes(0, 1)},
        )
        words = "Y of the reverse direction were in the order in which it runs"
        yield Mistake(words, {"in_order_of_computation": True})


# Arrays that are read as if they were arranged in another way


def _arrays(layer: Layer, given: Arguments) -> Iterator[Mistake]:
    yield from _axes(layer, given)
    gates, own = layer.op.gates, layer.convention.gate_order(layer.op.cell)
    weights: Arguments = {name: given[name] for name in ("W", "R", "B") if name in given}
    for order in _other_orders(own):
        read = {name: _as_if(layer, weight, gates, own, order) for name, weight in weights.items()}
        yield Mistake(f"the gates of W, R and B were in the order {', '.join(order)}", read)
    if len(gates) > 1:
        read = {name: _unit_by_unit(layer, weight) for name, weight in weights.items()}
        yield Mistake("W, R and B had all gates of a unit next to each other", read)
    if "B" in given and len(gates) > 1:
        yield Mistake("B had all gates of a unit next to each other", {"B": read["B"]})
        if layer.convention.bias == SEPARATE:
            blocks = _by_gate(layer, _chosen(layer, given["B"], gates, own))
            paired = np.concatenate([blocks[:, ::2], blocks[:, 1::2]], axis=1).reshape(given["B"].shape)
            words = "B had Wb and Rb of each gate next to each other"
            yield Mistake(words, {"B": _chosen(layer, paired, own, gates)})
    if "P" in given:
        for order in _other_orders(layer.convention.peepholes):
            read = {"P": _as_if(layer, given["P"], CANONICAL.peepholes, layer.convention.peepholes, order)}
            yield Mistake(f"the gates of P were in the order {', '.join(order)}", read)
    transposed = _by_gate(layer, given["R"]).swapaxes(2, 3).reshape(given["R"].shape)
    yield Mistake("R were transposed, gate by gate", {"R": transposed})


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


def _other_orders(own: str) -> list[str]:
    return [order for order in map("".join, permutations(own)) if order != own]


def _unit_by_unit(layer: Layer, array: AnyArray) -> AnyArray:
    """Return W, R or B, whose rows in the layer's own order are read as if all gates of a unit were in a row."""
    gates, own = layer.op.gates, layer.convention.gate_order(layer.op.cell)
    H, G = layer.op.hidden_size, len(gates)
    rows = _chosen(layer, array, gates, own).reshape(len(array), -1, H, G, *array.shape[2:])
    return _chosen(layer, rows.swapaxes(2, 3).reshape(array.shape), own, gates)


def _as_if(layer: Layer, array: AnyArray, gates: str, own: str, order: str) -> AnyArray:
    """Return an array with the gates `gates`, whose blocks in the order `own` are read as if in `order`."""
    return _chosen(layer, array, gates, [own[order.index(gate)] for gate in gates])


def _chosen(layer: Layer, array: AnyArray, before: str, after: Sequence[str]) -> AnyArray:
    """Return an array [D, k*gates*H, ...] with the gates of each of its k parts in another order."""
    blocks, places = _by_gate(layer, array), [before.index(gate) for gate in after]
    starts = range(0, blocks.shape[1], len(places))
    return blocks[:, [start + place for start in starts for place in places]].reshape(array.shape)


def _by_gate(layer: Layer, array: AnyArray) -> AnyArray:
    """Reshape to [D, blocks, H, last axis]; the last axis of B and P is 1."""
    H = layer.op.hidden_size
    blocks: AnyArray = array.reshape(array.shape[0], array.shape[1] // H, H, -1)
    return blocks
