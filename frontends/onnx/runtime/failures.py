"""Calls in which an ONNX Runtime session fails, and their warnings and errors.

The reference evaluator repeats the call. If it succeeds, a warning says that it was slow. If it fails too, the inputs
are wrong, and the error contains both messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrnnx.errors import ArgumentError, PyrnnxError, SlowRuntimeWarning, UnsupportedError, printable, shortened, warn

from .session import NotRunnable

# Number and name of the error code; nodes around the failed node; source line and signature of a function.
_NOISE = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : |Non-zero status code returned while running \S+ node\. Name:'[^']*' "
    r"Status Message: (?=Non-zero)|/\S+\.(?:h|cc|cpp):\d+ [^()]*\([^()]*\)(?: const)? ?"
)
# Phrases about dtypes and ranks that a kernel rejects whatever the values.
_LACKS = re.compile("not[ _]implemented|not support|unsupported|unexpected input data type", re.IGNORECASE)
_MOST_WARNINGS = 8  # per program: messages may contain values


@dataclass(frozen=True)
class Failure:
    """Exception of an ONNX Runtime session, with its place and the warnings issued so far."""

    where: str
    cause: Exception
    warned: set[str]

    @property
    def lacks(self) -> bool:
        """Return whether the session would fail for all values of these dtypes and ranks."""
        return isinstance(self.cause, NotRunnable) or _LACKS.search(str(self.cause)) is not None

    @property
    def _text(self) -> str:
        return shortened(_NOISE.sub("", printable(str(self.cause).strip())))

    def __str__(self) -> str:
        return f"ONNX Runtime failed in {self.where}: {self._text}"

    def warn(self, label: str) -> None:
        """Warn that the slow evaluator ran, once per text."""
        text, is_new = self._text, len(self.warned) < _MOST_WARNINGS and self._text not in self.warned
        self.warned.add(text)
        if is_new:
            runs = "runs from now on" if self.lacks else "ran"
            slow = f"which onnx's reference evaluator {runs}, many times slower"
            warn(f"{label}: ONNX Runtime failed in {self.where}, {slow}: {text}", SlowRuntimeWarning)

    def error(self, label: str) -> PyrnnxError:
        kind = UnsupportedError if isinstance(self.cause, NotRunnable) else ArgumentError
        return kind(f"{label}: {self}")
