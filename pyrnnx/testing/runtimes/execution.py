"""Execution of cases by a runtime in a process that may die or hang."""

from __future__ import annotations

import math
import pickle
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyrnnx._internal import scalars
from pyrnnx._internal.child_process import Child, DiedError
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes import worker
from pyrnnx.testing.runtimes.base import Outputs, Runtime

Status = Literal["ran", "refused", "crashed", "timed out", "not expressible"]
LOAD_TIMEOUT = 300.0  # seconds; the first import of a large package on a busy machine takes tens


@dataclass(frozen=True, eq=False)
class Execution:
    """Outcome of one case.

    Attributes
    ----------
    case : Case
    status : str
        "ran"; "refused": the runtime raised, or is not installed; "crashed": its process died; "timed out"; "not
        expressible": the runtime cannot express the case.
    outputs : tuple of ndarray or None
        Outputs of the runtime, None for each missing one; empty unless it ran.
    detail : str
        One line: what was raised, which signal; empty if there is nothing to say.
    seconds : float
        Duration of the run alone.
    """

    case: Case
    status: Status
    outputs: Outputs = ()
    detail: str = ""
    seconds: float = 0.0


def execute(
    runtime: Runtime,
    cases: Iterable[Case],
    *,
    timeout: float = 60.0,
    arrays: Callable[[Case], Mapping[str, Array]] = make_arrays,
) -> Generator[Execution, None, None]:
    """Run cases in order, in a process that may die or hang without ending the run; it ends with the generator.

    The runtime is pickled and loaded in a fresh interpreter. A lambda, a closure, or a definition in a script or
    notebook runs in a fork of this process instead. A fork has no other threads, so import a library that uses threads
    inside the function.

    A case in which the process died is retried once in a new process, because an earlier case may have corrupted
    memory. Output of the runtime is dropped, except for the last line before a crash. Its temporary files are removed
    at the end.

    Parameters
    ----------
    runtime : Runtime
    cases : iterable of Case
    timeout : float
        Seconds that a case may take; loading the runtime is not counted.
    arrays : callable, optional
        Returns the inputs of a case, in the caller's process; default: `make_arrays`.

    Yields
    ------
    Execution
        For every case, in order.

    Raises
    ------
    ArgumentError
        `runtime` is no Runtime, or `timeout` is not above 0.
    """
    if not isinstance(runtime, Runtime):
        raise ArgumentError(f"execute: runtime is {shown(runtime)}; expected a Runtime")
    limit = scalars.number("execute", "timeout", timeout, expected="a number of seconds above 0")
    if not limit > 0 or math.isinf(limit):
        raise ArgumentError(f"execute: timeout is {shown(timeout)}; expected a number of seconds above 0")
    return _executions(runtime, cases, limit, arrays)


def _executions(
    runtime: Runtime, cases: Iterable[Case], timeout: float, arrays: Callable[[Case], Mapping[str, Array]]
) -> Generator[Execution, None, None]:
    with (
        tempfile.TemporaryDirectory(prefix="pyrnnx-", ignore_cleanup_errors=True) as scratch,
        _Series(runtime, scratch, timeout) as series,
    ):
        for case in cases:
            if runtime.supports(case):
                yield series.run(case, arrays(case))
            else:
                yield Execution(case, "not expressible")


class _Series:
    """The runs of one `execute`, and the worker that is alive, if any."""

    def __init__(self, runtime: Runtime, scratch: str, timeout: float) -> None:
        self._runtime, self._scratch, self._timeout = runtime, scratch, timeout
        self._worker: Child | None = None
        # why no case can be run at all
        self._failure: tuple[Status, str] | None = None
        if not runtime.installed():
            self._failure = ("refused", f"{runtime.name} is not installed")
        try:
            self._pickled = pickle.dumps(runtime, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever the pickling of a user's object raises
            self._pickled = b""

    def __enter__(self) -> _Series:
        return self

    def __exit__(self, *error: object) -> None:
        if self._worker is not None:
            self._worker.__exit__(*error)

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Execution:
        fresh = self._worker is None
        execution = self._attempt(case, arrays)
        if execution.status == "crashed" and self._worker is None and not fresh:
            again = self._attempt(case, arrays)
            if again.status == "ran":
                detail = f"at the second try; at the first, after other cases: {execution.detail}"
                return Execution(case, "ran", again.outputs, detail, again.seconds)
            return again
        return execution

    def _attempt(self, case: Case, arrays: Mapping[str, Array]) -> Execution:
        if self._failure is None and self._worker is None:
            self._failure = self._load()
        if self._failure is not None:
            return Execution(case, self._failure[0], (), self._failure[1])
        assert self._worker is not None
        message = pickle.dumps((case, dict(arrays)), pickle.HIGHEST_PROTOCOL)
        started = time.perf_counter()
        try:
            word, content, seconds = _asked(self._worker, message, self._timeout)
        except (DiedError, TimeoutError) as error:
            self._worker = None
            seconds = time.perf_counter() - started
            if isinstance(error, DiedError):
                return Execution(case, "crashed", (), str(error), seconds)
            return Execution(case, "timed out", (), f"no result within {self._timeout:g} s", seconds)
        if word == worker.RAN:
            return Execution(case, "ran", content, "", seconds)
        return Execution(case, "crashed" if word == worker.CRASHED else "refused", (), content, seconds)

    def _load(self) -> tuple[Status, str] | None:
        """Start a worker that is ready for cases, or say why there will be none."""
        # Another interpreter has no lambdas and closures, and nothing of the caller's script or notebook.
        if not self._pickled or b"__main__" in self._pickled:
            self._worker = Child.fork(lambda: worker.main_of_fork(self._runtime, self._scratch))
        else:
            program = "from pyrnnx.testing.runtimes.worker import main; main()"
            self._worker = Child.start(program, {"TMPDIR": self._scratch})
        try:
            word, detail = _asked(self._worker, self._pickled, LOAD_TIMEOUT)
        except DiedError as error:
            return "crashed", f"while it was loaded: {error}"
        except TimeoutError:
            return "timed out", f"not loaded within {LOAD_TIMEOUT:g} s"
        return ("refused", f"it cannot be loaded: {detail}") if word == worker.FAILED else None


def _asked(child: Child, message: bytes, timeout: float) -> Any:
    return pickle.loads(child.ask(message, timeout=timeout))
