"""Axis orders, gate orders and bias forms: expectations written by hand, and round trips."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from layers import gate_count
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import (
    CANONICAL,
    KERAS,
    KERAS_RESET_AFTER,
    ONNX_LAYOUTS,
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    TORCH,
    TORCH_BATCH_FIRST,
    TORCH_CELL,
    Activation,
    ArgumentError,
    Convention,
    Direction,
    RecurrentOp,
    UnsupportedError,
)
from pyrnnx.operator import conventions
from pyrnnx.operator.conventions import (
    KERNELS,
    OPENVINO_CELL_1,
    OPENVINO_SEQUENCE_1,
    canonical_for,
    convert_weights,
    rearrange,
    weight_axes,
)

Array = NDArray[Any]
PUBLIC = {name: one for name, one in vars(conventions).items() if isinstance(one, Convention) and name[0] != "_"}
CONVENTIONS = (*ONNX_LAYOUTS, *(one for name, one in PUBLIC.items() if name != "CANONICAL"))
SUMMED = (OPENVINO_SEQUENCE, OPENVINO_CELL, OPENVINO_SEQUENCE_1, OPENVINO_CELL_1, KERNELS, KERAS)
CELLS = (OPENVINO_CELL, OPENVINO_CELL_1, TORCH_CELL)
GATES_LAST = (KERAS, KERAS_RESET_AFTER)
LSTM_GATES = {KERNELS: "iofc", KERAS: "ifco"}  # of those that sum the biases, the others have f, i, c, o
WITH_PEEPHOLES = (*ONNX_LAYOUTS, KERNELS, OPENVINO_SEQUENCE_1, OPENVINO_CELL_1)
H, I = 5, 3

OPERATORS = {
    "RNN": RecurrentOp("RNN", H),
    "GRU": RecurrentOp("GRU", H),
    "GRU linear_before_reset": RecurrentOp("GRU", H, linear_before_reset=True),
    "LSTM": RecurrentOp("LSTM", H),
}
each_operator = each_row("op", OPERATORS.values(), ids=OPERATORS)


def bidirectional(op: RecurrentOp) -> RecurrentOp:
    return RecurrentOp(op.cell, H, "bidirectional", linear_before_reset=op.linear_before_reset)


def canonical_weights(op: RecurrentOp) -> dict[str, Array]:
    """All different; biases are integers, so that their sums are exact."""
    D, G = op.num_directions, gate_count(op.cell)
    shapes = {"W": (D, G * H, I), "R": (D, G * H, H), "B": (D, 2 * G * H)}
    rng = np.random.default_rng(3)
    numbers = rng.permutation(sum(int(np.prod(shape)) for shape in shapes.values())) + 1.0
    arrays, start = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        arrays[name] = numbers[start : start + size].reshape(shape)
        start += size
    return arrays


def blocks(op: RecurrentOp, a: Array) -> list[Array]:
    """[D, k*H, ...] cut into its k blocks."""
    return [a[:, k * H : (k + 1) * H] for k in range(a.shape[1] // H)]


def joined(*parts: Array) -> Array:
    return np.concatenate(parts, axis=1)


def assert_same(a: dict[str, Array], b: dict[str, Array]) -> None:
    assert a.keys() == b.keys()
    for name, array in a.items():
        np.testing.assert_array_equal(array, b[name], err_msg=name, strict=True)


# Axes


def test_rearrange_by_hand() -> None:
    T, D, N, Hs = 2, 3, 4, 5
    Y = np.arange(T * D * N * Hs).reshape(T, D, N, Hs)
    for t, d, n in product(range(T), range(D), range(N)):
        np.testing.assert_array_equal(rearrange(Y, "TDNH", "NDTH")[n, d, t], Y[t, d, n])
        np.testing.assert_array_equal(rearrange(Y, "TDNH", "NTDH")[n, t, d], Y[t, d, n])
        np.testing.assert_array_equal(rearrange(Y[0], "DNH", "NDH")[n, d], Y[0, d, n])
    np.testing.assert_array_equal(rearrange(Y, "NDTH", "TDNH"), Y.transpose(2, 1, 0, 3))


# Gates


def test_a_convention_is_frozen_with_all_that_it_holds() -> None:
    for convention in (*CONVENTIONS, OPENVINO_SEQUENCE_1):
        for mapping in (convention.axes, convention.gates, convention.names):
            with pytest.raises(TypeError, match="does not support item assignment"):
                mapping["X"] = "NTI"  # type: ignore[index]
    axes = {"X": "TNI", "Y": "TDNH", "state": "DNH", "sequence_lens": "N"}
    own = Convention("own", axes)
    axes["X"] = "oops"
    assert own.axes_of("X") == "TNI"


def test_conventions_are_equal_by_what_they_say() -> None:
    for convention in (*CONVENTIONS, OPENVINO_SEQUENCE_1):
        for again in (pickle.loads(pickle.dumps(convention)), copy.deepcopy(convention), replace(convention)):
            assert again == convention
            assert hash(again) == hash(convention)
    assert len({*CONVENTIONS, replace(CANONICAL, bias="summed: Wb + Rb")}) == len(CONVENTIONS) + 1
    assert repr(CANONICAL) == "<Convention ONNX, layout 0>"
    with pytest.raises(ArgumentError, match=r"^Convention 'own': axes is 'TNI'; expected a mapping$"):
        Convention("own", "TNI")  # type: ignore[arg-type]


@each_operator
def test_gate_order_by_hand(op: RecurrentOp) -> None:
    op = bidirectional(op)
    given = canonical_weights(op)
    result = convert_weights(op, given, CANONICAL, OPENVINO_SEQUENCE)
    for name in ("W", "R"):
        parts = blocks(op, given[name])
        if op.cell == "LSTM":
            i, o, f, c = parts
            parts = [f, i, c, o]
        np.testing.assert_array_equal(result[name], joined(*parts), err_msg=name, strict=True)


TORCH_GATES = {"RNN": "i", "GRU": "rzh", "LSTM": "ifco"}  # n of its documentation is h here, g is c
KERAS_GATES = {"RNN": "i", "GRU": "zrh", "LSTM": "ifco"}


@each_operator
@each_row("target", [TORCH, TORCH_BATCH_FIRST, TORCH_CELL], ids=lambda one: one.name)
def test_weights_of_torch_by_hand(op: RecurrentOp, target: Convention) -> None:
    given = canonical_weights(op)
    result = convert_weights(op, given, CANONICAL, target)
    order = [op.gates.index(gate) for gate in TORCH_GATES[op.cell]]
    for name in ("W", "R"):
        parts = blocks(op, given[name])
        expected = joined(*(parts[k] for k in order))
        np.testing.assert_array_equal(result[name], expected[0] if target is TORCH_CELL else expected, strict=True)
    parts = blocks(op, given["B"])
    bias_ih, bias_hh = parts[: len(order)], parts[len(order) :]
    expected = joined(*(bias_ih[k] for k in order), *(bias_hh[k] for k in order))
    np.testing.assert_array_equal(result["B"], expected[0] if target is TORCH_CELL else expected, strict=True)


@each_operator
def test_weights_of_keras_by_hand(op: RecurrentOp) -> None:
    """kernel [I, G*H] and recurrent_kernel [H, G*H]; their rows in each direction are ONNX's columns."""
    op = bidirectional(op)
    given = canonical_weights(op)
    order = [op.gates.index(gate) for gate in KERAS_GATES[op.cell]]
    for target in GATES_LAST:
        result = convert_weights(op, given, CANONICAL, target)
        for name in ("W", "R"):
            parts = blocks(op, given[name])
            for d in range(2):
                kernel = np.hstack([parts[k][d].T for k in order])
                np.testing.assert_array_equal(result[name][d], kernel, err_msg=name, strict=True)
    parts = blocks(op, given["B"])
    halves = joined(*(parts[k] for k in order)), joined(*(parts[len(order) + k] for k in order))
    for d in range(2):  # [2, G*H] of a GRU with reset_after, one row after the other
        rows = np.stack([half[d] for half in halves])
        np.testing.assert_array_equal(result["B"][d].reshape(2, -1), rows, strict=True)


