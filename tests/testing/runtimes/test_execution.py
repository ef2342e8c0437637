"""Cases run by functions that answer wrongly, raise, crash or hang: the run continues, and leaves no process."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx import ArgumentError
from pyrnnx.testing.cases import Case, expected_outputs
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes import CrashedError, Execution, FunctionRuntime, RefusedError, Runtime, execute

CASE = Case("lstm", "LSTM", {"direction": "bidirectional"}, ("B", "initial_h", "initial_c"), (4, 2, 3))
CASES = [Case(name, "GRU", {}, ("B",)) for name in ("first", "second", "third")]
SOON = 0.3  # seconds, for what never ends
Function = Callable[[Case, Mapping[str, Array]], Any]


def run_one(function: Function, timeout: float = 20.0, case: Case = CASE) -> Execution:
    (execution,) = execute(FunctionRuntime(function), [case], timeout=timeout)
    return execution


def close_everything(case: Case, arrays: Mapping[str, Array]) -> None:
    os.closerange(3, 200)
    time.sleep(60)


def complain_and_abort(case: Case, arrays: Mapping[str, Array]) -> None:
    os.write(2, b"some noise\nterminate called: \x1b[31mno \xff way\n\n")
    os.abort()


def loop(case: Case, arrays: Mapping[str, Array]) -> None:
    while True:
        pass


def raise_(error: BaseException) -> Function:
    def function(case: Case, arrays: Mapping[str, Array]) -> None:
        raise error

    return function


def of(value: Any) -> Function:
    return lambda case, arrays: value


# A function; the outcome of its case, and its message.
ENDS: dict[str, tuple[Function, str, str]] = {
    # It ends itself, or is ended: who comes first. In the first case, which is not tried twice.
    "closes all files": (close_everything, "crashed", ""),
    "raises": (raise_(ValueError("no such\n\tthing")), "refused", "ValueError: no such thing"),
    "raises without words": (raise_(KeyError()), "refused", "KeyError"),
    "raises at length": (raise_(ValueError("x" * 10_000)), "refused", "ValueError: xxx"),
    "refuses in its own words": (raise_(RefusedError("no such\nthing")), "refused", "no such thing"),
    "exits by sys.exit": (lambda case, arrays: sys.exit(3), "refused", "SystemExit: 3"),
    "exits": (lambda case, arrays: os._exit(7), "crashed", "exit status 7"),
    "exits as if all were well": (lambda case, arrays: os._exit(0), "crashed", "exit status 0"),
    "aborts with words": (complain_and_abort, "crashed", "killed by SIGABRT: terminate called: \\x1b[31mno \ufffd way"),
    "has died elsewhere": (raise_(CrashedError("killed by SIGSEGV")), "crashed", "killed by SIGSEGV"),
    "loops for ever": (loop, "timed out", "no result within 0.3 s"),
    "sleeps for ever": (lambda case, arrays: time.sleep(1e6), "timed out", "no result within 0.3 s"),
    "gives text": (of(("Y",)), "refused", "TypeError: output 0 is str of <U1; expected an array"),
    "gives objects": (of((np.array([None]),)), "refused", "TypeError: output 0 is ndarray of object"),
}
# A function, and the shapes and dtypes of the results that arrive; None for one that was left out.
GIVEN: dict[str, tuple[Function, list[tuple[tuple[int, ...], str] | None]]] = {
    "wrong shapes and dtypes": (
        of((np.zeros((2, 0, 3)), [1.0, 2.0], np.int8(5))),
        [((2, 0, 3), "float64"), ((2,), "float64"), ((), "int8")],
    ),
    "nothing": (of(()), []),
    "None": (of(None), [None]),
    "all but one": (of((np.zeros(1), None, np.zeros(2))), [((1,), "float64"), None, ((2,), "float64")]),
    "by name": (of({"Y_c": np.zeros(1), "Y": np.zeros(2)}), [((2,), "float64"), None, ((1,), "float64")]),
    "an input": (lambda case, arrays: arrays["sequence_lens"], [((3,), "int32")]),
}


def test_outputs_arrive_as_they_were_given() -> None:
    function = FunctionRuntime(lambda case, arrays: GIVEN[case.name][0](case, arrays))
    executions = list(execute(function, [replace(CASE, name=name) for name in GIVEN], timeout=20.0))
    for execution, (name, (_, expected)) in zip(executions, GIVEN.items(), strict=True):
        shapes = [None if array is None else (array.shape, array.dtype.name) for array in execution.outputs]
        assert (execution.case.name, execution.status, shapes) == (name, "ran", expected)


def test_the_run_goes_on_after_each_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrnnx._internal.child_process.STOP_TIMEOUT", 0.5)
    function = FunctionRuntime(lambda case, arrays: ENDS[case.name][0](case, arrays))
    executions = list(execute(function, [Case(name, "RNN") for name in ENDS], timeout=SOON))
    for execution, (name, (_, status, detail)) in zip(executions, ENDS.items(), strict=True):
        assert (execution.case.name, execution.status, execution.outputs) == (name, status, ())
        assert execution.detail.startswith(detail)
        assert len(execution.detail) < 600
        assert "\n" not in execution.detail


def test_arrays_of_the_caller() -> None:
    function = FunctionRuntime(lambda case, arrays: arrays["X"])
    (execution,) = execute(function, [CASE], arrays=lambda case: {"X": np.full((2, 3), 7.0)})
    np.testing.assert_array_equal(execution.outputs[0], np.full((2, 3), 7.0))

    def failing(case: Case) -> dict[str, Array]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(execute(function, [CASE], arrays=failing))


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
    assert [(execution.status, execution.detail) for execution in executions] == [("ran", "")] * 3
    assert capfd.readouterr() == ("", "")


class Slow(Runtime):
    name = "slow"

    def __init__(self, load: Callable[[], Any], is_installed: bool = True) -> None:
        self._load, self._is_installed = load, is_installed

    def installed(self) -> bool:
        return self._is_installed

    def supports(self, case: Case) -> bool:
        return case.name != "second"

    def load(self) -> None:
        self._load()

    def run(self, case: Case, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        return (np.zeros(1),)


def test_a_runtime_that_cannot_be_loaded_is_loaded_once(tmp_path: Path) -> None:
    def load() -> None:
        with (tmp_path / "log").open("a") as log:
            log.write("loaded\n")
        raise ImportError("libmissing.so: no such file")

    executions = list(execute(Slow(load), CASES))
    refusal = ("refused", "it cannot be loaded: ImportError: libmissing.so: no such file")
    assert [(one.status, one.detail) for one in executions] == [refusal, ("not expressible", ""), refusal]
    assert (tmp_path / "log").read_text() == "loaded\n"
    (execution,) = execute(Slow(lambda: None, is_installed=False), CASES[:1])
    assert (execution.status, execution.detail) == ("refused", "slow is not installed")


def test_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def function(case: Case, arrays: Mapping[str, Array]) -> Array:
        import tempfile

        path = tempfile.mkdtemp()
        if case.name == "second":
            os.abort()
        return np.frombuffer(path.encode(), np.uint8)

    executions = list(execute(FunctionRuntime(function), CASES))
    path = np.asarray(executions[0].outputs[0]).tobytes().decode()
    assert Path(path).parents[1] == tmp_path
    assert not list(tmp_path.iterdir())


REJECTED: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    *(
        (execute, {"runtime": FunctionRuntime(expected_outputs), "timeout": value}, "timeout is .*; expected a number")
        for value in (0, -1.0, float("nan"), float("inf"), "5", True)
    ),
    (execute, {"runtime": "onnxruntime"}, "runtime is 'onnxruntime'; expected a Runtime"),
    (FunctionRuntime, {"function": 5}, "function is 5; expected a callable"),
]


@each_row(("function", "arguments", "message"), REJECTED)
def test_arguments_are_checked_at_once(function: Callable[..., Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^{function.__name__}: {message}"):
        function(**arguments, **({"cases": CASES} if function is execute else {}))


# Processes


def test_a_worker_runs_case_after_case_and_no_longer() -> None:
    executions = list(execute(FunctionRuntime(lambda case, arrays: np.array(os.getpid())), CASES))
    (pid,) = {int(one.outputs[0]) for one in executions if one.outputs[0] is not None}
    assert pid != os.getpid()
    assert not is_running(pid)


def test_a_case_is_not_blamed_for_the_one_before() -> None:
    damaged: list[str] = []

    def function(case: Case, arrays: Mapping[str, Array]) -> Array:
        if damaged:
            os._exit(9)
        if case.name == "first":
            damaged.append(case.name)
        return np.zeros(1)

    executions = list(execute(FunctionRuntime(function), CASES))
    again = "at the second try; at the first, after other cases: exit status 9"
    assert [(one.status, one.detail) for one in executions] == [("ran", ""), ("ran", again), ("ran", "")]


MODULE = """
import numpy
CHANGED = False
def function(case, arrays):
    return numpy.array([CHANGED])
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of a user, changed since it was imported: a fork sees that, a fresh interpreter does not."""
    (tmp_path / "my_functions.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("my_functions")
    module.CHANGED = True  # type: ignore[attr-defined]
    yield module
    del sys.modules["my_functions"]


@pytest.mark.e2e
def test_what_can_be_pickled_runs_in_a_fresh_interpreter_else_in_a_fork(module: Any) -> None:
    def local(case: Case, arrays: Mapping[str, Array]) -> Any:
        return module.function(case, arrays)

    np.testing.assert_array_equal(run_one(module.function).outputs[0], [False])
    np.testing.assert_array_equal(run_one(local).outputs[0], [True])


def is_running(pid: int) -> bool:
    """A process that has ended may wait for its parent to ask, as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> None:
    for _ in range(1000):
        if not is_running(pid):
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} is still there")


