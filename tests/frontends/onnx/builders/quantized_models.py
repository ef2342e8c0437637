"""Models of one com.microsoft DynamicQuantizeLSTM, and their inputs."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx_models import simple_model

from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.operators.layers import QuantizedLayer
from pyrnnx.frontends.onnx.operators.schemas import QUANTIZED_LSTM
from pyrnnx.testing.numbers import Array

OUTPUTS = ("Y", "Y_h", "Y_c")
DOMAINS = {"com.microsoft": 1}


@dataclass(frozen=True)
class Case:
    name: str
    attributes: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ("B",)  # of the optional ones
    dtype: str = "uint8"
    per_channel: bool = False
    all_codes: bool = False  # codes and zero points of the whole range, the latter different for each channel
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
    least, most = (-128, 128) if case.dtype == "int8" else (0, 256)
    # On a processor without VNNI, ONNX Runtime adds products of uint8 and int8 in pairs that saturate at 16 bits; codes
    # of 7 bits cannot reach that.
    low, high = (-63, 64) if case.dtype == "int8" and not case.all_codes else (least, most)
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
        if case.all_codes:
            arrays[f"{name}_zero_point"] = rng.integers(least, most, factors).astype(case.dtype)
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


def layer_of(case: Case) -> tuple[QuantizedLayer, dict[str, Array]]:
    model, given = make_case(case)
    (layer,) = read_model(model).layers.values()
    assert isinstance(layer, QuantizedLayer)
    return layer, given
