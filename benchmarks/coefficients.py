"""Fit the coefficients of pyrnnx/_kernels/simd/functions.h; print their #define lines and their errors.

Each polynomial, or pair of polynomials whose ratio is needed, is fitted by weighted least squares at Chebyshev nodes,
repeatedly: after each fit, the weight of a node is multiplied by its error (Lawson's iteration), so that the worst
error approaches the least possible. A ratio is fitted as numerator = target * denominator, with the denominator of
the last fit in the weights. Errors are relative to the first term of the function, which the polynomials correct. The
coefficients are rounded once. A common factor of all coefficients changes a ratio by their rounding only: of FACTORS
factors, the one is chosen whose mean error in any interval of width 1 is least, because means add up over time steps.
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
FACTORS = 2048
MEAN_POINTS = 9973  # of an interval; a prime number, so that their last bits vary
# Products of two float32 are exact in float64; for float64 64 bits if long double has them.
WIDE: dict[str, Any] = {"float": np.float64, "double": np.longdouble}
Compute = Callable[[Fma, Sequence[Any], Array], Array]  # as functions.h computes it: fma, coefficients, argument


@dataclass(frozen=True)
class Function:
    """A function that contains a polynomial, or a ratio of two, of u; in the notation at the top of functions.h."""

    counts: dict[str, tuple[int, int]]  # coefficients of numerator and denominator, by type; (n, 0): one polynomial
    interval: Callable[[], tuple[Any, Any]]  # of u, in the working precision
    target: Callable[[Any], Any]  # the exact polynomial or ratio
    share: Callable[[Any], Any]  # (error of the function / its first term) / error of the polynomial or ratio
    points: tuple[float, float]  # of the function's argument
    exact: Callable[[Array], Array]
    steps: Compute
    names: tuple[str, ...]  # of the #define lines
    bounds: tuple[float, float] = (0.2, 1)  # of the polynomial's error in eps, and of the error as computed in ulp


def _expm1_ends() -> tuple[Any, Any]:
    end = mpmath.log(2) / 2 * mpf("1.002")  # n is rounded from a rounded product: |r| may slightly exceed ln2/2
    return -end, end


def _horner(fma: Fma, coefficients: Sequence[Any], u: Array) -> Array:
    total = np.full_like(u, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = fma(total, u, c)
    return total


def _log1p_steps(fma: Fma, c: Sequence[Any], v: Array) -> Array:
    w = np.asarray(v.dtype.type(0.25) * v * v)
    return np.asarray(v + v * w * _horner(fma, c, w))


def _tanh_ratio_steps(fma: Fma, c: Sequence[Any], x: Array) -> Array:
    w = x * x
    square, n, d = w * w, c[:5], c[5:]
    numerator = fma(fma(n[4], square, fma(n[3], w, n[2])), x * square, x * fma(n[1], w, n[0]))
    top = fma(fma(d[5], w, d[4]), square, fma(d[3], w, d[2]))
    denominator = fma(top, square, fma(d[1], w, d[0]))
    return np.asarray(np.minimum(numerator, denominator) / denominator)


ONE_AT = 9.1  # the tanh of a float is rounded to 1 from here on
FUNCTIONS = {
    "EXP": Function(
        counts={"float": (5, 0), "double": (10, 0)},
        interval=_expm1_ends,
        target=lambda r: (mpmath.expm1(r) - r) / r**2,
        share=lambda r: r,
        points=(-0.3466, 0.3466),
        exact=np.expm1,
        steps=lambda fma, c, r: fma(r * r, _horner(fma, c, r), r),
        names=("EXP",),
    ),
    "LOG1P": Function(
        counts={"float": (5, 0), "double": (11, 0)},
        interval=lambda: (mpf(0), mpf(1) / 9),
        target=lambda w: (mpmath.atanh(sqrt(w)) / sqrt(w) - 1) / w,
        share=lambda w: w,
        points=(0, 2 / 3),
        exact=lambda v: 2 * np.arctanh(v / 2),
        steps=_log1p_steps,
        names=("LOG1P",),
    ),
    "TANH": Function(
        counts={"float": (5, 0), "double": (11, 0)},
        interval=lambda: (mpf(0), mpf("0.3026")),  # slightly more than 0.55^2
        target=lambda w: (mpmath.tanh(sqrt(w)) / sqrt(w) - 1) / w,
        share=lambda w: w,
        points=(0, 0.55),
        exact=np.tanh,
        steps=lambda fma, c, x: fma(x * (x * x), _horner(fma, c, x * x), x),
        names=("TANH",),
    ),
    "TANH_RATIO": Function(
        counts={"float": (5, 6)},
        interval=lambda: (mpf(0), mpf(ONE_AT) ** 2),
        target=lambda w: mpmath.tanh(sqrt(w)) / sqrt(w),
        share=lambda w: sqrt(w) / mpmath.tanh(sqrt(w)),
        points=(0, ONE_AT),
        exact=np.tanh,
        steps=_tanh_ratio_steps,
        names=("TANH_NUMERATOR", "TANH_DENOMINATOR"),
        bounds=(0.2, 5),
    ),
}


class Fit:
    """A least-squares fit of a function's coefficients at Chebyshev nodes, with a weight for each node."""

    def __init__(self, kind: str, function: Function, nodes: int) -> None:
        low, high = function.interval()
        angles = (mpmath.pi * (2 * i + 1) / (2 * nodes) for i in range(nodes))
        u = [(low + high) / 2 + (high - low) / 2 * mpmath.cos(angle) for angle in angles]
        if function.counts[kind][1]:  # dense near 0, where the function of sqrt(u) has most of its points
            u = [x**2 / high for x in u]
        self.counts = function.counts[kind]
        self.share, self.target = [function.share(x) for x in u], [function.target(x) for x in u]
        self.powers = [[x**k for k in range(max(self.counts))] for x in u]
        self.denominators = [mpf(1)] * nodes

    def errors(self, coefficients: Sequence[Any]) -> list[Any]:
        """Return the error at every node, relative to the first term of the function."""
        n, d = coefficients[: self.counts[0]], coefficients[self.counts[0] :]
        errors = []
        for k, powers in enumerate(self.powers):
            if d:
                self.denominators[k] = mpmath.fdot(d, powers[: len(d)])
            value = mpmath.fdot(n, powers[: len(n)]) / self.denominators[k]
            errors.append(abs(self.share[k] * (value - self.target[k])))
        return errors

    def solve(self, weights: Sequence[Any]) -> list[Any]:
        """Return the coefficients that minimize the weighted sum of squared errors."""
        numerators, others = self.counts[0], max(self.counts[1] - 1, 0)  # the denominator's first one is 1
        rows, sides = [], []
        for k, powers in enumerate(self.powers):
            factor = sqrt(weights[k]) * self.share[k] / self.denominators[k]
            unknown = [*powers[:numerators], *(-self.target[k] * power for power in powers[1 : others + 1])]
            rows.append([factor * value for value in unknown])
            sides.append(factor * self.target[k])
        solution = list(mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix(sides)))
        return solution[:numerators] + ([mpf(1), *solution[numerators:]] if self.counts[1] else [])


