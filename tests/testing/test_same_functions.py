"""assert_same of a layer and a function: its calls, its results, and planted faults of each kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from rows import each_row
from same_messages import message

from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, Activation, ArgumentError, Layer, PyrnnxWarning, RecurrentOp
from pyrnnx.frontends.onnx import lstm
from pyrnnx.operator.conventions import CANONICAL, convert_weights
from pyrnnx.testing import assert_same
from pyrnnx.testing.numbers import Array

T, N, I, H = 5, 3, 4, 6
OP = RecurrentOp("LSTM", H)
WEIGHTS: Any = random_weights(OP, I)
LAYER = Layer(OP, **WEIGHTS)


def given_to(function: Callable[..., Any], layer: Any = LAYER, **options: Any) -> Any:
    """Return the arguments that a function is called with; nothing else may be wrong with the call."""
    seen: list[Any] = []

    def spy(arrays: Any) -> Any:
        seen.append(arrays)
        raise KeyError("seen")

    with pytest.raises(KeyError, match="seen"):
        assert_same(layer, function(spy), **options)
    return seen[0]


# How it is called


# Ways to make a function of a spy, which receives X, lengths and states.
WAYS: dict[str, Callable[[Any], Any]] = {
    "own names": lambda spy: (
        lambda X, sequence_lens, initial_h, initial_c: spy([X, sequence_lens, initial_h, initial_c])
    ),
    "names of OpenVINO": lambda spy: lambda X, H, C, sequence_lengths: spy([X, sequence_lengths, H, C]),
    "everyday names": lambda spy: lambda lengths, h_0, c0, *, input: spy([input, lengths, h_0, c0]),
    "by place": lambda spy: lambda x, ns, s, t: spy([x, ns, s, t]),
    "no signature": lambda spy: lambda *arrays: spy(list(arrays)),
    "after X": lambda spy: lambda batch, *arrays: spy([batch, *arrays]),
    "all by name": lambda spy: (
        lambda **arrays: spy([arrays[name] for name in ("X", "sequence_lens", "initial_h", "initial_c")])
    ),
    "X of any name": lambda spy: lambda frames, h, lens, c, extra=3: spy([frames, lens, h, c]),
    "by place only": lambda spy: lambda x, lens, /, h, c: spy([x, lens, h, c]),
}


@each_row("way", WAYS)
def test_a_function_is_called_by_names_or_by_place(way: str) -> None:
    rng = np.random.default_rng(0)
    inputs = {
        "X": rng.normal(size=(T, N, I)),
        "sequence_lens": np.array([5, 1, 3], "i4"),
        "initial_h": rng.normal(size=(1, N, H)),
        "initial_c": rng.normal(size=(1, N, H)),
    }
    for given, expected in zip(given_to(WAYS[way], inputs=inputs), inputs.values(), strict=True):
        assert given.dtype == (expected.dtype if expected.dtype.kind == "i" else "f4")
        np.testing.assert_array_equal(given, expected.astype(given.dtype))


def test_by_place_in_the_order_of_an_operation_of_openvino() -> None:
    from pyrnnx.frontends.openvino import read_layer, write_layer

    weights: Any = convert_weights(OP, WEIGHTS, CANONICAL, OPENVINO_SEQUENCE)
    unbound = read_layer(write_layer(Layer(OP, **weights, convention=OPENVINO_SEQUENCE), id=1))
    bound = unbound.bind(**weights)
    X, h, c, lengths = given_to(lambda spy: lambda *arrays: spy(arrays), bound)
    assert X.shape == (N, T, I)
    assert h.shape == c.shape == (N, 1, H)
    assert lengths.shape == (N,)
    assert_same(bound, lambda a, b, c, d: tuple(bound(a, b, c, d)))
    assert_same(unbound, lambda X, H, C, lens, W, R, B: unbound(X, H, C, lens, W, R, B)[:3])


def test_a_cell_has_no_lengths() -> None:
    layer = random_layer(OP, I, convention=OPENVINO_CELL)
    assert [array.shape for array in given_to(lambda spy: lambda *arrays: spy(arrays), layer)] == [
        (N, I),
        (N, H),
        (N, H),
    ]
    assert_same(layer, lambda X, H, C: layer(X, None, H, C)[1:])


def test_a_method_of_a_layer_has_its_own_weights() -> None:
    layer = Layer(RecurrentOp("RNN", 2), np.ones((1, 2, 3)), np.ones((1, 2, 2)))
    assert_same(layer, layer.run)


def test_weights_are_given_where_they_are_asked_for_and_not_bound() -> None:
    assert_same(LAYER, lstm)  # hidden_size and the like keep their defaults
    assert_same(LAYER, partial(lstm, **WEIGHTS))
    assert_same(LAYER, lambda x, w, r, b, h0, c0, lens: lstm(x, w, r, b, lens, h0, c0))
    other: Any = random_weights(OP, I, seed=1)
    message(LAYER, partial(lstm, **other))
    message(LAYER, lambda X, W=other["W"]: lstm(X, W, WEIGHTS["R"], WEIGHTS["B"]))
    no_bias = Layer(OP, WEIGHTS["W"], WEIGHTS["R"])
    assert not given_to(lambda spy: lambda X, bias: spy(bias), no_bias).any()


def test_what_a_function_does_not_take_is_left_out_on_both_sides() -> None:
    assert_same(LAYER, lambda X: lstm(X, **WEIGHTS))
    assert_same(LAYER, lambda X, initial_c: lstm(X, **WEIGHTS, initial_c=initial_c))
    held: dict[str, Any] = {"initial_h": np.full((1, N, H), 0.5, "f4"), "sequence_lens": np.array([1, 2, 3], "i4")}
    layer = Layer(OP, **WEIGHTS, constants=held)
    assert_same(layer, lambda X: lstm(X, **WEIGHTS, **held))
    assert_same(layer, lambda X, initial_h: lstm(X, **WEIGHTS, **(held | {"initial_h": initial_h})))
    message(layer, lambda X: lstm(X, **WEIGHTS))
    with pytest.raises(ArgumentError, match=r"inputs has initial_h, which the function does not take; it takes X$"):
        assert_same(layer, lambda X: lstm(X, **WEIGHTS), inputs={"initial_h": np.zeros((1, N, H))})


UNKNOWN: dict[str, Callable[..., Any]] = {
    "some unknown": lambda X, state: 0,
    "known, but elsewhere by place": lambda x, h, lens, s: 0,
    "by name only": lambda X, *, state: 0,
    "too many": lambda a, b, c, d, e: 0,
}


@each_row("name", UNKNOWN)
def test_parameters_that_nobody_knows(name: str) -> None:
    with pytest.raises(
        ArgumentError, match=r"parameters of unknown names: .*; expected parameters called, .*initial_h"
    ):
        assert_same(LAYER, UNKNOWN[name])


# Results

Y, Y_H, Y_C = LAYER(X := np.ones((T, N, I), "f4"))
RESULTS: dict[str, Any] = {
    "tuple": (Y, Y_H, Y_C),
    "list": [Y, Y_H, Y_C],
    "nested": (Y, (Y_H, Y_C)),
    "lists of numbers": (Y.tolist(), Y_H.tolist(), Y_C.tolist()),
    "mapping": {"Y_c": Y_C, "Y": Y, "Y_h": Y_H},
    "names in other words": {"y": Y, "YH": Y_H, "Y_c": Y_C},
    "another dtype": (Y.astype("f8"), Y_H, Y_C),
}


@each_row("name", RESULTS)
def test_results_in_every_form(name: str) -> None:
    assert_same(LAYER, lambda X: RESULTS[name], inputs={"X": X})


FAULTS: list[tuple[Any, str]] = [
    ((Y, Y_H), "Y_c is missing in b, which gave Y, Y_h"),
    ((Y, None, Y_C), "Y_h is missing in b, which gave Y, Y_c"),
    ({"Y_c": Y_C}, "Y is missing in b, which gave Y_c"),
    (None, "Y is missing in b, which gave nothing"),
    (
        (Y[:, 0], Y_H, Y_C),
        "Y has shape (5, 3, 6) in b; expected (5, 1, 3, 6): seq_length, num_directions, batch_size, hidden_size",
    ),
    ((Y, Y_H[..., :5], Y_C), "Y_h has shape (1, 3, 5) in b; expected (1, 3, 6): num_directions, batch_size,"),
    ((Y, Y_H.astype(str), Y_C), "Y_h has dtype <U32 in b; expected real numbers"),
    ((Y, Y_H + 1j, Y_C), "Y_h has dtype complex64 in b; expected real numbers"),
    ((np.round(Y, 2), Y_H, Y_C), "Y: 90 of 90 numbers are apart by more than atol=1e-05, rtol=1e-05 first apart: "),
]


@each_row(("result", "words"), FAULTS, ids=[row[-1] for row in FAULTS])
def test_results_that_are_not_what_they_should_be(result: Any, words: str) -> None:
    assert words in message(LAYER, lambda X: result, inputs={"X": X})


def test_outputs_to_look_at() -> None:
    assert_same(LAYER, lambda X: Y, inputs={"X": X}, outputs=["Y"])
    assert_same(LAYER, lambda X: {"Y_c": Y_C}, inputs={"X": X}, outputs=["Y_c"])
    assert "Y_c is missing in b" in message(LAYER, lambda X: Y, inputs={"X": X}, outputs=["Y_c", "Y"])
    for outputs in ("Y", [], ["Z"]):
        with pytest.raises(ArgumentError, match=r"outputs .* expected names out of Y, Y_h, Y_c"):
            assert_same(LAYER, LAYER, outputs=outputs)


REJECTED: list[tuple[Any, str]] = [
    ((Y, Y_H, Y_C, Y), "returned 4 outputs; expected at most Y, Y_h, Y_c"),
    ({"Z": Y}, "returned outputs named 'Z'; expected at most Y, Y_h, Y_c"),
    ((Y, object()), "output Y_h is <object"),
]


@each_row(("result", "words"), REJECTED, ids=[row[-1] for row in REJECTED])
def test_results_that_are_none(result: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match="the function <lambda>") as caught:
        assert_same(LAYER, lambda X: result, inputs={"X": X})
    assert words in str(caught.value)


def test_a_parameter_that_is_left_out_is_told() -> None:
    with pytest.warns(
        PyrnnxWarning, match="assert_same: the function .*: hx is left at None because its name is none of"
    ):
        assert_same(LAYER, lambda X, hx=None: lstm(X, **WEIGHTS))


@pytest.mark.parametrize(
    "inputs", [{"X": np.zeros((2, 0, I), "f4")}, {"sequence_lens": [0, 0, 0]}], ids=["rows", "steps"]
)
def test_nothing_to_compare_is_an_error(inputs: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="inputs have no step to compare"):
        assert_same(LAYER, LAYER, inputs=inputs)


def test_padding_comes_last() -> None:
    layer = random_layer(RecurrentOp("RNN", H), I)

    def wrong(X: Array, lens: Array) -> Any:
        Y, Y_h = layer(X, lens)
        Y[2:, 0, 1] = 9
        return Y, Y_h

    told = message(layer, wrong, inputs={"sequence_lens": [5, 2, 3]})
    assert "first apart: Y at step 2, forward, row 1, unit 0: 0 in a, 9 in b" in told
    assert "row 1 has a length of 2 b is away from the oracle, a is not." in told


def test_nan_and_infinities_agree_with_themselves() -> None:
    X = np.ones((T, N, I), "f4")
    X[2, 1, 0] = np.nan
    assert_same(LAYER, lambda X: lstm(X, **WEIGHTS), inputs={"X": X})
    op = RecurrentOp("RNN", H, activations=((Activation("Affine", 1, 0),),))
    layer = Layer(op, np.full((1, H, I), 3e38, "f4"), np.zeros((1, H, H), "f4"))
    results = [np.full(shape, np.inf, "f4") for shape in ((1, 1, N, H), (1, N, H))]
    assert_same(layer, lambda X: results, inputs={"X": np.ones((1, N, I))})
    results[1][0, 0, 3] *= -1
    told = message(layer, lambda X: results, inputs={"X": np.ones((1, N, I))})
    assert "Y_h: 1 of 18" in told
    assert "first apart: Y_h at forward, row 0, unit 3: inf in a, -inf in b" in told
    assert told.endswith("b is away from the oracle, a is not.")
