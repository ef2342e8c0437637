"""Selection of a few different cases of a table, for tests that do not need all of them."""

from __future__ import annotations

from collections.abc import Iterable

from pyrnnx.testing.cases import Case


def kinds(cases: Iterable[Case]) -> list[Case]:
    """Return one case for each feature of a table, with alternating operators."""
    features: dict[str, list[Case]] = {}
    for case in cases:
        features.setdefault(case.feature, []).append(case)
    chosen: list[Case] = []
    for turn, group in enumerate(features.values()):
        operators = sorted({case.operator for case in group})
        candidates = [case for case in group if case.operator == operators[turn % len(operators)]]
        chosen.append(candidates[len(candidates) // 2])
    return chosen
