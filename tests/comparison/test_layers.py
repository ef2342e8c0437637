"""`compare` of equal and of different layers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from rows import each_row

from pyrnnx import (
    CANONICAL,
    ONNX_LAYOUTS,
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    Activation,
    ArgumentError,
    Comparison,
    Layer,
    RecurrentOp,
    UnsupportedError,
    compare,
)
from pyrnnx.frontends.openvino import IRLayer, read_layer, write_layer
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE_1, canonical_for, convert_weights
from pyrnnx.operator.op import CELLS, CellName

T, N, I, H = 5, 3, 4, 6
CONVENTIONS = {
    "ONNX layout 0": ONNX_LAYOUTS[0],
    "ONNX layout 1": ONNX_LAYOUTS[1],
    "OpenVINO sequence": OPENVINO_SEQUENCE,
    "OpenVINO cell": OPENVINO_CELL,
}
KINDS = (*CONVENTIONS, "unbound sequence", "unbound cell")
each_cell = each_row("cell", CELLS)


def unbound(op: RecurrentOp, kind: str) -> IRLayer:
    """A `<layer>` without weights, its batch and time open."""
    convention = CONVENTIONS[kind.replace("unbound", "OpenVINO")]
    given: dict[str, Any] = convert_weights(op, random_weights(op, I, exact_bias=True), CANONICAL, convention)
    text = write_layer(Layer(op, **given, convention=convention, name="open"), id=4)
    return read_layer(re.sub(r' precision="(FP32|I32)"', "", text))  # of any dtype


def make(op: RecurrentOp, kind: str, weights: Mapping[str, Any] | None = None) -> Layer | IRLayer:
    if kind.startswith("unbound"):
        return unbound(op, kind)
    convention = CONVENTIONS[kind]
    weights = weights or random_weights(op, I, exact_bias=True)
    given: dict[str, Any] = convert_weights(op, weights, CANONICAL, convention)
    return Layer(op, **given, convention=convention, name=kind)


def aspects(differences: tuple[Any, ...]) -> dict[str, tuple[str, str]]:
    return {one.aspect: (one.a, one.b) for one in differences}


# The same layer


@each_cell
@each_row(("first", "second"), list(product(KINDS, repeat=2)))
def test_same_layer_in_every_two_conventions(cell: CellName, first: str, second: str) -> None:
    op = RecurrentOp(cell, H, linear_before_reset=cell == "GRU")
    inputs = None
    if "cell" in first + second:  # a cell takes one step: the other must be given one as well
        inputs = {"X": np.random.default_rng(0).normal(size=(1, N, I)).astype(np.float32), "sequence_lens": [1] * N}
    result = compare(make(op, first), make(op, second), inputs)
    assert isinstance(result, Comparison)
    assert not result.operators
    assert list(result.numbers) == (["Y", "Y_h", "Y_c"] if cell == "LSTM" else ["Y", "Y_h"])
    assert result.largest_difference <= 1e-6  # float32: (Wb + Rb) + ... and (sum + 0) + ... are rounded alike or nearly
    names = [
        CONVENTIONS.get(kind, OPENVINO_CELL if "cell" in kind else OPENVINO_SEQUENCE).name for kind in (first, second)
    ]
    assert result.a.endswith(f"({names[0]})")
    assert result.b.endswith(f"({names[1]})")
    assert bool(result.conventions) is (names[0] != names[1])


# Differences in convention

ONNX_0_AND_SEQUENCE: dict[str, dict[str, tuple[str, str]]] = {
    "RNN": {
        "axes of X": ("[T, N, I]", "[N, T, I]"),
        "axes of Y": ("[T, D, N, H]", "[N, D, T, H]"),
        "axes of initial_h, Y_h": ("[D, N, H]", "[N, D, H]"),
        "B": ("Wb_i, Rb_i: [D, 2*H]", "b_i: [D, H]"),
        "names": ("sequence_lens, initial_h, Y_h", "sequence_lengths, H, Ho"),
        "required beside X, W, R": ("nothing", "B, H, sequence_lengths"),
        "dtype of lengths": ("int32", "any integer type"),
    },
    "GRU": {
        "axes of initial_h, Y_h": ("[D, N, H]", "[N, D, H]"),
        "B": ("Wb_z, Wb_r, Wb_h, Rb_z, Rb_r, Rb_h: [D, 6*H]", "b_z, b_r, b_h: [D, 3*H]"),
    },
    "LSTM": {
        "axes of initial_h, Y_h, initial_c, Y_c": ("[D, N, H]", "[N, D, H]"),
        "gate order": ("i, o, f, c", "f, i, c, o"),
        "names": ("sequence_lens, initial_h, Y_h, initial_c, Y_c", "sequence_lengths, H, Ho, C, Co"),
        "required beside X, W, R": ("nothing", "B, C, H, sequence_lengths"),
    },
}


@each_cell
@each_row("kind", ["OpenVINO sequence", "unbound sequence"])
def test_differences_in_convention_are_named(cell: CellName, kind: str) -> None:
    op = RecurrentOp(cell, H)
    found = aspects(compare(make(op, "ONNX layout 0"), make(op, kind)).conventions)
    expected = ONNX_0_AND_SEQUENCE[cell]
    assert {key: found[key] for key in expected} == expected
    if cell == "RNN":
        assert found == expected  # nothing else differs
    if cell != "LSTM":
        assert "gate order" not in found
    assert not {"shape of W", "P (peepholes)"} & found.keys()  # neither has P
    mirrored = aspects(compare(make(op, kind), make(op, "ONNX layout 0")).conventions)
    assert mirrored == {key: (b, a) for key, (a, b) in found.items()}


# Other layers


ELU = ((Activation("Sigmoid"), Activation("Elu", 0.5)),)
OPERATOR_CHANGES: list[tuple[CellName, dict[str, Any], str, tuple[str, str]]] = [
    ("LSTM", {"clip": 0.25}, "clip", ("None", "0.25")),
    ("RNN", {"activations": ((Activation("Sigmoid"),),)}, "activations", ("Tanh", "Sigmoid")),
    ("GRU", {"activations": ELU}, "activations", ("Sigmoid, Tanh", "Sigmoid, Elu(alpha=0.5)")),
    ("GRU", {"linear_before_reset": True}, "linear_before_reset", ("False", "True")),
    ("LSTM", {"input_forget": True}, "input_forget", ("False", "True")),
]


@each_row(("cell", "changes", "aspect", "words"), OPERATOR_CHANGES)
def test_changed_operator(cell: CellName, changes: dict[str, Any], aspect: str, words: tuple[str, str]) -> None:
    op, other = RecurrentOp(cell, H), RecurrentOp(cell, H, **changes)
    weights = random_weights(op, I)
    result = compare(make(op, "ONNX layout 0", weights), make(other, "ONNX layout 0", weights))
    assert aspects(result.operators) == {aspect: words}
    assert not result.conventions
    assert result.largest_difference > 1e-3  # float32 rounding is 1e-7


def test_unequal_layers_are_an_error() -> None:
    op, gru = RecurrentOp("RNN", H), RecurrentOp("GRU", H)
    wide = Layer(op, np.ones((1, H, I + 1), np.float32), np.ones((1, H, H), np.float32))
    for a, b, words in (
        (random_layer(op, I), random_layer(gru, I), "compare: cell is RNN in .* and GRU in.*expected the same"),
        (random_layer(gru, I), random_layer(RecurrentOp("GRU", H + 1), I), "compare: hidden_size is 6 in .* and 7 in"),
        (random_layer(gru, I), random_layer(RecurrentOp("GRU", H, "reverse"), I), "direction is .*forward.* in .* and"),
        (random_layer(op, I), wide, r"compare: input_size is 4 in .* and 5 in"),
        (wide, make(op, "unbound sequence"), r"RNNSequence 'open' \(id 4\): port 3 \(W\)"),
    ):
        with pytest.raises(ArgumentError, match=words):
            compare(a, b)


def test_peepholes_cannot_be_compared_with_openvino() -> None:
    op = RecurrentOp("LSTM", H)
    peeping = random_layer(op, I, peepholes=True)
    with pytest.raises(UnsupportedError, match="peepholes"):
        compare(peeping, make(op, "unbound sequence"))
    result = compare(peeping, make(op, "OpenVINO sequence"))  # both have weights of their own: that is a difference
    assert result.largest_difference > 1e-3
    assert aspects(result.conventions)["P (peepholes)"] == ("i, o, f", "none")


# Coupled gates: one convention has f = 1 - i, the other i = 1 - f

LEAKY = (Activation("LeakyRelu", 0.5), Activation("Tanh"), Activation("Tanh"))
COUPLING = "coupled gates (input_forget)"


def coupled(op: RecurrentOp, kind: str, weights: Mapping[str, Any]) -> Layer | IRLayer:
    """A layer of ONNX, or of LSTMSequence-1 bound or unbound, from the canonical weights of ONNX."""
    convention = CANONICAL if kind == "ONNX" else OPENVINO_SEQUENCE_1
    given: dict[str, Any] = convert_weights(op, weights, CANONICAL, convention) if kind != "ONNX" else dict(weights)
    layer = Layer(op, **given, convention=convention, name=kind)
    return read_layer(write_layer(layer)) if kind == "unbound" else layer


@each_row("kinds", [("ONNX", "bound"), ("bound", "ONNX"), ("ONNX", "unbound"), ("unbound", "ONNX")])
def test_coupled_gates_are_a_difference_of_convention(kinds: tuple[str, str]) -> None:
    op = RecurrentOp("LSTM", H, clip=0.5, input_forget=True)
    weights = random_weights(op, I)
    first, second = (coupled(op, kind, weights) for kind in kinds)
    result = compare(first, second)
    words = tuple("f = 1 - i" if kind == "ONNX" else "i = 1 - f" for kind in kinds)
    assert aspects(result.conventions)[COUPLING] == words
    assert not result.operators
    assert result.largest_difference <= 1e-6  # float32: biases are summed before they are added


def test_coupled_gates_of_other_functions() -> None:
    """Gates that need no conversion are compared; others are an error."""
    op, convention = RecurrentOp("LSTM", H, activations=(LEAKY,), input_forget=True), OPENVINO_SEQUENCE_1
    weights = random_weights(op, I)
    arranged: dict[str, Any] = convert_weights(op, weights, canonical_for(convention), convention)
    bound = Layer(op, **arranged, convention=convention, name="b")
    unbound, onnx_layer = read_layer(write_layer(bound)), coupled(op, "ONNX", weights)
    assert compare(bound, unbound).largest_difference == compare(unbound, unbound).largest_difference == 0
    assert compare(onnx_layer, bound).largest_difference > 1e-3  # i = 1 - f is another computation
    with pytest.raises(UnsupportedError, match=r"^LSTMSequence 'b' \(id 0\): input_forget with activation LeakyRelu"):
        compare(onnx_layer, unbound)


def test_printing() -> None:
    """Differences are a table; docs/howto/differ.md shows the rest of the text."""
    op = RecurrentOp("LSTM", H)
    same = str(compare(make(op, "ONNX layout 0"), make(op, "unbound sequence")))
    head, rule, *rows = same.splitlines()
    assert head.split("  ")[-1].strip() == "LSTMSequence 'open' (id 4) (OpenVINO sequence)"
    assert set(rule) == {"-", " "}
    (gates,) = (row for row in rows if row.startswith("gate order"))
    assert gates[head.index("LSTMSequence") :] == "f, i, c, o"
    assert "operators: the same" in rows
    other = str(compare(make(op, "ONNX layout 0"), make(RecurrentOp("LSTM", H, clip=0.25), "ONNX layout 0")))
    assert "operators: the same" not in other
    assert ["clip", "None", "0.25"] in [row.split() for row in other.splitlines()]


def test_constants_that_only_one_layer_holds() -> None:
    op, state = RecurrentOp("GRU", 4), np.ones((1, 2, 4), np.float32)
    plain, held = random_layer(op, 3), random_layer(op, 3, constants={"initial_h": state})
    other = random_layer(op, 3, constants={"initial_h": 2 * state})
    expected = {plain: ("initial_h", "none"), other: ("initial_h", "initial_h, other values")}
    for layer, texts in expected.items():
        (difference,) = compare(held, layer).conventions
        assert (difference.aspect, difference.a, difference.b) == ("constants", *texts)
    assert compare(held, held).conventions == ()
