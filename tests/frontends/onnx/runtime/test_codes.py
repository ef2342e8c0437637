"""Models of onnxruntime.quantization: the results are ONNX Runtime's, and no node runs on the evaluator."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import LSTM, simple_model, weights_of

from pyrnnx import SlowRuntimeWarning
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import Array

onnxruntime = pytest.importorskip("onnxruntime")
quantization: Any = pytest.importorskip("onnxruntime.quantization")
node = helper.make_node
rng = np.random.default_rng(0)
X = rng.normal(size=(LSTM.N, 4, 11)).astype(np.float32)


def float_model() -> onnx.ModelProto:
    """Conv -> LSTM -> Linear."""
    constants = {
        "K": 0.3 * rng.normal(size=(LSTM.I, 4, 3)).astype(np.float32),
        "k": rng.normal(size=LSTM.I).astype(np.float32),
        "M": rng.normal(size=(LSTM.H, 6)).astype(np.float32),
        "b": rng.normal(size=6).astype(np.float32),
    }
    nodes = [
        node("Conv", ["x", "K", "k"], ["c"], name="conv"),
        node("Relu", ["c"], ["r"], name="relu"),
        node("Transpose", ["r"], ["t"], perm=[2, 0, 1], name="turned"),
        node("LSTM", ["t", "W", "R", "B"], ["h"], hidden_size=LSTM.H, name="lstm"),
        node("MatMul", ["h", "M"], ["p"], name="product"),
        node("Add", ["p", "b"], ["y"], name="sum"),
    ]
    return simple_model(nodes, {"x": X}, ["y"], weights_of(LSTM) | constants, ir_version=9)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("quantized") / "float.onnx"
    onnx.save(float_model(), path)
    return path


def quantized(source: Path, form: str, activations: str, weights: str, per_channel: bool = False) -> onnx.ModelProto:
    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = iter([{"x": X}, {"x": -X}])

        def get_next(self) -> dict[str, Array] | None:
            return next(self._left, None)

    path, types = source.with_name("quantized.onnx"), quantization.QuantType
    logging.disable(logging.WARNING)  # that a model should be prepared before
    try:
        quantization.quantize_static(
            source,
            path,
            Reader(),
            quant_format=quantization.QuantFormat[form],
            activation_type=types[activations],
            weight_type=types[weights],
            per_channel=per_channel,
        )
    finally:
        logging.disable(logging.NOTSET)
    return onnx.load(path)


def of_onnxruntime(proto: onnx.ModelProto, *, precise: bool = True) -> Array:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if precise:  # else, without VNNI, it adds products of uint8 and int8 in pairs that saturate at 16 bits
        options.add_session_config_entry("session.x64quantprecision", "1")
    made = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(made.run(None, {"x": X})[0])


KINDS = [("QInt8", "QInt8"), ("QUInt8", "QInt8"), ("QUInt8", "QUInt8")]


def check(proto: onnx.ModelProto, expected: Array) -> Any:
    """Compare three calls."""
    model = read_model(proto)
    for _ in range(3):
        different = model(X)["y"] != expected
        assert different.sum() <= different.shape[-1]  # the layer's rounding may move one code behind it
    assert "reference" not in str(model.plan)
    return model


@pytest.mark.parametrize("per_channel", [False, True], ids=["", "per channel"])
@pytest.mark.parametrize(("activations", "weights"), KINDS)
def test_codes_stay_codes(source: Path, activations: str, weights: str, per_channel: bool) -> None:
    """QDQ: the products are those of codes, as in ONNX Runtime alone; DequantizeLinear of weights never runs."""
    proto = quantized(source, "QDQ", activations, weights, per_channel)
    model = check(proto, of_onnxruntime(proto))
    ((_, operators, _), *_) = model.plan.rows()
    assert "DequantizeLinear" in operators
    assert "Conv" in operators


@pytest.mark.parametrize(("activations", "weights"), KINDS)
def test_operators_of_codes(source: Path, activations: str, weights: str) -> None:
    """QOperator: for int8 alone, ONNX Runtime has no kernels where precision was asked for."""
    proto = quantized(source, "QOperator", activations, weights)
    check(proto, of_onnxruntime(proto, precise=weights != activations or weights != "QInt8"))


def test_floats_stay_floats() -> None:
    """Weights in floating point between quantized values are not quantized."""
    constants: dict[str, Any] = {
        "W": rng.normal(size=(16, 16)).astype(np.float32),
        "s": np.array(0.02, np.float32),
        "z": np.array(3, np.uint8),
        "t": np.array(0.1, np.float32),
    }
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("Gemm", ["d", "W"], ["m"]),
        node("QuantizeLinear", ["m", "t", "z"], ["r"]),
        node("DequantizeLinear", ["r", "t", "z"], ["y"]),
    ]
    x = rng.uniform(0, 4, (8, 16)).astype(np.float32)
    proto = simple_model(nodes, {"x": x}, ["y"], constants)
    given = np.clip(np.rint(x / constants["s"]) + 3, 0, 255).astype(np.float32) - 3
    exact = (given * np.float64(constants["s"])) @ constants["W"].astype(np.float64)
    codes = np.clip(np.rint(exact / np.float64(constants["t"])) + 3, 0, 255)
    halves = np.abs(exact / np.float64(constants["t"]) % 1 - 0.5) < 1e-3  # float32 may round these to either side
    found = np.rint(read_model(proto)(x)["y"] / constants["t"]) + 3
    np.testing.assert_array_equal(found[~halves], codes[~halves])


@pytest.mark.parametrize(("runtime", "count"), [("reference", 0), ("auto", 4)])
def test_who_gets_codes(source: Path, runtime: str, count: int) -> None:
    """K and its bias, M and b; the reference evaluator, which would dequantize them in every call, gets floats."""
    proto = quantized(source, "QDQ", "QUInt8", "QInt8")
    constants = {one.name for one in proto.graph.initializer}
    nodes = read_model(proto, runtime=runtime)._programs.program()._graph.node
    assert sum(node.op_type == "DequantizeLinear" and constants.issuperset(node.input) for node in nodes) == count


def test_the_reason_is_that_of_the_node_at_fault() -> None:
    """Not of one whose input's type nobody infers, for it cannot be tried alone."""
    constants: dict[str, Any] = {"s": np.array(0.02, np.float32), "z": np.array(3, np.uint8)}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("QLinearAdd", ["q", "s", "z", "q", "s", "z", "s", "z"], ["r"], domain="com.microsoft"),
        node("DequantizeLinear", ["r", "s", "z"], ["d"]),
        node("Cast", ["d"], ["wide"], to=onnx.TensorProto.DOUBLE),
        node("Selu", ["wide"], ["y"]),
    ]
    model = read_model(simple_model(nodes, {"x": X}, ["y"], constants, domains={"com.microsoft": 1}))
    with pytest.warns(SlowRuntimeWarning, match="Selu .*: .*Could not find an implementation for Selu"):
        rows = model.plan.rows()
    assert [runner for runner, _, _ in rows] == ["ONNX Runtime", "reference evaluator"]
    assert rows[1][1] == "Selu (output 'y')"
