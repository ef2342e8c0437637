"""The loop over rows of a table: the rows that it runs, and its report of failing rows."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from rows import each_row, few_rows


def test_every_row_runs_and_failing_ones_are_named() -> None:
    ran: list[tuple[int, str]] = []

    @each_row("number", [1, 2, 3])
    @each_row("letter", "ab")
    def check(number: int, letter: str) -> None:
        ran.append((number, letter))
        assert (number, letter) != (2, "b"), "wrong"
        if number == 3:
            pytest.fail("three")

    with pytest.raises(AssertionError, match=r"^2 of 3 rows failed\n2: (?s:.*)b: AssertionError: wrong") as caught:
        check()
    assert ran == [(number, letter) for number in (1, 2, 3) for letter in "ab"]
    assert "3: AssertionError: 2 of 2 rows failed\na: Failed: three" in str(caught.value)


def test_fixtures_are_of_each_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @pytest.mark.slow
    @each_row("name", ["a", "b"])
    def check(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not list(tmp_path.iterdir())
        (tmp_path / name).touch()
        with pytest.raises(AttributeError):
            Changed.by  # noqa: B018
        monkeypatch.setattr(Changed, "by", name, raising=False)

    class Changed:
        by: str

    assert [*inspect.signature(check).parameters] == ["tmp_path", "monkeypatch"]
    assert [mark.name for mark in check.pytestmark] == ["slow"]  # type: ignore[attr-defined]
    check(tmp_path=tmp_path, monkeypatch=monkeypatch)


def test_rows_that_are_skipped_and_none_at_all() -> None:
    @each_row("number", [1, 2])
    def some(number: int) -> None:
        if number == 1:
            pytest.skip("one")

    @each_row("number", [1, 2])
    def every(number: int) -> None:
        pytest.skip("all")

    @each_row("number", [])
    def none(number: int) -> None:
        pass

    some()
    with pytest.raises(pytest.skip.Exception):
        every()
    with pytest.raises(AssertionError, match="no rows"):
        none()


def test_few_rows_by_default_and_the_rest_slowly() -> None:
    ran: list[int] = []

    @few_rows("number", range(2), range(2, 250))
    def check(number: int) -> None:
        ran.append(number)

    (mark,) = check.pytestmark  # type: ignore[attr-defined]
    few, *others = mark.args[1]
    assert (few.id, few.marks) == ("few", ())
    assert [(len(one.values[0]), [mark.name for mark in one.marks]) for one in others] == [
        *[(100, ["slow"])] * 2,
        (48, ["slow"]),
    ]
    check(part=few.values[0])
    assert ran == [0, 1]
