"""from_layer and .keras files compared with Keras on PyTorch; for `pytest -m torch`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_weights import assert_close

from pyrnnx import ArgumentError, PyrnnxError, Stack, UnsupportedError
from pyrnnx.frontends.keras import from_file, from_layer, from_weights
from pyrnnx.testing.numbers import Array

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # of Keras, about NumPy and PyTorch
os.environ.setdefault("KERAS_BACKEND", "torch")
torch: Any = pytest.importorskip("torch")
keras: Any = pytest.importorskip("keras")

FLOAT32 = 1e-5  # Keras computes in float32; relative to the largest, for functions without a bound let values grow
KINDS = ("SimpleRNN", "LSTM", "GRU")
ACTIVATIONS = ("tanh", "sigmoid", "relu", "linear", "hard_sigmoid", "softsign", "softplus", "elu", "leaky_relu", None)
T, N = 6, 4


def random_options(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    options: dict[str, Any] = {"units": int(rng.integers(5, 10)), "use_bias": bool(rng.integers(2))}
    if rng.integers(2):
        options["activation"] = ACTIVATIONS[int(rng.integers(len(ACTIVATIONS)))]
    if kind != "SimpleRNN" and rng.integers(2):
        options["recurrent_activation"] = ("hard_sigmoid", "tanh", "softsign")[int(rng.integers(3))]
    if kind == "GRU":
        options["reset_after"] = bool(rng.integers(2))
    return options


def random_layer(seed: int) -> Any:
    """A built layer of Keras without zero weights: one layer, both directions, or one or two cells in an RNN."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % 3]
    more = {"return_sequences": True, "return_state": True}
    form = ("layer", "both", "cell", "cells")[int(rng.integers(4))]
    if form in ("cell", "cells"):
        kinds = [kind] if form == "cell" else [kind, KINDS[int(rng.integers(3))]]
        cells = [getattr(keras.layers, f"{one}Cell")(**random_options(rng, one)) for one in kinds]
        layer = keras.layers.RNN(cells if len(cells) > 1 else cells[0], **more)
    else:
        layer = getattr(keras.layers, kind)(**random_options(rng, kind), **more)
        layer = keras.layers.Bidirectional(layer) if form == "both" else layer
    layer.build((None, T, int(rng.integers(1, 6))))
    randomize(layer, rng)
    return layer


def randomize(layer: Any, rng: np.random.Generator) -> None:
    layer.set_weights([(rng.normal(size=array.shape) / 2).astype(array.dtype) for array in layer.get_weights()])


def run_keras(layer: Any, X: Array, lens: Array, initial: list[Array]) -> list[Array]:
    """Y, zero beyond the lengths, and the last states [N, units] in Keras' order."""
    mask = np.arange(T) < lens[:, np.newaxis]
    given: list[Any] = [torch.tensor(one) for one in initial]
    for k, cell in enumerate(getattr(getattr(layer, "cell", None), "cells", [])):  # of several cells those of an LSTM
        if isinstance(cell, keras.layers.LSTMCell):  # are a list in the list
            given[k : k + 2] = [given[k : k + 2]]
    results = layer(X, mask=torch.tensor(mask), initial_state=given)
    Y, *last = (one.detach().numpy() for one in flat(results))
    return [np.where(mask[..., np.newaxis], Y, 0), *last]


def flat(value: Any) -> list[Any]:
    return [part for one in value for part in flat(one)] if isinstance(value, (list, tuple)) else [value]


def run_stack(stack: Stack, X: Array, lens: Array, initial: list[Array]) -> list[Array]:
    """Return the same of a Stack, which has h and c of all layers separately."""
    remaining = iter(initial)
    given: tuple[list[Any], list[Any]] = [], []
    counts = [2 if layer.op.has_cell_state else 1 for layer in stack.layers]
    for count, D in zip(counts, stack.num_directions, strict=True):
        states = [next(remaining) for _ in range(count * D)]
        given[0].append(np.stack(states[::count]))
        given[1].append(np.stack(states[1::2]) if count == 2 else None)
    Y, *last = stack(X, lens, *given[: max(counts)])
    rows = [iter(states if isinstance(states, np.ndarray) else flat_rows(states)) for states in last]
    per_direction = [count for count, D in zip(counts, stack.num_directions, strict=True) for _ in range(D)]
    return [Y, *(next(rows[k]) for count in per_direction for k in range(count))]


def flat_rows(states: list[Any]) -> list[Array]:
    return [row for state in states if state is not None for row in state]


def inputs(stack: Stack, seed: int) -> tuple[Array, Array, list[Array]]:
    """X, lengths, and states in Keras' order."""
    rng = np.random.default_rng((seed, 1))
    states = [
        rng.normal(size=(N, layer.op.hidden_size)).astype(np.float32)
        for layer in stack.layers
        for _ in range(layer.op.num_directions * (2 if layer.op.has_cell_state else 1))
    ]
    lens = np.append([T], rng.integers(1, T + 1, N))[:N].astype(np.int32)
    return rng.normal(size=(N, T, stack.input_size)).astype(np.float32), lens, states


