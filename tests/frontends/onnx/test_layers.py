"""The layers of nodes: what is not given at a call, streams, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from pyrnnx import ArgumentError, Layer, UnsupportedError
from pyrnnx.frontends.onnx import NodeLayer, from_node
from pyrnnx.frontends.onnx.layers import unbound_node
from pyrnnx.testing.cases import OPERATORS, OPTIONAL, RUNTIME_INPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.onnx_models import make_node

STATES = ("initial_h", "initial_c")


def arrays_of(operator: str, **changes: Any) -> dict[str, Array]:
    """T=4, N=3, with lengths and states."""
    return dict(make_arrays(Case("layer", operator, {}, OPTIONAL[operator], (4, 2, 1), I=2, **changes)))


def layer_of(operator: str, arrays: dict[str, Array], *constants: str, **attributes: Any) -> NodeLayer:
    """A node with all inputs; of those of a call, only some are constants."""
    node = make_node(Case("layer", operator, attributes), list(arrays))
    known = {name: array for name, array in arrays.items() if name not in RUNTIME_INPUTS or name in constants}
    return from_node(node, known)


def assert_equal(results: tuple[Array, ...], others: tuple[Array, ...]) -> None:
    for result, other in zip(results, others, strict=True):
        np.testing.assert_array_equal(result, other)


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_is_not_given_is_full_length_and_zero(operator: str) -> None:
    arrays = arrays_of(operator)
    layer = layer_of(operator, arrays)
    states = [name for name in STATES if name in arrays]
    zeros = {name: np.zeros_like(arrays[name]) for name in states}
    full = np.full(3, 4, np.int32)
    X = arrays["X"]
    assert_equal(layer(X), layer(X, sequence_lens=full, **zeros))
    assert_equal(layer(X), layer.run(X))
    assert_equal(layer(X, initial_h=arrays["initial_h"]), layer(X, **zeros | {"initial_h": arrays["initial_h"]}))
    stream = layer.stream(3)
    np.testing.assert_array_equal(stream.push(X), layer(X)[0])


@pytest.mark.parametrize("weight_dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_weights_in_fewer_bits(operator: str, weight_dtype: str) -> None:
    arrays = arrays_of(operator)
    node = make_node(Case("layer", operator, {}), list(arrays))
    layer = from_node(node, arrays, weight_dtype=weight_dtype)
    wanted = Layer(layer.op, *layer.weights.values(), constants=layer.constants, weight_dtype=weight_dtype)
    assert_equal(layer(arrays["X"]), wanted(arrays["X"]))
    assert np.abs(layer(arrays["X"])[0] - from_node(node, arrays)(arrays["X"])[0]).max() > 1e-5
    unbound = unbound_node(node, {name: arrays[name] for name in arrays if name in RUNTIME_INPUTS})
    for other in (unbound.bind(**layer.weights, weight_dtype=weight_dtype), pickle.loads(pickle.dumps(layer))):
        assert other.weight_dtype == weight_dtype
        assert_equal(other(arrays["X"]), wanted(arrays["X"]))
    with pytest.raises(ArgumentError, match=f"{operator}.*weight_dtype is 'int4'"):
        from_node(node, arrays, weight_dtype="int4")


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_is_not_given_is_the_constant_of_the_node(operator: str) -> None:
    arrays = arrays_of(operator)
    call = {name: arrays[name] for name in ("sequence_lens", *STATES) if name in arrays}
    layer = layer_of(operator, arrays, *call)
    X = arrays["X"]
    assert_equal(layer(X), layer_of(operator, arrays)(X, **call))
    zeros = {name: np.zeros_like(array) for name, array in call.items() if name in STATES}
    assert_equal(layer(X, **zeros), layer_of(operator, arrays)(X, **call | zeros))
    assert not np.array_equal(layer(X)[0], layer(X, **zeros)[0])


def test_missing_input() -> None:
    for layer in (layer_of("LSTM", arrays_of("LSTM")), layer_of("GRU", arrays_of("GRU"), "initial_h")):
        with pytest.raises(ArgumentError, match="X is missing"):
            layer()


def test_arguments_that_a_layer_has_not() -> None:
    arrays = arrays_of("LSTM")
    layer, X = layer_of("LSTM", arrays), arrays["X"]
    with pytest.raises(ArgumentError, match="LSTM: argument 'lengths' is unknown; expected X, sequence_lens"):
        layer(X, lengths=arrays["sequence_lens"])
    with pytest.raises(ArgumentError, match="LSTM: sequence_lens was given twice, also as sequence_lengths"):
        layer(X, arrays["sequence_lens"], sequence_lengths=arrays["sequence_lens"])
    with pytest.raises(ArgumentError, match="LSTM: 5 arrays were given; expected at most 4: X, sequence_lens"):
        layer(X, None, None, None, None)
    with pytest.raises(UnsupportedError, match="GRU: initial_c was given; GRU has no cell state"):
        layer_of("GRU", arrays_of("GRU"))(X, initial_c=arrays["initial_c"])


def test_names_of_openvino() -> None:
    arrays = arrays_of("LSTM")
    layer, states = layer_of("LSTM", arrays), (arrays["initial_h"], arrays["initial_c"])
    expected = layer(arrays["X"], arrays["sequence_lens"], *states)
    named = layer(arrays["X"], C=states[1], H=states[0], sequence_lengths=arrays["sequence_lens"])
    for one, other in zip(named, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("layout", [0, 1])
def test_stream_begins_with_constant_states(operator: str, layout: int) -> None:
    arrays = arrays_of(operator)
    del arrays["sequence_lens"]
    if layout:
        arrays |= {name: np.ascontiguousarray(arrays[name].swapaxes(0, 1)) for name in ("X", *STATES) if name in arrays}
    states = [name for name in STATES if name in arrays]
    layer = layer_of(operator, arrays, *states, layout=layout)
    X, time = arrays["X"], layout
    expected = expected_outputs(Case("stream", operator, {"layout": layout}), arrays)
    stream = layer.stream(3)
    for _ in range(2):
        pieces = [stream.push(piece) for piece in np.split(X, [1, 3], axis=time)]
        np.testing.assert_allclose(np.concatenate(pieces, axis=time), expected[0], atol=1e-6)  # float32, 4 steps
        for state, last in zip(stream.state, expected[1:], strict=True):
            np.testing.assert_allclose(state, last, atol=1e-6)
        stream.reset()
        assert_equal(stream.state, tuple(arrays[name] for name in states))


def test_stream_of_states_for_another_batch() -> None:
    layer = layer_of("GRU", arrays_of("GRU"), "initial_h")
    with pytest.raises(ArgumentError, match="GRU: stream: initial_h has shape"):
        layer.stream(2)


@pytest.mark.parametrize("constants", [("sequence_lens",), ("initial_h",), ("initial_c",), ("sequence_lens", *STATES)])
def test_streams_that_cannot_keep_to_the_constants(constants: tuple[str, ...]) -> None:
    layer = layer_of("LSTM", arrays_of("LSTM"), *constants)
    with pytest.raises(UnsupportedError, match=rf"LSTM: stream: {', '.join(sorted(constants))} are constants"):
        layer.stream(3)


def test_copies_of_layers() -> None:
    arrays = arrays_of("LSTM")
    layer = layer_of("LSTM", arrays, "initial_h")
    for other in (pickle.loads(pickle.dumps(layer)), copy.copy(layer), copy.deepcopy(layer)):
        assert type(other) is NodeLayer
        assert (other.label, other.name, other.node_inputs) == (layer.label, layer.name, layer.node_inputs)
        assert_equal(other(arrays["X"]), layer(arrays["X"]))


def test_copies_of_unbound_nodes() -> None:
    arrays = arrays_of("GRU")
    node = make_node(Case("unbound", "GRU", {"hidden_size": 5}), list(arrays))
    unbound = unbound_node(node, {"initial_h": arrays["initial_h"]})
    weights = [arrays[name] for name in ("W", "R", "B")]
    for other in (pickle.loads(pickle.dumps(unbound)), copy.copy(unbound), copy.deepcopy(unbound)):
        assert (other.label, other.op, other.convention) == (unbound.label, unbound.op, unbound.convention)
        assert isinstance(other.bind(*weights), Layer)
        assert_equal(other.bind(*weights)(arrays["X"]), unbound.bind(*weights)(arrays["X"]))


def test_what_layers_and_unbound_nodes_hold() -> None:
    arrays = arrays_of("LSTM")
    layer = layer_of("LSTM", arrays, "initial_h")
    assert list(layer.constants) == ["initial_h"]
    node = make_node(Case("unbound", "LSTM", {"hidden_size": 5}), list(arrays))
    unbound = unbound_node(node, {"initial_h": arrays["initial_h"]}, opset=14)
    assert list(unbound.constants) == ["initial_h"]
    assert (unbound.node, unbound.opset) == (node, 14)
