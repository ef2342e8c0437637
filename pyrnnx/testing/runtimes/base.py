"""Interface of a runtime in the conformance kit."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from pyrnnx.testing.cases import Case
from pyrnnx.testing.numbers import Array

Outputs = tuple[Array | None, ...]


class CrashedError(Exception):
    """Raised by a `Runtime.run` whose computation died in a separate process; the message says how."""


class RefusedError(Exception):
    """Raised by a `Runtime.run` to refuse a case.

    Reports show only the message. For any other exception, they show its type as well.
    """


class Runtime(ABC):
    """Implementation of recurrent operators under test.

    `installed`, `version` and `supports` run in the caller's process and import nothing; `execute` calls `load` and
    `run` in a worker process.

    Attributes
    ----------
    name : str
        Name in tables and messages.
    """

    name: str

    def installed(self) -> bool:
        """Return whether the runtime is installed, without importing it."""
        return True

    def version(self) -> str:
        """Return the version, or "" if it is not known."""
        return ""

    def supports(self, case: Case) -> bool:
        """Return whether the runtime can express the case. If it can but does not implement it, `run` raises."""
        return case.family == "ONNX"

    def load(self) -> None:  # noqa: B027  nothing to load is the usual case
        """Import what `run` needs. This is not timed as part of a case."""

    @abstractmethod
    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        """Compute the case.

        Parameters
        ----------
        case : Case
        arrays : mapping of str to ndarray
            The inputs that are given, by the operator's names and in its order.

        Returns
        -------
        tuple of ndarray or None
            The outputs in the operator's order and arrangement, with the dtypes that the runtime gave; None stands
            for one that it left out.

        Raises
        ------
        CrashedError
            The runtime has a process of its own, which died.
        Exception
            Whatever else is raised is the runtime's refusal.
        """


class PackageRuntime(Runtime):
    """A runtime that is a Python package.

    Attributes
    ----------
    package : str
        Its top-level name in an import statement.
    """

    package: ClassVar[str]

    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def version(self) -> str:
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return ""
