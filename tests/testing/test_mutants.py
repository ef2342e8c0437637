"""Detection by named cases: a mistake in the oracle fails the cases that are made for it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from mutant import Mutant, copy_oracle, load_package
from mutants import MUTANTS
from rows import each_row, few_rows

from pyrnnx.testing.cases import CASES, NAMED, OPENVINO_CASES, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of

each_mutant = each_row("mutant", MUTANTS, ids=lambda mutant: mutant.does)


@cache
def right(case_name: str) -> tuple[dict[str, Array], tuple[Array, ...]]:
    case = NAMED[case_name]
    arrays = make_arrays(case)
    return arrays, expected_outputs(case, arrays)


def survives(oracle: ModuleType, case: Case) -> bool:
    """Return whether a mutant's results are within the tolerance of the case."""
    arrays, expected = right(case.name)
    try:
        with np.errstate(all="ignore"):
            outputs = oracle.run(case.operator, **arrays, **case.attributes)
    except (ValueError, IndexError):  # refused
        return False
    try:
        assert_close(outputs, expected, tolerance_of(case.dtype))
    except AssertionError:
        return False
    return True


@few_rows("mutant", MUTANTS[::10], MUTANTS, ids=lambda mutant: mutant.does)
def test_mutant_is_killed_by_each_case_made_for_it(mutant: Mutant, tmp_path: Path) -> None:
    assert mutant.killed_by
    oracle = mutant.load(tmp_path / "oracle")
    assert [name for name in mutant.killed_by if survives(oracle, NAMED[name])] == []


def test_oracle_without_a_mistake_survives_all(tmp_path: Path) -> None:
    copy_oracle(tmp_path / "oracle")
    oracle = load_package(tmp_path / "oracle")
    assert [name for name, case in [*NAMED.items()][::10] if not survives(oracle, case)] == []


def test_mutants_differ() -> None:
    assert len({mutant.does for mutant in MUTANTS}) == len({(m.file, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)
    assert len(MUTANTS) > 40


@pytest.mark.parametrize("table", [CASES, OPENVINO_CASES], ids=["ONNX", "OpenVINO"])
def test_each_feature_kills_a_mutant(table: tuple[Case, ...]) -> None:
    killers = {NAMED[name].feature for mutant in MUTANTS for name in mutant.killed_by if NAMED[name] in table}
    assert {case.feature for case in table} - killers == set()


@pytest.mark.slow
@each_mutant
def test_mutant_survives_what_has_nothing_of_it(mutant: Mutant, tmp_path: Path) -> None:
    """No mutant is so broken that every case would see it: it tells one thing apart."""
    oracle = mutant.load(tmp_path / "oracle")
    assert any(survives(oracle, case) for case in NAMED.values())
