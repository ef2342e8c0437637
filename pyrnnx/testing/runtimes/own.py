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
from typing import Any

from pyrnnx._internal.child_process import TAIL, signal_name, with_last_line
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases import OUTPUTS, Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import CrashedError, Outputs, RefusedError, Runtime

# Signals that end a crashed program. A shell returns 128 plus the number of the signal.
FATAL = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV)


class FunctionRuntime(Runtime):
    """A function that computes a case.

    Test your own runtime::

        from pyrnnx.testing.onnx_models import make_model

        def run(case, arrays):  # the model has one node, and its inputs are all arrays of the case
            return my_runtime.load(make_model(case, arrays).SerializeToString()).run(arrays)

        for execution in execute(FunctionRuntime(run), CASES):
            print(execution.case.name, execution.status, execution.detail)

    Parameters
    ----------
    function : callable
        `function(case, arrays)`. It returns the outputs in the operator's order, or a mapping by their names; missing
        outputs are None or have no entry.
    name : str, optional
        Default: the name of the function.

    Raises
    ------
    ArgumentError
        `function` cannot be called.
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        if not callable(function):
            raise ArgumentError(f"FunctionRuntime: function is {shown(function)}; expected a callable")
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def supports(self, case: Case) -> bool:
        return True

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        outputs: Outputs = self.function(case, dict(arrays))
        return outputs


class CommandRuntime(Runtime):
    """A command that runs ONNX models.

    It reads a folder in the format of ONNX's backend tests: model.onnx, and test_data_set_0 with input_0.pb and so on,
    a TensorProto for each input of the graph in order. It writes output_0.pb and so on for the outputs of the graph
    beside them; missing files are missing outputs. An exit status other than 0 is a refusal; its reason is the last
    line of stderr. If a signal killed the command, or the program that a shell ran for it, it crashed.

    Parameters
    ----------
    command : str or sequence of str
        The program and its arguments. `{folder}` is replaced by the path of the folder, by default the last argument.
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
            data = write_backend_test(case, folder, arrays, outputs=())
            self._call(folder, Path(scratch, "stderr"))
            paths = [data / f"output_{place}.pb" for place in range(len(OUTPUTS[case.operator]))]
            return tuple(_read(path, read_tensor) if path.exists() else None for path in paths)

    def _call(self, folder: Path, errors: Path) -> None:
        command = [word.replace("{folder}", str(folder)) for word in self.command]
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
