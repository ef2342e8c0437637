"""The samples of a page: its blocks of code, and what it says that they print."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# ```python needing a package, ```bash, ```text; a page's front matter and other languages are passed over.
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
        What it prints, by the block of text right behind it; "" where there is none.
    needs : str
        A package that only this block needs; "" for those of the tests.
    file : str
        The name of the file that this is, by its first line; "" for code that is run.
    """

    language: str
    code: str
    expected: str = ""
    needs: str = ""
    file: str = ""

    def prints(self, text: str) -> bool:
        """Whether a text is what the page says; "..." stands for anything, and so does any amount of space."""
        return not self.expected or doctest.OutputChecker().check_output(self.expected, text, FLAGS)


def read_samples(path: Path) -> Iterator[Sample]:
    """The samples of a page in their order."""
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
    """All pages in MyST, but for what is generated."""
    made = {"generated", "built"}
    return sorted(path for path in folder.rglob("*.md") if not made & {*path.relative_to(folder).parts})
