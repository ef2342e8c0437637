"""Names of mistakes: assert_same of a layer and an edited oracle, or each mistake of the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from mutant import Mutant, table
from mutants import MUTANTS
from rows import each_row, few_rows
from same_messages import message, named

from pyrnnx import Activation, Direction, Layer, RecurrentOp
from pyrnnx.comparison import oracle
from pyrnnx.frontends.onnx import lstm
from pyrnnx.operator.op import CELLS
from pyrnnx.testing import assert_same
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.same.mistakes import mistakes

I, H = 4, 5
LENGTHS: dict[str, list[int]] = {"": [4, 6, 2], "-0": [6, 0, 2]}

# Attributes of the layers by name; a name that ends in "-0" has a row of length 0.
LAYERS: dict[str, dict[str, Any]] = {
    "rnn": {"cell": "RNN"},
    "rnn-clip": {"cell": "RNN", "clip": 0.3},
    "rnn-reverse": {"cell": "RNN", "direction": "reverse"},
    "gru": {"cell": "GRU"},
    "gru-linear": {"cell": "GRU", "linear_before_reset": True},
    "gru-both": {"cell": "GRU", "direction": "bidirectional"},
    "lstm": {"cell": "LSTM"},
    "lstm-clip": {"cell": "LSTM", "clip": 0.3, "peepholes": True},
    "lstm-P": {"cell": "LSTM", "peepholes": True},
    "lstm-coupled": {"cell": "LSTM", "input_forget": True, "peepholes": True},
    "lstm-both": {"cell": "LSTM", "direction": "bidirectional"},
    "lstm-alpha": {"cell": "LSTM", "activations": ["Sigmoid", Activation("LeakyRelu", 0.3), Activation("Elu", 0.7)]},
    "gru-hard": {"cell": "GRU", "activations": ["HardSigmoid", "Tanh"]},
    "gru-threshold": {
        "cell": "GRU",
        "clip": 0.25,
        "activations": ["Sigmoid", Activation("ThresholdedRelu", -0.25)],
    },
}

# The mistake in the words of the message [the file of the oracle], the edit, and the layers that show it.
WRONG = table(r"""
there were no clip [cells.py]
    return np.minimum(np.maximum(x, -self.clip), self.clip) => return x
    rnn-clip lstm-clip
the direction were forward [operators.py]
    reverse=reverse[d] => reverse=False
    rnn-reverse
linear_before_reset were 1 [operators.py]
    linear_before_reset=bool(a.linear_before_reset) => linear_before_reset=True
    gru
input_forget were 1 [operators.py]
    coupled_gate="" if not a.input_forget => coupled_gate="f" if True
    lstm lstm-P
initial_h and initial_c were exchanged [cells.py]
    initial[d].copy() => states["H" if name == "C" else "C"][d].copy()
    lstm lstm-both
initial_h were zero [cells.py]
    initial[d].copy() => initial[d] * (name != "H")
    rnn gru lstm lstm-both
initial_c were zero [cells.py]
    initial[d].copy() => initial[d] * (name != "C")
    lstm lstm-both
every row had all time steps, whatever sequence_lens says [arguments.py]
    return array.astype(np.int64) => return np.full(N, T)
    rnn-reverse gru lstm-both
linear_before_reset were 0 [operators.py]
    linear_before_reset=bool(a.linear_before_reset) => linear_before_reset=False
    gru-linear
the gates of W, R and B were in the order i, f, o, c [operators.py]
    "LSTM": "iofc" => "LSTM": "ifoc"
    lstm lstm-P lstm-both
the gates of P were in the order i, f, o [operators.py]
    peepholes="iof" => peepholes="ifo"
    lstm-P lstm-coupled
Ct were Ct-1 in Po*Ct of o [cells.py]
    P["o"] * Ct + => P["o"] * Ct_1 +
    lstm-P lstm-coupled lstm-clip
clip bounded H, too [cells.py]
    Ht = ot * h(Ct) => Ht = p.clipped(ot * h(Ct))
    lstm-clip
clip bounded C, too [cells.py]
    Ct = ft * Ct_1 + it * ct => Ct = p.clipped(ft * Ct_1 + it * ct)
    lstm-clip
clip bounded the argument of h, too [cells.py]
    Ht = ot * h(Ct) => Ht = ot * h(p.clipped(Ct))
    lstm-clip
