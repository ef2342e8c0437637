"""Threads that share layers, stacks, models and streams while another thread changes settings."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from layers import random_layer
from onnx import helper
from onnx_models import simple_model

import pyrnnx
from pyrnnx.testing.numbers import Array

pytestmark = pytest.mark.slow

INPUTS = 4  # inputs of each subject
THREADS, CALLS = 16, 60  # calls of each thread
TOLERANCE = 2e-5  # float32: rows are divided into other blocks if the number of threads changes
LIMITS = (1, 2**32)  # bytes that a call of a model may use; every model needs more than 1
Call = Callable[[int], list[Array]]


def subjects() -> dict[str, Call]:
    """Return functions of the number of an input, which all threads share; streams are guarded by a lock."""
    rng = np.random.default_rng(0)
    T, N, I, H = 7, 5, 6, 24
    X = [rng.uniform(-1, 1, (T, N, I)).astype(np.float32) for _ in range(INPUTS)]
    lens = [rng.integers(0, T + 1, N).astype(np.int32) for _ in range(INPUTS)]
    wide = [np.repeat(array, 40, axis=1) for array in X]
    lstm, gru = (random_layer(pyrnnx.RecurrentOp(cell, H), I) for cell in ("LSTM", "GRU"))
    stack = pyrnnx.Stack([lstm, random_layer(pyrnnx.RecurrentOp("GRU", H), H)])
    nodes = [
        helper.make_node("Add", ["X", "X"], ["x"]),
        helper.make_node("LSTM", ["x", "W", "R", "B", "lens"], ["Y", "Y_h"], hidden_size=H),
        helper.make_node("Relu", ["Y"], ["y"]),
    ]
    weights = {name: lstm.weights[name] for name in "WRB"}
    model = pyrnnx.load(simple_model(nodes, {"X": X[0], "lens": lens[0]}, ["y", "Y_h"], weights))
    streams: dict[str, Any] = {"gru": gru.stream(N), "stack": stack.stream(N)}
    guards = {name: threading.Lock() for name in streams}

    def streamed(name: str, number: int) -> list[Array]:
        with guards[name]:
            streams[name].reset()
            halves = (X[number][:3], X[number][3:])
            return [np.array(array) for half in halves for array in flat(streams[name].push(half))]

    return {
        "layer with lengths": lambda k: flat(lstm.run(X[k], lens[k])),
        "layer with many rows": lambda k: flat(gru.run(wide[k])),
        "stack": lambda k: flat(stack.run(X[k], lens[k])),
        "ragged": lambda k: flat(stack.run([X[k][:3, 0], X[k][:5, 1], X[k][:, 2]])),
        "model": lambda k: flat(model(X[k], lens[k])),
        "new stream": lambda k: flat(lstm.stream(N).push(X[k])),
        "stream of a layer": lambda k: streamed("gru", k),
        "stream of a stack": lambda k: streamed("stack", k),
    }


def flat(results: Any) -> list[Array]:
    if isinstance(results, np.ndarray):
        return [results]
    parts = results.values() if isinstance(results, Mapping) else results
    return [array for part in parts for array in flat(part)]


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


def test_threads_share_everything_while_settings_change() -> None:
    calls = subjects()
    expected = {name: [call(k) for k in range(INPUTS)] for name, call in calls.items()}
    done, mistakes, ended = Counter[str](), list[str](), threading.Event()

    def change() -> None:
        rng = random.Random(0)
        while not ended.wait(rng.uniform(0, 0.02)):
            pyrnnx.set_num_threads(rng.choice((1, 2, 3)))
            pyrnnx.set_batch_invariant(rng.random() < 0.5)
            pyrnnx.set_memory_limit(rng.choice(LIMITS))

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(CALLS):
            name, k = rng.choice(list(calls)), rng.randrange(INPUTS)
            try:
                for result, wanted in zip(calls[name](k), expected[name][k], strict=True):
                    np.testing.assert_allclose(result, wanted, rtol=0, atol=TOLERANCE)
            except Exception as error:
                if not (name == "model" and isinstance(error, pyrnnx.PyrnnxError) and "memory" in str(error)):
                    mistakes.append(f"{name}, input {k}: {error!r}")
            done[name] += 1

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    other = threading.Thread(target=change)
    for thread in (*workers, other):
        thread.start()
    for thread in workers:
        thread.join()
    ended.set()
    other.join()
    assert not mistakes
    assert done.keys() == calls.keys()
