"""Comparisons of layers and of models, one of every kind that the views can show."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from layers import random_inputs, random_layer, random_weights
from onnx import helper
from onnx_models import simple_model

from pyrnnx import Comparison, Layer, ModelComparison, RecurrentOp, compare
from pyrnnx.comparison.result import Result
from pyrnnx.frontends.onnx import read_model

T, N, I, H = 7, 3, 4, 6
BOTH = RecurrentOp("LSTM", H, "bidirectional")
BAD_NAME = "<script>alert(1)</script> & 'x' \x1b[31m"


def pair(**changes: Any) -> Comparison:
    """Two LSTMs, of which the first has other weights of f, in reverse; `changes`: of its inputs."""
    weights: dict[str, Any] = random_weights(BOTH, I)
    changed = {**weights, "W": weights["W"].copy()}
    changed["W"][1, 2 * H + 3] += 0.5
    inputs = random_inputs(BOTH, (T, N, I), lens=[T, 5, 0]) | changes
    return compare(Layer(BOTH, **changed, name=BAD_NAME), Layer(BOTH, **weights), inputs)


def relu(value: float) -> Layer:
    return Layer(RecurrentOp("RNN", 1), np.array([[[value]]]), np.zeros((1, 1, 1)))


def model(factor: float, name: str = "scaled") -> onnx.ModelProto:
    weights = random_weights(RecurrentOp("GRU", H), I)
    nodes = [
        helper.make_node("Mul", ["X", "factor"], [name]),
        helper.make_node("GRU", [name, "W", "R", "B"], ["all", "last"], "<b>gru</b>", hidden_size=H),
        helper.make_node("Neg", ["last"], ["y"]),
    ]
    constants = {**weights, "factor": np.array(factor, np.float32)}
    return simple_model(nodes, {"X": np.zeros((T, N, I), np.float32)}, ["y"], constants)


def models(name: str = "scaled") -> ModelComparison:
    inputs = {"X": random_inputs(RecurrentOp("GRU", H), (T, N, I))["X"]}
    a, b = (read_model(model(factor, name)) for factor in (2, 1))
    return compare(a, b, inputs)


def nothing() -> Comparison:
    return Comparison("a", "b", (), (), {}, not_compared="P (peepholes)")


COMPARISONS: dict[str, Callable[[], Result]] = {
    "layers": pair,
    "the same": lambda: compare(random_layer(BOTH, I), random_layer(BOTH, I)),
    "not finite": lambda: compare(relu(math.nan), relu(1.0), {"X": np.ones((2, 1, 1)), "sequence_lens": [2]}),
    "no rows": lambda: compare(relu(1.0), relu(2.0), {"X": np.ones((2, 0, 1))}),
    "not compared": nothing,
    "models": models,
    "models, with a strange name": lambda: models(BAD_NAME),
    "models without numbers": lambda: ModelComparison("a", "b", {"l": nothing()}, ("GRU",), (), {}, "two conventions"),
}
