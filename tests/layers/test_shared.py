"""Layers of nodes that are equal share packed weights and arrays while one of them is alive."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
from layers import random_inputs, random_weights

from pyrnnx import ONNX_LAYOUTS, RecurrentOp, reference
from pyrnnx import Layer as UnsharedLayer
from pyrnnx.comparison import oracle
from pyrnnx.frontends.onnx import lstm
from pyrnnx.frontends.onnx.operators.layers import NodeLayer as Layer

OP = RecurrentOp(cell="LSTM", hidden_size=70, direction="bidirectional")
WEIGHTS = random_weights(OP, 33, np.float32, peepholes=True)


def copies() -> dict[str, Any]:
    return {name: array.copy() for name, array in WEIGHTS.items()}


def check_results(*layers: UnsharedLayer) -> None:
    for layer in layers:
        inputs = random_inputs(OP, (4, 3, 33), layer.dtype)
        expected = reference.run("LSTM", **oracle.arguments(layer, inputs))
        for result, exact in zip(layer.run(**inputs), expected, strict=True):
            np.testing.assert_allclose(result, exact, atol=2e-6)


def test_equal_layers() -> None:
    layers = [Layer(OP, **copies(), name=name) for name in ("a", "b", "c")]
    assert all(layer.weights["W"] is layers[0].weights["W"] for layer in layers)
    assert [layer.name for layer in layers] == ["a", "b", "c"]
    unshared = UnsharedLayer(OP, **copies())  # a caller's layer shares nothing
    assert unshared.weights["W"] is not layers[0].weights["W"]
    del layers[0]
    gc.collect()
    check_results(*layers, unshared)
    check_results(pickle.loads(pickle.dumps(layers[0])))


def test_layers_that_differ() -> None:
    def changed(name: str) -> dict[str, Any]:
        weights = copies()
        weights[name].flat[0] += 1
        return weights

    layers = [
        Layer(OP, **copies()),
        *(Layer(OP, **changed(name)) for name in WEIGHTS),
        Layer(RecurrentOp(cell="LSTM", hidden_size=70, direction="bidirectional", clip=0.5), **copies()),
        Layer(RecurrentOp(cell="LSTM", hidden_size=70, direction="bidirectional", input_forget=True), **copies()),
        Layer(OP, **{name: array for name, array in copies().items() if name != "P"}),
        Layer(OP, **{name: array.astype(np.float64) for name, array in copies().items()}),
    ]
    check_results(*layers)
    X = random_inputs(OP, (4, 3, 33), np.float32)["X"]
    rounded = Layer(OP, **copies(), weight_dtype="bfloat16")
    assert np.abs(rounded(X)[0] - layers[0](X)[0]).max() > 1e-4
    turned = Layer(OP, **copies(), convention=ONNX_LAYOUTS[1])
    np.testing.assert_array_equal(turned(X.swapaxes(0, 1))[0], layers[0](X)[0].transpose(2, 0, 1, 3))


def test_arrays_that_change_later() -> None:
    """A layer has its own copies of writable arrays, so layers made before and after a change differ."""
    weights = copies()
    first = Layer(OP, **weights)
    weights["R"] *= -1
    check_results(first, Layer(OP, **weights))


def test_a_function_with_the_weights_of_a_layer() -> None:
    """The function prepares weights for one call; the layer, which shares them, stays as it was."""
    layer, X = Layer(OP, **copies()), random_inputs(OP, (4, 3, 33), np.float32)["X"]
    for _ in range(2):
        for result, expected in zip(lstm(X, **copies(), direction="bidirectional"), layer(X), strict=True):
            np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6)
    check_results(layer)