def fitted(kind: str, function: Function) -> list[Any]:
    """Return the coefficients, rounded to their type; those of a ratio with the best common factor."""
    with mpmath.workprec(PRECISION):
        nodes = NODES * sum(function.counts[kind])
        fit = Fit(kind, function, nodes)
        weights = [mpf(1)] * nodes
        for _ in range(FITS):
            coefficients = fit.solve(weights)
            errors = fit.errors(coefficients)
            worst = max(errors)
            weights = [weight * (error / worst + mpf(FLOOR)) for weight, error in zip(weights, errors, strict=True)]
        factors = [1 + mpf(k) / FACTORS for k in range(FACTORS if function.counts[kind][1] else 1)]
        choices = [[DTYPES[kind](float(c * factor)) for c in coefficients] for factor in factors]
    return min(choices, key=_largest_mean(kind, function)) if len(choices) > 1 else choices[0]


def _largest_mean(kind: str, function: Function) -> Callable[[list[Any]], float]:
    """Return a function of coefficients: the largest mean error in an interval, beyond that of rounding, in ulp.

    It is infinite if the last point is not exact.
    """
    ends = np.arange(int(function.points[0]), int(function.points[1]))
    points = (ends[:, None] + (np.arange(MEAN_POINTS) + 0.5) / MEAN_POINTS).astype(DTYPES[kind])
    exact, last = function.exact(points.astype(np.longdouble)), np.array([function.points[1]], DTYPES[kind])
    rounded = exact.astype(points.dtype)

    def largest(coefficients: list[Any]) -> float:
        if function.steps(_fma(kind), coefficients, last) != function.exact(last):
            return np.inf
        errors = (function.steps(_fma(kind), coefficients, points) - rounded.astype(WIDE[kind])) / np.spacing(rounded)
        return float(np.abs(errors.mean(1)).max())

    return largest


