"""The activation functions of the oracle against formulas of the standard library, and ONNX's own defaults."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
from rows import each_row

from pyrnnx import reference

INF, NAN = math.inf, math.nan


def log_of_1_and_e_to(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else math.exp(x)


FORMULAS: dict[str, Callable[[float, float, float], float]] = {
    "Relu": lambda x, a, b: x if x > 0 else 0.0,
    "Tanh": lambda x, a, b: math.tanh(x),
    "Sigmoid": lambda x, a, b: sigmoid(x),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: x if x >= 0 else a * x,
    "ThresholdedRelu": lambda x, a, b: x if x >= a else 0.0,
    "ScaledTanh": lambda x, a, b: a * math.tanh(b * x),
    "HardSigmoid": lambda x, a, b: min(max(a * x + b, 0.0), 1.0),
    "Elu": lambda x, a, b: x if x >= 0 else a * math.expm1(x),
    "Softsign": lambda x, a, b: math.copysign(1.0, x) if math.isinf(x) else x / (1 + abs(x)),
    "Softplus": lambda x, a, b: log_of_1_and_e_to(x),
}
POINTS = [0.0, 0.625, 1.5, *np.linspace(-6, 6, 41), 1e-9, -1e-9, 40.0, -40.0, 750.0, -750.0, INF, -INF]
each_function = each_row("name", reference.ACTIVATIONS)


def test_every_function_has_a_formula() -> None:
    assert list(FORMULAS) == list(reference.ACTIVATIONS)


@each_function
@each_row(("alpha", "beta"), [(0.625, 0.375), (1.5, -0.25)])
def test_values(name: str, alpha: float, beta: float) -> None:
    function = reference.Activation(name, alpha, beta)
    wanted = [FORMULAS[name](x, alpha, beta) for x in POINTS]
    # a unit or two of float64 in each of a formula's operations
    np.testing.assert_allclose(function(np.array(POINTS)), wanted, rtol=1e-14, atol=1e-16)


@each_function
def test_nan_is_passed_on(name: str) -> None:
    with np.errstate(invalid="ignore"):  # as in a run
        found = reference.Activation(name, 0.625, 0.375)(np.array([1.0, NAN, -1.0]))
    assert np.isnan(found).tolist() == [False, True, False]


@each_row("name", [*reference.ALPHA])
def test_defaults_are_those_of_the_onnx_operator(name: str) -> None:
    """Affine was an operator of the first opsets, as which onnx does not know it any more; ScaledTanh never was one."""
    if not onnx.defs.has(name):
        assert name in ("Affine", "ScaledTanh")
        return
    attributes = onnx.defs.get_schema(name).attributes
    found = {key: np.float32(one.default_value.f) for key, one in attributes.items()}
    table = {"alpha": reference.ALPHA.get(name), "beta": reference.BETA.get(name)}
    assert found == {key: np.float32(value) for key, value in table.items() if value is not None}
