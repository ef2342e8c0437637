"""The steps of CI: the same names in .ci/run and the workflows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def read(name: str) -> str:
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"{name} is not in the source distribution")
    return path.read_text()


def steps(variable: str = "STEPS") -> list[str]:
    match = re.search(rf'^{variable}="(.*)"$', read(".ci/run"), re.MULTILINE)
    assert match is not None
    return match[1].split()


def test_every_step_is_a_function() -> None:
    functions = re.findall(r"^step_(\w+)\(\)", read(".ci/run"), re.MULTILINE)
    assert sorted(functions) == sorted([*steps(), *steps("NIGHTLY")])


def test_the_workflow_has_every_step() -> None:
    match = re.search(r"^ {8}step: \[(.*)\]$", read(".github/workflows/ci.yml"), re.MULTILINE)
    assert match is not None
    elsewhere = {"commands", "aarch64"}  # jobs of their own; for Arm it has runners of that kind
    assert {*match[1].split(", "), *elsewhere} == set(steps())


def test_the_nightly_workflow_has_every_nightly_step() -> None:
    match = re.search(r"^ {8}step: \[(.*)\]$", read(".github/workflows/nightly.yml"), re.MULTILINE)
    assert match is not None
    assert match[1].split(", ") == steps("NIGHTLY")


def test_all_runs_every_step() -> None:
    body = read(".ci/run").split("\nall() {", 1)[1].split("\n}\n", 1)[0]
    # README's second command is both `test` and `commands`.
    assert set(steps()) - set(re.findall(r"\w+", body)) <= {"test", "commands"}


def test_every_chosen_test_file_is_there() -> None:
    """A file that was renamed would end a step after an hour's wait for it."""
    names = {
        name
        for script in (".ci/run", ".ci/sanitize", ".ci/coverage")
        for name in re.findall(r"tests/[\w/]+\.py", read(script))
    }
    assert len(names) > 10
    assert [name for name in sorted(names) if not (ROOT / name).exists()] == []
