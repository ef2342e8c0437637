"""Samples of a page: its blocks of code with their expected output."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# ```python (with a package that it needs), ```bash, ```text. Front matter and other languages are ignored.
_FENCE = re.compile(r"^ *(```+|:::+)(\w+)?(?: (\w+))?\n(.*?)^ *\1$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Sample:
    """A block of code.

    Attributes
    ----------
    language : str
        "python" or "bash".
    code : str
    expected : str
        Expected output, from the block of text that follows directly; "" if there is none.
    needs : str
        A package that this block needs in addition to those of the tests, or "".
    file : str
        Name of the file that this block is, from its first line; "" for code that is run.
    """

    language: str
    code: str
    expected: str = ""
    needs: str = ""
    file: str = ""

    def prints(self, text: str) -> bool:
        """Return whether `text` is the expected output, where "..." matches anything and spaces do not count."""
        return not self.expected or doctest.OutputChecker().check_output(self.expected, text, FLAGS)


def read_samples(path: Path) -> Iterator[Sample]:
    """Yield the samples of a page in order."""
    text = path.read_text(encoding="utf-8")
    blocks = list(_FENCE.finditer(text))
    for k, block in enumerate(blocks):
        following = blocks[k + 1] if k + 1 < len(blocks) else None
        _, language, needs, code = block.groups()
        if language not in ("python", "bash"):
            continue
        expected = ""
        if following and following[2] == "text" and not text[block.end() : following.start()].strip():
            expected = following[4]
        file = _FILE.match(code) if language == "python" else None
        yield Sample(language, code, expected, needs or "", file[1] if file else "")


def pages(folder: Path) -> list[Path]:
    """Return all pages in MyST, except generated ones."""
    generated = {"generated", "built"}
    return sorted(path for path in folder.rglob("*.md") if not generated & {*path.relative_to(folder).parts})
