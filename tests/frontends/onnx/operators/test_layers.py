"""Layers of nodes: default arguments, streams, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx import ArgumentError, Layer, UnsupportedError
from pyrnnx.frontends.onnx import NodeLayer, from_node
from pyrnnx.frontends.onnx.operators.layers import unbound_node
from pyrnnx.testing.cases import OPERATORS, OPTIONAL, RUNTIME_INPUTS, Case, make_arrays
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.onnx_models import make_node

STATES = ("initial_h", "initial_c")


def arrays_of(operator: str, **changes: Any) -> dict[str, Array]:
    """Return all arrays of T=4, N=3, I=2, H=5."""
    return dict(make_arrays(Case("layer", operator, {}, OPTIONAL[operator], (4, 2, 1), I=2, **changes)))


def layer_of(operator: str, arrays: dict[str, Array], *constants: str, **attributes: Any) -> NodeLayer:
    """Return a node with all inputs; of those of a call, only some are constants."""
    node = make_node(Case("layer", operator, attributes), list(arrays))
    return from_node(node, {k: array for k, array in arrays.items() if k not in RUNTIME_INPUTS or k in constants})


def assert_equal(results: tuple[Array, ...], others: tuple[Array, ...]) -> None:
    for result, other in zip(results, others, strict=True):
        np.testing.assert_array_equal(result, other)


@each_row("operator", OPERATORS)
def test_defaults_of_a_call(operator: str) -> None:
    arrays = arrays_of(operator)
    call = {name: arrays[name] for name in ("sequence_lens", *STATES) if name in arrays}
    zeros = {name: np.zeros_like(array) for name, array in call.items() if name in STATES}
    layer, X = layer_of(operator, arrays), arrays["X"]
    assert_equal(layer(X), layer(X, sequence_lens=np.full(3, 4, np.int32), **zeros))
    assert_equal(layer(X), layer.run(X))
    np.testing.assert_array_equal(layer.stream(3).push(X), layer(X)[0])
    held = layer_of(operator, arrays, *call)  # the node's constants
    assert_equal(held(X), layer(X, **call))
    assert_equal(held(X, **zeros), layer(X, **call | zeros))
    assert not np.array_equal(held(X)[0], held(X, **zeros)[0])
    assert set(held.constants) == set(call)


@each_row("weight_dtype", ["bfloat16", "int8"])
@each_row("operator", OPERATORS)
def test_weights_in_fewer_bits(operator: str, weight_dtype: str) -> None:
    arrays = arrays_of(operator)
    node = make_node(Case("layer", operator, {}), list(arrays))
    layer = from_node(node, arrays, weight_dtype=weight_dtype)
    wanted = Layer(layer.op, *layer.weights.values(), constants=layer.constants, weight_dtype=weight_dtype)
    assert np.abs(layer(arrays["X"])[0] - from_node(node, arrays)(arrays["X"])[0]).max() > 1e-5
    unbound = unbound_node(node, {name: arrays[name] for name in arrays if name in RUNTIME_INPUTS})
    bound = unbound.bind(**layer.weights, weight_dtype=weight_dtype)
    for other in (layer, bound, pickle.loads(pickle.dumps(layer))):
        assert other.weight_dtype == weight_dtype
        assert_equal(other(arrays["X"]), wanted(arrays["X"]))
    with pytest.raises(ArgumentError, match=f"{operator}.*weight_dtype is 'int4'"):
        from_node(node, arrays, weight_dtype="int4")


def test_streams_that_constants_rule_out() -> None:
    arrays = arrays_of("LSTM")
    with pytest.raises(ArgumentError, match="GRU: stream: initial_h has shape"):
        layer_of("GRU", arrays_of("GRU"), "initial_h").stream(2)
    for constants in (("sequence_lens",), ("initial_h",), ("initial_c",), ("sequence_lens", *STATES)):
        with pytest.raises(UnsupportedError, match=rf"LSTM: stream: {', '.join(sorted(constants))} are constants"):
            layer_of("LSTM", arrays, *constants).stream(3)


def test_copies() -> None:
    arrays = arrays_of("LSTM")
    layer, X = layer_of("LSTM", arrays, "initial_h"), arrays["X"]
    for other in (pickle.loads(pickle.dumps(layer)), copy.copy(layer), copy.deepcopy(layer)):
        assert type(other) is NodeLayer
        assert (other.label, other.name, other.node_inputs) == (layer.label, layer.name, layer.node_inputs)
        assert_equal(other(X), layer(X))
    node = make_node(Case("unbound", "LSTM", {"hidden_size": 5}), list(arrays))
    unbound = unbound_node(node, {"initial_h": arrays["initial_h"]}, opset=14)
    assert (unbound.node, unbound.opset, list(unbound.constants)) == (node, 14, ["initial_h"])
    weights = [arrays[name] for name in "WRB"]
    for copied in (pickle.loads(pickle.dumps(unbound)), copy.copy(unbound), copy.deepcopy(unbound)):
        assert (copied.label, copied.op, copied.convention) == (unbound.label, unbound.op, unbound.convention)
        assert_equal(copied.bind(*weights)(X), unbound.bind(*weights)(X))
