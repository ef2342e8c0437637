"""Tests that the table of planted faults matches the sources."""

from __future__ import annotations

from pathlib import Path

from mutation.planted import FAULTS

ROOT = Path(__file__).parents[2]


def test_texts_occur_once() -> None:
    counts = {fault.name: (ROOT / fault.path).read_text("utf-8").count(fault.text) for fault in FAULTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_rows_differ() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 60
    assert all(fault.text != fault.replacement for fault in FAULTS)


def test_selections_exist() -> None:
    paths = {path for fault in FAULTS for path in fault.tests.split()}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
