"""Compare modules of PyTorch with `pyrnnx.frontends.torch.accelerate`, eager and inside torch.compile.

python benchmarks/bench_accelerate.py --threads 1
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from report import progress, table, versions

import pyrnnx
from pyrnnx.bench.timing import geometric_mean, measure, milliseconds
from pyrnnx.frontends.torch import accelerate

torch: Any = import_module("torch")
TOLERANCE = 1e-4  # as in `peers`: a different computation differs by more than 1e-2


@dataclass(frozen=True)
class Case:
    """A module and the shape of its input; `packed`: a PackedSequence of lengths from T/10 to T."""

    cell: str
    T: int
    B: int
    I: int
    H: int
    layers: int = 1
    both: bool = False
    packed: bool = False

    def __str__(self) -> str:
        flags = f"{' bidirectional' * self.both}{' packed' * self.packed}"
        layers = f"{self.layers} " if self.layers > 1 else ""
        steps = "" if self.cell.endswith("Cell") else f"T={self.T} "
        return f"{layers}{self.cell}{flags} {steps}B={self.B} I={self.I} H={self.H}"


CASES = (
    Case("LSTM", 1, 1, 64, 64),
    Case("LSTM", 1, 1, 128, 128),
    Case("LSTM", 1, 1, 512, 512),
    Case("GRU", 1, 1, 64, 64),
    Case("GRU", 1, 1, 256, 256, layers=2),
    Case("LSTMCell", 1, 1, 64, 64),
    Case("GRUCell", 1, 32, 128, 128),
    Case("LSTM", 100, 1, 128, 128),
    Case("GRU", 100, 1, 64, 64),
    Case("RNN", 100, 1, 128, 128),
    Case("GRU", 50, 8, 128, 128, both=True),
    Case("LSTM", 100, 8, 80, 256, layers=2, both=True),
    Case("LSTM", 100, 16, 64, 128, packed=True),
    Case("LSTM", 50, 32, 256, 256, layers=2, both=True),
    Case("LSTM", 100, 64, 128, 512),
    Case("GRU", 100, 64, 128, 512),
)


class Model(torch.nn.Module):  # type: ignore[misc]
    """A recurrent module between two other layers, as in real models."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        options = {} if case.cell.endswith("Cell") else {"num_layers": case.layers, "bidirectional": case.both}
        self.first = torch.nn.Linear(case.I, case.I)
        self.recurrent = getattr(torch.nn, case.cell)(case.I, case.H, **options)
        self.last = torch.nn.Linear(case.H * (1 + case.both), 4)

    def forward(self, x: Any) -> Any:
        y = self.recurrent(torch.tanh(self.first(x)))
        return self.last(y[0] if isinstance(y, tuple) else y)


def calls_of(case: Case, compiled: bool) -> dict[str, Callable[[], Any]]:
    """Return the calls to time by name, after a comparison of their results for three inputs."""
    torch.manual_seed(0)
    shape = (case.B, case.I) if case.cell.endswith("Cell") else (case.T, case.B, case.I)
    inputs: list[Any] = [torch.randn(shape) for _ in range(3)]
    model = Model(case).eval()
    module = model if compiled else model.recurrent
    if case.packed:
        lengths = torch.linspace(case.T, case.T // 10, case.B).long()
        inputs = [torch.nn.utils.rnn.pack_padded_sequence(x, lengths) for x in inputs]
        module = model.recurrent
    modules = {"PyTorch": module, "pyrnnx": accelerate(module)}
    if compiled:
        torch._dynamo.reset()
        modules = {name: torch.compile(module) for name, module in modules.items()}
    for x in inputs:
        theirs, ours = (_first(module(x)) for module in modules.values())
        assert (theirs - ours).abs().max() < TOLERANCE
    return {name: lambda module=module: module(inputs[0]) for name, module in modules.items()}  # type: ignore[misc]


def _first(results: Any) -> Any:
    while isinstance(results, tuple):
        results = results[0]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--processor-time", action="store_true", help="for a busy machine; one thread only")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of torch.compile about RNN modules
    torch.set_num_threads(arguments.threads)
    pyrnnx.set_num_threads(arguments.threads)
    clock = time.process_time if arguments.processor_time else time.perf_counter
    options: dict[str, Any] = {"threads": arguments.threads, "max_time": 6, "clock": clock}
    kinds = {"eager": False, "compiled": True}
    rows, ratios = [], {kind: list[float]() for kind in kinds}
    cases = [case for case in CASES if arguments.only in str(case)]
    with torch.inference_mode():
        for case in cases:
            progress(str(case))
            row = [str(case)]
            for kind, compiled in kinds.items():
                timings = measure(calls_of(case, compiled), arguments.rounds, **options)
                ratios[kind].append(timings.ratio("PyTorch", "pyrnnx"))
                row += [milliseconds(timings.median(name)) for name in ("PyTorch", "pyrnnx")]
                row.append(f"{ratios[kind][-1]:.2f}")
            rows.append(row)
    means = [["geometric mean"], *(["", "", f"{geometric_mean(ratios[kind]):.2f}"] for kind in kinds)]
    rows.append([cell for part in means for cell in part])
    names = [f"{name}, {kind}" for kind in kinds for name in ("PyTorch ms", "pyrnnx ms", "ratio")]
    print(f"{versions()}\n\n### Modules, threads = {arguments.threads}\n")
    print(table(["module", *names], rows))


if __name__ == "__main__":
    main()