clip bounded the results of the activations, not their arguments [cells.py]
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T + Wb["i"] + Rb["i"])\n    Ht = f(i_in) =>
    i_in = Xt @ W["i"].T + Ht_1 @ R["i"].T + Wb["i"] + Rb["i"]\n    Ht = p.clipped(f(i_in))
    rnn-clip
the reverse direction began at the last time step of X, whatever sequence_lens says [cells.py]
    lens[rows] - 1 - k if => np.full(rows.shape, T - 1 - k) if
    rnn-reverse gru-both lstm-both rnn-reverse-0
Y of the reverse direction were in the order in which it runs [cells.py]
    Y[t, d, rows] = computed["H"] => Y[k, d, rows] = computed["H"]
    rnn-reverse gru-both lstm-both
the reverse direction ran forward [arguments.py]
    "bidirectional": (False, True) => "bidirectional": (False, False)
    gru-both lstm-both lstm-both-0
the states were not frozen beyond a row's length, with Y zero there [cells.py]
    return Y, last, values =>
    return Y, last if min(lens) == T else run_directions(cell, directions, X, lens * 0 + T, states, steps=False)[1], {}
    rnn gru lstm
Y were not zero beyond a row's length, with the states frozen [cells.py]
    return Y, last, values =>
    return Y if min(lens) == T else run_directions(cell, directions, X, lens * 0 + T, states, steps=False)[0], last, {}
    rnn gru lstm
Y beyond a row's length were its last state [cells.py]
    Y[t, d, rows] = computed["H"] => Y[k:, d, rows] = computed["H"]
    rnn gru lstm
the last states of a row of length 0 were its initial ones [cells.py]
    last = {name: np.zeros((D, N, H)) for name in states} =>
    last = {name: state.copy() for name, state in states.items()}
    rnn-0 gru-both-0 lstm-0
a row of length 0 had one step [arguments.py]
    return array.astype(np.int64) => return np.maximum(array, 1)
    rnn-0 gru-both-0 lstm-0
Y_h were Y at the last time step [cells.py]
    return Y, last, values => return Y, {**last, "H": Y[-1]}, values
    rnn gru-both lstm rnn-reverse
Y_h were Y at the first time step [cells.py]
    return Y, last, values => return Y, {**last, "H": Y[0]}, values
    rnn gru-both lstm
Y_h of the reverse direction were Y where a row ends in time [cells.py]
    return Y, last, values =>
    return Y, {**last, "H": np.stack([Y[lens - 1, d, range(N)] for d in range(D)])}, values
    rnn-reverse gru-both lstm-both
initial_h had the axes [batch_size, num_directions, hidden_size] [operators.py]
    X, lens, initial, steps => X, lens, {"H": initial["H"].reshape(N, D, H).swapaxes(0, 1)}, steps
    gru-both
initial_h and initial_c had the axes [batch_size, num_directions, hidden_size] [operators.py]
    X, lens, initial, steps =>
    X, lens, {name: state.reshape(N, D, H).swapaxes(0, 1) for name, state in initial.items()}, steps
    lstm-both
both directions had the initial states of the first [cells.py]
    initial[d].copy() => initial[0].copy()
    gru-both lstm-both
B had Wb and Rb of each gate next to each other [operators.py]
    Wb, Rb = np.split(B, 2) =>
    Wb, Rb = B.reshape(len(order), 2, -1).swapaxes(0, 1).reshape(2, -1)
    gru-linear gru-both lstm
B had all gates of a unit next to each other [operators.py]
    return split(Wb, order), split(Rb, order) =>
    return [dict(zip(order, b.reshape(-1, len(order)).T)) for b in (Wb, Rb)]
    gru gru-linear lstm lstm-both
activation_alpha were not given [activations.py]
    "activation_alpha": list(alphas or ()) => "activation_alpha": []
    lstm-alpha
activation_alpha had a value for each activation, by its place [activations.py]
    if name in ALPHA and unused["activation_alpha"] => if unused["activation_alpha"]
    lstm-alpha
activation f were HardSigmoid with alpha 1/6 [activations.py]
    np.maximum(alpha * x + beta, 0.0) => np.maximum(x / 6 + 0.5, 0.0)
    gru-hard
the activation of ht were Relu [activations.py]
    np.where(x < alpha, 0.0, x) => np.where(x < 0, 0.0, x)
    gru-threshold
