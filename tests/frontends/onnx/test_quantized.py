"""com.microsoft DynamicQuantizeLSTM, beside ONNX Runtime."""

from __future__ import annotations

import copy
import pickle
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from cases import Array
from onnx import helper
from onnx_models import simple_model

from pyrnnx import ArgumentError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.onnx import UnboundNode, read_model
from pyrnnx.frontends.onnx.quantized import QuantizedLayer
from pyrnnx.frontends.onnx.schemas import QUANTIZED_LSTM

onnxruntime = pytest.importorskip("onnxruntime")

OUTPUTS = ("Y", "Y_h", "Y_c")
DOMAINS = {"com.microsoft": 1}
# Both add the same products of integers, one of them in float32 and dequantized: some 2^-24 of sums below 10.
# Rounding h to 8 bits could turn such a difference into 1/255 of a weight, where h is that near to a tie: the seeds
# are ones without such a tie, and a wrong scale or zero point would be 1e-4 and above.
TOLERANCE = 2e-6


@dataclass(frozen=True)
class Case:
    name: str
    attributes: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ("B",)  # of the optional ones
    dtype: str = "uint8"
    per_channel: bool = False
    T: int = 7
    N: int = 3
    I: int = 5
    H: int = 9


STATES = ("initial_h", "initial_c")
CASES = [
    Case("plain", inputs=()),
    Case("bias"),
    Case("states", inputs=("B", *STATES)),
    Case("peepholes", inputs=("B", "P")),
    Case("lengths", inputs=("B", "sequence_lens", *STATES), N=5),
    Case("reverse", {"direction": "reverse"}, ("B", "sequence_lens", *STATES), N=5),
    Case("both", {"direction": "bidirectional"}, ("B", "sequence_lens", "P", *STATES), N=5),
    Case("both, one row", {"direction": "bidirectional"}, N=1, T=13, I=31, H=33),
    Case("per channel", {"direction": "bidirectional"}, ("B", *STATES), per_channel=True),
    Case("int8", {"direction": "bidirectional"}, ("B", *STATES), "int8"),
    Case("int8 per channel", {}, ("B", "sequence_lens", *STATES), "int8", True),
    Case("clip", {"clip": 0.5, "input_forget": 1}, ("B", "P", *STATES)),
    Case("activations", {"activations": ["HardSigmoid", "Softsign", "Tanh"]}, ("B", *STATES)),
    Case("wide", {"direction": "bidirectional"}, ("B", *STATES), N=2, T=5, I=65, H=130),
]


def make_case(case: Case, **changes: Array) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node, and what it is called with."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    D = 2 if case.attributes.get("direction") == "bidirectional" else 1
    T, N, I, H = case.T, case.N, case.I, case.H
    # On a processor without VNNI, ONNX Runtime adds products of uint8 and int8 in pairs that saturate at 16 bits; codes
    # of 7 bits cannot reach that.
    low, high = (-63, 64) if case.dtype == "int8" else (0, 256)
    factors = (D, 4 * H) if case.per_channel else (D,)
    arrays = {
        "X": rng.normal(0.2, 1, (T, N, I)).astype(np.float32),
        "W": rng.integers(low, high, (D, I, 4 * H)).astype(case.dtype),
        "R": rng.integers(low, high, (D, H, 4 * H)).astype(case.dtype),
        "B": rng.normal(0, 0.3, (D, 8 * H)).astype(np.float32),
        "sequence_lens": np.array([T, *rng.integers(1, T + 1, N - 1)], np.int32),
        "initial_h": rng.uniform(-1, 1, (D, N, H)).astype(np.float32),
        "initial_c": rng.normal(0, 1, (D, N, H)).astype(np.float32),
        "P": rng.normal(0, 0.3, (D, 3 * H)).astype(np.float32),
    }
    for name in ("W", "R"):
        arrays[f"{name}_scale"] = (rng.uniform(0.5, 1, factors) * 0.004).astype(np.float32)
        zero = 0 if case.dtype == "int8" else int(rng.integers(100, 150))
        arrays[f"{name}_zero_point"] = np.full(factors, zero, case.dtype)
    required = ("X", "W", "R", *QUANTIZED_LSTM.inputs[8:])
    arrays = {n: a for n, a in arrays.items() if n in required or n in case.inputs} | changes
    given = {n: arrays[n] for n in ("X", "sequence_lens", *STATES) if n in arrays}
    for row, length in enumerate(arrays.get("sequence_lens", ())):
        arrays["X"][length:, row] = 0  # has a part in ONNX Runtime's range of X; zero is in every range
    names = [name if name in arrays else "" for name in QUANTIZED_LSTM.inputs]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, OUTPUTS, "it", domain="com.microsoft", hidden_size=H, **case.attributes
    )
    constants = {n: a for n, a in arrays.items() if n not in given}
    model = simple_model([node], given, OUTPUTS, constants, domains=DOMAINS)
    for output in model.graph.output:
        output.CopyFrom(helper.make_tensor_value_info(output.name, onnx.TensorProto.FLOAT, None))
    return model, given


