"""HTML for notebooks, without scripts, in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pyrnnx.errors import printable

_CELL = "padding:2px 8px;text-align:left;border-bottom:1px solid rgba(128,128,128,.35)"


def whole(*parts: str) -> str:
    """Return the output of one notebook cell."""
    return f'<div style="font-size:90%">{"".join(parts)}</div>'


def lines(texts: Iterable[str]) -> str:
    return "".join(f'<div style="padding:2px 8px">{text(line)}</div>' for line in texts)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a head."""
    cells = "".join(f'<th style="{_CELL}">{text(cell)}</th>' for cell in head)
    parts = [f"<tr>{cells}</tr>"]
    parts += ["<tr>" + "".join(f'<td style="{_CELL}">{text(cell)}</td>' for cell in row) + "</tr>" for row in rows]
    return f'<table style="border-collapse:collapse;margin:4px 0">{"".join(parts)}</table>'


def folded(title: str, inside: str) -> str:
    """Return a section that opens when its title is clicked."""
    return f"<details><summary>{text(title)}</summary>{inside}</details>"


def text(value: str) -> str:
    return escape(printable(value))
