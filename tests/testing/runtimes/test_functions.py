"""Functions and user-defined classes as runtimes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx import ArgumentError, reference
from pyrnnx.testing.cases import Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes import FunctionRuntime, Runtime, execute

CASE = Case("lstm", "LSTM", {"direction": "bidirectional"}, ("B", "initial_h", "initial_c"), (4, 2, 3))
CASES = [Case(name, "GRU", {}, ("B",)) for name in ("first", "second", "third")]


class Slow(Runtime):
    name = "slow"

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    def supports(self, case: Case) -> bool:
        return case.name != "second"

    def load(self) -> None:
        self._load()

    def run(self, case: Case, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        return (np.zeros(1),)


def test_one_that_cannot_be_loaded_is_loaded_once(tmp_path: Path) -> None:
    def load() -> None:
        with (tmp_path / "log").open("a") as log:
            log.write("loaded\n")
        raise ImportError("libmissing.so: no such file")

    executions = list(execute(Slow(load), CASES))
    said = ("refused", "it cannot be loaded: ImportError: libmissing.so: no such file")
    assert [(one.status, one.detail) for one in executions] == [said, ("not expressible", ""), said]
    assert (tmp_path / "log").read_text() == "loaded\n"


def test_one_that_is_not_installed_is_said_so() -> None:
    class Absent(Slow):
        def installed(self) -> bool:
            return False

    (execution,) = execute(Absent(lambda: None), CASES[:1])
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


@each_row("timeout", [0, -1.0, float("nan"), float("inf"), "5", True])
def test_timeout_is_checked_at_once(timeout: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^execute: timeout is .*; expected a number of seconds above 0$"):
        execute(FunctionRuntime(expected_outputs), CASES, timeout=timeout)


def test_runtime_is_checked_at_once() -> None:
    with pytest.raises(ArgumentError, match=r"^execute: runtime is 'onnxruntime'; expected a Runtime$"):
        execute("onnxruntime", CASES)  # type: ignore[arg-type]


def test_an_error_of_the_arrays_is_the_caller_s() -> None:
    def arrays(case: Case) -> dict[str, Array]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(execute(FunctionRuntime(expected_outputs), CASES, arrays=arrays))


# Functions


def lstm_of_models(model: bytes, inputs: Mapping[str, Array]) -> dict[str, Array]:
    onnx = pytest.importorskip("onnx")
    (node,) = onnx.ModelProto.FromString(model).graph.node
    assert {name for name in node.input if name} == {*inputs}
    direction = {one.name: one for one in node.attribute}["direction"].s.decode()
    return dict(zip(node.output, reference.run(node.op_type, **inputs, direction=direction), strict=True))


def test_a_function_of_models() -> None:
    pytest.importorskip("onnx")
    runtime = FunctionRuntime(lstm_of_models, takes="model")
    assert runtime.name == "lstm_of_models"
    assert not runtime.supports(Case("cell", "LSTMCell-4", T=1))
    (execution,) = execute(runtime, [CASE])
    for given, wanted in zip(execution.outputs, expected_outputs(CASE, make_arrays(CASE)), strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_what_a_function_runtime_takes() -> None:
    with pytest.raises(ArgumentError, match="function is 5; expected a callable"):
        FunctionRuntime(5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="takes is 'IR'; expected 'case' or 'model'"):
        FunctionRuntime(expected_outputs, takes="IR")  # type: ignore[arg-type]