ThresholdedRelu were 0 at its alpha, too [activations.py]
    np.where(x < alpha, 0.0, x) => np.where(x <= alpha, 0.0, x)
    gru-threshold
the activation of ct were Tanh [cells.py]
    ct = g(c_in) => ct = np.tanh(c_in)
    lstm-alpha
input_forget were 0 [operators.py]
    coupled_gate="" if not a.input_forget => coupled_gate="" if True
    lstm-coupled
input_forget meant i = 1 - f [operators.py]
    else a.coupled_gate if is_onnx else "i" => else "i"
    lstm-coupled
R were transposed, gate by gate [operators.py]
    R=split(R[d], order) => R={gate: block.T for gate, block in split(R[d], order).items()}
    rnn gru lstm
(1-zt) and zt were exchanged in H [cells.py]
    (1.0 - zt) * ht + zt * Ht_1 => zt * ht + (1.0 - zt) * Ht_1
    gru gru-linear gru-both
the reset gate scaled Rbh [cells.py]
    (rt * Ht_1) @ R["h"].T + Rb["h"] => (rt * Ht_1) @ R["h"].T + rt * Rb["h"]
    gru gru-both
the reset gate did not scale Rbh [cells.py]
    rt * (Ht_1 @ R["h"].T + Rb["h"]) + Wb["h"] => rt * (Ht_1 @ R["h"].T) + Rb["h"] + Wb["h"]
    gru-linear
