"""Layers and calls that exceed memory: an error that names the array."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import MATRICES, needs_matrices, random_layer
from rows import each_row

from pyrnnx import ArgumentError, Layer, RecurrentOp
from pyrnnx._kernels import engines
from pyrnnx.operator.op import CellName

N, T, I, H = 3, 4, 2, 5
X = np.random.default_rng(2).normal(size=(T, N, I)).astype(np.float32)


def layer_of(cell: CellName) -> Layer:
    return random_layer(RecurrentOp(cell, H), I, np.float32)


def test_outputs_beyond_memory() -> None:
    layer = layer_of("RNN")
    for steps in (2**40, 2**59):  # more than there is, and than NumPy can count
        X = np.broadcast_to(np.ones(layer.input_size, np.float32), (steps, 1, layer.input_size))
        with pytest.raises(ArgumentError, match=rf"RNN: X has shape \({steps}, 1, .*; the outputs exceed memory \("):
            layer(X)


# There is room for the results of a call, 2.4 MiB, and not for the 1.6 MiB of scratch memory of a row block.
WITHOUT_ROOM = """
import resource
import numpy as np
import pyrnnx

pyrnnx.set_num_threads(1)
ones = lambda *shape: np.ones(shape, np.float32)
layer = pyrnnx.Layer(pyrnnx.RecurrentOp("RNN", 16), ones(1, 16, 1), ones(1, 16, 16))
X = ones(1, 20_000, 1)
layer(X[:, :1])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 3 * 2**20,) * 2)
try:
    layer(X)
except pyrnnx.ArgumentError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of a process's memory")
def test_no_room_to_work_in() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ROOM], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert "X has shape (1, 20000, 1); the scratch buffers exceed memory" in done.stdout, done.stderr


# A push of as many rows as matrices multiply, for the first of which the weights are split: without room for that.
PUSH_WITHOUT_ROOM = """
import resource
import numpy as np
import pyrnnx

pyrnnx.set_num_threads(1)
ones = lambda *shape: np.ones(shape, np.float32)
layer = pyrnnx.Layer(pyrnnx.RecurrentOp("LSTM", 256), ones(1, 1024, 1024), ones(1, 1024, 256))
stream, X = layer.stream(16), ones(1, 16, 1024)
layer.stream(15).push(X[:, :15])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, limits[1]))
for push in (lambda: stream.push(X), lambda: layer(X)):
    try:
        push()
    except pyrnnx.ArgumentError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_AS, limits)
assert stream.push(X).tobytes() == layer(X)[0].tobytes()
print("as before")
"""


@pytest.mark.e2e
@needs_matrices
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of a process's memory")
def test_no_room_to_split_the_weights() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PUSH_WITHOUT_ROOM],
        env={**os.environ, "PYRNNX_ENGINE": "simd", "PYRNNX_ISA": MATRICES[0]},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    error = "LSTM: X has shape (1, 16, 1024); the split weights exceed memory"
    assert done.stdout.splitlines() == [error, error, "as before"], done.stderr


# Script: prints the memory that a call takes beside its arrays, with more rows and input than matrices take at once.
WORKED_IN = """
import numpy as np
import pyrnnx

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

pyrnnx.set_num_threads(1)
full = lambda *shape: np.full(shape, 0.1, np.float32)
layer = pyrnnx.Layer(pyrnnx.RecurrentOp("LSTM", 64, "reverse"), full(1, 256, 2048), full(1, 256, 64))
X = full(1, 2048, 2048)
layer(X[:, :17])
before = peak()
layer(X)
print(peak() - before)
"""


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux" or "amx" not in engines.supported(), reason="needs Linux and AMX")
def test_what_is_worked_in_does_not_grow_with_rows_and_input() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKED_IN], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert float(done.stdout) < 12, done.stderr  # MiB; X is 16, its split rows 24


def repeated(value: Any, *shape: int) -> Any:
    """An array of any size that takes the memory of one element."""
    return np.broadcast_to(value, shape)


ONE = np.float32(1)
LARGE: dict[str, tuple[Callable[[Layer], Any], str]] = {
    "X": (lambda layer: layer(repeated(ONE, 1 << 40, 1, I)), "X has shape .*memory"),
    "X of a push": (lambda layer: layer.stream(1).push(repeated(ONE, 1 << 40, 1, I)), "X has shape .*memory"),
    "X of other byte order": (lambda layer: layer(repeated(np.array(1, ">f4"), 1 << 40, 1, I)), "X has shape .*memory"),
    "lengths": (lambda layer: layer(X, repeated(np.int32(1), 1 << 40)), "sequence_lens has shape .*expected"),
    "W of other byte order": (
        lambda layer: Layer(layer.op, repeated(np.array(1, ">f4"), 1, 4 * H, 1 << 40), layer.weights["R"]),
        "W has shape .*memory",
    ),
}


@each_row("name", LARGE)
def test_broadcast_arrays_beyond_memory(name: str) -> None:
    call, words = LARGE[name]
    with pytest.raises(ArgumentError, match=f"LSTM: {words}"):
        call(layer_of("LSTM"))
