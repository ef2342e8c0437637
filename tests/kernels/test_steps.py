"""Many time steps of one row in one call of an engine: the same bits as step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from packed import packed_arguments
from rows import each_row

from pyrnnx._kernels import engines
from pyrnnx._kernels.packed_layer import PackedLayer

T, N, I = 23, 2, 3
CELLS: dict[str, tuple[str, dict[str, Any]]] = {  # a cell, and what makes a variant of it
    "RNN": ("RNN", {}),
    "RNN with Relu": ("RNN", {"activations": (((0, 0.0, 0.0),),)}),
    "GRU": ("GRU", {}),
    "GRU with linear_before_reset": ("GRU", {"linear_before_reset": True}),
    "GRU with clip": ("GRU", {"clip": 0.3}),
    "LSTM": ("LSTM", {}),
    "LSTM with peepholes": ("LSTM", {"peepholes": True}),
    "LSTM with input_forget": ("LSTM", {"coupled_gate": "f"}),
    "LSTM with clip": ("LSTM", {"clip": 0.3}),
}
# Whole and broken unit blocks of every vector length, few and many of them, and an R that is too large for one call.
SIZES = (1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 50, 64, 79, 140, 270)


def packed(isa: str, name: str, H: int, dtype: Any, reverse: bool) -> PackedLayer:
    cell, options = CELLS[name]
    if "peepholes" in options:
        options = {"peepholes": np.random.default_rng(H).uniform(-0.5, 0.5, (1, 3 * H)).astype(dtype)}
    return PackedLayer(**packed_arguments(cell, I, H, dtype, isa=isa, reverse=(reverse,), **options))


def run(layer: PackedLayer, *arguments: Any) -> list[Any]:
    results = layer.run(1, *arguments)
    assert results is not None
    return list(results)


def bits(results: list[Any]) -> list[bytes]:
    return [result.tobytes() for result in results]


@each_row("isa", engines.supported())
@each_row("dtype", [np.float32, np.float64])
@each_row("name", CELLS)
def test_one_row_has_the_bits_of_many(isa: str, name: str, dtype: Any) -> None:
    for H in SIZES[::3] if dtype == np.float64 else SIZES:
        layer = packed(isa, name, H, dtype, reverse=H % 2 == 1)
        rng = np.random.default_rng(H + 1)
        X = rng.normal(size=(T, N, I)).astype(dtype)
        states = [rng.uniform(-1, 1, (1, N, H)).astype(dtype) for _ in range(2 if name.startswith("LSTM") else 1)]
        for given in (states, [None] * len(states)):
            many = run(layer, X, None, *given, *[None] * (2 - len(given)))
            for row in range(N):
                own = [None if state is None else state[:, row : row + 1].copy() for state in given]
                one = run(layer, X[:, row : row + 1].copy(), None, *own, *[None] * (2 - len(own)))
                assert bits(one) == bits([result[..., row : row + 1, :] for result in many]), (H, row)


@each_row("isa", engines.supported())
@each_row("name", CELLS)
def test_the_row_that_is_longest(isa: str, name: str) -> None:
    for H in (8, 19, 40):
        for reverse in (False, True):
            layer = packed(isa, name, H, np.float32, reverse)
            X = np.random.default_rng(H).normal(size=(T, 3, I)).astype(np.float32)
            lengths = np.array([4, T - 2, 0])
            ragged = run(layer, X, lengths, None, None)
            for row in (0, 1):
                alone = run(layer, X[: lengths[row], row : row + 1].copy(), None, None, None)
                assert bits(alone[1:]) == bits([state[:, row : row + 1] for state in ragged[1:]])
                assert alone[0].tobytes() == ragged[0][: lengths[row], :, row : row + 1].tobytes()
            assert not ragged[0][T - 2 :].any()


@each_row("isa", engines.supported())
@each_row("name", ["RNN", "GRU", "GRU with linear_before_reset", "LSTM"])
def test_what_is_no_number_stays_none(isa: str, name: str) -> None:
    layer = packed(isa, name, 20, np.float32, reverse=False)
    for value in (np.nan, np.inf, -np.inf, 3e38, 1e-45):
        X = np.random.default_rng(3).normal(size=(T, N, I)).astype(np.float32)
        X[5, :, 1] = value
        many, one = run(layer, X, None, None, None), run(layer, X[:, :1].copy(), None, None, None)
        for a, b in zip(one, many, strict=True):
            np.testing.assert_array_equal(a, b[..., :1, :])
        assert np.isnan(one[1]).all() == np.isnan(value)


@pytest.mark.skipif(not {"avx512", "avx2"} <= set(engines.supported()), reason="needs a processor with AVX-512")
@each_row("dtype", [np.float32, np.float64])
@each_row("name", CELLS)
def test_both_vector_lengths_with_fused_sums_give_the_same_bits(name: str, dtype: Any) -> None:
    for H in (1, 4, 5, 8, 16, 33):
        for rows in (1, 3, 20):
            X = np.random.default_rng(H).normal(size=(T, rows, I), scale=3).astype(dtype)
            results = [run(packed(isa, name, H, dtype, False), X, None, None, None) for isa in ("avx512", "avx2")]
            assert bits(results[0]) == bits(results[1]), (H, rows)
