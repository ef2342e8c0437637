"""Calls whose allocations fail one after another, with new arguments in every call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from layers import random_layer
from onnx import helper
from onnx_models import simple_model

import pyrnnx

Array = Any
T, N, I, H = 9, 7, 33, 65  # scratch buffers that do not fit on the stack of a thread


@cache
def _arrays(number: int) -> dict[str, Array]:
    rng = np.random.default_rng(number)
    return {"X": rng.uniform(-1, 1, (T, N, I)).astype(np.float32), "lens": rng.integers(0, T + 1, N).astype(np.int32)}


@cache
def _layer(cell: Any, **options: Any) -> pyrnnx.Layer:
    return random_layer(pyrnnx.RecurrentOp(cell, H, **options), I)


def layer(number: int) -> Any:
    return _layer("GRU", direction="bidirectional").run(_arrays(number)["X"], _arrays(number)["lens"])


def prepared(number: int) -> Any:
    lstm: Any = _layer("LSTM")
    made = pyrnnx.Layer(lstm.op, **lstm.weights, weight_dtype=("int8", "bfloat16", None)[number % 3])
    return made.run(_arrays(number)["X"])


def stack(number: int) -> Any:
    made = pyrnnx.Stack([_layer("LSTM"), random_layer(pyrnnx.RecurrentOp("LSTM", H), H)])
    X = _arrays(number)["X"]
    ragged = [np.repeat(X[:, k], 1 + k, axis=0) for k in range(N)]
    return [made.run(X, _arrays(number)["lens"]), made.stream(N).push(X), made.run(ragged)]


@cache
def _proto() -> Any:
    """An LSTM whose Y nobody reads, between other operators."""
    node = helper.make_node
    nodes = [
        node("Add", ["X", "X"], ["x"]),
        node("LSTM", ["x", "W", "R", "B", "lens"], ["", "h"], hidden_size=H),
        node("Squeeze", ["h", "zero"], ["y"]),
    ]
    return simple_model(nodes, _arrays(0), ["y"], {**_layer("LSTM").weights, "zero": np.array([0])})


def session(number: int) -> Any:
    from pyrnnx.onnxruntime import InferenceSession

    return InferenceSession(_proto().SerializeToString()).run(None, _arrays(number))


DOORS: dict[str, Callable[[int], Any]] = {door.__name__: door for door in (layer, prepared, stack, session)}


def flat(results: Any) -> list[Array]:
    """Return all arrays of a result."""
    if isinstance(results, np.ndarray):
        return [results]
    return [array for result in results for array in flat(result)]