# Biases


@each_row("target", SUMMED, ids=lambda one: one.name)
@each_operator
def test_bias_sum_by_hand(op: RecurrentOp, target: Convention) -> None:
    given = canonical_weights(op)["B"]
    parts = blocks(op, given)
    if op.cell == "RNN":
        (Wb_i, Rb_i) = parts
        expected = joined(Wb_i + Rb_i)
    elif op.cell == "GRU":
        Wb_z, Wb_r, Wb_h, Rb_z, Rb_r, Rb_h = parts
        last = [Wb_h, Rb_h] if op.linear_before_reset else [Wb_h + Rb_h]
        expected = joined(Wb_z + Rb_z, Wb_r + Rb_r, *last)
    else:
        Wb_i, Wb_o, Wb_f, Wb_c, Rb_i, Rb_o, Rb_f, Rb_c = parts
        sums = {"i": Wb_i + Rb_i, "o": Wb_o + Rb_o, "f": Wb_f + Rb_f, "c": Wb_c + Rb_c}
        expected = joined(*(sums[gate] for gate in LSTM_GATES.get(target, "fico")))
    result = convert_weights(op, {"B": given}, CANONICAL, target)["B"]
    if target in CELLS:
        expected = expected[0]
    np.testing.assert_array_equal(result, expected, strict=True)
    assert given.base is None or not np.shares_memory(result, given)


