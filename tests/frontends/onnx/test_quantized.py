"""com.microsoft DynamicQuantizeLSTM, beside ONNX Runtime."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper
from quantized_models import CASES, OUTPUTS, Case, layer_of, make_case

from pyrnnx import ArgumentError, PyrnnxError, Stack, UnsupportedError
from pyrnnx.frontends.onnx import UnboundNode, read_model, write_model
from pyrnnx.frontends.onnx.quantized import QuantizedLayer
from pyrnnx.testing.numbers import Array

onnxruntime = pytest.importorskip("onnxruntime")

# Both add the same products of integers, one of them in float32 and dequantized: some 2^-24 of sums below 10.
# Rounding h to 8 bits could turn such a difference into 1/255 of a weight, where h is that near to a tie: the seeds
# are ones without such a tie, and a wrong scale or zero point would be 1e-4 and above.
TOLERANCE = 2e-6


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


def test_weights_are_held_as_codes() -> None:
    """What is asked for is dequantized, and nobody can write to it; what is pickled is codes."""
    case = replace(CASES[-1], dtype="int8", per_channel=True, all_codes=True)
    model, _ = make_case(case)
    layer, _ = layer_of(case)
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    for name in ("W", "R"):
        codes, zero_point = (arrays[key].astype(np.float32) for key in (name, f"{name}_zero_point"))
        expected = (codes - zero_point[:, np.newaxis]) * arrays[f"{name}_scale"][:, np.newaxis]
        np.testing.assert_array_equal(layer.weights[name], expected.transpose(0, 2, 1))
        assert not layer.weights[name].flags.writeable
    assert list(layer.weights) == ["W", "R", "B"]
    np.testing.assert_array_equal(layer.weights["B"], arrays["B"])
    assert len(pickle.dumps(layer)) < layer.weights["W"].nbytes


def test_floats_are_no_codes() -> None:
    layer, _ = layer_of(CASES[1])
    with pytest.raises(ArgumentError, match="expected W and R in codes"):
        QuantizedLayer(layer.op, *layer.weights.values())


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


def test_no_stack_and_no_node_of_onnx() -> None:
    layer = layer_of(CASES[1])[0]
    with pytest.raises(
        UnsupportedError, match="QuantizedLayer, which computes something else than an RNN, GRU or LSTM"
    ):
        Stack([layer])
    with pytest.raises(UnsupportedError, match="QuantizedLayer computes something else than an operator of ONNX's own"):
        write_model(layer)


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
