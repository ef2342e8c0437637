"""State dicts without PyTorch: against the oracle on weights that are put into ONNX's order by hand."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pyrnnx import TORCH, TORCH_BATCH_FIRST, Stack, compare
from pyrnnx.frontends.onnx import gru, lstm, rnn
from pyrnnx.frontends.torch import from_state_dict
from pyrnnx.layer import Layer
from pyrnnx.testing import reference
from pyrnnx.testing.numbers import Array

TOLERANCE = 1e-12  # float64: sums in another order, over 7 steps
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
# Blocks of PyTorch (r, z, n; i, f, g, o) in ONNX's order (z, r, h; i, o, f, c)
TO_ONNX = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 3, 1, 2]}


def state_dict(
    cell: str,
    I: int,
    H: int,
    *,
    layers: int = 1,
    directions: int = 1,
    bias: bool = True,
    seed: int = 0,
    dtype: Any = float,
) -> dict[str, Array]:
    """Of nn.RNN, GRU or LSTM."""
    rng, rows = np.random.default_rng(seed), GATES[cell] * H
    found: dict[str, Array] = {}
    for k in range(layers):
        for end in (f"_l{k}", f"_l{k}_reverse")[:directions]:
            shapes = {"weight_ih": (rows, I if k == 0 else directions * H), "weight_hh": (rows, H)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            found |= {kind + end: (rng.normal(size=shape) / 2).astype(dtype) for kind, shape in shapes.items()}
    return found


def onnx_weights(cell: str, state: dict[str, Array], layer: int, directions: int) -> dict[str, Array]:
    """W, R and B of one layer in ONNX's arrangement."""
    ends = (f"_l{layer}", f"_l{layer}_reverse")[:directions]

    def arranged(kind: str) -> Array:
        blocks = [np.split(state[kind + end], GATES[cell]) for end in ends]
        return np.stack([np.concatenate([one[k] for k in TO_ONNX[cell]]) for one in blocks])

    weights = {"W": arranged("weight_ih"), "R": arranged("weight_hh")}
    if "bias_ih" + ends[0] in state:
        weights["B"] = np.concatenate([arranged("bias_ih"), arranged("bias_hh")], axis=1)
    return weights


def inputs(stack: Stack, T: int, N: int, seed: int) -> tuple[Array, Array, list[Array]]:
    """X [T, N, I], lengths, and the states of all layers."""
    rng = np.random.default_rng((seed, 1))
    rows, H = sum(stack.num_directions), stack.hidden_sizes[0]
    lens = np.append([T], rng.integers(1, T + 1, N))[:N].astype(np.int32)
    count = 2 if len(stack.output_names) == 3 else 1
    return rng.normal(size=(T, N, stack.input_size)), lens, [rng.normal(size=(rows, N, H)) for _ in range(count)]


def expected(
    run: Any,
    cell: str,
    state: dict[str, Array],
    layers: int,
    D: int,
    X: Array,
    lens: Array,
    states: list[Array],
    **more: Any,
) -> list[Array]:
    """Y [T, N, D*H], Y_h and Y_c by an operator of ONNX, layer by layer."""
    last: list[list[Array]] = [[] for _ in states]
    for k in range(layers):
        initial = dict(zip(("initial_h", "initial_c"), (one[k * D : (k + 1) * D] for one in states), strict=False))
        direction = "bidirectional" if D == 2 else "forward"
        weights = onnx_weights(cell, state, k, D)
        Y, *ends = run(X, **weights, sequence_lens=lens, **initial, direction=direction, **more)
        for found, one in zip(last, ends, strict=True):
            found.append(one)
        X = Y.transpose(0, 2, 1, 3).reshape(*X.shape[:2], -1)
    return [X, *(np.concatenate(one) for one in last)]


def assert_close(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert np.abs(other).max() > 0.1
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(100))
def test_random_state_dicts(seed: int) -> None:
    """Through the Stack, and its weights through the operators, as the oracle."""
    rng = np.random.default_rng(seed)
    kind = ("RNN", "RNN relu", "GRU", "LSTM")[seed % 4]
    cell, _, nonlinearity = kind.partition(" ")
    layers, D, bias = int(rng.integers(1, 4)), int(rng.integers(1, 3)), bool(rng.integers(2))
    state = state_dict(
        cell, int(rng.integers(1, 6)), int(rng.integers(5, 10)), layers=layers, directions=D, bias=bias, seed=seed
    )
    batch_first = bool(rng.integers(2))
    options: dict[str, Any] = {"nonlinearity": nonlinearity} if nonlinearity else {}
    stack = from_state_dict(state, batch_first=batch_first, **options)
    X, lens, states = inputs(stack, 7, int(rng.integers(1, 6)), seed)
    attributes: dict[str, Any] = {"activations": ["Relu"] * D} if nonlinearity else {}
    attributes |= {"linear_before_reset": 1} if cell == "GRU" else {}
    wanted = expected(
        lambda *arrays, **named: reference.run(cell, *arrays, **named),
        cell,
        state,
        layers,
        D,
        X,
        lens,
        states,
        **attributes,
    )
    Y, *last = stack(X.swapaxes(0, 1) if batch_first else X, lens, *states)
    assert_close([Y.swapaxes(0, 1) if batch_first else Y, *last], wanted)
    operator = {"RNN": rnn, "GRU": gru, "LSTM": lstm}[cell]
    assert_close(expected(operator, cell, state, layers, D, X, lens, states, **attributes), wanted)


