"""Segments in which ONNX Runtime fails when they run: told once the call is over.

The reference evaluator runs such a segment. If that ends well, it was slow, and a warning says so. If the call fails
behind it all the same, its inputs are at fault: the error begins with what ONNX Runtime said, the first cause.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

from pyrnnx.errors import ArgumentError, PyrnnxError, SlowRuntimeWarning, UnsupportedError, printable, shortened, warn

from .session import NotRunnable

# A number and a name of the kind of error; a place in the source, with the signature of its function.
_NOISE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : |/\S+\.(?:h|cc|cpp):\d+ [^()]*\([^()]*\)(?: const)? ?")
# What it says of types and ranks that a kernel does not take, whatever the values.
_LACKS = re.compile("not[ _]implemented|not support|unsupported|unexpected input data type", re.IGNORECASE)
_MOST_WARNINGS = 8  # of one segment: messages may have values in them


@dataclass(frozen=True)
class Failure:
    """What ONNX Runtime raised, where, and what has been warned of there."""

    where: str
    cause: Exception
    warned: set[str]

    @property
    def lacks(self) -> bool:
        """Whether it would fail for other values, too."""
        return isinstance(self.cause, NotRunnable) or _LACKS.search(str(self.cause)) is not None

    @property
    def _text(self) -> str:
        return shortened(_NOISE.sub("", printable(str(self.cause).strip())))

    def __str__(self) -> str:
        return f"ONNX Runtime failed in {self.where}: {self._text}"

    def warn(self, label: str) -> None:
        """Tell once that the evaluator was slow."""
        text, is_new = self._text, len(self.warned) < _MOST_WARNINGS and self._text not in self.warned
        self.warned.add(text)
        if is_new:
            runs = "runs from now on" if self.lacks else "ran"
            slow = f"which onnx's reference evaluator {runs}, many times slower"
            warn(f"{label}: ONNX Runtime failed in {self.where}, {slow}: {text}", SlowRuntimeWarning)

    def error(self, label: str) -> PyrnnxError:
        kind = UnsupportedError if isinstance(self.cause, NotRunnable) else ArgumentError
        return kind(f"{label}: {self}")


class _Current(threading.local):
    failures: list[Failure] | None = None


_current = _Current()


def note(failure: Failure) -> None:
    """Remember a failure of the call that this thread is in."""
    if _current.failures is not None:
        _current.failures.append(failure)


class Telling:
    """Around a call of a model; `label` is how errors name it."""

    def __init__(self, label: str) -> None:
        self._label, self._failures = label, list[Failure]()

    def __enter__(self) -> None:
        self._before, _current.failures = _current.failures, self._failures

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        _current.failures = self._before
        if not self._failures:
            return
        if error is None:
            for one in self._failures:
                one.warn(self._label)
        elif isinstance(error, PyrnnxError):
            later = str(error).removeprefix(f"{self._label}: ")
            first = f"{self._label}: {self._failures[0]}"
            raise type(error)(f"{first}; behind what onnx's reference evaluator ran then: {later}") from error
