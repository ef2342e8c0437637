"""Arrays of Keras without Keras: against its formulas, written out in NumPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from keras_weights import Case, random_case, random_inputs, random_weights
from torch_weights import assert_close

from pyrnnx import CANONICAL, KERAS, KERAS_RESET_AFTER, Activation, Layer, Stack, compare
from pyrnnx.conventions import convert_weights
from pyrnnx.frontends.keras import from_weights
from pyrnnx.frontends.onnx import gru, lstm, rnn, write_model
from pyrnnx.frontends.openvino import write_model as write_ir
from pyrnnx.testing.numbers import Array

TOLERANCE = 1e-12  # float64: sums in another order, over 6 steps; values up to 100 of functions without a bound
FLOAT32 = 1e-5  # float32: the same; relative to the largest, for functions without a bound let values grow
OPENVINO = {"activations": ("relu", "sigmoid"), "gates": ("tanh",)}  # it runs no others


def made(
    seed: int, dtype: Any = np.float64, **options: Any
) -> tuple[Case, Stack, Array, Array, list[Array], list[Array]]:
    """A case, its Stack, what both are called with, and what they should give."""
    case = random_case(seed, dtype, **options)
    X, lens, states = random_inputs(case, seed)
    return case, from_weights(case.weights, **case.options), X, lens, states, case.expected(X, lens, states)


def scale(wanted: list[Array]) -> float:
    return max(1.0, *(float(np.abs(one).max()) for one in wanted))


@pytest.mark.parametrize("seed", range(100))
def test_random_weights(seed: int) -> None:
    """Through the Stack, and through the operators of ONNX."""
    case, stack, X, lens, states, wanted = made(seed)
    Y, *last = stack(X.swapaxes(0, 1), lens, *states)
    assert stack.batch_first
    assert_close([Y.swapaxes(0, 1), *last], wanted, TOLERANCE * scale(wanted))
    (layer,) = stack.layers
    weights = convert_weights(layer.op, layer.weights, layer.convention, CANONICAL)
    attributes: dict[str, Any] = {"linear_before_reset": 1} if "True" in case.kind else {}
    functions = [one for each in layer.op.activations for one in each]
    for name in ("alpha", "beta"):
        values = [getattr(one, name) for one in functions]
        attributes[f"activation_{name}"] = [value for value in values if value is not None]
    operator: Any = {"RNN": rnn, "GRU": gru, "LSTM": lstm}[case.cell]
    Y, *last = operator(
        X,
        **weights,
        sequence_lens=lens,
        **dict(zip(("initial_h", "initial_c"), states, strict=False)),
        direction=layer.op.direction.value,
        activations=[one.name for one in functions],
        **attributes,
    )
    Y = Y.transpose(0, 2, 1, 3).reshape(*Y.shape[::2][:1], Y.shape[2], -1)
    assert_close([Y, *last], wanted, TOLERANCE * scale(wanted))


def named(X: Array, lens: Array, states: list[Array]) -> dict[str, Array]:
    names = ("X", "sequence_lens", "initial_h", "initial_c")
    return dict(zip(names, (np.ascontiguousarray(X.swapaxes(0, 1)), lens, *states), strict=False))


@pytest.mark.parametrize("seed", range(100))
def test_written_as_onnx(seed: int) -> None:
    """In ONNX Runtime."""
    onnxruntime = pytest.importorskip("onnxruntime")
    _, stack, X, lens, states, wanted = made(seed, np.float32)
    given = named(X, lens, states)
    model = write_model(stack, inputs=list(given)[1:]).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    Y, *last = session.run(None, given)
    assert_close([Y.swapaxes(0, 1), *last], wanted, FLOAT32 * scale(wanted))


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 100))])
def test_written_as_ir(seed: int, tmp_path: Path) -> None:
    """In OpenVINO."""
    openvino = pytest.importorskip("openvino")
    _, stack, X, lens, states, wanted = made(seed, np.float32, **OPENVINO)
    given = named(X, lens, states)
    core = openvino.Core()
    model = core.read_model(write_ir(write_model(stack, inputs=list(given)[1:]), tmp_path / "layer.xml"))
    model.reshape({name: list(array.shape) for name, array in given.items()})
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    results = compiled(given)
    Y, *last = (results[name] for name in ("Y", "Y_h", "Y_c")[: len(wanted)])
    assert_close([Y.swapaxes(0, 1), *last], wanted, FLOAT32 * scale(wanted))


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU reset_after=True", "GRU reset_after=False"])
def test_conventions(kind: str) -> None:
    """A layer of Keras and one of ONNX differ in their conventions alone."""
    (layer,) = from_weights(random_weights(kind, 3, 5)).layers
    assert layer.convention is (KERAS_RESET_AFTER if "True" in kind else KERAS)
    assert layer.weights["W"].shape == (1, 3, 5 * len(layer.op.gates))
    weights: dict[str, Any] = {**convert_weights(layer.op, layer.weights, layer.convention, CANONICAL)}
    other = Layer(layer.op, **weights)
    found = compare(layer, other)
    assert found.equal(atol=TOLERANCE, rtol=0)
    assert not found.operators
    assert all(block.largest == 0 for block in found.weights)
    assert "shape of W" in str(found)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_dtypes_are_kept(dtype: Any) -> None:
    weights = random_weights("GRU reset_after=True", 3, 5, dtype=dtype)
    (layer,) = from_weights(weights).layers
    assert layer.dtype == dtype
    for name, array in zip("WRB", weights, strict=True):
        np.testing.assert_array_equal(layer.weights[name].ravel(), array.ravel(), strict=True)


def test_weights_are_copies() -> None:
    weights = random_weights("LSTM", 3, 5)
    stack, X = from_weights(weights), np.ones((2, 4, 3))
    before = stack(X)
    for array in weights:
        array[:] = 0
    for one, other in zip(stack(X), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_activations_of_pyrnnx_and_none() -> None:
    weights = random_weights("LSTM", 3, 5)
    (layer,) = from_weights(weights, activation=Activation("Elu", 0.5), recurrent_activation=None).layers
    assert layer.op.activations == ((Activation("Affine", 1.0, 0.0), Activation("Elu", 0.5), Activation("Elu", 0.5)),)
    assert from_weights(weights, name="own", weight_dtype=None).name == "own"


def test_keras_is_not_imported() -> None:
    program = (
        "import sys, numpy as np; from pyrnnx.frontends.keras import from_weights as f; "
        "f([np.ones((2, 3)), np.ones((3, 3))]); assert not {'keras', 'h5py'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
