"""Layers and calls that exceed memory: an error that names the array."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_layer
from rows import each_row

from pyrnnx import ArgumentError, Layer, RecurrentOp
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


def repeated(value: Any, *shape: int) -> Any:
    """An array of any size that takes the memory of one element."""
    return np.broadcast_to(value, shape)


ONE = np.float32(1)
LARGE: dict[str, tuple[Callable[[Layer], Any], str]] = {
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
