"""Fit the polynomial coefficients of pyrnnx/_kernels/simd/functions.h; print their #define lines and their errors.

Each polynomial is fitted by weighted least squares at Chebyshev nodes, repeatedly: after each fit, the weight of a node
is multiplied by its error (Lawson's iteration), so that the worst error approaches the least possible. Errors are
relative to the first term of the function, which the polynomial corrects. The result is rounded once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from bench_functions import ulps
from mpmath import mpf, sqrt
from numpy.typing import NDArray
from report import progress, table

Array = NDArray[Any]
Fma = Callable[[Any, Any, Any], Array]
HEADER = Path(__file__).parents[1] / "pyrnnx/_kernels/simd/functions.h"
DTYPES: dict[str, Any] = {"float": np.float32, "double": np.float64}
PRECISION = 256  # bits; with 100 the last digits of float64 are noise of the normal equations
NODES = 6  # per coefficient
FITS = 25
# Share of the largest error, added to every error: else a node near a zero of the error would lose its weight forever.
FLOOR = "1e-6"
COLUMNS = 4  # of long numbers, as clang-format arranges them


@dataclass(frozen=True)
class Function:
    """A function that contains a polynomial p(u), in the notation at the top of functions.h."""

    counts: dict[str, int]  # of coefficients, by type
    interval: Callable[[], tuple[Any, Any]]  # of u, in the working precision
    target: Callable[[Any], Any]  # the exact p(u)
    share: Callable[[Any], Any]  # (error of the function / its first term) / error of p(u)
    points: tuple[float, float]  # of the function's argument
    exact: Callable[[Array], Array]
    steps: Callable[[Fma, Callable[[Array], Array], Array], Array]  # as functions.h computes it: fma, p, argument


def _expm1_ends() -> tuple[Any, Any]:
    end = mpmath.log(2) / 2 * mpf("1.002")  # n is rounded from a rounded product: |r| may slightly exceed ln2/2
    return -end, end


def _log1p_steps(fma: Fma, p: Callable[[Array], Array], v: Array) -> Array:
    w = np.asarray(v.dtype.type(0.25) * v * v)
    return np.asarray(v + v * w * p(w))


FUNCTIONS = {
    "EXP": Function(
        {"float": 5, "double": 10},
        _expm1_ends,
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: r,
        (-0.3466, 0.3466),
        np.expm1,
        lambda fma, p, r: fma(r * r, p(r), r),
    ),
    "LOG1P": Function(
        {"float": 5, "double": 11},
        lambda: (mpf(0), mpf(1) / 9),
        lambda w: (mpmath.atanh(sqrt(w)) / sqrt(w) - 1) / w,
        lambda w: w,
        (0, 2 / 3),
        lambda v: 2 * np.arctanh(v / 2),
        _log1p_steps,
    ),
    "TANH": Function(
        {"float": 5, "double": 11},
        lambda: (mpf(0), mpf("0.3026")),  # slightly more than 0.55^2
        lambda w: (mpmath.tanh(sqrt(w)) / sqrt(w) - 1) / w,
        lambda w: w,
        (0, 0.55),
        np.tanh,
        lambda fma, p, x: fma(x * (x * x), p(x * x), x),
    ),
}


class Fit:
    """A least-squares fit of a function's coefficients at Chebyshev nodes, with a weight for each node."""

    def __init__(self, function: Function, count: int, nodes: int) -> None:
        low, high = function.interval()
        angles = (mpmath.pi * (2 * i + 1) / (2 * nodes) for i in range(nodes))
        u = [(low + high) / 2 + (high - low) / 2 * mpmath.cos(angle) for angle in angles]
        self.count, self.share, self.target = count, [function.share(x) for x in u], [function.target(x) for x in u]
        self.powers = [[x**k for x in u] for k in range(2 * count - 1)]

    def errors(self, coefficients: Sequence[Any]) -> list[Any]:
        """Return the error at every node, relative to the first term of the function."""
        values = (mpmath.fdot(coefficients, column[: self.count]) for column in zip(*self.powers, strict=True))
        rows = zip(values, self.target, self.share, strict=True)
        return [abs(share * (value - target)) for value, target, share in rows]

    def solve(self, weights: Sequence[Any]) -> list[Any]:
        """Return the coefficients that minimize the weighted sum of squared errors."""
        squares = [weight * share**2 for weight, share in zip(weights, self.share, strict=True)]
        moments = [mpmath.fdot(squares, power) for power in self.powers]
        targets = [square * target for square, target in zip(squares, self.target, strict=True)]
        n = self.count
        matrix = mpmath.matrix([moments[row : row + n] for row in range(n)])
        return list(mpmath.lu_solve(matrix, mpmath.matrix([mpmath.fdot(targets, self.powers[k]) for k in range(n)])))


