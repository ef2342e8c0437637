"""Worker process that runs case after case.

It receives the runtime, then each case with its arrays, and answers each. The runtime's own output is redirected.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import queue
import signal
import sys
import tempfile
import threading
import time
import types
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from pyrnnx.errors import printable
from pyrnnx.testing.cases import OUTPUTS, Case
from pyrnnx.testing.runtimes import wire
from pyrnnx.testing.runtimes.base import CrashedError, Outputs, RefusedError, Runtime

# First word of each answer of a worker.
READY, FOREIGN, FAILED = "ready", "foreign", "failed"  # to the runtime: it is loaded, cannot be unpickled, raised
RAN, REFUSED, CRASHED = "ran", "refused", "crashed"  # to a case

LONGEST = 500  # characters of what an error says


def main() -> None:
    """Run a new process, started by `process.Spawned` with two descriptors as arguments."""
    # Classes and functions of the caller's script cannot be imported here; the caller forks itself for them.
    sys.modules["__main__"] = types.ModuleType("__main__")
    commands, answers = int(sys.argv[1]), int(sys.argv[2])
    _prepare(sys.argv[3])
    inbox = _inbox(commands)
    try:
        runtime = pickle.loads(inbox.get())
    except Exception as error:
        _send(answers, (FOREIGN, line_of(error)))
        return
    _serve(runtime, inbox, answers)


def main_of_fork(runtime: Runtime, ends: tuple[int, int, int], callers_ends: Sequence[int], scratch: str) -> NoReturn:
    """Run in a fork of the caller's process with pipes for cases, answers and errors; never returns."""
    try:
        os.setsid()
        commands, answers, errors = ends
        for end in callers_ends:  # if open here, they would hide the end of the caller
            os.close(end)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(errors, 2)
        _prepare(scratch)
        _serve(runtime, _inbox(commands), answers)
        os._exit(0)
    except BaseException:  # the caller's code above this call is not to be unwound, or run, twice
        os._exit(1)


def _prepare(scratch: str) -> None:
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    warnings.simplefilter("ignore")
    faulthandler.disable()  # in a fork it would write to the caller's file
    with suppress(ImportError, OSError, ValueError):  # no core files: cases may crash
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # out of memory, kill this process, not the caller's
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _inbox(commands: int) -> queue.SimpleQueue[Any]:
    """Return a queue of incoming messages; end this process and its children when the caller dies."""
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                messages.put(wire.receive(lambda size: os.read(commands, size)))
        except (EOFError, OSError):
            os.killpg(0, signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()
    return messages


def _send(answers: int, message: Any) -> None:
    data = memoryview(wire.packed(message))
    while data:
        data = data[os.write(answers, data) :]


def _serve(runtime: Runtime, inbox: queue.SimpleQueue[Any], answers: int) -> None:
    errors = os.dup(2)
    _open_streams(errors)
    try:
        runtime.load()
    except BaseException as error:
        _send(answers, (FAILED, line_of(error)))
        return
    _send(answers, (READY,))
    while (message := inbox.get()) is not None:
        _open_streams(errors)
        _send(answers, _run(runtime, *message))


def _open_streams(errors: int) -> None:
    """Reopen the standard streams for each case, whatever the last did to them; output is dropped."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(source, target)
    if nothing > 2:
        os.close(nothing)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)


def _run(runtime: Runtime, case: Case, arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    started = time.perf_counter()
    try:
        outputs = as_outputs(case, runtime.run(case, arrays))
    except CrashedError as error:
        return CRASHED, str(error), time.perf_counter() - started
    except BaseException as error:  # SystemExit, too, is one runtime's way to refuse
        return REFUSED, line_of(error), time.perf_counter() - started
    return RAN, outputs, time.perf_counter() - started


def as_outputs(case: Case, results: Any) -> Outputs:
    """Return a runtime's results as arrays in the operator's order; missing ones are None.

    Raises
    ------
    TypeError
        Something that is no array of numbers.
    """
    if isinstance(results, Mapping):
        results = [results.get(name) for name in OUTPUTS[case.operator]]
    elif not isinstance(results, (tuple, list)):
        results = [results]
    arrays = []
    for place, result in enumerate(results):
        array = None if result is None else np.asarray(result)
        if array is not None and (array.dtype.hasobject or array.dtype.fields or array.dtype.kind in "SUMm"):
            raise TypeError(f"output {place} is {type(result).__name__} of {array.dtype}; expected an array of numbers")
        arrays.append(array)
    return tuple(arrays)


def line_of(error: BaseException) -> str:
    """Return the error in one line, truncated: some are long, with the reason in the third line."""
    text = " ".join([f"{type(error).__name__}:", *str(error).split()]).removesuffix(":")
    if isinstance(error, RefusedError):
        text = text.removeprefix("RefusedError: ")
    return printable(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")
