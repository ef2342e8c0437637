"""Execution of cases by a runtime in a process that may die or hang."""

from __future__ import annotations

import faulthandler
import math
import os
import pickle
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx._internal.child_process import Child, DiedError, serve
from pyrnnx.errors import ArgumentError, printable, shown
from pyrnnx.testing.cases import OUTPUTS, Case, make_arrays
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import CrashedError, Outputs, RefusedError, Runtime

Status = Literal["ran", "refused", "crashed", "timed out", "not expressible"]
LOAD_TIMEOUT = 300.0  # seconds; the first import of a large package on a busy machine takes tens
LONGEST = 500  # characters of what an error says


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
    """

    case: Case
    status: Status
    outputs: Outputs = ()
    detail: str = ""


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
        self._failure: tuple[Status, str] | None = None  # why no case can be run at all
        if not runtime.installed():
            self._failure = ("refused", f"{runtime.name} is not installed")

    def __enter__(self) -> _Series:
        return self

    def __exit__(self, *error: object) -> None:
        if self._worker is not None:
            self._worker.__exit__(*error)

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Execution:
        is_fresh = self._worker is None
        first = self._attempt(case, arrays)
        if first.status != "crashed" or self._worker is not None or is_fresh:
            return first
        second = self._attempt(case, arrays)
        if second.status != "ran":
            return second
        detail = f"at the second try; at the first, after other cases: {first.detail}"
        return Execution(case, "ran", second.outputs, detail)

    def _attempt(self, case: Case, arrays: Mapping[str, Array]) -> Execution:
        if self._failure is None and self._worker is None:
            self._failure = self._load()
        if self._failure is not None:
            return Execution(case, self._failure[0], (), self._failure[1])
        assert self._worker is not None
        message = pickle.dumps((case, dict(arrays)), pickle.HIGHEST_PROTOCOL)
        try:
            return Execution(case, *pickle.loads(self._worker.ask(message, timeout=self._timeout)))
        except (DiedError, TimeoutError) as error:
            self._worker = None
            if isinstance(error, DiedError):
                return Execution(case, "crashed", (), str(error))
            return Execution(case, "timed out", (), f"no result within {self._timeout:g} s")

    def _load(self) -> tuple[Status, str] | None:
        """Start a worker that is ready for cases, or say why there will be none."""
        try:
            pickled = pickle.dumps(self._runtime, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever the pickling of a user's object raises
            pickled = b""
        # Another interpreter has no lambdas and closures, and nothing of the caller's script or notebook.
        if not pickled or b"__main__" in pickled:
            self._worker = Child.fork(lambda: serve_fork(self._runtime, self._scratch))
        else:
            program = "from pyrnnx.testing.runtimes.execution import serve_cases; serve_cases()"
            self._worker = Child.start(program, {"TMPDIR": self._scratch})
        try:
            problem = pickle.loads(self._worker.ask(pickled, timeout=LOAD_TIMEOUT))
        except DiedError as error:
            return "crashed", f"while it was loaded: {error}"
        except TimeoutError:
            return "timed out", f"not loaded within {LOAD_TIMEOUT:g} s"
        return ("refused", f"it cannot be loaded: {problem}") if problem else None


# In the process that may die


def serve_fork(runtime: Runtime, scratch: str) -> None:
    """Answer in a fork of the caller's process, which has the runtime already."""
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    faulthandler.disable()  # it would write to the caller's file
    serve_cases(lambda message: runtime)


def serve_cases(runtime_of: Callable[[bytes], Runtime] = pickle.loads) -> None:
    """Answer the first message, the runtime, with a problem or "", then cases and arrays with fields of Execution."""
    warnings.simplefilter("ignore")
    loaded: list[Runtime] = []

    def load(message: bytes) -> str:
        try:
            runtime = runtime_of(message)
            runtime.load()
        except BaseException as error:
            return line_of(error)
        loaded.append(runtime)
        return ""

    def answer(message: bytes) -> bytes:
        reply = _run(loaded[0], *pickle.loads(message)) if loaded else load(message)
        return pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)

    serve(answer)


def _run(runtime: Runtime, case: Case, arrays: Mapping[str, Any]) -> tuple[Status, Outputs, str]:
    try:
        return "ran", _as_outputs(case, runtime.run(case, arrays)), ""
    except CrashedError as error:
        return "crashed", (), str(error)
    except BaseException as error:  # SystemExit, too, is one runtime's way to refuse
        return "refused", (), line_of(error)


def _as_outputs(case: Case, results: Any) -> Outputs:
    """Return a runtime's results as arrays in the operator's order; missing ones are None."""
    if isinstance(results, Mapping):
        results = [results.get(name) for name in OUTPUTS[case.operator]]
    elif not isinstance(results, (tuple, list)):
        results = [results]
    arrays = [None if result is None else np.asarray(result) for result in results]
    for place, (array, result) in enumerate(zip(arrays, results, strict=True)):
        if array is not None and (array.dtype.hasobject or array.dtype.fields or array.dtype.kind in "SUMm"):
            raise TypeError(f"output {place} is {type(result).__name__} of {array.dtype}; expected an array of numbers")
    return tuple(arrays)


def line_of(error: BaseException) -> str:
    """Return the error in one line, truncated: some are long, with the reason in the third line."""
    text = " ".join([f"{type(error).__name__}:", *str(error).split()]).removesuffix(":")
    if isinstance(error, RefusedError):
        text = text.removeprefix("RefusedError: ")
    return printable(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")
