"""Every bad array and argument of a layer or function is a PyrnnxError that names it and the mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from layers import random_arrays
from openvino_layers import GOOD, LABEL, H, I, N, T, good_arrays, rejected
from rows import each_row

import pyrnnx.frontends.openvino as frontend
from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, RecurrentOp
from pyrnnx.frontends.openvino import read_layer
from pyrnnx.operator.op import CELLS

WRONG_ARRAYS: dict[str, tuple[int, Any, tuple[str, ...]]] = {  # place, array, words
    "X: time first": (0, np.zeros((T, N, I), np.float32), ("port 0 (X)", "(5, 3, 4)", "(3, 5, 4)")),
    "X: float64": (0, np.zeros((N, T, I)), ("port 0 (X)", "float64", "FP32")),
    "X: text": (0, "X", ("port 0 (X)",)),
    "X: ragged": (0, [[1.0], [1.0, 2.0]], ("X",)),
    "X: masked": (0, np.ma.zeros((N, T, I), np.float32), ("X", "masked")),
    "H: batch second": (1, np.zeros((1, N, H), np.float32), ("port 1 (H)", "(1, 3, 6)", "(3, 1, 6)")),
    "C: another size": (2, np.zeros((N, 1, H + 1), np.float32), ("port 2 (C)", "(3, 1, 7)")),
    "lengths: int64": (3, np.array([5, 0, 2]), ("port 3 (sequence_lengths)", "int64", "I32")),
    "lengths: list of floats": (3, [5.0, 0.0, 2.0], ("sequence_lengths", "float64")),
    "lengths: bools": (3, [True, False, True], ("sequence_lengths", "bool")),
    "lengths: too few in a list": (3, [5, 0], ("sequence_lengths", "(2,)", "batch_size=3")),
    "lengths: negative": (3, np.array([5, -1, 2], np.int32), ("sequence_lengths[1] is -1", "seq_length=5")),
    "lengths: too large": (3, np.array([5, 0, 6], np.int32), ("sequence_lengths[2] is 6", "seq_length=5")),
    "lengths: huge in a list": (3, [5, 0, 2**64], ("sequence_lengths",)),
    "W: not transposed": (4, np.zeros((1, I, 4 * H), np.float32), ("port 4 (W)", "(1, 4, 24)", "(1, 24, 4)")),
    "W: float16": (4, np.zeros((1, 4 * H, I), np.float16), ("port 4 (W)", "float16", "FP32")),
    "B: not summed": (6, np.zeros((1, 8 * H), np.float32), ("port 6 (B)", "(1, 48)", "(1, 24)")),
}


@each_row(("place", "array", "words"), WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_arrays_that_do_not_fit_the_ports(place: int, array: Any, words: tuple[str, ...]) -> None:
    arrays: list[Any] = good_arrays()
    arrays[place] = array
    layer = read_layer(GOOD)
    rejected(lambda: layer(*arrays), LABEL, *words)
    if place > 3:
        rejected(lambda: layer.bind(*arrays[4:]), LABEL, *words)


def test_number_of_arrays() -> None:
    layer = read_layer(GOOD)
    arrays = good_arrays()
    names = "X, H, C, sequence_lengths, W, R, B"
    for given in ([], arrays[:1], arrays[:6], [*arrays, arrays[0]]):
        rejected(lambda given=given: layer(*given), LABEL, f"{len(given)} arrays", "expected 7", names)  # type: ignore[misc]
    bound = layer.bind(*arrays[4:])
    for given in (arrays, arrays[:3], []):
        rejected(lambda given=given: bound(*given), "LSTMSequence 'decoder/lstm'", f"{len(given)} arrays", "expected 4")  # type: ignore[misc]


FUNCTIONS = ("rnn_sequence", "gru_sequence", "lstm_sequence", "rnn_cell", "gru_cell", "lstm_cell")
LABELS = {name: name.split("_")[0].upper() + name.split("_")[1].capitalize() for name in FUNCTIONS}
each_function = each_row("name", FUNCTIONS)


def function_arrays(name: str) -> dict[str, Any]:
    cell, kind = name.split("_")
    convention, steps = (OPENVINO_CELL, 1) if kind == "cell" else (OPENVINO_SEQUENCE, T)
    return random_arrays(RecurrentOp(CELLS[cell.upper()].name, H), (steps, N, I), convention=convention)


ATTRIBUTES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"input_forget": True}, ("'input_forget'", "unknown", "hidden_size")),
    ({"activation_alpha": [1.0]}, ("'activation_alpha'", "unknown", "activations_alpha")),
    ({"layout": 1}, ("'layout'", "unknown")),
    ({"hidden_size": 0}, ("hidden_size is 0",)),
    ({"hidden_size": 6.0}, ("hidden_size is 6.0",)),
    ({"hidden_size": True}, ("hidden_size is True",)),
    ({"clip": -0.5}, ("clip is -0.5",)),
    ({"clip": float("nan")}, ("clip is nan",)),
    ({"clip": True}, ("clip is True",)),
    ({"activations": "tanh"}, ("activations is 'tanh'", "expected a list")),
    ({"activations": [3]}, ("activations contains 3",)),
    ({"activations": ["tanh"] * 4}, ("activations has 4 names",)),
    ({"activations_alpha": "1.0"}, ("activations_alpha is '1.0'", "expected a list")),
    ({"activations_alpha": [1.0] * 4}, ("activations_alpha has 4 values",)),
    ({"activations_beta": ["1.0"]}, ("activations_beta contains '1.0'", "numbers")),
    ({"activations_beta": 1.0}, ("activations_beta is 1.0", "expected a list")),
]


@each_row(
    ("attributes", "words"), ATTRIBUTES, ids=[f"{key}={value}" for one, _ in ATTRIBUTES for key, value in one.items()]
)
@each_function
def test_bad_attributes_of_functions(name: str, attributes: dict[str, Any], words: tuple[str, ...]) -> None:
    call = getattr(frontend, name)
    rejected(lambda: call(**function_arrays(name), **attributes), LABELS[name], *words)


def bad_arrays(name: str) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    for key, good in function_arrays(name).items():
        if key == "sequence_lengths":
            yield key, np.array([T, 0, 2], np.float32), ("sequence_lengths", "float32", "int32")
            yield key, np.array([T, 0, 2], bool), ("sequence_lengths", "bool")
            yield key, [T, 0, T + 1], ("sequence_lengths[2] is 6", "seq_length=5")
            yield key, [T, -1, 0], ("sequence_lengths[1] is -1",)
            yield key, [T, 0], ("sequence_lengths", "(2,)", "batch_size=3")
            yield key, T, ("sequence_lengths", "()")
            yield key, None, ("sequence_lengths", "required")
            continue
        yield key, None, (key, "required")
        yield key, good[np.newaxis], (key, str(good[np.newaxis].shape))
        yield key, good[0], (key, "expected")
        yield key, good.astype(np.float64), ("float64", "float32")
        yield key, good.astype(np.int32), (key, "int32", "float32")
        yield key, good.astype(np.complex64), (key, "complex64")
        yield key, good.astype(object), (key, "object")


BAD_ARRAYS = {
    f"{name}-{k}-{key}": (name, {key: array}, words)
    for name in FUNCTIONS
    for k, (key, array, words) in enumerate(bad_arrays(name))
}


@each_row(("name", "array", "words"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_arrays_of_functions(name: str, array: dict[str, Any], words: tuple[str, ...]) -> None:
    rejected(lambda: getattr(frontend, name)(**{**function_arrays(name), **array}), LABELS[name], *words)