def runtime(model: onnx.ModelProto, given: dict[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # else it splits the batch, with a range of h for each part
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[Array] = session.run(None, given)
    return results


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_equals_onnxruntime(case: Case) -> None:
    model, given = make_case(case)
    results, expected = read_model(model)(given), runtime(model, given)
    for name, wanted in zip(OUTPUTS, expected, strict=True):
        assert (results[name].shape, results[name].dtype) == (wanted.shape, np.float32)
        np.testing.assert_allclose(results[name], wanted, rtol=0, atol=TOLERANCE)
    assert np.abs(expected[0]).max() > 0.2


def layer_of(case: Case) -> tuple[QuantizedLayer, dict[str, Array]]:
    model, given = make_case(case)
    (layer,) = read_model(model).layers.values()
    assert isinstance(layer, QuantizedLayer)
    return layer, given


BOTH = CASES[6]


def test_layer() -> None:
    model, given = make_case(BOTH)
    layer, _ = layer_of(BOTH)
    assert layer.label == "DynamicQuantizeLSTM 'it'"
    assert layer.weights["W"].shape == (2, 36, 5)
    for one in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        results = one(**given)
        for result, wanted in zip(results, read_model(model)(given).values(), strict=True):
            np.testing.assert_array_equal(result, wanted)


def test_layer_by_names() -> None:
    layer, given = layer_of(CASES[1])
    for one, other in zip(layer.run(**given), layer(**given), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ArgumentError, match="'Z'"):
        layer.run(given["X"], Z=given["X"])


def test_padding_and_other_rows() -> None:
    """What lies beyond a row's length is not read; a NaN stays with its row; rows of length 0 are zero."""
    layer, given = layer_of(BOTH)
    given["sequence_lens"] = np.array([7, 3, 0, 5, 4], np.int32)
    expected = layer(**given)
    assert all(not one[..., 2, :].any() for one in expected)
    X = given["X"].copy()
    for row, length in enumerate(given["sequence_lens"]):
        X[length:, row] = np.nan
    for result, wanted in zip(layer(**{**given, "X": X}), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)
    X[1, 3] = np.nan
    for result in layer(**{**given, "X": X}):
        assert np.isnan(result[..., 3, :]).any()
        assert not np.isnan(np.delete(result, 3, axis=-2)).any()


@pytest.mark.parametrize("sizes", [(0, 3), (4, 0), (0, 0)])
def test_empty(sizes: tuple[int, int]) -> None:
    layer, _ = layer_of(CASES[1])
    Y, Y_h, Y_c = layer(np.ones((*sizes, 5), np.float32))
    assert (Y.shape, Y_h.shape, Y_c.shape) == ((sizes[0], 1, sizes[1], 9), (1, sizes[1], 9), (1, sizes[1], 9))
    assert not any(one.any() for one in (Y, Y_h, Y_c))


def fake_quantized(values: Array) -> Array:
    """What X of one feature is rounded to: the result of a step whose gates are 1 and whose functions do nothing."""
    attributes = {"activations": ["Affine"] * 3, "activation_alpha": [0.0, 1, 1], "activation_beta": [1.0, 0, 0]}
    weights: dict[str, Array] = {
        "W": np.array([[[0, 0, 0, 1]]], np.uint8),
        "R": np.zeros((1, 1, 4), np.uint8),
        **{f"{name}_scale": np.ones(1, np.float32) for name in "WR"},
        **{f"{name}_zero_point": np.zeros(1, np.uint8) for name in "WR"},
    }
    model, _ = make_case(Case("values", attributes, (), N=len(values), I=1, H=1), **weights)
    Y: Array = read_model(model)(values.reshape(1, -1, 1))["Y"]
    return Y.ravel()


def test_fake_quantized() -> None:
    """By hand: a range of 0 to 255, of -1 to 254, and one without zero, to which it is added."""
    values = np.array([0, 0.4, 100.6, 255], np.float32)
    np.testing.assert_array_equal(fake_quantized(values), [0, 0, 101, 255])
    np.testing.assert_array_equal(fake_quantized(values - 1), np.array([0, 0, 101, 255]) - 1)
    np.testing.assert_allclose(fake_quantized(np.array([255, 510], np.float32)), [256, 510])  # ties to even: 127.5
    np.testing.assert_array_equal(fake_quantized(np.zeros(3, np.float32)), np.zeros(3))
    infinite = fake_quantized(np.array([255, np.inf, np.nan, -np.inf, 7.2], np.float32))
    np.testing.assert_array_equal(infinite, [255, 255, np.nan, 0, 7])


def test_computed_weights_run() -> None:
    model, given = make_case(BOTH)
    expected = list(read_model(model)(given).values())
    (weight,) = (one for one in model.graph.initializer if one.name == "W")
    array = onnx.numpy_helper.to_array(weight)
    model.graph.initializer.remove(weight)
    model.graph.input.append(helper.make_tensor_value_info("W", weight.data_type, array.shape))
    read = read_model(model)
    (layer,) = read.layers.values()
    assert isinstance(layer, UnboundNode)
    assert (layer.label, layer.op is not None and layer.op.hidden_size) == ("DynamicQuantizeLSTM 'it'", 9)
    with pytest.raises(UnsupportedError, match="its weights are quantized"):
        layer.bind(array, array)
    for result, wanted in zip(read({**given, "W": array}).values(), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_no_stream() -> None:
    with pytest.raises(UnsupportedError, match="X has one range for a whole sequence"):
        layer_of(CASES[1])[0].stream(3)


WRONG: dict[str, tuple[dict[str, Array], str]] = {
    "W in float32": ({"W": np.zeros((1, 5, 36), np.float32)}, "W has dtype float32"),
    "rank of R": ({"R": np.zeros((9, 36), np.uint8)}, r"R has dtype uint8 and shape \(9, 36\)"),
    "shape of a scale": ({"W_scale": np.ones(36, np.float32)}, r"W_scale has dtype float32 and shape \(36,\)"),
    "dtype of a scale": ({"R_scale": np.ones(1, np.float64)}, "R_scale has dtype float64"),
    "sign of a zero point": ({"R_zero_point": np.zeros(1, np.int8)}, "R_zero_point has dtype int8"),
    "shape of B": ({"B": np.zeros((1, 36), np.float32)}, r"B has shape \(1, 36\)"),
    "hidden_size of R": ({"R": np.zeros((1, 8, 32), np.uint8)}, "8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    changes, message = WRONG[name]
    model, given = make_case(CASES[1], **changes)
    with pytest.raises(ArgumentError, match=message):
        read_model(model)(given)


def test_missing_scale() -> None:
    model, given = make_case(CASES[1])
    del model.graph.node[0].input[11]
    with pytest.raises(PyrnnxError, match="R_zero_point is missing"):
        read_model(model)(given)
