"""Calls whose allocations fail one after another: each door of the package, with new arguments in every call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from layers import random_layer
from onnx import helper
from onnx_models import simple_model

import pyrnnx
from pyrnnx.frontends.onnx.operators.schemas import QUANTIZED_LSTM
from pyrnnx.layers import custom_operators

Array = Any
T, N, I, H = 9, 7, 33, 65  # scratch buffers that do not fit on the stack of a thread


@cache
def _arrays(number: int) -> dict[str, Array]:
    rng = np.random.default_rng(number)
    return {"X": rng.uniform(-1, 1, (T, N, I)).astype(np.float32), "lens": rng.integers(0, T + 1, N).astype(np.int32)}


@cache
def _layer(cell: Any, **options: Any) -> pyrnnx.Layer:
    return random_layer(pyrnnx.RecurrentOp(cell, H, **options), I)


def _weights() -> dict[str, Array]:
    return dict(_layer("LSTM").weights)


def layer(number: int) -> Any:
    return _layer("GRU", direction="bidirectional").run(_arrays(number)["X"], _arrays(number)["lens"])


def prepared(number: int) -> Any:
    made = pyrnnx.Layer(_layer("LSTM").op, **_weights(), weight_dtype=("int8", "bfloat16", None)[number % 3])
    return made.run(_arrays(number)["X"])


def threads(number: int) -> Any:
    return _layer("LSTM").run(np.repeat(_arrays(number)["X"], 20, axis=1))


def stream(number: int) -> Any:
    pushed = _layer("LSTM").stream(N)
    return [pushed.push(_arrays(number)["X"], _arrays(number)["lens"]) for _ in range(2)]


def _stack() -> pyrnnx.Stack:
    return pyrnnx.Stack([_layer("LSTM"), random_layer(pyrnnx.RecurrentOp("LSTM", H), H)])


def stack(number: int) -> Any:
    made, X = _stack(), _arrays(number)["X"]
    ragged = [np.repeat(X[:, k], 1 + k, axis=0) for k in range(N)]
    return [made.run(X, _arrays(number)["lens"]), made.stream(N).push(X), made.run(ragged)]


@cache
def _quantized() -> pyrnnx.Model:
    rng = np.random.default_rng(1)
    codes = {"W": rng.integers(0, 256, (1, I, 4 * H), np.uint8), "R": rng.integers(0, 256, (1, H, 4 * H), np.uint8)}
    codes |= {f"{name}_scale": np.full(1, 0.004, np.float32) for name in "WR"}
    codes |= {f"{name}_zero_point": np.full(1, 128, np.uint8) for name in "WR"}
    names = [name if name == "X" or name in codes else "" for name in QUANTIZED_LSTM.inputs]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["Y", "Y_h"], domain="com.microsoft", hidden_size=H)
    X = {"X": _arrays(0)["X"]}
    return pyrnnx.load(simple_model([node], X, ["Y", "Y_h"], codes, domains={"com.microsoft": 1}))


def quantized(number: int) -> Any:
    made: Any
    (made,) = _quantized().layers.values()
    return [made.run(_arrays(number)["X"]), _quantized()(_arrays(number)["X"])]


def _nodes() -> tuple[list[Any], dict[str, Array]]:
    """An LSTM whose Y nobody reads, between other operators."""
    node = helper.make_node
    nodes = [
        node("Add", ["X", "X"], ["x"]),
        node("LSTM", ["x", "W", "R", "B", "lens"], ["", "h"], hidden_size=H),
        node("Squeeze", ["h", "zero"], ["y"]),
    ]
    return nodes, {**_weights(), "zero": np.array([0])}


@cache
def _proto() -> Any:
    nodes, constants = _nodes()
    return simple_model(nodes, _arrays(0), ["y"], constants)


def loaded(number: int) -> Any:
    made = pyrnnx.load(_proto())
    return list(made(_arrays(number)).values())


def new_session(number: int) -> Any:
    from pyrnnx.onnxruntime import InferenceSession

    return InferenceSession(_proto().SerializeToString()).run(None, _arrays(number))


@cache
def _words() -> Any:
    """A session with a function of text."""
    from sessions import model as proto_of
    from sessions import python
    from sessions import session as session_of

    handle = custom_operators.Handle(lambda x: [np.char.upper(x.astype(str)).astype(object)])
    string = 8
    made = proto_of([python(handle, ["x"], ["y"])], [("x", string, [2])], [("y", string, [2])])
    return handle, session_of(made)


def texts(number: int) -> Any:
    try:
        return _words()[1].run(None, {"x": np.array(["a", f"b{number}"], object)})
    except Exception as error:  # of ONNX Runtime, with the number of ours
        raise custom_operators.original_error(error) or error from None


DOORS: dict[str, Callable[[int], Any]] = {
    door.__name__: door for door in (layer, prepared, threads, stream, stack, quantized, loaded, new_session, texts)
}
FRESH = ("threads",)  # doors that run in a new process each time, because teams of threads are kept


def flat(results: Any) -> list[Array]:
    """Return all arrays of a result."""
    if isinstance(results, np.ndarray):
        return [results]
    if hasattr(results, "values"):
        results = list(results.values())
    return [array for result in results for array in flat(result)] if results is not None else []