def polynomial_error(kind: str, function: Function, coefficients: Sequence[Any]) -> float:
    """Return the worst error of the function that its polynomials cause, relative to the first term, in eps."""
    with mpmath.workprec(PRECISION):
        errors = Fit(kind, function, 400).errors([mpf(float(c)) for c in coefficients])
        return float(max(errors)) / float(np.finfo(DTYPES[kind]).eps)


def _fma(kind: str) -> Fma:
    def fma(a: Any, b: Any, c: Any) -> Array:
        wide = WIDE[kind]
        return np.asarray((np.asarray(a, wide) * np.asarray(b, wide) + np.asarray(c, wide)).astype(DTYPES[kind]))

    return fma


def computed_error(kind: str, function: Function, coefficients: Sequence[Any], step: int) -> float:
    """Return the worst error in ulp of functions.h's computation, at every step-th float32 or as many float64."""
    worst = 0.0
    for x in _points(kind, function, step):
        y = function.steps(_fma(kind), coefficients, x)
        worst = max(worst, float(ulps(y, function.exact(x.astype(WIDE[kind]))).max()))
    return worst


def _points(kind: str, function: Function, step: int) -> list[Array]:
    """Return points from 2^-12 on; below, the polynomials have no effect on the rounded result."""
    parts, dtype = [], DTYPES[kind]
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


def define(kind: str, function: Function, coefficients: Sequence[Any]) -> str:
    """Return the lines of functions.h."""
    count = function.counts[kind][0]
    parts = zip(function.names, (coefficients[:count], coefficients[count:]), strict=False)
    return "\n".join(_define(f"#define COEFFICIENTS_{kind}_{name} ", part) for name, part in parts)


def _define(head: str, coefficients: Sequence[Any]) -> str:
    cells = [literal(c) + "," for c in coefficients]
    line = f"{{{' '.join(cells)[:-1]}}}"
    if len(head + line) <= 120:
        return head + line
    if len(line) <= 116:
        return f"{head}\\\n    {line}"
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
        for name, function in FUNCTIONS.items():
            if kind not in function.counts:
                continue
            progress(f"{kind} {name}")
            c = fitted(kind, function)
            errors = polynomial_error(kind, function, c), computed_error(kind, function, c, options.step)
            rows.append([f"{kind} {name}", *(f"{error:.3f}" for error in errors)])
            lines.append(define(kind, function, c))
    is_current = "\n".join(lines) in HEADER.read_text(encoding="utf-8")
    print("\n".join(lines), "", table(["function", "polynomial alone, eps", "as computed, ulp"], rows), "", sep="\n")
    print(f"{HEADER.name} has {'these' if is_current else 'other'} coefficients.")


if __name__ == "__main__":
    main()
