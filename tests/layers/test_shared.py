"""Layers of nodes that are equal share packed weights and arrays while one of them is alive."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest
from layers import random_inputs, random_weights

from pyrnnx import ONNX_LAYOUTS, RecurrentOp, config, reference
from pyrnnx import Layer as UnsharedLayer
from pyrnnx._kernels import engines
from pyrnnx.comparison import oracle
from pyrnnx.frontends.onnx.layers import NodeLayer as Layer
from pyrnnx.layers.prepare import prepare

OP = RecurrentOp(cell="LSTM", hidden_size=70, direction="bidirectional")
WEIGHTS = random_weights(OP, 33, np.float32, peepholes=True)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the operators of the layers that are packed during a test."""
    operators = []

    def counted(op: Any, *rest: Any) -> Any:
        operators.append(op)
        return prepare(op, *rest)

    monkeypatch.setattr("pyrnnx.layers.layer.prepare", counted)
    gc.collect()
    return operators


def copies() -> dict[str, Any]:
    return {name: array.copy() for name, array in WEIGHTS.items()}


def check_results(*layers: Layer) -> None:
    inputs = random_inputs(OP, (4, 3, 33), np.float32)
    for layer in layers:
        expected = reference.run("LSTM", **oracle.arguments(layer, inputs))
        for result, exact in zip(layer.run(**inputs), expected, strict=True):
            np.testing.assert_allclose(result, exact, atol=2e-6)


def test_equal_layers(prepared: list[Any]) -> None:
    layers = [Layer(OP, **copies(), name=name) for name in ("a", "b", "c")]
    assert len(prepared) == 1
    assert all(layer.weights["W"] is layers[0].weights["W"] for layer in layers)
    assert [layer.name for layer in layers] == ["a", "b", "c"]
    del layers[0]
    gc.collect()
    check_results(*layers)
    check_results(pickle.loads(pickle.dumps(layers[0])))


def test_layers_that_differ(prepared: list[Any]) -> None:
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
    ]
    others = [
        Layer(OP, **copies(), convention=ONNX_LAYOUTS[1]),
        Layer(OP, **copies(), weight_dtype="bfloat16"),
        Layer(OP, **{name: array.astype(np.float64) for name, array in copies().items()}),
    ]
    assert len(prepared) == len(layers) + len(others)
    check_results(*layers[:-1])


def test_arrays_that_change_later(prepared: list[Any]) -> None:
    """A layer has its own copies of writable arrays, so layers made before and after a change differ."""
    weights = copies()
    first = Layer(OP, **weights)
    weights["R"] *= -1
    second = Layer(OP, **weights)
    assert len(prepared) == 2
    check_results(first, second)


def test_layers_of_one_call(prepared: list[Any]) -> None:
    """Layers for one call neither share their packed weights nor change those of others."""
    first = Layer(OP, **copies())
    second = Layer(OP, **copies())._for_one_call()
    assert len(prepared) == 2
    assert (first._packed.one_call, second._packed.one_call) == (False, True)
    del first, second
    gc.collect()
    last = Layer(OP, **copies())._for_one_call()
    another = Layer(OP, **copies())
    assert len(prepared) == 4
    assert (last._packed.one_call, another._packed.one_call) == (True, False)


def test_layers_outside_models(prepared: list[Any]) -> None:
    """A caller's layer computes the same whatever other layers there are."""
    layers = [Layer(OP, **copies()), UnsharedLayer(OP, **copies()), UnsharedLayer(OP, **copies())]
    assert len(prepared) == len(layers)


def test_engines_share_nothing(prepared: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    first = Layer(OP, **copies())
    monkeypatch.setattr(config, "ISA", "blas" if config.ISA != "blas" else engines.supported()[0])
    second = Layer(OP, **copies())
    assert len(prepared) == 2
    check_results(first, second)


def test_small_layers(prepared: list[Any]) -> None:
    op = RecurrentOp(cell="GRU", hidden_size=5)
    weights: dict[str, Any] = random_weights(op, 3, np.float32)
    assert all(Layer(op, **weights) for _ in range(2))
    assert len(prepared) == 2