""")

# Wrong, but in no way that has a name: nothing is named.
UNNAMED = [mutant for mutant in MUTANTS if mutant.does in (
    "RNN: clip before the bias",
    "the valid rows are the first ones, as if sorted by falling length",
    "what X is multiplied with is summed in float16",
    "float64 is computed in float32",
    "Tanh is an arctangent",
)]  # fmt: skip


def make_layer(name: str) -> Layer:
    attributes = LAYERS[name.removesuffix("-0")]
    peepholes = attributes.get("peepholes", False)
    op = RecurrentOp(hidden_size=H, **{key: value for key, value in attributes.items() if key != "peepholes"})
    return random_layer(op, I, np.float64, peepholes=peepholes)


def edited(layer: Layer, changed: ModuleType) -> Callable[..., Any]:
    """Return the layer as a function of an oracle that is edited."""
    op = layer.op
    fixed: dict[str, Any] = {"direction": op.direction.value, "clip": op.clip}
    fixed |= oracle.activations(function for direction in op.activations for function in direction)
    fixed |= {"linear_before_reset": int(op.linear_before_reset)} if op.cell == "GRU" else {}
    fixed |= {"input_forget": int(op.input_forget)} if op.cell == "LSTM" else {}

    def function(**arrays: Array) -> Any:
        return changed.run(op.cell, **{**layer.weights, **fixed, **arrays})

    return function


def named_edit(name: str, changed: ModuleType) -> list[str]:
    layer = make_layer(name)
    return named(layer, edited(layer, changed), sequence_lens=LENGTHS["-0" if name.endswith("-0") else ""])


@few_rows("mutant", WRONG[::20], WRONG, ids=lambda mutant: mutant.does, mark="nightly")
def test_edited_oracle_is_named(mutant: Mutant, tmp_path: Path) -> None:
    changed = mutant.load(tmp_path / "oracle")
    for name in mutant.killed_by:
        assert named_edit(name, changed) == [mutant.does], name


@few_rows("mutant", UNNAMED[::2], UNNAMED[1::2], ids=lambda mutant: mutant.does)
def test_other_edits_have_no_name(mutant: Mutant, tmp_path: Path) -> None:
    name = {"RNN": "rnn-clip"}.get(mutant.does.split(":")[0], "lstm")
    assert named_edit(name, mutant.load(tmp_path / "oracle")) == []


# Each mistake of the table

OPERATORS = {
    "RNN": RecurrentOp("RNN", H, clip=1.0),
    "GRU": RecurrentOp("GRU", H),
    "GRU with linear_before_reset": RecurrentOp("GRU", H, linear_before_reset=True),
    "LSTM": RecurrentOp("LSTM", H),
    "bidirectional LSTM with input_forget": RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL, input_forget=True),
}


def planted(layer: Layer, words: str) -> Callable[..., Any]:
    """Return a layer with the mistake of these words; many of them depend on the arrays of a call."""

    def function(**arrays: Array) -> Any:
        given = oracle.arguments(layer, {name: arrays[name] for name in arrays if name not in "WRBP"})
        mistake = next(mistake for mistake in mistakes(layer, given) if mistake.words == words)
        return mistake.outputs(layer, given, oracle.outputs(layer, given))

    return function


def check_mistakes(name: str, start: int, stride: int) -> None:
    """Plant mistakes: each is named, itself or by another one that computes the same numbers."""
    op, lengths = OPERATORS[name], [5, 0, 3]
    layer = random_layer(op, I, np.float64, peepholes=op.cell == "LSTM")
    shape = (op.num_directions, 3, H)
    arrays: dict[str, Array] = {
        "X": np.ones((5, 3, I)),
        "sequence_lens": np.array(lengths),
        "initial_h": np.ones(shape),
    }
    arrays |= {"initial_c": np.ones(shape)} if op.cell == "LSTM" else {}
    every = list(mistakes(layer, oracle.arguments(layer, arrays)))
    assert len({mistake.words for mistake in every}) == len(every)
    for mistake in every[start::stride]:
        text = failure(layer, planted(layer, mistake.words), lengths)
        if text:  # some have no effect, such as to leave out what is zero
            assert "By its numbers, b computes that layer as if " in text, mistake.words
            assert mistake.words in text or ", or as if " in text, mistake.words


def failure(layer: Layer, function: Callable[..., Any], lengths: list[int]) -> str:
    try:
        assert_same(layer, function, inputs={"sequence_lens": lengths})
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


@each_row("name", OPERATORS)
def test_some_mistakes_are_named(name: str) -> None:
    check_mistakes(name, 3, 211)


@pytest.mark.nightly
@pytest.mark.parametrize("name", OPERATORS)
def test_every_mistake_is_named(name: str) -> None:
    check_mistakes(name, 0, 1)


def test_number_of_mistakes() -> None:
    """Each term of each equation is left out, added twice and taken from another step."""
    for cell, least in {"RNN": 35, "GRU": 110, "LSTM": 160}.items():
        layer = random_layer(RecurrentOp(cell, H), I)  # type: ignore[arg-type]
        state = np.ones((1, 1, H))
        arrays = {"X": np.ones((2, 1, I)), "initial_h": state, "initial_c": state, "sequence_lens": np.array([2])}
        found = [mistake.words for mistake in mistakes(layer, oracle.arguments(layer, _taken(layer, arrays)))]
        assert len(found) >= least
        for gate in CELLS[layer.op.cell].gates:
            for words in (f"W{gate}*Xt were left out of {gate}", f"Rb{gate} were added twice in {gate}"):
                assert words in found
            assert f"Xt were Xt-1 in W{gate}*Xt of {gate}" in found


def _taken(layer: Layer, arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: array for name, array in arrays.items() if name != "initial_c" or layer.op.has_cell_state}


def test_what_takes_too_long_is_not_tried() -> None:
    layer = random_layer(RecurrentOp("RNN", 1), 1)
    arrays = {"X": np.ones((2**18, 1, 1), "f4")}
    text = message(layer, lambda X: tuple(array + 1 for array in layer(X)), inputs=arrays)
    assert "By its numbers" not in text
    assert text.endswith("The oracle was skipped: 262144 steps of 1 rows take too long.")
    arrays = {"X": np.ones((2**13, 1, 1), "f4")}  # once, but not for each mistake
    text = message(layer, lambda X: tuple(array + 1 for array in layer(X)), inputs=arrays)
    assert "No usual mistakes of b were tried, which takes too long: pass shorter inputs." in text
    assert text.endswith("b is away from the oracle, a is not.")


def test_no_mistake_is_named_where_the_layer_is_wrong_or_none_fits() -> None:
    op = RecurrentOp("LSTM", H)
    weights: Any = random_weights(op, I)
    other: dict[str, Any] = random_weights(op, I, seed=1)
    rounded = Layer(op, **weights, weight_dtype="int8")
    assert "usual mistakes" not in message(rounded, lambda X: lstm(X, **weights))
    text = message(Layer(op, **weights), lambda X: lstm(X, **other))
    assert " usual mistakes gives the numbers of b. Y" in text
    assert "first apart: Y at step 0, forward, row " in text
    assert "that step by the oracle: i_in " in text
