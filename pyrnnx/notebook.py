"""HTML for notebooks: without scripts, and with no colours but the page's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pyrnnx.errors import printable

_CELL = "padding:2px 8px;text-align:left;border-bottom:1px solid rgba(128,128,128,.35)"


def whole(*parts: str) -> str:
    """What stands in one cell of a notebook."""
    return f'<div style="font-size:90%">{"".join(parts)}</div>'


def lines(given: Iterable[str]) -> str:
    return "".join(f'<div style="padding:2px 8px">{text(line)}</div>' for line in given)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, marked: Sequence[bool] = ()) -> str:
    """`marked` rows are bold."""
    cells = "".join(f'<th style="{_CELL}">{text(cell)}</th>' for cell in head)
    made = [f"<tr>{cells}</tr>"]
    for place, row in enumerate(rows):
        weight = ";font-weight:bold" if place < len(marked) and marked[place] else ""
        made.append("<tr>" + "".join(f'<td style="{_CELL}{weight}">{text(cell)}</td>' for cell in row) + "</tr>")
    return f'<table style="border-collapse:collapse;margin:4px 0">{"".join(made)}</table>'


def facts(title: str, given: Mapping[str, str]) -> str:
    """A table of names and what they are, below the title."""
    return table((title, ""), list(given.items()))


def folded(title: str, inside: str) -> str:
    """What opens when its title is clicked."""
    return f"<details><summary>{text(title)}</summary>{inside}</details>"


def text(given: str) -> str:
    return escape(printable(given))
