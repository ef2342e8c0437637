"""assert_same of a layer and a function: how it is called, what it may return, and planted faults of each kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_layer, random_weights
from same_messages import message

from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, ArgumentError, Layer, PyrnnxWarning, RecurrentOp, load
from pyrnnx.conventions import CANONICAL, convert_weights
from pyrnnx.frontends.onnx import lstm
from pyrnnx.testing import assert_same

T, N, I, H = 5, 3, 4, 6
OP = RecurrentOp("LSTM", H)
WEIGHTS: Any = random_weights(OP, I)
LAYER = Layer(OP, **WEIGHTS)


def given_to(function: Callable[..., Any], layer: Any = LAYER, **options: Any) -> Any:
    """What a function is called with, and that nothing else is wrong with the call."""
    seen: list[Any] = []

    def spy(arrays: Any) -> Any:
        seen.append(arrays)
        raise KeyError("seen")

    with pytest.raises(KeyError, match="seen"):
        assert_same(layer, function(spy), **options)
    return seen[0]


# How it is called


def by_own_names(spy: Any) -> Any:
    return lambda X, sequence_lens, initial_h, initial_c: spy([X, sequence_lens, initial_h, initial_c])


def by_openvino_names(spy: Any) -> Any:
    return lambda X, H, C, sequence_lengths: spy([X, sequence_lengths, H, C])


def by_everyday_names(spy: Any) -> Any:
    return lambda lengths, h_0, c0, *, input: spy([input, lengths, h_0, c0])


def by_place(spy: Any) -> Any:
    return lambda x, ns, s, t: spy([x, ns, s, t])


def without_a_signature(spy: Any) -> Any:
    return lambda *arrays: spy(list(arrays))


def after_x(spy: Any) -> Any:
    return lambda batch, *arrays: spy([batch, *arrays])


def all_by_name(spy: Any) -> Any:
    return lambda **arrays: spy([arrays[name] for name in ("X", "sequence_lens", "initial_h", "initial_c")])


def x_of_any_name(spy: Any) -> Any:
    return lambda frames, h, lens, c, extra=3: spy([frames, lens, h, c])


def by_place_only(spy: Any) -> Any:
    def function(x: Any, lens: Any, /, h: Any, c: Any) -> Any:
        return spy([x, lens, h, c])

    return function


WAYS = (
    by_own_names,
    by_openvino_names,
    by_everyday_names,
    by_place,
    without_a_signature,
    after_x,
    all_by_name,
    x_of_any_name,
    by_place_only,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda one: one.__name__)
def test_a_function_is_called_by_names_or_by_place(way: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    inputs = {
        "X": rng.normal(size=(T, N, I)),
        "sequence_lens": np.array([5, 1, 3], "i4"),
        "initial_h": rng.normal(size=(1, N, H)),
        "initial_c": rng.normal(size=(1, N, H)),
    }
    for given, expected in zip(given_to(way, inputs=inputs), inputs.values(), strict=True):
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


@pytest.mark.parametrize("name", UNKNOWN)
def test_parameters_that_nobody_knows(name: str) -> None:
    with pytest.raises(
        ArgumentError, match=r"parameters of unknown names: .*; expected parameters called, .*initial_h"
    ):
        assert_same(LAYER, UNKNOWN[name])


def test_functions_on_either_side() -> None:
    assert_same(lambda X: lstm(X, **WEIGHTS), LAYER)
    other: dict[str, Any] = random_weights(OP, I, seed=1)
    told = message(lambda X: lstm(X, **other), LAYER)
    assert "a is away from the oracle, b is not." in told
    assert "conventions of b: ONNX, layout 0" in told


# What it returns

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


@pytest.mark.parametrize("name", RESULTS)
def test_results_in_every_form(name: str) -> None:
    assert_same(LAYER, lambda X: RESULTS[name], inputs={"X": X})


FAULTS: dict[str, tuple[Any, str]] = {
    "missing": ((Y, Y_H), "Y_c is missing in b, which gave Y, Y_h"),
    "None": ((Y, None, Y_C), "Y_h is missing in b, which gave Y, Y_c"),
    "missing by name": ({"Y_c": Y_C}, "Y is missing in b, which gave Y_c"),
    "nothing": (None, "Y is missing in b, which gave nothing"),
    "rank": (
        (Y[:, 0], Y_H, Y_C),
        "Y has shape (5, 3, 6) in b; expected (5, 1, 3, 6): seq_length, num_directions, batch_size, hidden_size",
    ),
    "size": ((Y, Y_H[..., :5], Y_C), "Y_h has shape (1, 3, 5) in b; expected (1, 3, 6): num_directions, batch_size,"),
    "no numbers": ((Y, Y_H.astype(str), Y_C), "Y_h has dtype <U32 in b; expected real numbers"),
    "complex": ((Y, Y_H + 1j, Y_C), "Y_h has dtype complex64 in b; expected real numbers"),
    "rounded": ((np.round(Y, 2), Y_H, Y_C), "Y: 90 of 90 numbers are apart by more than atol 1e-05; the first is at"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_results_that_are_not_what_they_should_be(name: str) -> None:
    result, words = FAULTS[name]
    assert words in message(LAYER, lambda X: result, inputs={"X": X})


def test_a_fault_of_a_later_output_does_not_hide_an_earlier_one() -> None:
    told = message(LAYER, lambda X: (Y + 1, Y_H[0], None), inputs={"X": X})
    assert "Y at time step 0" in told
    assert "b is away from the oracle" in told


def test_outputs_to_look_at() -> None:
    assert_same(LAYER, lambda X: Y, inputs={"X": X}, outputs=["Y"])
    assert_same(LAYER, lambda X: {"Y_c": Y_C}, inputs={"X": X}, outputs=["Y_c"])
    assert "Y_c is missing in b" in message(LAYER, lambda X: Y, inputs={"X": X}, outputs=["Y_c", "Y"])
    for outputs in ("Y", [], ["Z"]):
        with pytest.raises(ArgumentError, match=r"outputs .* expected names out of Y, Y_h, Y_c"):
            assert_same(LAYER, LAYER, outputs=outputs)


REJECTED: dict[str, tuple[Any, str]] = {
    "too many": ((Y, Y_H, Y_C, Y), "returned 4 outputs; expected at most Y, Y_h, Y_c"),
    "unknown names": ({"Z": Y}, "returned outputs named 'Z'; expected at most Y, Y_h, Y_c"),
    "no array": ((Y, object()), "output Y_h is <object"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_results_that_are_none(name: str) -> None:
    result, words = REJECTED[name]
    with pytest.raises(ArgumentError, match="the function <lambda>") as caught:
        assert_same(LAYER, lambda X: result, inputs={"X": X})
    assert words in str(caught.value)


def test_what_a_function_raises_is_let_through() -> None:
    with pytest.raises(ZeroDivisionError):
        assert_same(LAYER, lambda X: 1 // 0)


def test_a_parameter_that_is_left_out_is_told() -> None:
    with pytest.warns(PyrnnxWarning, match="assert_same: the function .*: hx is left at None, for its name is none of"):
        assert_same(LAYER, lambda X, hx=None: lstm(X, **WEIGHTS))


@pytest.mark.parametrize(
    "inputs", [{"X": np.zeros((2, 0, I), "f4")}, {"sequence_lens": [0, 0, 0]}], ids=["rows", "steps"]
)
def test_nothing_to_compare_is_an_error(inputs: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="inputs have no step to compare"):
        assert_same(LAYER, LAYER, inputs=inputs)


def test_models_get_lengths_of_all_sizes() -> None:
    """One of them as long as X: what is wrong at the last step is found."""
    model: Any = load(Path(__file__).parents[2] / "examples" / "small_rnn.onnx")
    (layer,) = model.layers.values()

    def port(X: Any, sequence_lens: Any, initial_h: Any) -> Any:
        X[-1] = 0
        return layer(X, sequence_lens, initial_h)

    message(model, port)
    assert_same(model.proto, model)