# There and back


@each_row(
    ("first", "second"),
    [*product([CANONICAL], CONVENTIONS), *product(CONVENTIONS, [CANONICAL])],
    ids=lambda convention: convention.name,
)
@each_operator
def test_round_trip(op: RecurrentOp, first: Convention, second: Convention) -> None:
    """Exact for W and R always; for B unless a sum was taken apart, whose halves stay (sum, 0)."""
    if first not in CELLS and second not in CELLS:
        op = bidirectional(op)
    given = convert_weights(op, canonical_weights(op), CANONICAL, first)
    there = convert_weights(op, given, first, second)
    back = convert_weights(op, there, second, first)
    axes = weight_axes(op, second)
    sizes = {"D": op.num_directions, "H": H, "I": I}
    for name, array in there.items():
        multiples = [axis.rpartition("*") for axis in axes[name]]
        assert array.shape == tuple(int(m or 1) * sizes[letter] for m, _, letter in multiples)
    if first not in SUMMED and second in SUMMED:
        again = convert_weights(op, back, first, second)  # the halves differ, the sum does not
        assert_same(again, there)
        back["B"] = given["B"]
    assert_same(back, given)


# Peepholes


@each_row("target", [one for one in CONVENTIONS if one not in WITH_PEEPHOLES], ids=lambda one: one.name)
def test_peepholes_cannot_be_expressed(target: Convention) -> None:
    op = OPERATORS["LSTM"]
    weights = {**canonical_weights(op), "P": np.zeros((1, 3 * H))}
    with pytest.raises(UnsupportedError, match=rf"LSTM: P \(peepholes\).*{target.name}"):
        convert_weights(op, weights, CANONICAL, target)


def test_peepholes_pass_between_onnx_layouts() -> None:
    op = OPERATORS["LSTM"]
    weights = {**canonical_weights(op), "P": np.arange(3.0 * H)[np.newaxis]}
    assert_same(convert_weights(op, weights, *ONNX_LAYOUTS), weights)
    np.testing.assert_array_equal(convert_weights(op, weights, CANONICAL, KERNELS)["P"], weights["P"])