@pytest.mark.parametrize("seed", range(24))
def test_random_layers(seed: int, tmp_path: Path) -> None:
    """From the layer, and from a file of a model that has it."""
    layer = random_layer(seed)
    stack = from_layer(layer)
    for number in (seed, seed + 1, seed + 2, seed + 3, seed):  # other inputs, then the first again
        X, lens, states = inputs(stack, number)
        wanted = run_keras(layer, X, lens, states)
        atol = FLOAT32 * max(1, *(np.abs(one).max() for one in wanted))
        assert_close(run_stack(stack, X, lens, states), wanted, atol)
    if seed % 4 == 0:
        given = keras.Input((T, stack.input_size))
        model = keras.Model(given, keras.layers.Dense(2)(layer(keras.layers.Dense(stack.input_size)(given))[0]))
        model.save(tmp_path / "model.keras")
        for one, other in zip(from_file(tmp_path / "model.keras").layers, stack.layers, strict=True):
            assert one.op == other.op
            for name, array in one.weights.items():
                np.testing.assert_array_equal(array, other.weights[name], strict=True)


def both_ways(forward: Any, backward: Any) -> Any:
    return keras.layers.Bidirectional(forward, backward_layer=backward)


SEQUENCES = {"return_sequences": True}
OTHERS: dict[str, Callable[[], Any]] = {
    **{f"{kind} backwards": partial(getattr(keras.layers, kind), 5, go_backwards=True) for kind in KINDS},
    "LeakyReLU": lambda: keras.layers.LSTM(5, activation=keras.layers.LeakyReLU(negative_slope=0.125), **SEQUENCES),
    "ELU": lambda: keras.layers.LSTM(5, activation=keras.layers.ELU(alpha=0.75), **SEQUENCES),
    "two layers": lambda: both_ways(
        keras.layers.LSTM(5, **SEQUENCES),
        keras.layers.LSTM(5, **SEQUENCES, go_backwards=True, activation="relu", use_bias=False),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_layers(name: str) -> None:
    layer, rng = built(OTHERS[name]()), np.random.default_rng(2)
    randomize(layer, rng)
    X = rng.normal(size=(N, T, 3)).astype(np.float32)
    stack = from_layer(layer)
    result = stack(X)[1][0] if "backwards" in name else stack(X)[0]  # there Keras gives the last state
    np.testing.assert_allclose(result, layer(X).detach().numpy(), rtol=0, atol=10 * FLOAT32)
    if "backwards" in name:
        again = from_weights(layer.get_weights(), direction="reverse")
        np.testing.assert_array_equal(again(X)[0], stack(X)[0])


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "mixed_float16"])
def test_dtypes_are_kept(dtype: str, tmp_path: Path) -> None:
    layer = keras.layers.GRU(5, dtype=dtype, recurrent_initializer="zeros")
    model = keras.Sequential([keras.Input((T, 3)), layer])
    model.save(tmp_path / "model.keras")
    wanted = "float32" if dtype == "mixed_float16" else dtype
    for stack in (from_layer(layer), from_file(tmp_path / "model.keras")):
        assert stack.dtype.name == wanted
        kernel = layer.get_weights()[0].astype(float)
        np.testing.assert_array_equal(stack.layers[0].weights["W"][0].astype(float), kernel)


def tanh(x: Any) -> Any:
    """Return x: another function with the name of one of Keras."""
    return x


def built(layer: Any) -> Any:
    layer.build((None, T, 3))
    return layer


def own_layer() -> Any:
    class LSTM(keras.layers.LSTM):  # type: ignore[misc]
        pass

    return built(LSTM(5))


layers = keras.layers
EXPECTED = "expected one of keras.layers"
REJECTED: list[tuple[Callable[[], Any], type[PyrnnxError], str]] = [
    (lambda: layers.LSTM(5), ArgumentError, "it has no weights, because it is not built"),
    (lambda: layers.Dense(5), UnsupportedError, f"Dense' was given; {EXPECTED}"),
    (lambda: layers.LSTMCell(5), UnsupportedError, f"LSTMCell' was given; {EXPECTED}"),
    (own_layer, UnsupportedError, f"LSTM' was given; {EXPECTED}.SimpleRNN"),
    (lambda: built(layers.GRU(5, activation=tanh)), UnsupportedError, "activation is <function tanh at"),
    (
        lambda: built(layers.RNN([layers.LSTMCell(5), layers.GRUCell(5, recurrent_activation=tanh)])),
        UnsupportedError,
        "recurrent_activation is <function tanh at",
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), REJECTED)
def test_rejected(make: Callable[[], Any], error: type[PyrnnxError], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        from_layer(make())
    assert type(caught.value) is error


def test_what_is_not_rejected() -> None:
    both = keras.layers.Bidirectional(keras.layers.LSTM(5, **SEQUENCES), merge_mode=None)
    assert from_layer(built(both)).num_directions == (2,)
    layer = built(keras.layers.LSTM(5, dropout=0.5, recurrent_dropout=0.25, stateful=False, unroll=True, name="own"))
    assert from_layer(layer).name == "own"
    assert from_layer(layer, name="other", weight_dtype="int8").layers[0].weight_dtype == "int8"


def test_keras_2_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = built(keras.layers.LSTM(5))
    monkeypatch.setattr(keras, "__version__", "2.15.0")
    with pytest.raises(UnsupportedError, match=r"is of Keras '2\.15\.0'; expected Keras 3 or newer"):
        from_layer(layer)
