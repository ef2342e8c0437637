"""Stacks that run as a pipeline in several threads: the same bits as in one thread, which runs layer after layer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from rows import each_row
from stacks import Description, apart, random_inputs, random_layers, random_states

import pyrnnx
from pyrnnx import ONNX_LAYOUTS, OPENVINO_SEQUENCE, Layer, RecurrentOp, Stack, config
from pyrnnx._kernels import engines
from pyrnnx._kernels.pipeline import turn_steps

pytestmark = pytest.mark.skipif(
    config.ISA == "blas", reason="BLAS sums in an order that depends on the number of time steps"
)
T = 61  # not a multiple of the steps of a turn
LENGTHS = [T, 0, 17, T - 1, 3, 40, 1, T]
STACKS: dict[str, tuple[Description, ...]] = {
    "one cell": (("LSTM", "forward", 57),) * 3,
    "all cells": (("GRU", "forward", 67), ("LSTM", "forward", 64), ("RNN", "forward", 95)),
    "two layers": (("RNN", "forward", 99), ("GRU", "forward", 83)),
    "many layers": (("LSTM", "forward", 40),) * 5,
}


def stack_of(name: str, dtype: Any = np.float32, **options: Any) -> Stack:
    return Stack(random_layers(STACKS[name], dtype, **options))


def inputs_of(stack: Stack, N: int, seed: int, ragged: bool) -> tuple[Any, ...]:
    states = random_states(stack, N, seed)
    has_cell_state = any(layer.op.has_cell_state for layer in stack.layers)
    lengths = np.array(LENGTHS[:N], np.int32) if ragged else None
    return random_inputs(stack, T, N, seed), lengths, *states[: 1 + has_cell_state]


def assert_same_bits(stack: Stack, threads: int, arguments: tuple[Any, ...]) -> None:
    assert turn_steps(stack._chain.packed, threads, *arguments[0].shape[:2]) > 0
    pyrnnx.set_num_threads(1)
    expected = apart(stack(*arguments))
    pyrnnx.set_num_threads(threads)
    for actual, wanted in zip(apart(stack(*arguments)), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@each_row("name", STACKS)
@each_row("threads", (2, 3, 7))
def test_same_bits_in_calls_with_other_inputs_and_shapes(name: str, threads: int) -> None:
    stack = stack_of(name)
    for seed, (N, ragged) in enumerate([(1, False), (3, False), (5, True), (8, True), (1, False), (2, True)]):
        assert_same_bits(stack, threads, inputs_of(stack, N, seed, ragged))


@each_row("dtype", (np.float64, np.float16))
@each_row("convention", (ONNX_LAYOUTS[1], OPENVINO_SEQUENCE), ids=("layout 1", "OpenVINO"))
def test_same_bits_of_other_arrays(dtype: Any, convention: Any) -> None:
    """Wide states, rows that are converted, and axes in another order."""
    stack = stack_of("all cells", dtype, convention=convention)
    assert_same_bits(stack, 2, inputs_of(stack, 3, 0, ragged=True))


def test_same_bits_of_reduced_weights() -> None:
    layers = [Layer(layer.op, *layer.weights.values(), weight_dtype="int8") for layer in stack_of("one cell").layers]
    assert_same_bits(Stack(layers), 2, inputs_of(Stack(layers), 4, 0, ragged=False))


def test_callers_in_several_threads() -> None:
    """One caller has the other threads of the pool; the rest run all turns themselves."""
    stack = stack_of("one cell")
    calls = [inputs_of(stack, 1 + k % 4, k, ragged=k % 2 == 1) for k in range(8)]
    pyrnnx.set_num_threads(1)
    expected = [apart(stack(*call)) for call in calls]
    pyrnnx.set_num_threads(2)

    def is_right(k: int) -> bool:
        return all(map(np.array_equal, apart(stack(*calls[k])), expected[k]))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(is_right, 15 * list(range(8))))


@each_row(
    "threads, steps, rows",
    [(1, T, 1), (2, 4, 1), (2, T, 9), (8, T, 16), (2, T, 0), (2, 0, 1), (2, 1 << 19, 1)],
    ids=("one thread", "few steps", "many rows", "rows of matrices", "no rows", "no steps", "much memory"),
)
def test_layer_after_layer(threads: int, steps: int, rows: int) -> None:
    assert turn_steps(stack_of("one cell")._chain.packed, threads, steps, rows) == 0


@pytest.mark.skipif("neon" not in engines.supported(), reason="needs vectors of four numbers")
def test_rows_that_need_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a wide input have so many bytes that a row block has fewer than the batch, though weights are few."""
    monkeypatch.setattr(config, "ISA", "neon")
    op, I, one = RecurrentOp("RNN", 1), 65_000, np.ones((1, 1, 1), np.float32)
    stack = Stack([Layer(op, np.full((1, 1, I), 1e-3, np.float32), one), Layer(op, one, one)])
    X = np.random.default_rng(0).uniform(-1, 1, (6, 15, I)).astype(np.float32)
    pyrnnx.set_num_threads(1)
    expected = apart(stack(X))
    stack(-X)  # its results are in the memory that the next call may get
    pyrnnx.set_num_threads(4)
    for actual, wanted in zip(apart(stack(X)), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_layers_that_need_their_whole_input() -> None:
    for direction in ("reverse", "bidirectional"):
        layers = random_layers([("GRU", direction, 60), ("GRU", "forward", 60)])
        assert turn_steps(Stack(layers)._chain.packed, 2, T, 1) == 0