# Coupled gates: ONNX has f = 1 - i, version 1 of OpenVINO's LSTMs i = 1 - f

COUPLED = RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL, input_forget=True)
FUNCTIONS = (Activation("Sigmoid"), Activation("Tanh"), Activation("Tanh"))
OTHER = (Activation("HardSigmoid", 0.25, 0.5), Activation("Tanh"), Activation("Tanh"))


def coupled_weights() -> dict[str, Array]:
    P = np.arange(1.0, 2 * 3 * H + 1).reshape(2, 3 * H)
    return {**canonical_weights(COUPLED), "P": P}


def test_coupled_gate_by_hand() -> None:
    """f's weights are those of i, negated; i's own, unused there, are zero."""
    given = coupled_weights()
    result = convert_weights(COUPLED, given, CANONICAL, OPENVINO_SEQUENCE_1)
    for name in ("W", "R"):
        i, o, _, c = blocks(COUPLED, given[name])
        np.testing.assert_array_equal(result[name], joined(-i, np.zeros_like(i), c, o), err_msg=name, strict=True)
    Wb_i, Wb_o, _, Wb_c, Rb_i, Rb_o, _, Rb_c = blocks(COUPLED, given["B"])
    zero = np.zeros((2, H))
    np.testing.assert_array_equal(result["B"], joined(-(Wb_i + Rb_i), zero, Wb_c + Rb_c, Wb_o + Rb_o), strict=True)
    i, o, _ = blocks(COUPLED, given["P"])
    np.testing.assert_array_equal(result["P"], joined(-i, zero, o), strict=True)


def test_coupled_gate_there_and_back() -> None:
    given = coupled_weights()
    before = {name: array.copy() for name, array in given.items()}
    for target in (OPENVINO_SEQUENCE_1, replace(CANONICAL, coupled_gate="i")):
        there = convert_weights(COUPLED, given, CANONICAL, target)
        back = convert_weights(COUPLED, there, target, CANONICAL)
        assert_same(given, before)
        for name in ("W", "R", "P"):
            expected = given[name].copy()
            expected[:, 2 * H : 3 * H] = 0
            np.testing.assert_array_equal(back[name], expected, strict=True)
        assert_same(convert_weights(COUPLED, back, CANONICAL, target), there)


@each_row("place", [0, 1])
def test_other_functions_of_coupled_gates_cannot_be_translated(place: int) -> None:
    functions = (OTHER, FUNCTIONS) if place == 0 else (FUNCTIONS, OTHER)
    op = replace(COUPLED, activations=functions)
    weights = coupled_weights()
    for source, target in ((CANONICAL, OPENVINO_SEQUENCE_1), (OPENVINO_SEQUENCE_1, CANONICAL)):
        for given in (weights, {}):
            with pytest.raises(
                UnsupportedError, match=r"^LSTM 'x': input_forget with activation HardSigmoid\("
            ) as caught:
                convert_weights(op, given, source, target, "LSTM 'x'")
            assert all(
                word in str(caught.value) for word in ("f = 1 - i in 'ONNX", "i = 1 - f in 'OpenVINO", "Sigmoid")
            )
    with pytest.raises(UnsupportedError, match=r"^LSTM: input_forget"):
        convert_weights(op, weights, CANONICAL, OPENVINO_SEQUENCE_1)
    assert_same(convert_weights(op, weights, *ONNX_LAYOUTS), weights)
    for convention in (OPENVINO_SEQUENCE_1, OPENVINO_CELL_1):  # arranged alone, it can be anything
        assert canonical_for(convention).coupled_gate == "i"
    convert_weights(op, weights, canonical_for(OPENVINO_SEQUENCE_1), OPENVINO_SEQUENCE_1)
    plain = replace(op, input_forget=False)
    convert_weights(plain, weights, CANONICAL, OPENVINO_SEQUENCE_1)
