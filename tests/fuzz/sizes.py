"""Symbolic sizes of axes: polynomials in T and N with non-negative coefficients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """The size of an axis.

    Attributes
    ----------
    terms : frozenset of ((int, int), int)
        For each monomial, its powers of T and N, and its coefficient.
    """

    terms: frozenset[tuple[tuple[int, int], int]]

    def __add__(self, other: Size) -> Size:
        return _sum([*self.terms, *other.terms])

    def __mul__(self, other: Size) -> Size:
        return _sum(((a + c, b + d), m * n) for (a, b), m in self.terms for (c, d), n in other.terms)

    @property
    def number(self) -> int | None:
        """The size, if it depends on neither T nor N."""
        constant = dict(self.terms).get((0, 0), 0)
        return constant if self == size(constant) else None

    def at(self, T: int, N: int) -> int:
        """Return the size for a T and an N."""
        return sum(m * T**a * N**b for (a, b), m in self.terms)


Shape = tuple[Size, ...]


def _sum(terms: Iterable[tuple[tuple[int, int], int]]) -> Size:
    collected: dict[tuple[int, int], int] = {}
    for powers, coefficient in terms:
        collected[powers] = collected.get(powers, 0) + coefficient
    return Size(frozenset((powers, m) for powers, m in collected.items() if m))


def size(number: int) -> Size:
    return _sum([((0, 0), number)])


def product(sizes: Iterable[Size]) -> Size:
    result = size(1)
    for factor in sizes:
        result = result * factor
    return result


T, N = _sum([((1, 0), 1)]), _sum([((0, 1), 1)])
