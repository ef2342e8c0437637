"""Every activation function over the whole range of its dtype, against the oracle's formulas in long double."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import ACTIVATIONS, Activation, Layer, RecurrentOp, config, reference
from pyrnnx._kernels import engines

Array = NDArray[Any]
Wide = NDArray[Any]  # of long double
INF = float("inf")
# Exact in float32, so that both dtypes compute with the same parameters. Affine ends with beta = 0, where the sum
# cannot cancel and relative accuracy near zero can be asked for.
PARAMETERS: dict[str, list[tuple[float, float]]] = {
    "Affine": [(1.0, 0.0), (-0.75, 0.25), (1.5, 0.0)],
    "LeakyRelu": [(0.0078125, 0.0), (-2.0, 0.0), (0.0, 0.0)],
    "ThresholdedRelu": [(1.0, 0.0), (0.0, 0.0), (-1.5, 0.0)],
    "ScaledTanh": [(1.0, 1.0), (1.5, 0.625), (-0.5, 3.0)],  # the first is tanh by itself, not as a gate of usual cells
    "HardSigmoid": [(0.25, 0.5), (-0.375, 0.4375), (2.0, 0.0)],
    "Elu": [(1.0, 0.0), (0.625, 0.0), (-2.0, 0.0)],
}
# Roundings of the kernel's own formula, each of half a unit, and up to 2 units for a function of the C library.
ULPS = 6
DTYPES = (np.float32, np.float64)
each_dtype = each_row("dtype", DTYPES)


def functions() -> Iterator[tuple[str, float, float]]:
    for name in ACTIVATIONS:
        for alpha, beta in PARAMETERS.get(name, [(0.0, 0.0)]):
            yield name, alpha, beta


each_function = each_row(("name", "alpha", "beta"), functions())


@pytest.fixture(params=[*engines.supported(), "blas"], autouse=True)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test on each engine and instruction set that this machine has."""
    monkeypatch.setattr(config, "ISA", request.param)


def evaluate(
    name: str, x: Array, alpha: float = 0.0, beta: float = 0.0, clip: float | None = None, units: bool = False
) -> Array:
    """Return f(x) by a step of an RNN from no state, with x as rows of one unit, or as units of one row."""
    row = ACTIVATIONS[name]
    function = Activation(name, None if row.alpha is None else alpha, None if row.beta is None else beta)
    H, one = len(x) if units else 1, np.ones((1, 1, 1), x.dtype)
    W, X = (x[None, :, None], one) if units else (one, x[None, :, None])
    op = RecurrentOp("RNN", H, activations=[function], clip=clip)
    return np.asarray(Layer(op, W, np.zeros((1, H, H), x.dtype))(X)[0].ravel())


def grid(dtype: Any) -> Array:
    """Dense around zero, every binade of the dtype down to the last denormal and up to the largest, both signs."""
    info = np.finfo(dtype)
    steps = np.linspace(0, 30, 10007)
    binades = np.geomspace(float(info.tiny), float(info.max) / 4, 4099)
    denormals = float(info.smallest_subnormal) * np.array([1, 2, 3, 1000, 12345])
    edges = np.array([1, 1e-12, info.max, info.tiny, info.eps, 88.0, 88.7, 89.0, 104.0, 708.0, 710.0, 746.0, 1e6])
    with np.errstate(over="ignore", under="ignore"):
        positive = np.concatenate([steps, binades, denormals, edges]).astype(dtype)
    return np.concatenate([positive, -positive])


def expected_values(name: str, x: Array, alpha: float, beta: float) -> Wide:
    with np.errstate(all="ignore"):
        return np.asarray(reference.ACTIVATIONS[name](x.astype(np.longdouble), alpha, beta))


def allowed(name: str, x: Array, expected: Wide, alpha: float, beta: float) -> Wide:
    """ULPS relative to the result; relative to the terms where the formula adds; and some steps of the denormals."""
    info = np.finfo(x.dtype)
    scale = np.abs(expected)
    if name in ("Affine", "HardSigmoid"):
        scale = np.abs(alpha * x.astype(np.longdouble)) + abs(beta)
    bound: Wide = ULPS * info.eps / 2 * scale + 4 * np.longdouble(info.smallest_subnormal)
    return bound


def test_every_function_with_parameters_has_some() -> None:
    takers = [name for name, row in ACTIVATIONS.items() if row.alpha is not None or row.beta is not None]
    assert sorted(takers) == sorted(PARAMETERS)


@functools.cache  # one for all engines
def whole_range(name: str, alpha: float, beta: float, dtype: Any) -> tuple[Array, Wide]:
    x = grid(dtype)
    return x, expected_values(name, x, alpha, beta)


@each_dtype
@each_function
def test_whole_range(name: str, alpha: float, beta: float, dtype: Any) -> None:
    x, expected = whole_range(name, alpha, beta, dtype)
    y = evaluate(name, x, alpha, beta)
    assert y.dtype == dtype
    assert not np.isnan(y).any()
    overflow = np.abs(expected) > np.finfo(dtype).max
    np.testing.assert_array_equal(y[overflow], np.copysign(np.inf, expected[overflow]))
    error = np.abs(y[~overflow] - expected[~overflow])
    bound = allowed(name, x, expected, alpha, beta)[~overflow]
    worst = int((error - bound).argmax())
    assert (error <= bound).all(), (x[~overflow][worst], y[~overflow][worst], expected[~overflow][worst])


@each_dtype
@each_function
def test_infinities_have_the_limit(name: str, alpha: float, beta: float, dtype: Any) -> None:
    x = np.array([np.inf, -np.inf], dtype)
    if (name, alpha) == ("LeakyRelu", 0.0):
        x = x[:1]  # 0 * -inf is NaN, as the formula says
    y = evaluate(name, x, alpha, beta)
    units = int(name == "Tanh")  # a quotient, in an RNN
    np.testing.assert_allclose(y, expected_values(name, x, alpha, beta), rtol=units * np.finfo(dtype).eps, atol=0)


@each_dtype
@each_function
def test_nan_stays_nan_and_touches_nothing_else(name: str, alpha: float, beta: float, dtype: Any) -> None:
    x = np.linspace(-2, 2, 37).astype(dtype)
    clean = evaluate(name, x, alpha, beta)
    x[[0, 5, 17, 36]] = np.nan
    for clip in (None, 3.0):
        y = evaluate(name, x, alpha, beta, clip)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
        np.testing.assert_array_equal(y[~np.isnan(x)], clean[~np.isnan(x)])


@each_dtype
@each_function
def test_clip_bounds_the_argument(name: str, alpha: float, beta: float, dtype: Any) -> None:
    x = np.array([-INF, -1e30, -7, -0.5000001, -0.5, -0.25, 0.0, 0.25, 0.5, 0.5000001, 7, 1e30, INF], dtype)
    y = evaluate(name, x, alpha, beta, clip=0.5)
    np.testing.assert_array_equal(y, evaluate(name, np.clip(x, -0.5, 0.5), alpha, beta))


@each_dtype
@each_function
def test_any_number_of_units(name: str, alpha: float, beta: float, dtype: Any) -> None:
    for n in (1, 3, 8, 17, 67):
        x = np.linspace(-3, 3, n).astype(dtype)
        np.testing.assert_array_equal(evaluate(name, x, alpha, beta, units=True), evaluate(name, x, alpha, beta))
