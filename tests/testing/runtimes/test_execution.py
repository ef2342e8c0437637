"""Cases run by functions that answer wrongly, raise, crash or hang: the run continues."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyrnnx.testing.cases import Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes import CrashedError, Execution, FunctionRuntime, RefusedError, execute

CASE = Case("lstm", "LSTM", {"direction": "bidirectional"}, ("B", "initial_h", "initial_c"), (4, 2, 3))
CASES = [Case(name, "GRU", {}, ("B",)) for name in ("first", "second", "third")]
SOON = 0.3  # seconds, for what never ends


def run_one(function: Callable[..., Any], timeout: float = 20.0, case: Case = CASE) -> Execution:
    (execution,) = execute(FunctionRuntime(function), [case], timeout=timeout)
    return execution


def allocate(case: Case, arrays: Mapping[str, Array]) -> Array:
    return np.ones(2**60, np.uint8)


def close_everything(case: Case, arrays: Mapping[str, Array]) -> None:
    os.closerange(3, 200)
    time.sleep(60)


def complain_and_abort(case: Case, arrays: Mapping[str, Array]) -> None:
    os.write(2, b"some noise\nterminate called: \x1b[31mno \xff way\n\n")
    os.abort()


def loop(case: Case, arrays: Mapping[str, Array]) -> None:
    while True:
        pass


def raise_(error: BaseException) -> Callable[..., Any]:
    def function(case: Case, arrays: Mapping[str, Array]) -> None:
        raise error

    return function


# A function; the outcome of its case, and its message.
ENDS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "raises": (raise_(ValueError("no such\n\tthing")), "refused", "ValueError: no such thing"),
    "raises without words": (raise_(KeyError()), "refused", "KeyError"),
    "raises at length": (raise_(ValueError("x" * 10_000)), "refused", "ValueError: xxx"),
    "refuses in its own words": (raise_(RefusedError("no such\nthing")), "refused", "no such thing"),
    "exits by sys.exit": (lambda case, arrays: sys.exit(3), "refused", "SystemExit: 3"),
    "is interrupted": (raise_(KeyboardInterrupt()), "refused", "KeyboardInterrupt"),
    "exits": (lambda case, arrays: os._exit(7), "crashed", "exit status 7"),
    "exits as if all were well": (lambda case, arrays: os._exit(0), "crashed", "exit status 0"),
    "aborts": (lambda case, arrays: os.abort(), "crashed", "killed by SIGABRT"),
    "aborts with words": (complain_and_abort, "crashed", "killed by SIGABRT: terminate called: \\x1b[31mno \ufffd way"),
    "has died elsewhere": (raise_(CrashedError("killed by SIGSEGV")), "crashed", "killed by SIGSEGV"),
    "closes all files": (close_everything, "crashed", ""),  # it ends itself, or is ended: who comes first
    "loops for ever": (loop, "timed out", "no result within 0.3 s"),
    "sleeps for ever": (lambda case, arrays: time.sleep(1e6), "timed out", "no result within 0.3 s"),
    "allocates too much": (allocate, "refused", "MemoryError: Unable to allocate"),
    "gives text": (lambda case, arrays: ("Y",), "refused", "TypeError: output 0 is str of <U1; expected an array"),
    "gives objects": (lambda case, arrays: (np.array([None]),), "refused", "TypeError: output 0 is ndarray of object"),
    "gives an object": (lambda case, arrays: Case, "refused", "TypeError: output 0 is type of object"),
}


def wrong_shapes(case: Case, arrays: Mapping[str, Array]) -> Any:
    return np.zeros((2, 0, 3)), [1.0, 2.0], np.int8(5)


# A function, and the shapes and dtypes of the results that arrive; None for one that was left out.
GIVEN: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], str] | None]]] = {
    "wrong shapes and dtypes": (wrong_shapes, [((2, 0, 3), "float64"), ((2,), "float64"), ((), "int8")]),
    "nothing": (lambda case, arrays: (), []),
    "None": (lambda case, arrays: None, [None]),
    "all but one": (
        lambda case, arrays: (np.zeros(1), None, np.zeros(2)),
        [((1,), "float64"), None, ((2,), "float64")],
    ),
    "one array": (lambda case, arrays: np.zeros(3), [((3,), "float64")]),
    "by name": (
        lambda case, arrays: {"Y_c": np.zeros(1), "Y": np.zeros(2)},
        [((2,), "float64"), None, ((1,), "float64")],
    ),
    "an input": (lambda case, arrays: [arrays["sequence_lens"]], [((3,), "int32")]),
}


def test_outputs_arrive_as_they_were_given() -> None:
    def function(case: Case, arrays: Mapping[str, Array]) -> Any:
        return GIVEN[case.name][0](case, arrays)

    executions = list(execute(FunctionRuntime(function), [replace(CASE, name=name) for name in GIVEN], timeout=20.0))
    assert [execution.case.name for execution in executions] == list(GIVEN)
    for execution in executions:
        _, expected = GIVEN[execution.case.name]
        assert (execution.case.name, execution.status) == (execution.case.name, "ran")
        shapes = [None if one is None else (one.shape, one.dtype.name) for one in execution.outputs]
        assert shapes == expected, execution.case.name


def test_the_run_goes_on_after_each_end() -> None:
    def function(case: Case, arrays: Mapping[str, Array]) -> Any:
        return ENDS[case.name][0](case, arrays)

    executions = list(execute(FunctionRuntime(function), [Case(name, "RNN") for name in ENDS], timeout=SOON))
    assert [execution.case.name for execution in executions] == list(ENDS)
    for execution in executions:
        _, status, detail = ENDS[execution.case.name]
        assert (execution.case.name, execution.status, execution.outputs) == (execution.case.name, status, ())
        assert execution.detail.startswith(detail)
        assert len(execution.detail) < 600
        assert "\n" not in execution.detail


def test_arrays_of_the_caller() -> None:
    asked: list[str] = []

    def arrays(case: Case) -> dict[str, Array]:
        asked.append(case.name)
        return {"X": np.full((2, 3), 7.0)}

    (execution,) = execute(FunctionRuntime(lambda case, arrays: arrays["X"]), [CASE], arrays=arrays)
    np.testing.assert_array_equal(execution.outputs[0], np.full((2, 3), 7.0))
    assert asked == ["lstm"]


@pytest.mark.e2e
def test_what_is_printed_reaches_no_one(capfd: pytest.CaptureFixture[str]) -> None:
    def function(case: Case, arrays: Mapping[str, Array]) -> Array:
        print("text" * 100_000)
        print("error" * 100_000, file=sys.stderr)
        for descriptor in (1, 2):
            os.write(descriptor, bytes(range(256)) * 4096)
        if case.name == "second":
            os.close(1)
        if case.name == "third":
            sys.stdout.close()
        return np.arange(3)

    executions = list(execute(FunctionRuntime(function), CASES))
    assert [(one.status, one.detail) for one in executions] == [("ran", "")] * 3
    assert capfd.readouterr() == ("", "")
