"""Threads: bit-identical results for any number, forks, several callers, and no busy idle thread."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_inputs, random_layer
from numpy.typing import NDArray
from rows import each_row

from pyrnnx import Direction, PyrnnxError, RecurrentOp, get_num_threads, set_num_threads
from pyrnnx.operator.op import CELLS, CellName

Y = NDArray[Any]


def example(
    cell: CellName, direction: str, T: int, N: int, H: int, ragged: bool, dtype: str = "float32", **options: Any
) -> Any:
    """A layer and the arguments of a call."""
    op, I = RecurrentOp(cell, H, Direction(direction), **options), 19
    inputs = random_inputs(op, (T, N, I), dtype)
    return random_layer(op, I, dtype), (inputs["X"], inputs["sequence_lens"] if ragged else None, inputs["initial_h"])


def same_bits(a: tuple[Y, ...], b: tuple[Y, ...]) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


# Work that threads share: directions; units of a step (long steps); rows (many short steps); row blocks (a huge batch).
SHARED = {
    "directions": ("bidirectional", 40, 5, 65),
    "units, one row": ("forward", 12, 1, 330),
    "units, some rows": ("reverse", 9, 13, 130),
    "rows": ("forward", 300, 9, 17),
    "directions and units": ("bidirectional", 9, 13, 260),
    "blocks of rows": ("forward", 3, 3000, 33),
}


@each_row(("ragged", "dtype"), [(False, "float32"), (True, "float64")])
@each_row("shared", SHARED)
@each_row("cell", ["RNN", "GRU", "GRU, linear_before_reset", "LSTM"])
def test_results_do_not_depend_on_the_number_of_threads(cell: str, shared: str, ragged: bool, dtype: str) -> None:
    name, _, option = cell.partition(", ")
    options: dict[str, Any] = {option: True} if option else {}
    layer, arguments = example(CELLS[name].name, *SHARED[shared], ragged, dtype, **options)
    set_num_threads(1)
    expected = layer(*arguments)
    for threads in (2, 3, 7):
        set_num_threads(threads)
        assert same_bits(layer(*arguments), expected), threads


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_fork() -> None:
    set_num_threads(2)
    layer, arguments = example("GRU", "bidirectional", 30, 8, 96, True)
    expected = layer(*arguments)
    child = os.fork()
    if child == 0:
        os._exit(0 if same_bits(layer(*arguments), expected) else 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child of a fork did not come back")
    assert os.waitstatus_to_exitcode(status) == 0
    assert same_bits(layer(*arguments), expected)


def test_callers_in_several_threads() -> None:
    """One caller has the pool of threads; others, also those with two directions, run alone."""
    calls = [example("GRU", *SHARED[name], True) for name in ("directions", "units, one row", "rows")]
    set_num_threads(1)
    expected = [layer(*arguments) for layer, arguments in calls]
    set_num_threads(2)
    with ThreadPoolExecutor(3) as callers:
        results = list(callers.map(lambda k: calls[k % 3][0](*calls[k % 3][1]), range(120)))
    assert all(same_bits(result, expected[k % 3]) for k, result in enumerate(results))


IDLE_WORKERS = """
import pathlib, time
import numpy as np
import pyrnnx

def threads():
    return set(pathlib.Path("/proc/self/task").iterdir())

pyrnnx.set_num_threads(2)
R = np.zeros((2, 4 * 96, 96), np.float32)
layer = pyrnnx.Layer(pyrnnx.RecurrentOp("LSTM", 96, pyrnnx.Direction("bidirectional")), R, R)
before = threads()
layer(np.zeros((30, 8, 96), np.float32))
workers = threads() - before
assert workers, "the call had no worker"
deadline = time.monotonic() + 60
while {(worker / "stat").read_text().rpartition(")")[2].split()[0] for worker in workers} != {"S"}:
    assert time.monotonic() < deadline, "a worker is busy, with nothing to do"
    time.sleep(0.01)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list its threads")
def test_idle_threads_sleep() -> None:
    result = run(IDLE_WORKERS)
    assert result.returncode == 0, result.stderr


@each_row("n", [0, -1, 1.0, "2", True, None, 2**31, 2**40, 10**4000, np.bool_(True), np.float32(2)])
def test_number_of_threads_is_a_positive_integer(n: Any) -> None:
    before = get_num_threads()
    with pytest.raises(PyrnnxError, match=r"set_num_threads: n is .* expected a positive integer"):
        set_num_threads(n)
    assert get_num_threads() == before


@each_row("n", [3, np.int64(3), np.uint8(3), np.array(3)], ids=repr)
def test_number_of_threads_may_be_of_numpy(n: Any) -> None:
    set_num_threads(n)
    assert (get_num_threads(), type(get_num_threads())) == (3, int)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # from a folder without a pyrnnx of its own: `python -c` looks there first
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
