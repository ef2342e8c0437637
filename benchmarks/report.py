"""Output of the scripts: Markdown tables and progress."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
