"""Tables and headings of all commands, which fit into 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pyrnnx.errors import printable, shortened


def text(value: Any, style: str = "") -> Text:
    """What came from a file or a caller, as text: nothing in it is obeyed, by Rich or by the terminal."""
    return Text(shortened(printable(str(value))), style)


def heading(words: str, more: str = "") -> Text:
    """The line above a table."""
    line = Text(f"{words}", "bold")
    return line.append(f"  {shortened(printable(more))}", "dim") if more else line


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[int] = ()) -> Padding:
    """A table.

    Parameters
    ----------
    columns : sequence of str
        Headings.
    rows : iterable of sequences
        A cell is a Rich renderable, or text that goes through `text`.
    right : iterable of int
        Columns of numbers, flush right.
    """
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold cyan")
    for place, name in enumerate(columns):
        is_number = place in set(right)
        made.add_column(Text(name), justify="right" if is_number else "left", overflow="fold", no_wrap=False)
    for row in rows:
        made.add_row(*(cell if hasattr(cell, "__rich_console__") else text(cell) for cell in row))
    return Padding(made, (0, 0, 1, 2))


def pairs(rows: Iterable[tuple[str, Any]]) -> Padding:
    """Names and values without headings."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column(style="cyan", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(text(name), value if hasattr(value, "__rich_console__") else text(value))
    return Padding(made, (0, 0, 1, 2))


def shape(sizes: Sequence[Any] | None) -> str:
    """A declared shape: "[batch, ?, 4]"."""
    if sizes is None:
        return "any shape"
    return f"[{', '.join('?' if size is None else str(size) for size in sizes)}]"


def count(number: int | None) -> str:
    """A number that may be large, with its digits in groups."""
    return "?" if number is None else f"{number:,}"


def indented(one: Text) -> Padding:
    """As far as tables are."""
    return Padding(one, (0, 0, 0, 2))
