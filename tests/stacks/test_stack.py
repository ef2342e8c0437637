"""Stacks compared with the oracle layer by layer, in both orders of axes, and error messages."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import DTYPES, random_layer
from rows import each_row
from stacks import STACKS, I, apart, expected, joined, random_inputs, random_layers, random_stack, random_states

from pyrnnx import ONNX_LAYOUTS, OPENVINO_CELL, OPENVINO_SEQUENCE, Layer, PyrnnxError, RecurrentOp, Stack
from pyrnnx.operator.op import CellName
from pyrnnx.testing.numbers import assert_close, tolerance_of

T, N = 6, 4
LENGTHS = np.array([6, 2, 0, 3])
each_stack = each_row("name", STACKS)


def assert_as_expected(stack: Stack, results: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    is_list = len(set(stack.hidden_sizes)) > 1
    assert [isinstance(state, list) for state in results[1:]] == [is_list] * (len(results) - 1)
    assert len(results) == len(stack.output_names) == 2 + any(layer.op.has_cell_state for layer in stack.layers)
    forms = [wanted[1], wanted[2]] if len(results) == 3 else [wanted[1]]
    merged = tuple(forms) if is_list else tuple(map(joined, forms))
    assert_close(apart(results), apart((wanted[0], *merged)), tolerance_of(stack.dtype))
    assert all(one.dtype == stack.dtype and one.flags.writeable for one in apart(results))


@each_row("batch_first", [False, True])
@each_stack
def test_layer_by_layer(name: str, batch_first: bool) -> None:
    for conventions in (ONNX_LAYOUTS[0], (ONNX_LAYOUTS[1], OPENVINO_SEQUENCE)):
        stack = random_stack(name, batch_first=batch_first, convention=conventions)
        X, (h, c) = random_inputs(stack, T, N), random_states(stack, N)
        for lengths in (None, LENGTHS.astype(np.int32)):
            has_cell = any(state is not None for state in c)
            results = stack(X, lengths, h, c if has_cell else None)
            assert_as_expected(stack, results, expected(stack, X, lengths, h, c))
            assert results[0].flags.c_contiguous
            none = [None] * len(stack.layers)
            assert_as_expected(stack, stack(X, lengths), expected(stack, X, lengths, none, none))


@each_row("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any) -> None:
    stack = random_stack("all cells", np.float64)
    X, (h, c) = random_inputs(stack, T, N), random_states(stack, N)
    wanted = stack(X, LENGTHS, h, c)
    weights: list[Any] = [{k: w.astype(dtype) for k, w in layer.weights.items()} for layer in stack.layers]
    narrow = Stack([Layer(layer.op, **one) for layer, one in zip(stack.layers, weights, strict=True)])
    states = [[None if s is None else s.astype(dtype) for s in one] for one in (h, c)]
    results = narrow(X.astype(dtype), LENGTHS, *states)
    assert all(one.dtype == dtype for one in results)
    # Between layers, too, numbers are rounded to the dtype.
    assert_close(results, wanted, 8 * tolerance_of(dtype))


@each_row("batch_first", [False, True])
def test_arrays_as_they_lie(batch_first: bool) -> None:
    stack = random_stack("all sizes", batch_first=batch_first)
    X = random_inputs(stack, T, N)
    wanted = stack(X)[0]
    sliced = np.full((*X.shape[:2], 2 * I), np.nan, np.float32)[..., ::2]
    sliced[...] = X
    turned = X[::-1].copy()[::-1]
    for given in (sliced, turned, np.asfortranarray(X), X.astype(">f4")):
        np.testing.assert_array_equal(stack(given)[0], wanted)
    X.flags.writeable = False
    np.testing.assert_array_equal(stack(X, np.full(N, T))[0], wanted)
    assert X.flags.owndata


# Copies and properties


@each_row("copied", [copy.copy, copy.deepcopy, lambda stack: pickle.loads(pickle.dumps(stack))])
def test_copies(copied: Callable[[Stack], Stack]) -> None:
    stack = Stack(random_layers(STACKS["all sizes"], names=True), batch_first=True, name="encoder")
    again, X = copied(stack), random_inputs(stack, T, N)
    assert repr(again) == repr(stack)
    assert [layer.name for layer in again.layers] == ["lstm_0", "gru_1", "lstm_2"]
    for a, b in zip(apart(again(X)), apart(stack(X)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_properties() -> None:
    layers = random_layers(STACKS["all sizes"])
    stack = Stack(iter(layers), name="encoder")
    assert stack.layers == tuple(layers)
    assert (stack.name, stack.label, stack.batch_first) == ("encoder", "Stack 'encoder'", False)
    assert (stack.input_size, stack.output_size, str(stack.dtype)) == (I, 17, "float32")
    assert (stack.hidden_sizes, stack.num_directions) == ((4, 7, 17), (2, 2, 1))
    text = "input_size=3 -> LSTM bidirectional 4 -> GRU bidirectional 7 -> LSTM forward 17, float32"
    assert repr(stack) == f"<Stack 'encoder': {text}>"
    assert repr(Stack(layers[:1], batch_first=True)).startswith("<Stack: input_size=3 -> LSTM bidirectional 4, ")


# Errors


def layer_of(
    cell: CellName = "GRU", hidden_size: int = 5, input_size: int = I, dtype: Any = np.float32, **more: Any
) -> Any:
    return random_layer(RecurrentOp(cell, hidden_size), input_size, dtype, **more)


class Other(Layer):
    def run(self, *arguments: Any, **named: Any) -> Any:
        return ()


NOTHING: Any = None
THREE: Any = 3
SEQUENCE = "expected a sequence of pyrnnx.Layer"
BOTH = random_layers((("GRU", "bidirectional", 5),))
STATE = {"initial_h": np.ones((1, 2, 5), np.float32)}
NOT_STACKS: list[tuple[Callable[[], Any], str]] = [
    (lambda: Stack(layer_of()), f"Stack: layers is <Layer GRU: .*>; {SEQUENCE}"),
    (lambda: Stack(NOTHING), f"Stack: layers is None; {SEQUENCE}"),
    (lambda: Stack([]), f"Stack: layers is empty; {SEQUENCE}, at least one"),
    (lambda: Stack([layer_of(), THREE]), r"Stack: layers\[1\] is 3; expected a pyrnnx.Layer"),
    (lambda: Stack([*BOTH, layer_of("LSTM", name="two")], name="a"), r"Stack 'a': layers\[1\] \(LSTM 'two'\) has input_"
        r"size=3; expected 10, num_directions=2 \* hidden_size=5 of layers\[0\]"),
    (lambda: Stack([layer_of(), layer_of(input_size=5, dtype=np.float64)]),
        r"Stack: layers\[1\] \(GRU\) has dtype float64; expected float32 as layers\[0\]"),
    (lambda: Stack([layer_of(convention=OPENVINO_CELL)]),
        r"Stack: layers\[0\] \(GRU\) has the convention .*cell', without sequences; expected a convention with them"),
    (lambda: Stack([Other(layer_of().op, **layer_of().weights)]),
        r"Stack: layers\[0\] \(GRU\) is of the class Other, which does not compute a plain RNN, GRU or LSTM"),
    (lambda: Stack([layer_of(constants=STATE)]),
        r"Stack: layers\[0\] \(GRU\) has the constants initial_h; expected a layer without constants"),
    (lambda: Stack([layer_of()], batch_first=THREE), "Stack: batch_first is 3; expected True or False"),
    (lambda: Stack([layer_of()], name=THREE), "Stack: name is 3; expected a string, or None"),
]  # fmt: skip


@each_row(("make", "message"), NOT_STACKS, ids=[row[-1] for row in NOT_STACKS])
def test_what_is_no_stack(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(PyrnnxError, match=f"^{message}"):
        make()


X = np.ones((T, N, I), np.float32)
H5, C5 = np.ones((4, N, 5), np.float32), np.ones((1, N, 5), np.float32)
# Arguments of a call, by default with X, and the error.
CALLS: list[tuple[dict[str, Any], str]] = [
    ({"X": None}, "X is missing; it is required"),
    ({"X": X[0]}, r"X has shape \(4, 3\); expected \(seq_length, batch_size, input_size=3\)"),
    ({"X": X.astype(np.float64)}, "X has dtype float64; expected float32, the dtype of the weights"),
    ({"sequence_lens": [7, 1, 1, 1]}, r"sequence_lens\[0\] is 7; expected 0 <= length"),
    ({"sequence_lens": [1, 1]}, r"sequence_lens has shape \(2,\); expected \(ba"),
    ({"sequence_lens": np.ones(N)}, "sequence_lens has dtype float64; expected"),
    ({"initial_h": H5[:2]}, r"initial_h has shape \(2, 4, 5\); expected \(num_directions=4, batch_size=4, hidden"),
    ({"initial_c": H5}, r"initial_c has shape \(4, 4, 5\); expected \(num_"),
    ({"initial_h": H5.astype(float)}, "initial_h has dtype float64; expected float32"),
    ({"initial_h": [H5]}, "initial_h is a list of 1; expected an array, or a list of 3 arrays, one for each layer"),
    ({"initial_h": [H5[:2], H5[:2], None]}, r"layers\[1\]: initial_h has shape \(2, 4, 5\); expected \(num_dir"),
    ({"initial_c": [None, C5, C5]}, r"layers\[2\]: initial_c was given; expected None, because GRU has no cell state"),
    ({"h0": H5}, "argument 'h0' is unknown; expected X, sequence_lens, initial_h"),
    ({"initial_h": H5, "H": H5}, "initial_h was given twice, also as H"),
]


@each_row(("arguments", "message"), CALLS, ids=[row[-1] for row in CALLS])
def test_calls_that_do_not_fit(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PyrnnxError, match=f"^Stack: {message}"):
        random_stack("all cells")(**{"X": X, **arguments})


def test_calls_that_do_not_fit_other_stacks() -> None:
    with pytest.raises(PyrnnxError, match=r"^Stack: initial_c was given; no layer has a cell state"):
        random_stack("no cell state")(X, initial_c=C5)
    words = r"initial_h is one ndarray, and the layers have hidden_sizes \(4, 7, 17\); expected a list of 3 arrays"
    with pytest.raises(PyrnnxError, match=f"^Stack: {words}"):
        random_stack("all sizes")(X, initial_h=H5)


def test_more_than_memory_holds() -> None:
    stack = random_stack("two forward")
    huge = np.broadcast_to(np.ones(I, np.float32), (2**40, 2**10, I))
    with pytest.raises(PyrnnxError, match=r"^Stack: X has shape \(1099511627776, 1024, 3\); the results exceed memory"):
        stack(huge)


@each_row("name", [name for name in STACKS if name != "all sizes"])
def test_states_in_one_array(name: str) -> None:
    stack = random_stack(name)
    X, (h, c) = random_inputs(stack, T, N), random_states(stack, N)
    has_cell = any(state is not None for state in c)
    in_lists = stack(X, LENGTHS, h, c if has_cell else None)
    in_one = stack(X, LENGTHS, joined(h), joined(c) if has_cell else None)
    for one, other in zip(in_one, in_lists, strict=True):
        np.testing.assert_array_equal(one, other)