def fitted(kind: str, name: str) -> list[Any]:
    """Return the coefficients, rounded to their type."""
    with mpmath.workprec(PRECISION):
        count = FUNCTIONS[name].counts[kind]
        fit = Fit(FUNCTIONS[name], count, NODES * count)
        weights = [mpf(1)] * (NODES * count)
        for _ in range(FITS):
            coefficients = fit.solve(weights)
            errors = fit.errors(coefficients)
            worst = max(errors)
            weights = [weight * (error / worst + mpf(FLOOR)) for weight, error in zip(weights, errors, strict=True)]
        return [DTYPES[kind](float(c)) for c in coefficients]


def polynomial_error(kind: str, name: str, coefficients: Sequence[Any]) -> float:
    """Return the worst error of the function that its polynomial causes, relative to the first term, in eps."""
    with mpmath.workprec(PRECISION):
        errors = Fit(FUNCTIONS[name], len(coefficients), 400).errors([mpf(float(c)) for c in coefficients])
        return float(max(errors)) / float(np.finfo(DTYPES[kind]).eps)


def computed_error(kind: str, name: str, coefficients: Sequence[Any], step: int) -> float:
    """Return the worst error in ulp of functions.h's computation, at every step-th float32 or as many float64."""
    function, dtype = FUNCTIONS[name], DTYPES[kind]
    # For float32 exact except for double rounding; for float64 64 bits if long double has them.
    wide: Any = np.float64 if kind == "float" else np.longdouble

    def fma(a: Any, b: Any, c: Any) -> Array:
        return np.asarray((np.asarray(a, wide) * np.asarray(b, wide) + np.asarray(c, wide)).astype(dtype))

    def p(u: Array) -> Array:
        total = np.full_like(u, coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = fma(total, u, c)
        return total

    worst = 0.0
    for x in _points(function, dtype, step):
        worst = max(worst, float(ulps(function.steps(fma, p, x), function.exact(x.astype(wide))).max()))
    return worst


def _points(function: Function, dtype: Any, step: int) -> list[Array]:
    """Return points from 2^-12 on; below, p has no effect on the rounded result."""
    parts = []
    for sign, end in zip((-1, 1), function.points, strict=True):
        if end == 0:
            continue
        first, last = np.array([2.0**-12, abs(end)], np.float32).view(np.uint32).tolist()
        size: Array = np.arange(first, last, step, dtype=np.uint32).view(np.float32)
        if dtype != np.float32:
            size = np.linspace(2.0**-12, abs(end), size.size)
        parts += np.array_split(np.asarray(sign * size, dtype), size.size // 2**20 + 1)
    return parts


def literal(value: Any) -> str:
    """Return the C literal of a number: the shortest decimal that reads back as the same number."""
    if isinstance(value, np.float32):
        return ("0.5" if value == 0.5 else np.format_float_scientific(value, trim="-", exp_digits=1)) + "f"
    return repr(float(value))


def define(kind: str, name: str, coefficients: Sequence[Any]) -> str:
    """Return the lines of functions.h."""
    head, cells = f"#define COEFFICIENTS_{kind}_{name} ", [literal(c) + "," for c in coefficients]
    if kind == "float":
        return f"{head}{{{' '.join(cells)[:-1]}}}"
    widths = [max(map(len, cells[column::COLUMNS])) for column in range(COLUMNS)]
    rows = [cells[start : start + COLUMNS] for start in range(0, len(cells), COLUMNS)]
    lines = [" ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return head + "\\\n    {" + " \\\n     ".join(lines)[:-1] + "}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=97, help="every n-th float32 (1: all; default: 97)")
    options = parser.parse_args()
    rows, lines = [], []
    for kind in DTYPES:
        for name in FUNCTIONS:
            progress(f"{kind} {name}")
            c = fitted(kind, name)
            errors = polynomial_error(kind, name, c), computed_error(kind, name, c, options.step)
            rows.append([f"{kind} {name}", *(f"{error:.3f}" for error in errors)])
            lines.append(define(kind, name, c))
    is_current = "\n".join(lines) in HEADER.read_text(encoding="utf-8")
    print("\n".join(lines), "", table(["function", "polynomial alone, eps", "as computed, ulp"], rows), "", sep="\n")
    print(f"{HEADER.name} has {'these' if is_current else 'other'} coefficients.")


if __name__ == "__main__":
    main()
