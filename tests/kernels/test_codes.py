"""Products of codes: every dot product instruction returns the same bits, exact up to the longest sum."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from packed import packed_arguments
from rows import each_row

from pyrnnx._kernels import engines
from pyrnnx._kernels.packed_layer import PackedLayer

Array = NDArray[Any]
F32 = np.float32
ONE, SAME = (3, 0.0, 1.0), (3, 1.0, 0.0)  # Affine
CODES = 3  # PYRNNX_WEIGHTS_CODES
DOTS = range(3)  # PYRNNX_DOT_*: what the processor lacks is taken for the one before
ISAS = engines.supported()


def arguments(I: int, H: int, **changes: Any) -> dict[str, Any]:
    """Return the arguments of an LSTM of one direction, with codes of the whole range."""
    rng = np.random.default_rng((I, H))
    scale = (rng.uniform(0.5, 1, (2, 1, 4 * H)) / 128 / max(I, H) ** 0.5).astype(F32)
    zero_point = rng.integers(-128, 128, (2, 1, 4 * H)).astype(np.int32)
    codes: dict[str, Any] = {
        "isa": ISAS[0] if ISAS else "blas",
        "W": rng.integers(-128, 128, (1, 4 * H, I)).astype(np.int8),
        "R": rng.integers(-128, 128, (1, 4 * H, H)).astype(np.int8),
        "weight_dtype": CODES,
        "coded": True,
        "factors": (scale[0], zero_point[0], scale[1], zero_point[1]),
    }
    return packed_arguments("LSTM", I, H, **codes | changes)


def run(layer: PackedLayer, X: Array) -> tuple[Array, ...]:
    results = layer.run(1, X, None, None, None)
    assert results is not None
    return results


@each_row("isa", ISAS)
@each_row("N", [1, 2, 12, 15, 16, 17, 33, 64, 100])
def test_all_ways_to_multiply_codes_give_the_same_bits(isa: str, N: int) -> None:
    for I, H in itertools.product((1, 6, 67, 130), (5, 50)):
        X = np.random.default_rng(N).normal(0.2, 1, (4, N, I)).astype(F32)
        pairs, *others = (run(PackedLayer(**arguments(I, H, isa=isa, dot=dot)), X) for dot in DOTS)
        for other in others:
            assert [one.tobytes() for one in other] == [one.tobytes() for one in pairs]
        assert np.abs(pairs[0]).max() > 0.1


@pytest.mark.slow
@each_row("dot", DOTS)
@each_row("isa", ISAS)
@each_row("code", [-128, 127])
@each_row("value", [0, 255, -255])
def test_the_longest_sum(isa: str, dot: int, code: int, value: int) -> None:
    """Extreme codes against the zero point at the other end: 33025 * 255 * 255 is just below 2^31."""
    I, H = engines.MAX_CODES, 3
    zero_point = -1 - code
    given = arguments(I, H, isa=isa, dot=dot, activations=((ONE, SAME, SAME),))
    given["W"][...], given["bias"][...] = code, 0
    given["factors"] = (np.ones((1, 4 * H), F32), np.full((1, 4 * H), zero_point, np.int32), *given["factors"][2:])
    X = np.full((1, 20, I), value, F32)
    X[0, 1, 5] = 0
    exact = np.array([I, I - 1, *[I] * 18]) * value * (code - zero_point)
    for results in run(PackedLayer(**given), X):
        np.testing.assert_array_equal(results.reshape(20, H), exact.astype(F32)[:, np.newaxis].repeat(H, 1))


FLOATS: dict[str, Any] = {"W": np.ones((1, 12, 5), F32), "R": np.ones((1, 12, 3), F32), "weight_dtype": 0}


def test_floats_with_coded_rows_run_on_every_engine() -> None:
    floats = {name: value for name, value in arguments(5, 3, **FLOATS, factors=None).items() if name != "isa"}
    X = np.random.default_rng(1).normal(0, 1, (4, 2, 5)).astype(F32)
    first, *others = (run(PackedLayer(isa=isa, **floats), X) for isa in (*ISAS, "blas"))
    plain = run(PackedLayer(isa="blas", **(floats | {"coded": False})), X)
    assert np.abs(plain[0] - first[0]).max() > 1e-4
    for results in others:
        for a, b in zip(first, results, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
