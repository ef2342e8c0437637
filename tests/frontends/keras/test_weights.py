"""Arrays of Keras, without Keras, compared with its formulas in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from keras_weights import random_case, random_inputs, random_weights
from peers import compile_openvino, run_onnxruntime
from rows import each_row, few_rows
from torch_weights import assert_close

from pyrnnx import KERAS, KERAS_RESET_AFTER, Activation, Stack
from pyrnnx.frontends.keras import from_weights
from pyrnnx.frontends.onnx import write_model
from pyrnnx.frontends.openvino import write_model as write_ir
from pyrnnx.testing.numbers import Array

TOLERANCE = 1e-12  # float64: sums in another order, over 6 steps; values up to 100 of functions without a bound
FLOAT32 = 1e-5  # float32: the same; relative to the largest, for functions without a bound let values grow
OPENVINO = {"activations": ("relu", "sigmoid"), "gates": ("tanh",)}  # it runs no others


def random_call(
    seed: int, dtype: Any = np.float64, **options: Any
) -> tuple[Stack, Array, Array, list[Array], list[Array]]:
    """Return a Stack, its X, lengths and states, and the results by Keras' formulas."""
    case = random_case(seed, dtype, **options)
    X, lens, states = random_inputs(case, seed)
    return from_weights(case.weights, **case.options), X, lens, states, case.expected(X, lens, states)


def scale(wanted: list[Array]) -> float:
    return max(1.0, *(float(np.abs(one).max()) for one in wanted))


@each_row("seed", range(48))
def test_random_weights(seed: int) -> None:
    stack, X, lens, states, wanted = random_call(seed)
    Y, *last = stack(X.swapaxes(0, 1), lens, *states)
    assert stack.batch_first
    assert_close([Y.swapaxes(0, 1), *last], wanted, TOLERANCE * scale(wanted))


@few_rows("seed", range(4), range(4, 48))
def test_written_models(seed: int, tmp_path: Path) -> None:
    """In ONNX Runtime and in OpenVINO."""
    stack, X, lens, states, wanted = random_call(seed, np.float32, **OPENVINO)
    names = ("X", "sequence_lens", "initial_h", "initial_c")
    inputs = dict(zip(names, (np.ascontiguousarray(X.swapaxes(0, 1)), lens, *states), strict=False))
    model = write_model(stack, inputs=list(inputs)[1:])
    results = compile_openvino(write_ir(model, tmp_path / "layer.xml"), inputs)(inputs)
    of_openvino = [results[name] for name in ("Y", "Y_h", "Y_c")[: len(wanted)]]
    for Y, *last in (run_onnxruntime(model, inputs), of_openvino):
        assert_close([Y.swapaxes(0, 1), *last], wanted, FLOAT32 * scale(wanted))


@each_row("kind", ["SimpleRNN", "LSTM", "GRU reset_after=True", "GRU reset_after=False"])
def test_conventions(kind: str) -> None:
    (layer,) = from_weights(random_weights(kind, 3, 5)).layers
    assert layer.convention is (KERAS_RESET_AFTER if "True" in kind else KERAS)
    assert layer.weights["W"].shape == (1, 3, 5 * len(layer.op.gates))


@each_row("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_weights_are_copies_of_their_dtype(dtype: Any) -> None:
    weights = random_weights("GRU reset_after=True", 3, 5, dtype=dtype)
    before = [array.copy() for array in weights]
    (layer,) = from_weights(weights).layers
    assert layer.dtype == dtype
    for name, array, own in zip("WRB", weights, before, strict=True):
        array[:] = 0
        np.testing.assert_array_equal(layer.weights[name].ravel(), own.ravel(), strict=True)


def test_activations_of_pyrnnx_and_none() -> None:
    weights = random_weights("LSTM", 3, 5)
    (layer,) = from_weights(weights, activation=Activation("Elu", 0.5), recurrent_activation=None).layers
    assert layer.op.activations == ((Activation("Affine", 1.0, 0.0), Activation("Elu", 0.5), Activation("Elu", 0.5)),)
    assert from_weights(weights, name="own", weight_dtype=None).name == "own"
