"""A planted fault: one edit of the sources that at least one test must detect."""

from __future__ import annotations

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
