"""The process in which a runtime runs case after case.

It is given the runtime, then a case with its arrays at a time, and answers each: what a runtime prints goes elsewhere.
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

# What a worker answers: one of these words first.
READY, FOREIGN, FAILED = "ready", "foreign", "failed"  # to the runtime: it is loaded, cannot be unpickled, raised
RAN, REFUSED, CRASHED = "ran", "refused", "crashed"  # to a case

LONGEST = 500  # characters of what an error says


def main() -> None:
    """A process of its own, started by `process.Spawned` with two descriptors as its arguments."""
    # A class or function of the caller's script is nowhere to be found here, so the caller forks itself for it.
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
    """In a fork of the caller's process: to read cases from, to write answers and errors to; it never returns."""
    try:
        os.setsid()
        commands, answers, errors = ends
        for end in callers_ends:  # held here, they would not tell that the caller is gone
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
    faulthandler.disable()  # in a fork it would write where the caller told it to
    with suppress(ImportError, OSError, ValueError):  # no core files where cases are to crash
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # where memory runs out, this process goes, not the caller's
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _inbox(commands: int) -> queue.SimpleQueue[Any]:
    """A queue of the messages to come. When the caller is gone, so is this process with all that it started."""
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
    """The standard streams, for every case anew, whatever the one before did to them: what is printed is dropped."""
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


def as_outputs(case: Case, given: Any) -> Outputs:
    """What a runtime gave, as arrays in the operator's order; what it left out is None.

    Raises
    ------
    TypeError
        Something that is no array of numbers.
    """
    if isinstance(given, Mapping):
        given = [given.get(name) for name in OUTPUTS[case.operator]]
    elif not isinstance(given, (tuple, list)):
        given = [given]
    arrays = []
    for place, one in enumerate(given):
        array = None if one is None else np.asarray(one)
        if array is not None and (array.dtype.hasobject or array.dtype.fields or array.dtype.kind in "SUMm"):
            raise TypeError(f"output {place} is {type(one).__name__} of {array.dtype}; expected an array of numbers")
        arrays.append(array)
    return tuple(arrays)


def line_of(error: BaseException) -> str:
    """The error in one line, cut where it is long: some runtimes' are, with the reason in the third line."""
    text = " ".join([f"{type(error).__name__}:", *str(error).split()]).removesuffix(":")
    if isinstance(error, RefusedError):
        text = text.removeprefix("RefusedError: ")
    return printable(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")
