"""Weights in fewer bits: a layer computes with exactly the rounded weights, on every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import bfloat16, random_inputs, random_weights
from rows import each_row

from pyrnnx import Direction, Layer, PyrnnxError, RecurrentOp
from pyrnnx._kernels import engines
from pyrnnx.operator.op import CellName
from pyrnnx.operator.quantized import WEIGHT_DTYPES, rounded


def example(
    cell: CellName, dtype: Any = "float32", H: int = 37, I: int = 19, **options: Any
) -> tuple[RecurrentOp, Any, Any]:
    op = RecurrentOp(cell, H, Direction.BIDIRECTIONAL, **options)
    weights = [*random_weights(op, I, dtype).values()]
    return op, weights, random_inputs(op, (6, 3, I), dtype)["X"]


def test_bfloat16_is_that_of_ml_dtypes() -> None:
    values = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    values[:6] = [0, -0.0, np.inf, -np.inf, 1.00390625, 1.01171875]  # the last two are ties
    np.testing.assert_array_equal(rounded(values, "bfloat16"), values.astype(bfloat16).astype(np.float32))
    assert np.isnan(rounded(np.array([np.nan], np.float32), "bfloat16")[0])


def test_int8_has_a_scale_for_each_row() -> None:
    W = np.array([[[127, -63.5, 0.4, 0.6]], [[0, 0, 0, 0]], [[2.54, -0.01, 0.02, 1.27]]], np.float32)
    wanted = np.array([[[127, -64, 0, 1]], [[0, 0, 0, 0]], [[2.54, -0.02, 0.02, 1.28]]])
    np.testing.assert_allclose(rounded(W, "int8"), wanted, rtol=1e-6)  # float32 scales
    assert rounded(np.ones((2, 3, 0), np.float32), "int8").shape == (2, 3, 0)


@each_row("weight_dtype", ["bfloat16", "int8"])
@each_row(("cell", "option"), [("RNN", {}), ("GRU", {}), ("GRU", {"linear_before_reset": True}), ("LSTM", {})])
def test_layer_computes_with_the_rounded_weights(cell: CellName, option: dict[str, bool], weight_dtype: str) -> None:
    op, (W, R, B), X = example(cell, **option)
    expected = Layer(op, rounded(W, weight_dtype), rounded(R, weight_dtype), B)(X)
    plain = Layer(op, W, R, B)(X)
    for batch in (X, X[:, :1]):  # one row takes another way through the kernels than several
        for given, wanted, unreduced in zip(
            Layer(op, W, R, B, weight_dtype=weight_dtype)(batch), expected, plain, strict=True
        ):
            rows = wanted[..., : batch.shape[1], :]
            np.testing.assert_allclose(given, rows, atol=3e-6)  # float32, sums of 56 terms, 6 steps
            assert np.abs(given - unreduced[..., : batch.shape[1], :]).max() > 1e-4


@each_row("dtype", ["float32", "float64"])
@each_row("weight_dtype", ["int4", "float16", 8, "bfloat16", "int8"])
def test_rejected(weight_dtype: Any, dtype: str) -> None:
    op, arrays, _ = example("RNN", dtype)
    if dtype == "float32" and weight_dtype in WEIGHT_DTYPES:
        assert Layer(op, *arrays, weight_dtype=weight_dtype).weight_dtype == weight_dtype
        return
    with pytest.raises(
        PyrnnxError, match=rf"RNN: weight_dtype is {weight_dtype!r} with dtype {dtype}; expected one of None, 'bfl"
    ):
        Layer(op, *arrays, weight_dtype=weight_dtype)


@each_row("isa", [*engines.supported(), "blas"])
def test_engines_have_no_other_dtypes_of_weights(isa: str) -> None:
    packed = [number for number in range(-2, 64) if engines.packs(isa, 4, number)]
    assert packed == ([0] if isa == "blas" else sorted(WEIGHT_DTYPES.values()))
    assert [number for number in range(64) if engines.packs(isa, 8, number)] == [WEIGHT_DTYPES[None]]
