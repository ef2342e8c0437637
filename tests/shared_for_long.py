"""Threads that share layers, stacks, models and streams for long: `python tests/shared_for_long.py --calls 100000`.

Each thread calls one subject after another, with other inputs every time, and compares each result with the expected
one. Meanwhile another thread changes the number of threads, batch invariance and the limit of memory. The exit status
is 1 if a result was wrong, an error was raised that the limit does not explain, or memory grew.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    tests = Path(__file__).parent
    sys.path[:1] = [str(tests), *map(str, sorted(tests.glob("frontends/*/builders")))]

import numpy as np
from layers import random_layer
from onnx import helper
from onnx_models import simple_model

import pyrnnx
from pyrnnx.testing.numbers import Array

INPUTS = 4  # that a subject is called with in turns
TOLERANCE = 2e-5  # float32: rows are divided into other blocks if the number of threads changes
LIMITS = (1, 2**32)  # bytes that a call of a model may use; every model needs more than 1
SWITCH = 1e-4  # seconds
GROWTH = 2**24  # bytes that memory may grow by after a tenth of the calls
Call = Callable[[int], list[Array]]


def subjects() -> dict[str, Call]:
    """Return functions of the number of an input, which all threads share; streams are guarded by a lock."""
    rng = np.random.default_rng(0)
    T, N, I, H = 7, 5, 6, 24
    X = [rng.uniform(-1, 1, (T, N, I)).astype(np.float32) for _ in range(INPUTS)]
    lens = [rng.integers(0, T + 1, N).astype(np.int32) for _ in range(INPUTS)]
    wide = [np.repeat(array, 40, axis=1) for array in X]
    lstm, gru = (random_layer(pyrnnx.RecurrentOp(cell, H), I) for cell in ("LSTM", "GRU"))
    quick = random_layer(pyrnnx.RecurrentOp("RNN", 9), I)
    stack = pyrnnx.Stack([lstm, random_layer(pyrnnx.RecurrentOp("GRU", H), H)])
    names = {"W": lstm.weights["W"], "R": lstm.weights["R"], "B": lstm.weights["B"]}
    nodes = [
        helper.make_node("Add", ["X", "X"], ["x"]),
        helper.make_node("LSTM", ["x", "W", "R", "B", "lens"], ["Y", "Y_h"], hidden_size=H),
        helper.make_node("Relu", ["Y"], ["y"]),
    ]
    model = pyrnnx.load(simple_model(nodes, {"X": X[0], "lens": lens[0]}, ["y", "Y_h"], names))
    one: dict[str, Any] = {"quick": quick.stream(N), "gru": gru.stream(N), "stack": stack.stream(N)}
    guards = {name: threading.Lock() for name in one}

    def streamed(name: str, number: int) -> list[Array]:
        with guards[name]:
            one[name].reset()
            return [
                np.array(arrays) for half in (X[number][:3], X[number][3:]) for arrays in _flat(one[name].push(half))
            ]

    return {
        "layer": lambda k: _flat(quick.run(X[k])),
        "layer with lengths": lambda k: _flat(lstm.run(X[k], lens[k])),
        "layer with many rows": lambda k: _flat(gru.run(wide[k])),
        "stack": lambda k: _flat(stack.run(X[k], lens[k])),
        "ragged": lambda k: _flat(stack.run([X[k][:3, 0], X[k][:5, 1], X[k][:, 2]])),
        "model": lambda k: _flat(model(X[k], lens[k])),
        "new stream": lambda k: _flat(lstm.stream(N).push(X[k])),
        **{f"stream, {name}": lambda k, name=name: streamed(name, k) for name in one},  # type: ignore[misc]
    }


def _flat(results: Any) -> list[Array]:
    if isinstance(results, np.ndarray):
        return [results]
    parts = results.values() if isinstance(results, Mapping) else results
    return [array for part in parts for array in _flat(part)]


class Soak:
    """Threads, their calls, and what was wrong."""

    def __init__(self, threads: int, calls: int, seed: int = 0) -> None:
        self.threads, self.calls, self.seed = threads, calls, seed
        self.subjects = subjects()
        self.expected = {name: [call(k) for k in range(INPUTS)] for name, call in self.subjects.items()}
        self.done: Counter[str] = Counter()
        self.refused, self.changes = 0, 0
        self.mistakes: list[str] = []
        self.memory: list[int] = []
        self._lock = threading.Lock()

    def run(self) -> float:
        """Run all threads; return the seconds that it took."""
        start = time.monotonic()
        workers = [threading.Thread(target=self._work, args=(self.seed + k,)) for k in range(self.threads)]
        running = threading.Event()
        other = threading.Thread(target=self._change, args=(running,))
        before = pyrnnx.get_num_threads(), pyrnnx.get_batch_invariant(), pyrnnx.get_memory_limit()
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH)
        try:
            for thread in (*workers, other):
                thread.start()
            for thread in workers:
                thread.join()
            running.set()
            other.join()
        finally:
            sys.setswitchinterval(interval)
            pyrnnx.set_num_threads(before[0])
            pyrnnx.set_batch_invariant(before[1])
            pyrnnx.set_memory_limit(before[2])
        return time.monotonic() - start

    def _change(self, stopped: threading.Event) -> None:
        rng = random.Random(self.seed)
        while not stopped.wait(rng.uniform(0, 0.02)):
            pyrnnx.set_num_threads(rng.choice((1, 2, 3)))
            pyrnnx.set_batch_invariant(rng.random() < 0.5)
            pyrnnx.set_memory_limit(rng.choice(LIMITS))
            self.changes += 1

    def _work(self, seed: int) -> None:
        rng, names = random.Random(seed), list(self.subjects)
        for _ in range(self.calls):
            name, k = rng.choice(names), rng.randrange(INPUTS)
            wrong = ""
            try:
                wrong = self._difference(name, k)
                refused = False
            except pyrnnx.PyrnnxError as error:
                refused = name == "model" and "memory" in str(error)
                wrong = "" if refused else repr(error)
            except Exception as error:
                refused, wrong = False, repr(error)
            with self._lock:
                self.done[name] += 1
                self.refused += refused
                if wrong:
                    self.mistakes.append(f"{name}, input {k}: {wrong[:500]}")
                if sum(self.done.values()) * 20 % (self.threads * self.calls) < 20:
                    gc.collect()
                    self.memory.append(resident())

    def _difference(self, name: str, k: int) -> str:
        results, expected = self.subjects[name](k), self.expected[name][k]
        if [array.shape for array in results] != [array.shape for array in expected]:
            return "other shapes"
        worst = max(float(np.abs(a - b).max(initial=0)) for a, b in zip(results, expected, strict=True))
        return "" if worst <= TOLERANCE else f"differs by {worst}"  # not "> TOLERANCE": NaN

    def growth(self) -> int:
        """Return the bytes that memory grew by after a tenth of the calls, to the last of 20 samples."""
        return self.memory[-1] - self.memory[min(2, len(self.memory) - 1)]


def resident() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024


def main() -> int:
    """Print what was done; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--calls", type=int, default=2_000, help="of each thread")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    soak = Soak(options.threads, options.calls, options.seed)
    seconds = soak.run()
    print(f"{sum(soak.done.values())} calls of {options.threads} threads in {seconds:.0f} s, {soak.changes} changes")
    print(", ".join(f"{name} {count}" for name, count in soak.done.items()))
    print(f"refused by the limit of memory: {soak.refused}; wrong: {len(soak.mistakes)}", *soak.mistakes[:10], sep="\n")
    print(f"resident memory: {soak.memory[0] / 1e6:.1f} MB at first, {max(soak.memory) / 1e6:.1f} at most, ", end="")
    print(f"{soak.memory[-1] / 1e6:.1f} at the end")
    return int(bool(soak.mistakes) or soak.growth() > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
