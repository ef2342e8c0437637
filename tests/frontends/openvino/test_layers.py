"""Arguments of layers and functions: by position and by name, all kinds of numbers, and every mistake."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_arrays
from openvino_layers import GOOD, LABEL, H, I, N, T, assert_same, good_arrays, rejected
from rows import each_row

import pyrnnx.frontends.openvino as frontend
from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, Layer, RecurrentOp
from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends.openvino import read_layer, to_onnx
from pyrnnx.operator.op import CELLS

NAMES = ("X", "H", "C", "sequence_lengths", "W", "R", "B")
CANONICAL = ("X", "initial_h", "initial_c", "sequence_lens", "W", "R", "B")


@each_row("names", [NAMES, CANONICAL], ids=["its own names", "ONNX's names"])
@each_row("places", [0, 2, 4, 8])
def test_arguments_by_name(names: tuple[str, ...], places: int) -> None:
    arrays, layer = good_arrays(), read_layer(GOOD)
    named = dict(zip(names, arrays, strict=True))
    rest = {name: named[name] for name in reversed(names[places:])}
    assert_same(layer(*arrays[:places], **rest), layer(*arrays))
    assert_same(layer(*arrays[:3], arrays[3].tolist(), *arrays[4:]), layer(*arrays))  # Python's integers have no dtype
    bound = layer.bind(*arrays[4:])
    assert_same(
        bound(*arrays[:places][:4], **{name: a for name, a in rest.items() if name in names[:4]}), layer(*arrays)
    )


@pytest.mark.parametrize("weight_dtype", ["bfloat16", "int8"])
def test_weights_in_fewer_bits(weight_dtype: str) -> None:
    arrays, read = good_arrays(), read_layer(GOOD)
    layer = read.bind(*arrays[4:], weight_dtype=weight_dtype)
    plain = Layer(layer.op, *layer.weights.values(), convention=layer.convention, weight_dtype=weight_dtype)
    X, H, C, lengths = arrays[:4]
    wanted = plain(X, lengths, H, C)
    for other in (layer, pickle.loads(pickle.dumps(layer))):
        assert other.weight_dtype == weight_dtype
        assert_same(other(*arrays[:4]), wanted)
    assert np.abs(layer(*arrays[:4])[0] - read.bind(*arrays[4:])(*arrays[:4])[0]).max() > 1e-5
    rejected(lambda: read.bind(*arrays[4:], weight_dtype="int4"), LABEL, "weight_dtype is 'int4'")


WRONG_ARRAYS: dict[str, tuple[int, Any, tuple[str, ...]]] = {  # place, array, words
    "X: time first": (0, np.zeros((T, N, I), np.float32), ("port 0 (X)", "(5, 3, 4)", "(3, 5, 4)")),
    "X: float64": (0, np.zeros((N, T, I)), ("port 0 (X)", "float64", "FP32")),
    "X: ragged": (0, [[1.0], [1.0, 2.0]], ("X",)),
    "X: masked": (0, np.ma.zeros((N, T, I), np.float32), ("X", "masked")),
    "H: batch second": (1, np.zeros((1, N, H), np.float32), ("port 1 (H)", "(1, 3, 6)", "(3, 1, 6)")),
    "C: another size": (2, np.zeros((N, 1, H + 1), np.float32), ("port 2 (C)", "(3, 1, 7)")),
    "lengths: int64": (3, np.array([5, 0, 2]), ("port 3 (sequence_lengths)", "int64", "I32")),
    "lengths: negative": (3, np.array([5, -1, 2], np.int32), ("sequence_lengths[1] is -1", "seq_length=5")),
    "W: not transposed": (4, np.zeros((1, I, 4 * H), np.float32), ("port 4 (W)", "(1, 4, 24)", "(1, 24, 4)")),
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


def test_arguments_that_are_missing_or_unknown() -> None:
    layer, arrays = read_layer(GOOD), good_arrays()
    for call, given in ((layer, arrays), (layer.bind(*arrays[4:]), arrays[:4])):
        rejected(lambda call=call: call(arrays[0], C=None), LABEL, f"expected {len(given)}", "missing: H, C, sequence")  # type: ignore[misc]
        rejected(lambda call=call, given=given: call(*given, H=given[1]), LABEL, "H was given twice")  # type: ignore[misc]
        rejected(lambda call=call, given=given: call(*given, c=given[2]), LABEL, "'c' is unknown")  # type: ignore[misc]


FUNCTIONS = ("rnn_sequence", "gru_sequence", "lstm_sequence", "rnn_cell", "gru_cell", "lstm_cell")
LABELS = {name: name.split("_")[0].upper() + name.split("_")[1].capitalize() for name in FUNCTIONS}
each_function = each_row("name", FUNCTIONS)


def function_arrays(name: str) -> dict[str, Any]:
    cell, kind = name.split("_")
    convention, steps = (OPENVINO_CELL, 1) if kind == "cell" else (OPENVINO_SEQUENCE, T)
    return random_arrays(RecurrentOp(CELLS[cell.upper()].name, H), (steps, N, I), convention=convention)


BAD: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "another operation's": ({"input_forget": True}, ("'input_forget'", "unknown", "hidden_size")),
    "ONNX's": ({"layout": 1}, ("'layout'", "unknown")),
    "hidden_size 0": ({"hidden_size": 0}, ("hidden_size is 0",)),
    "hidden_size of float": ({"hidden_size": np.float64(H)},
        (f"hidden_size is {np.float64(H)!r}; expected a positive integer",)),
    "clip below 0": ({"clip": -0.5}, ("clip is -0.5",)),
    "clip NaN": ({"clip": np.float32(np.nan)}, (f"clip is {np.float32(np.nan)!r}",)),
    "clip of two": ({"clip": np.ones(2)}, ("clip is array([1., 1.])",)),
    "names in one text": ({"activations": "tanh"}, ("activations is 'tanh'", "expected a list")),
    "no names": ({"activations": [3]}, ("activations contains 3",)),
    "too many names": ({"activations": ["tanh"] * 4}, ("activations has 4 names",)),
    "endless names": ({"activations": itertools.repeat("tanh")}, ("activations is repeat('tanh'); expected a list",)),
    "too many alphas": ({"activations_alpha": [1.0] * 4}, ("activations_alpha has 4 values",)),
    "alpha without axes": ({"activations_alpha": np.array(1.0)}, ("activations_alpha is array(1.); expected a list",)),
    "alpha beyond": ({"activations_alpha": [10**400]}, ("activations_alpha contains",)),
}  # fmt: skip


@each_row(("attributes", "words"), BAD.values(), ids=BAD)
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


def test_to_onnx_of_something_else(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    rejected(lambda: to_onnx(read_layer(GOOD)), "to_onnx", LABEL, "has no weights", "layer.bind")
    for wrong in (3, None, b"<net/>", [], np.zeros(3), object()):
        rejected(lambda wrong=wrong: to_onnx(wrong), "to_onnx", type(wrong).__name__, "expected a Model")  # type: ignore[misc]
    onnx_model = onnx_frontend.read_model(to_onnx(read_layer(GOOD).bind(*good_arrays()[4:])))
    rejected(lambda: to_onnx(onnx_model), "to_onnx", "is an ONNX model already")
    rejected(lambda: to_onnx(tmp_path / "absent.xml"), "absent.xml", "cannot be read")
