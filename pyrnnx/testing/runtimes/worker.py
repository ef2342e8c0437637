"""Worker process that runs case after case."""

from __future__ import annotations

import faulthandler
import os
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.child_process import serve
from pyrnnx.errors import printable
from pyrnnx.testing.cases import OUTPUTS, Case
from pyrnnx.testing.runtimes.base import CrashedError, Outputs, RefusedError, Runtime

# First word of each answer of a worker.
READY, FAILED = "ready", "failed"  # to the runtime
RAN, REFUSED, CRASHED = "ran", "refused", "crashed"  # to a case

LONGEST = 500  # characters of what an error says


def main() -> None:
    """Run a new interpreter, which unpickles the runtime."""
    _run_worker(pickle.loads)


def main_of_fork(runtime: Runtime, scratch: str) -> None:
    """Run a fork of the caller's process, which has the runtime already."""
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    faulthandler.disable()  # it would write to the caller's file
    _run_worker(lambda message: runtime)


def _run_worker(runtime_of: Callable[[bytes], Runtime]) -> None:
    """Answer the first message, the runtime, then messages of a case with its arrays."""
    warnings.simplefilter("ignore")
    loaded: list[Runtime] = []

    def answer(message: bytes) -> bytes:
        words: tuple[Any, ...]
        if loaded:
            words = _run(loaded[0], *pickle.loads(message))
        else:
            try:
                runtime = runtime_of(message)
                runtime.load()
                loaded.append(runtime)
                words = READY, ""
            except BaseException as error:
                words = FAILED, line_of(error)
        return pickle.dumps(words, pickle.HIGHEST_PROTOCOL)

    serve(answer)


def _run(runtime: Runtime, case: Case, arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    started = time.perf_counter()
    try:
        outputs = _as_outputs(case, runtime.run(case, arrays))
    except CrashedError as error:
        return CRASHED, str(error), time.perf_counter() - started
    except BaseException as error:  # SystemExit, too, is one runtime's way to refuse
        return REFUSED, line_of(error), time.perf_counter() - started
    return RAN, outputs, time.perf_counter() - started


def _as_outputs(case: Case, results: Any) -> Outputs:
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
