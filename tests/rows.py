"""Tests that run all rows of a table and report the rows that failed.

pytest collects a table of thousands of rows as one test, which is fast. `pytest --row TEXT` runs the rows whose names
contain the text.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]
Rows = Any  # an iterable, or a function that returns one
SLOW_ROWS = 100  # rows of each slow test
NAME_LENGTH = 60  # characters of a value in the name of its row


class Selected:
    """Selection of rows by `pytest --row`."""

    text = ""


def each_row(names: str | tuple[str, ...], rows: Rows, ids: Any = None) -> Callable[[Test], Test]:
    """Return a decorator that calls a test with each row, like `pytest.mark.parametrize`.

    Parameters
    ----------
    names : str or tuple of str
        Arguments of the test that are the values of a row.
    rows : iterable, or function that returns one
        A value per row, or a tuple of values for several names. A function is called when the test runs.
    ids : callable or iterable of str, optional
        Names of the rows, or a function that names a value.

    The fixtures `tmp_path` and `monkeypatch` are new for each row.
    """
    arguments = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
    table = list(rows) if isinstance(rows, Iterable) else rows
    labels = list(ids) if isinstance(ids, Iterable) else ids

    def decorate(function: Test) -> Test:
        def test(**fixtures: Any) -> None:
            failures: dict[str, BaseException] = {}
            skipped: list[BaseException] = []
            count = 0
            for name, values in _named(table, len(arguments), labels):
                if Selected.text not in name:
                    continue
                count += 1
                try:
                    _call(function, count, fixtures | dict(zip(arguments, values, strict=True)))
                except pytest.skip.Exception as error:
                    skipped.append(error)
                except (Exception, pytest.fail.Exception) as error:
                    failures[name] = error
            if failures:
                raise AssertionError(_message(failures, count)) from next(iter(failures.values()))
            if skipped and len(skipped) == count:
                raise skipped[0]
            assert count or Selected.text, "the table has no rows"

        return _disguise(test, function, arguments)

    return decorate


def few_rows(
    names: str | tuple[str, ...], few: Iterable[Any], rest: Iterable[Any], ids: Any = None, mark: str = "slow"
) -> Callable[[Test], Test]:
    """Return a decorator like `each_row` that runs `few` by default, and `rest` in tests with a mark."""
    slow = list(rest)
    parts = [pytest.param(list(few), id="few")]
    starts = range(0, len(slow), SLOW_ROWS)
    parts += [pytest.param(slow[k : k + SLOW_ROWS], id=f"{mark}-{k}", marks=getattr(pytest.mark, mark)) for k in starts]

    def decorate(function: Test) -> Test:
        def test(part: list[Any], **fixtures: Any) -> None:
            each_row(names, part, ids)(function)(**fixtures)

        arguments = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
        return pytest.mark.parametrize("part", parts)(_disguise(test, function, arguments, "part"))

    return decorate


def together(check: Callable[[list[Any]], None], alone: Test, rows: list[Any], ids: Any = None) -> None:
    """Run `check` on all rows at once; if it fails, run `alone` on each row, so that the failure names rows."""
    try:
        check([row for row in rows if Selected.text in _name(row, ids)])
    except (Exception, pytest.fail.Exception):
        (argument,) = list(inspect.signature(alone).parameters)[:1]
        each_row(argument, rows, ids)(alone)()
        raise


def _disguise(test: Test, function: Test, removed: tuple[str, ...], *added: str) -> Test:
    """Return `test` with the name, marks and signature of `function`, without and with some arguments."""
    signature = inspect.signature(function)
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name not in removed]
    parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in added]
    functools.update_wrapper(test, function, updated=())
    del test.__wrapped__  # type: ignore[attr-defined]
    test.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    test.pytestmark = list(getattr(function, "pytestmark", ()))  # type: ignore[attr-defined]
    return test


def _named(table: Rows, width: int, ids: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    values = table if isinstance(table, list) else list(table())
    names = ids if isinstance(ids, list) else [None] * len(values)
    for name, value in zip(names, values, strict=True):
        row = (value,) if width == 1 else tuple(value)
        yield str(name) if name is not None else "-".join(_name(cell, ids) for cell in row), row


def _name(value: Any, ids: Any) -> str:
    """Return the name of a value by `ids`, or its own name, or its text, shortened."""
    name = ids(value) if callable(ids) else None
    name = name or getattr(value, "__name__", None) or getattr(value, "name", None)
    short = value[:NAME_LENGTH] if isinstance(value, bytes) else value  # the text of a whole file is slow
    text = name if isinstance(name, str) else str(short)
    return text if len(text) <= NAME_LENGTH else f"{text[:NAME_LENGTH]}..."


def _call(function: Test, number: int, arguments: Mapping[str, Any]) -> None:
    arguments = dict(arguments)
    if isinstance(folder := arguments.get("tmp_path"), Path):
        arguments["tmp_path"] = folder / f"row{number}"
        arguments["tmp_path"].mkdir()
    if "monkeypatch" not in arguments:
        function(**arguments)
        return
    with pytest.MonkeyPatch.context() as patch:
        function(**arguments | {"monkeypatch": patch})


def _message(failures: Mapping[str, BaseException], count: int) -> str:
    lines = [f"{len(failures)} of {count} rows failed"]
    for name, error in failures.items():
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
        lines.append(f"{name}: {text}")
    return "\n".join(lines)
