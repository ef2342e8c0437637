"""com.microsoft DynamicQuantizeLSTM compared with ONNX Runtime."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper
from peers import run_onnxruntime
from quantized_models import CASES, OUTPUTS, Case, layer_of, make_case
from rows import each_row
from sessions import session

from pyrnnx import ArgumentError, PyrnnxError, Stack, UnsupportedError
from pyrnnx.frontends.onnx import UnboundNode, read_model, write_model
from pyrnnx.onnxruntime import rewrite
from pyrnnx.testing.numbers import Array

pytest.importorskip("onnxruntime")

# Both add the same products of integers, one of them in float32 and dequantized: some 2^-24 of sums below 10.
# Rounding h to 8 bits could turn such a difference into 1/255 of a weight, where h is that near to a tie: the seeds
# are ones without such a tie, and a wrong scale or zero point would be 1e-4 and above.
TOLERANCE = 2e-6


@each_row("case", CASES, ids=lambda case: case.name)
def test_equals_onnxruntime(case: Case) -> None:
    """One thread: with more, ONNX Runtime divides the batch, and each part has its own range of h."""
    model, inputs = make_case(case)
    results, expected = read_model(model)(inputs), run_onnxruntime(model, inputs)
    for result, other in zip(results.values(), session(rewrite(model)).run(None, inputs), strict=True):
        np.testing.assert_array_equal(result, other)
    for name, wanted in zip(OUTPUTS, expected, strict=True):
        assert (results[name].shape, results[name].dtype) == (wanted.shape, np.float32)
        np.testing.assert_allclose(results[name], wanted, rtol=0, atol=TOLERANCE)
    assert np.abs(expected[0]).max() > 0.2


BOTH = CASES[6]


def test_layer() -> None:
    model, inputs = make_case(BOTH)
    layer, _ = layer_of(BOTH)
    assert layer.label == "DynamicQuantizeLSTM 'it'"
    assert layer.weights["W"].shape == (2, 36, 5)
    expected = list(read_model(model)(inputs).values())
    for call in (layer, layer.run, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        for result, wanted in zip(call(**inputs), expected, strict=True):
            np.testing.assert_array_equal(result, wanted)
    for T, N in ((0, 3), (4, 0), (0, 0)):
        Y, Y_h, Y_c = layer(np.ones((T, N, 5), np.float32))
        assert (Y.shape, Y_h.shape, Y_c.shape) == ((T, 2, N, 9), (2, N, 9), (2, N, 9))
        assert not any(array.any() for array in (Y_h, Y_c)) or T


def test_what_a_layer_rejects() -> None:
    layer, inputs = layer_of(CASES[1])
    with pytest.raises(ArgumentError, match="'Z'"):
        layer.run(inputs["X"], Z=inputs["X"])
    with pytest.raises(UnsupportedError, match="X has one range for a whole sequence"):
        layer.stream(3)
    with pytest.raises(UnsupportedError, match="QuantizedLayer, which does not compute a plain RNN, GRU or LSTM"):
        Stack([layer])
    with pytest.raises(UnsupportedError, match="QuantizedLayer computes something else than an operator of ONNX's own"):
        write_model(layer)


def test_weights_are_held_as_codes() -> None:
    """Accessed weights are dequantized and read-only; a pickle contains codes."""
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


def test_padding_is_not_read() -> None:
    layer, inputs = layer_of(BOTH)
    inputs["sequence_lens"] = np.array([7, 3, 0, 5, 4], np.int32)
    expected = layer(**inputs)
    assert not any(array[..., 2, :].any() for array in expected)
    for row, length in enumerate(inputs["sequence_lens"]):
        inputs["X"][length:, row] = np.nan
    for result, wanted in zip(layer(**inputs), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


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


WRONG: list[tuple[dict[str, Array], str]] = [
    ({"W": np.zeros((1, 5, 36), np.float32)}, "W has dtype float32"),
    ({"R": np.zeros((9, 36), np.uint8)}, r"R has dtype uint8 and shape \(9, 36\)"),
    ({"W_scale": np.ones(36, np.float32)}, r"W_scale has dtype float32 and shape \(36,\)"),
    ({"R_scale": np.ones(1, np.float64)}, "R_scale has dtype float64"),
    ({"R_zero_point": np.zeros(1, np.int8)}, "R_zero_point has dtype int8"),
    ({"B": np.zeros((1, 36), np.float32)}, r"B has shape \(1, 36\)"),
    ({"R": np.zeros((1, 8, 32), np.uint8)}, "8"),
]


@each_row(("changes", "message"), WRONG, ids=[row[-1] for row in WRONG])
def test_wrong(changes: dict[str, Array], message: str) -> None:
    model, given = make_case(CASES[1], **changes)
    with pytest.raises(ArgumentError, match=message):
        read_model(model)(given)


def test_missing_scale() -> None:
    model, given = make_case(CASES[1])
    del model.graph.node[0].input[11]
    with pytest.raises(PyrnnxError, match="R_zero_point is missing"):
        read_model(model)(given)
