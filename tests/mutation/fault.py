"""A planted fault: one edit of the sources that at least one test must detect."""

from __future__ import annotations

import re
from typing import NamedTuple


class Fault(NamedTuple):
    """One edit of one file.

    Attributes
    ----------
    name : str
    path : str
        The file, relative to the root of the repository.
    text, replacement : str
        A text that occurs exactly once in the file, and its replacement.
    tests : str
        A selection of default tests, as arguments of pytest, that should detect the fault.
    """

    name: str
    path: str
    text: str
    replacement: str
    tests: str

    @property
    def is_compiled(self) -> bool:
        """True if the file must be compiled."""
        return not self.path.endswith(".py")


def faults(table: str) -> tuple[Fault, ...]:
    r"""Return the faults of a text: the name [the file], then indented the text, its replacement, and the tests.

    \n stands for the end of a line, and a blank at the begin of a text belongs to it.
    """
    rows = []
    for block in re.split(r"^(?=\S)", table.strip("\n"), flags=re.MULTILINE)[1:]:
        head, text, replacement, *tests = block.rstrip("\n").split("\n")
        name, _, path = head.removesuffix("]").rpartition(" [")
        text, replacement = (line[4:].replace("\\n", "\n") for line in (text, replacement))
        replacement = "" if replacement == "(nothing)" else replacement
        rows.append(Fault(name, path, text, replacement, " ".join(" ".join(tests).split())))
    return tuple(rows)