@pytest.mark.e2e
@each_row(("kind", "status"), [("hangs", "timed out"), ("dies", "crashed"), ("ends well", "ran")])
def test_what_a_worker_started_ends_with_it(kind: str, status: str, tmp_path: Path) -> None:
    def function(case: Case, arrays: Mapping[str, Array]) -> Array:
        child = subprocess.Popen(["sleep", "1000"])
        (tmp_path / "pid").write_text(str(child.pid))
        if kind == "dies":
            os.abort()
        if kind == "hangs":
            time.sleep(1e6)
        return np.zeros(1)

    assert run_one(function, 1.0 if kind == "hangs" else 20.0).status == status
    wait_for_end(int((tmp_path / "pid").read_text()))


SCRIPT = """
import os, pathlib, signal, sys, time
from pyrnnx.testing.cases import Case
from pyrnnx.testing.runtimes import FunctionRuntime, execute

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

def function(case, arrays):
    pathlib.Path(sys.argv[1], "pid").write_text(str(os.getpid()))
    print("noise")
    if case.name == "hangs":
        while True:
            pass
    return arrays["X"]

for execution in execute(FunctionRuntime(function), [Case("runs", "RNN"), Case("hangs", "RNN")], timeout=600):
    print(execution.case.name, execution.status, flush=True)
"""


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_an_interrupted_run(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(tmp_path / "script.py"), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "runs ran\n"
    time.sleep(0.2)  # until the case that hangs is under way
    process.send_signal(number)
    assert process.stdout.read() == ""
    process.stdout.close()
    assert process.wait() == -number
    wait_for_end(int((tmp_path / "pid").read_text()))
    if number == signal.SIGINT:
        assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("pyrnnx-")]
