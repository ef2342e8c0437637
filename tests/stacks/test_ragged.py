"""Lists of sequences: each has the results of a run alone, whatever the buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import DTYPES
from rows import each_row
from stacks import STACKS, I, random_inputs, random_stack, random_states

from pyrnnx import PyrnnxError, Stack, config
from pyrnnx.stacks.stack import MAX_PADDING, buckets
from pyrnnx.testing.numbers import Array

# float32: the same sums in the same order on the SIMD engine; BLAS may order them by the shape of a product
TOLERANCE = 1e-6
LENGTHS = [3, 0, 9, 1, 9, 0, 4]


def sequences(stack: Stack, lengths: list[int], seed: int = 0) -> list[Array]:
    whole = random_inputs(Stack(stack.layers), sum(lengths), 1, seed)[:, 0]
    return np.split(whole, np.cumsum(lengths)[:-1])


def of_row(states: Any, k: int) -> Any:
    """The states of one row of a batch, in the same form."""
    if isinstance(states, list):
        return [None if state is None else state[:, k : k + 1] for state in states]
    return states[:, k : k + 1]


def arrays(states: Any) -> list[Array]:
    return [one for one in (states if isinstance(states, list) else [states]) if one is not None]


def assert_near(actual: Array, wanted: Array, tolerance: float) -> None:
    assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(actual.astype(np.float64), wanted.astype(np.float64), atol=tolerance)


def assert_each_alone(stack: Stack, X: list[Array], initial: list[Any], tolerance: float) -> None:
    Y, *states = stack(X, None, *initial)
    assert isinstance(Y, list)
    assert len(Y) == len(X)
    for k, one in enumerate(X):
        batch = one[np.newaxis] if stack.batch_first else one[:, np.newaxis]
        wanted, *last = stack(batch, None, *[of_row(state, k) for state in initial])
        assert Y[k].flags.c_contiguous
        assert Y[k].flags.owndata
        assert_near(Y[k], wanted[0] if stack.batch_first else wanted[:, 0], tolerance)
        for state, alone in zip(states, last, strict=True):
            for a, b in zip(arrays(of_row(state, k)), arrays(alone), strict=True):
                assert_near(a, b, tolerance)


@each_row("batch_first", [False, True])
@each_row("name", STACKS)
@each_row("seed", range(4))
def test_each_sequence_as_if_alone(name: str, batch_first: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 1 + 4 * seed, 1 + 3 * seed).tolist()  # seed 0: one sequence without steps
    stack = random_stack(name, batch_first=batch_first)
    h, c = random_states(stack, len(lengths), seed)
    initial: list[Any] = [h, c] if stack.output_names[-1] == "Y_c" else [h]
    assert_each_alone(stack, sequences(stack, lengths, seed), initial, TOLERANCE)


@each_row("dtype", DTYPES, ids=str)
def test_same_bits_as_alone(dtype: Any) -> None:
    stack = random_stack("all sizes", dtype)
    # below 16 rows on every instruction set
    tolerance = 1e-2 if config.ISA == "blas" else 0.0
    assert_each_alone(stack, sequences(stack, LENGTHS), list(random_states(stack, len(LENGTHS))), tolerance)


@each_row("name", ["bidirectional", "all sizes"])
def test_no_sequences(name: str) -> None:
    stack = random_stack(name)
    Y, *states = stack([])
    assert Y == []
    for ragged, batch in zip(states, stack(np.zeros((0, 0, I), np.float32))[1:], strict=True):
        assert [one.shape for one in arrays(ragged)] == [one.shape for one in arrays(batch)]


def test_results_share_no_memory() -> None:
    stack = random_stack("two forward", batch_first=True)
    X = sequences(stack, [4, 4, 3])
    Y = stack(X)[0]
    assert not any(np.shares_memory(a, b) for k, a in enumerate(Y) for b in [*Y[:k], *X])


@each_row("longest", [0, 4, 1000])
@each_row("seed", range(10))
def test_buckets(longest: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, seed**2).tolist()
    found = list(buckets(lengths))
    assert sorted(k for rows in found for k in rows) == list(range(len(lengths)))
    in_order = [lengths[k] for rows in found for k in rows]
    assert in_order == sorted(in_order, reverse=True)
    for rows in found:
        assert len(rows) * lengths[rows[0]] <= MAX_PADDING * sum(lengths[k] for k in rows)


ONE = np.ones((2, I), np.float32)
SHAPE = r"\(num_directions=4, batch_size=1, hidden_size=5\)"
ERRORS: list[tuple[Any, dict[str, Any], str]] = [
    ([ONE], {"sequence_lens": [2]}, "sequence_lens was given with a list of"),
    ([ONE, ONE[:, np.newaxis]], {}, r"sequence 1: X has shape \(2, 1, 3\); expected \(seq_length, input_size=3\)"),
    ([ONE.astype(float)], {}, "sequence 0: X has dtype float64; expected float32, the dtype of the weights"),
    ([[1, 2], [3, 4]], {}, "sequence 0: X has dtype int64; expected float32"),
    ([None], {}, "sequence 0: X is missing; it is required"),
    ([ONE], {"initial_h": np.ones((4, 2, 5), np.float32)}, rf"initial_h has shape \(4, 2, 5\); expected {SHAPE}"),
]


@each_row(("X", "named", "message"), ERRORS, ids=[row[-1] for row in ERRORS])
def test_lists_that_do_not_fit(X: Any, named: dict[str, Any], message: str) -> None:
    with pytest.raises(PyrnnxError, match=f"^Stack: {message}"):
        random_stack("all cells")(X, **named)
