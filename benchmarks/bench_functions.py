"""Measure the errors of the vectorised activation functions, in ulp of the exact result.

float32: every n-th of all floats, against long double; float64: points over the whole range, against mpmath. The mean
is the largest of any interval of width 1 between -20 and 20, beyond that of rounding.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from report import progress, table

from pyrnnx import Activation, Layer, RecurrentOp, config
from pyrnnx._kernels import engines

Array = NDArray[Any]
mpmath.mp.prec = 160  # bits, three times those of float64


def _wide_sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, 1) / (1 + e))


# Formulas for long double arrays, and the same for an mpmath number. Elu with alpha = 1 tests expm1.
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Any], Any]]] = {
    "Tanh": (np.tanh, mpmath.tanh),
    "Sigmoid": (_wide_sigmoid, lambda x: 1 / (1 + mpmath.exp(-x))),
    "Elu": (lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x), lambda x: mpmath.expm1(x) if x < 0 else x),
    "Softplus": (
        lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
        lambda x: max(x, mpmath.mpf(0)) + mpmath.log1p(mpmath.exp(-abs(x))),
    ),
    "Softsign": (lambda x: x / (1 + np.abs(x)), lambda x: x / (1 + abs(x))),
}


def evaluate(isa: str, name: str, x: Array) -> Array:
    """Return the function of x by a step of an RNN whose input is x."""
    config.ISA = isa
    # an RNN has a formula of its own for Tanh
    function = Activation("ScaledTanh", 1.0, 1.0) if name == "Tanh" else Activation(name)
    one, zero = np.ones((1, 1, 1), x.dtype), np.zeros((1, 1, 1), x.dtype)
    layer = Layer(RecurrentOp("RNN", 1, activations=[function]), one, zero)
    return np.asarray(layer(x[np.newaxis, :, np.newaxis])[0].ravel())


def ulps(y: Array, exact: Array) -> Array:
    """Return |y - exact| over the distance of floats at `exact`, in long double."""
    rounded = np.abs(exact).astype(y.dtype)
    return np.asarray(np.abs(y.astype(np.longdouble) - exact) / np.spacing(rounded).astype(np.longdouble))


def worst_float32(isa: str, name: str, step: int) -> tuple[float, float]:
    bits = np.arange(0, 0x7F800000, step, dtype=np.uint32)
    worst = (0.0, 0.0)
    for sign in (0, 0x80000000):
        for part in np.array_split(bits | np.uint32(sign), max(bits.size // 2**20, 1)):
            x = part.view(np.float32)
            with np.errstate(over="ignore", under="ignore"):
                error = ulps(evaluate(isa, name, x), FUNCTIONS[name][0](x.astype(np.longdouble)))
            k = int(error.argmax())
            worst = max(worst, (float(error[k]), float(x[k])))
    return worst


def largest_mean(isa: str, name: str, points: int) -> tuple[float, float]:
    """Return the largest mean error of float32 in an interval, and where the interval begins."""
    begins = np.arange(-20, 20)
    x = np.random.default_rng(0).uniform(begins, begins + 1, (points, 40)).astype(np.float32)
    rounded = FUNCTIONS[name][0](x.astype(np.longdouble)).astype(np.float32)
    y = evaluate(isa, name, x.ravel()).reshape(x.shape)
    means = ((y.astype(np.float64) - rounded) / np.spacing(abs(rounded))).mean(0)
    k = int(np.abs(means).argmax())
    return float(means[k]), float(begins[k])


def worst_float64(isa: str, name: str, points: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    size = np.concatenate([np.geomspace(5e-324, 1e308, points // 4), rng.uniform(0, 40, points // 4)])
    x = np.concatenate([size, -size, [-708.4, -745.1, -708.0, 708.0]])
    y = evaluate(isa, name, x)
    worst = (0.0, 0.0)
    for value, result in zip(x, y, strict=True):
        exact = FUNCTIONS[name][1](mpmath.mpf(float(value)))
        error = abs(mpmath.mpf(float(result)) - exact) / mpmath.mpf(float(np.spacing(abs(float(exact)))))
        worst = max(worst, (float(error), float(value)))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=997, help="float32: every n-th float (1: all; default: 997)")
    parser.add_argument("--points", type=int, default=8000, help="float64: number of points (default: 8000)")
    options = parser.parse_args()
    rows = []
    for isa in (*engines.supported(), "blas"):
        for name in FUNCTIONS:
            progress(f"{isa} {name}")
            errors = (
                worst_float32(isa, name, options.step),
                largest_mean(isa, name, options.points),
                worst_float64(isa, name, options.points),
            )
            rows.append([isa, name, *(f"{error:.2f} at {x:.6g}" for error, x in errors)])
    columns = ["float32, worst ulp", "float32, largest mean", "float64, worst ulp"]
    print(table(["kernels", "function", *columns], rows))


if __name__ == "__main__":
    main()
