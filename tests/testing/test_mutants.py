"""Detection by named cases: a mistake in the oracle, or a usual one of users, fails cases that are made for it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from mutants import MUTANTS, Mutant, copy_oracle, load_package
from planted_models import complete
from rows import few_rows

from pyrnnx.comparison import oracle
from pyrnnx.comparison.agreement import Rule, is_away
from pyrnnx.frontends.onnx import from_node
from pyrnnx.testing.cases import CASES, NAMED, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of
from pyrnnx.testing.onnx_models import make_node
from pyrnnx.testing.same.mistakes import mistakes


@cache
def right(case_name: str) -> tuple[dict[str, Array], tuple[Array, ...]]:
    case = NAMED[case_name]
    arrays = make_arrays(case)
    return arrays, expected_outputs(case, arrays)


def survives(changed: ModuleType, case: Case) -> bool:
    """Return whether a mutant's results are within the tolerance of the case."""
    arrays, expected = right(case.name)
    try:
        with np.errstate(all="ignore"):
            outputs = changed.run(case.operator, **arrays, **case.attributes)
    except (ValueError, IndexError):  # refused
        return False
    try:
        assert_close(outputs, expected, tolerance_of(case.dtype))
    except AssertionError:
        return False
    return True


@few_rows("mutant", MUTANTS[::10], MUTANTS, ids=lambda mutant: mutant.does, mark="nightly")
def test_mutant_is_killed_by_each_case_made_for_it(mutant: Mutant, tmp_path: Path) -> None:
    assert mutant.killed_by
    changed = mutant.load(tmp_path / "oracle")
    assert [name for name in mutant.killed_by if survives(changed, NAMED[name])] == []


def test_oracle_without_a_mistake_survives_all(tmp_path: Path) -> None:
    copy_oracle(tmp_path / "oracle")
    copied = load_package(tmp_path / "oracle")
    assert [name for name, case in [*NAMED.items()][::10] if not survives(copied, case)] == []


def undetected(operator: str) -> set[str]:
    """Return the usual mistakes that no small named case of an operator in float32 detects."""
    found: dict[str, bool] = {}
    for case in CASES:
        is_small = 0 < case.T <= 6 and case.I > 0 and case.N > 0 and case.H < 8 and case.scale == 1
        if case.operator != operator or not is_small or (case.dtype, case.layout, case.nan) != ("float32", 0, ""):
            continue
        arrays = make_arrays(case)
        weights = {name: array for name, array in arrays.items() if name in "WRBP"}
        layer = from_node(make_node(case, arrays), weights, case.opset)
        call = complete(layer, {name: array for name, array in arrays.items() if name not in weights})
        given = oracle.arguments(layer, call)
        expected = oracle.outputs(layer, given)
        for mistake in mistakes(layer, given):
            if not found.get(mistake.words):
                wrong = mistake.outputs(layer, given, expected)
                typed = {name: array.astype("f4") for name, array in wrong.items()}
                found[mistake.words] = is_away(typed, expected, Rule())
    return {words for words, is_detected in found.items() if not is_detected}


@few_rows("operator", ["RNN"], ["GRU", "LSTM"])
def test_usual_mistakes_are_detected(operator: str) -> None:
    """No activation of a case exceeds its argument, so that an RNN's H is within clip."""
    assert undetected(operator) <= {"clip bounded H, too"}
