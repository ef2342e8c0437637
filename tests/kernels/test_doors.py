"""What the kernels ask of their callers: asserted in a debug build (PYRNNX_BUILD_DEBUG=1), trusted in any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyrnnx import Layer, RecurrentOp
from pyrnnx._kernels import engines

pytestmark = pytest.mark.skipif(not engines.ASSERTIONS, reason="not a debug build")
T, N, I, H = 4, 3, 5, 6


def layer() -> Layer:
    rng = np.random.default_rng(0)
    return Layer(RecurrentOp("LSTM", H), *(rng.normal(size=shape) for shape in ((1, 4 * H, I), (1, 4 * H, H))))


def good() -> dict[str, Any]:
    """The arguments of `Sequence.run`."""
    states = {name: np.ones((1, N, H)) for name in ("initial_h", "initial_c")}
    return {"X": np.ones((T, N, I)), "order": np.array([2, 0, 1]), "lengths": np.array([4, 2, 0])} | states


BAD: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "dtype": lambda a: {"X": a["X"].astype(np.float32)},
    "input_size": lambda a: {"X": np.ones((T, N, I + 1))},
    "inner axis of X": lambda a: {"X": np.ones((T, N, 2 * I))[..., ::2]},
    "batch_size of a state": lambda a: {"initial_h": np.ones((1, N + 1, H))},
    "dtype of a state": lambda a: {"initial_c": np.ones((1, N, H), np.float32)},
    "length beyond T": lambda a: {"lengths": np.array([T + 1, 2, 0])},
    "negative length": lambda a: {"lengths": np.array([4, 2, -1])},
    "rising lengths": lambda a: {"lengths": np.array([0, 2, 4])},
    "dtype of lengths": lambda a: {"lengths": a["lengths"].astype(np.int32)},
    "strided lengths": lambda a: {"lengths": np.array([4, 9, 2, 9, 0, 9])[::2]},
    "too few lengths": lambda a: {"lengths": a["lengths"][:2]},
    "lengths without order": lambda a: {"order": None},
    "order out of bounds": lambda a: {"order": np.array([3, 0, 1])},
    "order with a row twice": lambda a: {"order": np.array([0, 0, 1])},
}


def test_what_is_asked_for() -> None:
    Y, Y_h, Y_c = layer()._sequence.run(1, *good().values())
    assert [one.shape for one in (Y, Y_h, Y_c)] == [(T, 1, N, H), (1, N, H), (1, N, H)]


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_anything_else(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    arguments = good()
    with pytest.raises(AssertionError):
        layer()._sequence.run(1, *(arguments | change(arguments)).values())
