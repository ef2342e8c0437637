"""Recurrent layers that a graph spells out: what is one becomes a layer, what is nearly one stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from hidden_layers import H, I, N, check, inputs_of, loop, scan, stacked, unrolled
from rows import each_row, few_rows

from pyrnnx.frontends.onnx import NodeLayer, read_model

Make = Callable[..., onnx.ModelProto]
KINDS = ("RNN", "GRU", "LSTM")

TWISTS_OF_GRU = ("reset before", "as difference", "update reversed", "update gate without X")
# Maker, cell, twist, and the number of layers.
LAYERS: list[tuple[Make, str, str, int]] = [
    *((make, kind, "", 1) for make in (unrolled, scan, loop) for kind in KINDS),
    *((unrolled, kind, twist, 1) for kind in KINDS for twist in ("bias missing", "reverse", "hoisted")),
    *((scan, kind, twist, 1) for kind in KINDS for twist in ("reverse", "reversed input", "bias missing")),
    *((scan, kind, "two layers", 2) for kind in KINDS),
    *((loop, kind, twist, 1) for kind in KINDS for twist in ("open", "fewer")),
    *((make, "GRU", twist, 1) for make in (unrolled, scan, loop) for twist in TWISTS_OF_GRU),
    *((make, kind, "relu", 1) for make in (unrolled, scan, loop) for kind in ("RNN", "LSTM")),
    *((make, "LSTM", twist, 1) for make in (unrolled, loop) for twist in ("order of gates", "wrong slice")),
]
NEAR = [
    *((make, kind, "clip") for make in (unrolled, scan, loop) for kind in ("RNN", "LSTM")),
    *((unrolled, kind, "fed back") for kind in KINDS),
    *((make, "GRU", twist) for make in (unrolled, scan, loop) for twist in ("hard update reversed", "nothing kept")),
    *((unrolled, kind, "gate used") for kind in ("GRU", "LSTM")),
    *(
        (make, "LSTM", twist)
        for make in (unrolled, scan, loop)
        for twist in ("peepholes", "hard gate", "other state", "clipped state", "old cell state", "no output function")
    ),
    (unrolled, "LSTM", "all cell states"),
    *((scan, kind, twist) for kind in KINDS for twist in ("output of a gate", "states changed") if kind != "RNN"),
    *((loop, kind, twist) for kind in KINDS for twist in ("condition", "from the end")),
]


def of_each_twist(rows: list[Any]) -> list[int]:
    """Return the places of rows that have each twist once unrolled and once in a body, and all cells in turn."""
    groups: dict[Any, list[int]] = {}
    for place, (make, _, twist, *_) in enumerate(rows):
        groups.setdefault((make is unrolled, twist), []).append(place)
    return [places[number % len(places)] for number, places in enumerate(groups.values())]


def name_of(value: Any) -> str:
    return value.__name__ if callable(value) else str(value)


@few_rows(
    ("make", "kind", "twist", "count"),
    [LAYERS[k] for k in of_each_twist(LAYERS)],
    [row for k, row in enumerate(LAYERS) if k not in of_each_twist(LAYERS)],
    name_of,
)
def test_layers_are_found_and_give_what_onnxruntime_gives(make: Make, kind: str, twist: str, count: int) -> None:
    model = check(make(kind, twist))
    assert [type(layer) for layer in model.layers.values()] == [NodeLayer] * count, model.layers.why_none
    assert {layer.op.cell for layer in model.layers.values()} == {kind}
    assert all(layer.op.hidden_size == H for layer in model.layers.values())
    operators = {node.op_type for node in model._with_layers().proto.graph.node}
    assert operators.isdisjoint({"MatMul", "Scan", "Loop", "Sigmoid", "Tanh", "Relu"}), operators


@few_rows(
    ("make", "kind", "twist"),
    [NEAR[k] for k in of_each_twist(NEAR)],
    [row for k, row in enumerate(NEAR) if k not in of_each_twist(NEAR)],
    name_of,
)
def test_what_is_nearly_a_layer_stays(make: Make, kind: str, twist: str) -> None:
    model = check(make(kind, twist))
    assert not any(layer.op.cell == kind for layer in model.layers.values())
    assert model.layers or model.layers.why_none


@each_row("kind", KINDS)
def test_layers_above_each_other_are_two_layers(kind: str) -> None:
    model = check(stacked(kind))
    assert [layer.weights["W"].shape[2] for layer in model.layers.values()] in ([I, H], [H, I])


# Some of the four steps are a layer: two have the same weights, and three take a state with as many rows as X.
PARTS = [
    *((kind, "other weights", 2, "") for kind in KINDS),
    *(
        (kind, "other W", 2, "other parts are nearly layers, but are not recognised: a step has other")
        for kind in KINDS
    ),
    *((kind, "one row of states", 3, "") for kind in KINDS),
]


@each_row(("kind", "twist", "count", "why"), PARTS)
def test_other_steps_stay(kind: str, twist: str, count: int, why: str) -> None:
    model = check(unrolled(kind, twist))
    assert len(model.layers) == 1
    assert f"{count} unrolled steps" in model.layers[0].origin
    assert why in model.layers.why_none


@each_row("opset", [13, 18, 22])  # in which axes are inputs, as the builder writes them
def test_each_opset(opset: int) -> None:
    for make in (unrolled, scan, loop):
        assert len(check(make("GRU", "", opset)).layers) == 1


@each_row("kind", KINDS)
def test_no_steps_leave_the_states(kind: str) -> None:
    for proto in (scan(kind), loop(kind, "open")):
        model = read_model(proto)
        inputs = inputs_of(proto, steps=0)
        *states, Y = (model(inputs)[value.name] for value in proto.graph.output)
        assert Y.shape == (0, N, H)
        assert all(np.array_equal(state, inputs[name]) for state, name in zip(states, ("h0", "c0"), strict=False))