@pytest.mark.parametrize("cell", GATES)
def test_one_layer_and_an_onnx_layer_differ_in_convention_alone(cell: str) -> None:
    state = state_dict(cell, 3, 5, directions=2)
    (layer,) = from_state_dict(state).layers
    assert layer.convention is TORCH
    other = Layer(layer.op, **onnx_weights(cell, state, 0, 2))
    found = compare(layer, other)
    assert found.equal(atol=TOLERANCE, rtol=0)
    assert not found.operators
    assert all(block.largest == 0 for block in found.weights)
    told = str(found)
    assert ("gate order" in told) is (cell != "RNN")
    assert from_state_dict(state, batch_first=True).layers[0].convention is TORCH_BATCH_FIRST


def test_a_cell_is_a_layer() -> None:
    state = {name.removesuffix("_l0"): array for name, array in state_dict("LSTM", 3, 5).items()}
    stack = from_state_dict(state)
    same = from_state_dict(state_dict("LSTM", 3, 5))
    X = np.random.default_rng(2).normal(size=(4, 2, 3))
    for one, other in zip(stack(X), same(X), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_dtypes_are_kept(dtype: Any) -> None:
    state = state_dict("GRU", 3, 5, layers=2, dtype=dtype)
    stack = from_state_dict(state)
    assert stack.dtype == dtype
    np.testing.assert_array_equal(stack.layers[1].weights["R"][0], state["weight_hh_l1"])
    assert (
        from_state_dict(state_dict("GRU", 3, 5, dtype=np.float32), weight_dtype="int8").layers[0].weight_dtype == "int8"
    )


def test_weights_are_copies_and_may_be_nan() -> None:
    state = state_dict("RNN", 3, 5)
    state["bias_hh_l0"][1] = np.nan
    stack = from_state_dict(state)
    state["weight_ih_l0"][:] = 0
    Y, _ = stack(np.ones((2, 1, 3)))
    assert np.isnan(Y[0, 0]).tolist() == [False, True, False, False, False]
    assert (stack.layers[0].weights["W"] != 0).all()


# Which names are meant


def test_prefixes() -> None:
    first, second = state_dict("LSTM", 3, 5), state_dict("GRU", 5, 7, seed=1)
    model = {f"encoder.lstm.{name}": array for name, array in first.items()} | {"head.weight": np.ones((2, 7))}
    for prefix in ("", "encoder.lstm."):  # the only one
        stack = from_state_dict(model, prefix=prefix)
        np.testing.assert_array_equal(stack.layers[0].weights["W"][0], first["weight_ih_l0"])
        assert (stack.name, stack.layers[0].name) == ("encoder.lstm", "encoder.lstm.l0")
    model |= {f"decoder.{name}": array for name, array in second.items()}
    assert from_state_dict(model, prefix="decoder.").hidden_sizes == (7,)
    assert from_state_dict(model, prefix="decoder.", name="own").name == "own"


def test_a_checkpoint_of_mappings_in_mappings() -> None:
    state = {f"rnn.{name}": array for name, array in state_dict("GRU", 3, 5).items()}
    checkpoint = {"epoch": 3, "state_dict": state, "optimizer": {"state": {0: {"step": 1}}, "param_groups": []}}
    assert from_state_dict(checkpoint).name == "state_dict.rnn"
    assert from_state_dict(checkpoint, prefix="state_dict.rnn.", operator="GRU").hidden_sizes == (5,)
    endless: dict[str, Any] = dict(checkpoint)
    endless["self"] = {"again": endless["optimizer"]}
    endless["optimizer"]["up"] = endless["optimizer"]
    assert from_state_dict(endless).name == "state_dict.rnn"


def test_torch_is_not_imported() -> None:
    program = (
        "import sys, numpy as np; from pyrnnx.frontends.torch import from_state_dict as f; "
        "f({'weight_ih_l0': np.ones((3, 2)), 'weight_hh_l0': np.ones((3, 3))}); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
