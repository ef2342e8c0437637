"""State dicts without PyTorch, compared with the oracle on weights that are reordered by hand."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from rows import each_row
from torch_weights import assert_close, random_case, random_inputs, state_dict

from pyrnnx import TORCH, TORCH_BATCH_FIRST, PyrnnxError
from pyrnnx.frontends.torch import from_state_dict
from pyrnnx.testing.numbers import Array

TOLERANCE = 1e-12  # float64: sums in another order, over 7 steps


@each_row("seed", range(48))
def test_random_state_dicts(seed: int) -> None:
    case = random_case(seed)
    stack = from_state_dict(case.state, **case.options)
    X, lens, states = random_inputs(stack, seed)
    wanted = case.expected(X, lens, states)
    Y, *last = stack(X.swapaxes(0, 1) if stack.batch_first else X, lens, *states)
    assert_close([Y.swapaxes(0, 1) if stack.batch_first else Y, *last], wanted, TOLERANCE)
    assert stack.layers[0].convention is (TORCH_BATCH_FIRST if stack.batch_first else TORCH)


def test_a_cell_is_a_layer() -> None:
    state = {name.removesuffix("_l0"): array for name, array in state_dict("LSTM", 3, 5).items()}
    stack = from_state_dict(state)
    same = from_state_dict(state_dict("LSTM", 3, 5))
    X = np.random.default_rng(2).normal(size=(4, 2, 3))
    for one, other in zip(stack(X), same(X), strict=True):
        np.testing.assert_array_equal(one, other)


@each_row("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
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


def test_a_checkpoint_without_end() -> None:
    """Mappings that hold themselves, and each other many times."""
    endless: dict[str, Any] = {f"rnn.{name}": array for name, array in state_dict("GRU", 3, 5).items()}
    endless |= {"self": endless, "again": endless}
    for _ in range(50):
        endless = {"a": endless, "b": endless, "c": {"d": endless}}
    assert str(from_state_dict(endless).name).endswith("a.rnn")


class Tensor:
    """The parts of a PyTorch tensor that pyrnnx uses."""

    def __init__(self, array: Array, dtype: str) -> None:
        self.array, self.dtype = array, f"torch.{dtype}"

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32), "float32")

    def numpy(self) -> Array:
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_are_known_by_their_methods(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_dict("LSTM", 3, 5, dtype=dtype)
    tensors = {name: Tensor(array, dtype) for name, array in state.items()}
    stack = from_state_dict(tensors)
    assert stack.dtype.name == dtype
    np.testing.assert_array_equal(stack.layers[0].weights["W"][0], state["weight_ih_l0"])
    if dtype == "bfloat16":
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
        with pytest.raises(PyrnnxError, match="an array in bfloat16 needs the package ml_dtypes"):
            from_state_dict(tensors)
