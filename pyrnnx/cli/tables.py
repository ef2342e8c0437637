"""Tables and headings of all commands, at most as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pyrnnx.errors import printable, shortened

SHOWN_CALLS = 3  # of a comparison


def text(value: Any, style: str = "") -> Text:
    """Return text from a file or a caller without markup or control characters."""
    return Text(shortened(printable(str(value))), style)


def line(words: str, style: str = "") -> Text:
    """Return a line of a report, which is shown whole."""
    return Text(printable(words), style)


def heading(words: str, note: str = "") -> Text:
    line = Text(words, "bold")
    return line.append(f"  {shortened(printable(note))}", "dim") if note else line


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[int] = ()) -> Padding:
    """Return a table; its cells are Rich renderables, or values that are passed to `text`.

    `right` has the indices of right-aligned columns.
    """
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold cyan")
    for i, name in enumerate(columns):
        grid.add_column(Text(name), justify="right" if i in right else "left", overflow="fold")
    return _filled(grid, rows)


def pairs(rows: Iterable[tuple[str, Any]]) -> Padding:
    """Return a table of names and values without headings."""
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    return _filled(grid, rows)


def _filled(grid: Table, rows: Iterable[Sequence[Any]]) -> Padding:
    for row in rows:
        grid.add_row(*(cell if hasattr(cell, "__rich_console__") else text(cell) for cell in row))
    return Padding(grid, (0, 0, 1, 2))


def calls(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return rows about the inputs of the first calls of a comparison, and the number of the others."""
    rows = [(f"call {number}", call) for number, call in enumerate(words[:SHOWN_CALLS], 1)]
    more = len(words) - len(rows)
    return [*rows, ("such calls", f"{more} more")] if more else rows


def shape(sizes: Sequence[Any] | None) -> str:
    """Return a declared shape as text: "[batch, ?, 4]"."""
    if sizes is None:
        return "any shape"
    return f"[{', '.join('?' if size is None else str(size) for size in sizes)}]"


def indented(words: str, style: str = "") -> Padding:
    return Padding(text(words, style), (0, 0, 0, 2))
