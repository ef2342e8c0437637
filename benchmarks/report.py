"""Markdown tables and number formats that the scripts share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


def milliseconds(seconds: float) -> str:
    """Three significant digits, without an exponent."""
    value = seconds * 1e3
    for digits, limit in ((4, 0.1), (3, 1.0), (2, 10.0), (1, 100.0)):
        if value < limit:
            return f"{value:.{digits}f}"
    return f"{value:.0f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
