"""Compare stacks with PyTorch's modules of several layers, on padded batches and sequences of unequal lengths."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from report import progress, table

import pyrnnx
from pyrnnx.bench.timing import geometric_mean, measure, milliseconds
from pyrnnx.frontends.torch import from_module
from pyrnnx.operator.op import CellName

TOLERANCE = 1e-4  # as in `peers`: a different computation differs by more than 1e-2


@dataclass(frozen=True)
class StackCase:
    """A module of PyTorch and the shape of its X; `ragged`: lengths from T/10 to T."""

    cell: str
    num_layers: int
    bidirectional: bool
    batch_first: bool
    T: int
    N: int
    I: int
    H: int
    ragged: bool = False

    def __str__(self) -> str:
        flags = [name for name in ("bidirectional", "batch_first", "ragged") if getattr(self, name)]
        sizes = f"T={self.T} N={self.N} I={self.I} H={self.H}"
        return " ".join([f"{self.num_layers} {self.cell}", *flags, sizes])


CASES = (
    StackCase("LSTM", 2, False, False, 100, 1, 64, 128),
    StackCase("LSTM", 2, True, True, 100, 1, 64, 128),
    StackCase("LSTM", 2, True, True, 100, 32, 64, 128),
    StackCase("LSTM", 3, True, False, 50, 16, 128, 256),
    StackCase("GRU", 2, True, True, 100, 32, 64, 128),
    StackCase("GRU", 2, False, True, 20, 4, 16, 32),
    StackCase("RNN", 2, True, True, 100, 32, 64, 128),
    StackCase("LSTM", 2, True, True, 100, 64, 64, 128, ragged=True),
    StackCase("GRU", 2, True, True, 200, 16, 32, 64, ragged=True),
)


def calls_of(case: StackCase, threads: int) -> dict[str, Callable[[], Any]]:
    """Return the calls to time by name, after a comparison of their results."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    pyrnnx.set_num_threads(threads)
    options = {key: getattr(case, key) for key in ("num_layers", "bidirectional", "batch_first")}
    module = getattr(torch.nn, case.cell)(case.I, case.H, **options).eval()
    stack = from_module(module)
    rng = np.random.default_rng(0)
    if case.ragged:
        lengths = rng.integers(case.T // 10, case.T + 1, case.N)
        sequences = [rng.normal(size=(T, case.I)).astype(np.float32) for T in lengths]
        tensors = list(map(torch.from_numpy, sequences))
        calls = {"pyrnnx": lambda: stack(sequences)[0], "PyTorch": lambda: _ragged(torch, module, tensors)}
        apart = max(np.abs(a - b.numpy()).max() for a, b in zip(calls["pyrnnx"](), calls["PyTorch"](), strict=True))
    else:
        X = rng.normal(size=(case.N, case.T, case.I) if case.batch_first else (case.T, case.N, case.I))
        X = X.astype(np.float32)
        tensor = torch.from_numpy(X)
        calls = {"pyrnnx": lambda: stack(X)[0], "PyTorch": lambda: _whole(torch, module, tensor)}
        apart = np.abs(calls["pyrnnx"]() - calls["PyTorch"]().numpy()).max()
    assert apart < TOLERANCE, apart
    return calls


def _whole(torch: Any, module: Any, X: Any) -> Any:
    with torch.inference_mode():
        return module(X)[0]


def _ragged(torch: Any, module: Any, sequences: list[Any]) -> Any:
    """Run packed sequences; return a tensor for each sequence."""
    rnn = torch.nn.utils.rnn
    with torch.inference_mode():
        packed = module(rnn.pack_sequence(sequences, enforce_sorted=False))[0]
        return rnn.unpack_sequence(packed)


def print_scaling(rounds: int) -> None:
    """Print the time of small batches of three layers with one thread, and its ratio to that with two."""

    def run(threads: int) -> None:
        pyrnnx.set_num_threads(threads)
        stack(X)

    rows = []
    cells: dict[CellName, int] = {"LSTM": 4, "GRU": 3, "RNN": 1}
    for cell, gates in cells.items():
        for N in (1, 4):
            for H in (32, 64, 128, 256):
                progress(f"{cell} N={N} H={H}")
                rng = np.random.default_rng(0)
                W, R = (rng.uniform(-1, 1, (1, gates * H, H)).astype(np.float32) / H**0.5 for _ in "WR")
                stack = pyrnnx.Stack([pyrnnx.Layer(pyrnnx.RecurrentOp(cell, H), W, R)] * 3)
                X = rng.uniform(-1, 1, (100, N, H)).astype(np.float32)
                timings = measure({"1": partial(run, 1), "2": partial(run, 2)}, rounds, threads=2)
                rows.append(
                    (f"3 {cell} T=100 N={N} H={H}", milliseconds(timings.median("1")), f"{timings.ratio('1', '2'):.2f}")
                )
    print("\n### Stacks of three layers, small batches: ms with one thread, and over the time with two\n")
    print(table(["layers", "one thread", "one / two"], rows))
    mean = geometric_mean([float(row[-1]) for row in rows])
    print(f"\nGeometric mean: {mean:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scaling", action="store_true", help="pyrnnx alone: small batches with one and two threads")
    arguments = parser.parse_args()
    if arguments.scaling:
        print_scaling(arguments.rounds)
        return
    for threads in arguments.threads:
        rows = []
        for case in CASES:
            progress(f"{case}, threads = {threads}")
            timings = measure(calls_of(case, threads), arguments.rounds, threads=threads)
            times = [milliseconds(timings.median(name)) for name in ("pyrnnx", "PyTorch")]
            rows.append((str(case), *times, f"{timings.ratio('PyTorch', 'pyrnnx'):.2f}"))
        print(f"\n### Stacks, float32, threads = {threads}, ms\n")
        print(table(["layers", "pyrnnx", "PyTorch", "PyTorch / pyrnnx"], rows))


if __name__ == "__main__":
    main()
