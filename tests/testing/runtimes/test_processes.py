"""Processes that run cases: their number and duration, and that none is left."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyrnnx.testing.cases import Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes import Execution, FunctionRuntime, execute

CASE = Case("lstm", "LSTM", {"direction": "bidirectional"}, ("B", "initial_h", "initial_c"), (4, 2, 3))
CASES = [Case(name, "GRU", {}, ("B",)) for name in ("first", "second", "third")]


def run_one(function: Callable[..., Any], timeout: float = 20.0, case: Case = CASE) -> Execution:
    (execution,) = execute(FunctionRuntime(function), [case], timeout=timeout)
    return execution


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

    first, second, third = execute(FunctionRuntime(function), CASES)
    assert (first.status, first.detail) == ("ran", "")
    assert (second.status, second.detail) == (
        "ran",
        "at the second try; at the first, after other cases: exit status 9",
    )
    assert (third.status, third.detail) == ("ran", "")


MODULE = """
import os, numpy
CHANGED = False
def function(case, arrays):
    return numpy.array([CHANGED])
def cannot_be_found(case, arrays):
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
def test_what_can_be_pickled_runs_in_a_fresh_interpreter(module: Any) -> None:
    np.testing.assert_array_equal(run_one(module.function).outputs[0], [False])


def test_what_cannot_be_pickled_runs_in_a_fork(module: Any) -> None:
    def function(case: Case, arrays: Mapping[str, Array]) -> Any:
        return module.function(case, arrays)

    execution = run_one(function)
    np.testing.assert_array_equal(execution.outputs[0], [True])


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
@pytest.mark.parametrize("kind", ["hangs", "dies", "ends well"])
def test_what_a_worker_started_ends_with_it(kind: str, tmp_path: Path) -> None:
    def function(case: Case, arrays: Mapping[str, Array]) -> Array:
        child = subprocess.Popen(["sleep", "1000"])
        (tmp_path / "pid").write_text(str(child.pid))
        if kind == "dies":
            os.abort()
        if kind == "hangs":
            time.sleep(1e6)
        return np.zeros(1)

    status = {"hangs": "timed out", "dies": "crashed", "ends well": "ran"}[kind]
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
@pytest.mark.parametrize(("number", "how"), [(signal.SIGINT, "-c"), (signal.SIGKILL, "script")])
def test_no_process_outlives_an_interrupted_run(number: signal.Signals, how: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    program = ["-c", SCRIPT] if how == "-c" else [str(tmp_path / "script.py")]
    process = subprocess.Popen(
        [sys.executable, "-W", "error", *program, str(tmp_path)],
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
