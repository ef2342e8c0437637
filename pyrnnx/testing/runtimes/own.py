"""A user's function or command as a runtime."""

from __future__ import annotations

import importlib
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pyrnnx._internal.child_process import TAIL, signal_name, with_last_line
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases import OUTPUTS, Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import CrashedError, Outputs, RefusedError, Runtime

# Signals that end a crashed program. A shell returns 128 plus the number of the signal.
FATAL = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV)


class FunctionRuntime(Runtime):
    """A function that computes a case, or runs an ONNX model of one node.

    Test your own runtime::

        mine = FunctionRuntime(lambda model, inputs: my_runtime.load(model).run(inputs), takes="model")
        for execution in execute(mine, CASES):
            print(execution.case.name, execution.status, execution.detail)

    Parameters
    ----------
    function : callable
        `function(case, arrays)`, or with takes="model" `function(model, inputs)`: the bytes of an ONNX model whose
        inputs are all arrays of the case, and these by name. It returns the outputs in the operator's order, or a
        mapping by their names; missing outputs are None or have no entry.
    name : str, optional
        Default: the name of the function.
    takes : "case" or "model"
        A function of models supports only ONNX's operators.

    Raises
    ------
    ArgumentError
        `function` cannot be called, or `takes` is neither.
    """

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, *, takes: Literal["case", "model"] = "case"
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"FunctionRuntime: function is {shown(function)}; expected a callable")
        if takes not in ("case", "model"):
            raise ArgumentError(f"FunctionRuntime: takes is {shown(takes)}; expected 'case' or 'model'")
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.takes = takes

    def supports(self, case: Case) -> bool:
        return self.takes == "case" or case.family == "ONNX"

    def load(self) -> None:
        if self.takes == "model":
            importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        if self.takes == "case":
            outputs: Outputs = self.function(case, dict(arrays))
        else:
            from pyrnnx.testing.onnx_models import make_model

            outputs = self.function(make_model(case, arrays).SerializeToString(), dict(arrays))
        return outputs


class CommandRuntime(Runtime):
    """A command that runs ONNX models.

    It reads a folder in the format of ONNX's backend tests: model.onnx, and test_data_set_0 with input_0.pb and so on,
    a TensorProto for each input of the graph in order. It writes output_0.pb and so on for the outputs of the graph;
    missing files are missing outputs. An exit status other than 0 is a refusal; its reason is the last line of stderr.
    If a signal killed the command, or the program that a shell ran for it, it crashed.

    Parameters
    ----------
    command : str or sequence of str
        The program and its arguments. `{folder}` is replaced by the path of the folder, by default the last argument;
        `{output}` by an empty folder for the outputs, by default the folder of the inputs.
    name : str, optional
        Default: the name of the program.

    Raises
    ------
    ArgumentError
        `command` is empty, or does not consist of strings.
    """

    def __init__(self, command: str | Sequence[str], name: str | None = None) -> None:
        try:
            words = shlex.split(command) if isinstance(command, str) else [*command]
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"CommandRuntime: command is {shown(command)}: {error}") from None
        if not words or not all(isinstance(word, str) for word in words):
            raise ArgumentError(f"CommandRuntime: command is {shown(command)}; expected a program and its arguments")
        self.command = words if any("{folder}" in word for word in words) else [*words, "{folder}"]
        self.name = name or Path(words[0]).name

    def installed(self) -> bool:
        return shutil.which(self.command[0]) is not None

    def load(self) -> None:
        importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        from pyrnnx.testing.onnx_models import read_tensor, write_backend_test

        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "test_case")
            output = write_backend_test(case, folder, arrays, outputs=())
            if any("{output}" in word for word in self.command):
                output = Path(scratch, "output")
                output.mkdir()
            self._call(folder, output, Path(scratch, "stderr"))
            paths = [output / f"output_{place}.pb" for place in range(len(OUTPUTS[case.operator]))]
            return tuple(_read(path, read_tensor) if path.exists() else None for path in paths)

    def _call(self, folder: Path, output: Path, errors: Path) -> None:
        command = [word.replace("{folder}", str(folder)).replace("{output}", str(output)) for word in self.command]
        with errors.open("w+b") as stderr:
            status = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, check=False
            ).returncode
            stderr.seek(max(stderr.seek(0, 2) - TAIL, 0))
            last = stderr.read()
        killed_by = -status if status < 0 else status - 128
        if status < 0 or killed_by in FATAL:
            raise CrashedError(with_last_line(f"killed by {signal_name(killed_by)}", last))
        if status:
            raise RefusedError(with_last_line(f"exit status {status}", last))


def _read(path: Path, read_tensor: Callable[[Path], Array]) -> Array:
    try:
        return read_tensor(path)
    except Exception as error:  # onnx has no one error for what is broken
        raise RefusedError(f"its {path.name} is no TensorProto: {error}") from error
