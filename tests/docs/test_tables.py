"""The pages have the tables, and the words for drawings, that the scripts in docs/ write."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import drawings
import pytest
import tables
from rows import each_row

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the tests stand without the documents")


@each_row("page", tables.PAGES, ids=lambda page: page.name)
def test_tables_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- table: " in text
    assert tables.with_tables(text) == text, "run python docs/tables.py"


def test_drawings_are_described_as_they_are(tmp_path: Path) -> None:
    drawings.write(tmp_path)
    page = (DOCS / "conventions.md").read_text(encoding="utf-8")
    described = dict(re.findall(r"```{drawing} (\w+)\n(.*?)\n```", page, re.DOTALL))
    assert {f"{name}.html" for name in described} == {path.name for path in tmp_path.iterdir()}
    for name, words in described.items():
        drawn = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert words.splitlines() == [unescape(label) for label in re.findall(r'aria-label="([^"]*)"', drawn)], name
