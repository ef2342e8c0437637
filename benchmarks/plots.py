"""Plot times against sequence length, batch size, hidden size and number of threads, in benchmarks/results/."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from report import progress

from pyrnnx.bench.peers import PEERS, checked_peers
from pyrnnx.bench.plot import COLOURS
from pyrnnx.bench.timing import measure
from pyrnnx.bench.workload import Case
from pyrnnx.operator.op import CellName

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

Lines = dict[str, list[float]]  # by library, along the x axis

RESULTS = Path(__file__).with_name("results")
MARKERS = {"pyrnnx": "o", "ONNX Runtime": "s", "OpenVINO": "^", "PyTorch": "D"}
CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Panel:
    """A panel of a figure: cases along an axis, each with its number of threads."""

    title: str
    x: Sequence[int]
    cases: Sequence[tuple[Case, int]]
    per_row: bool = False

    @property
    def unit(self) -> str:
        return "µs per step and row" if self.per_row else "µs per step"

    def microseconds(self, case: Case, seconds: float) -> float:
        return 1e6 * seconds / (case.T * case.N if self.per_row else case.T)


def figures(cell: CellName, lbr: int) -> dict[str, tuple[str, list[Panel]]]:
    """Return the figures: {file name: (label of the x axis, two panels)}."""

    def point(T: int, N: int, H: int, threads: int = 1) -> tuple[Case, int]:
        return Case(cell, T, N, H, H, linear_before_reset=lbr), threads

    steps, batches, sizes = (1, 3, 10, 30, 100, 300, 1000), (1, 2, 4, 8, 16, 32, 64), (16, 32, 64, 128, 256, 512)
    threads = sorted({2**k for k in range(CORES.bit_length())} | {CORES})
    by_length = [Panel(f"N={N}, I=H=128", steps, [point(T, N, 128) for T in steps]) for N in (1, 8)]
    by_batch = [Panel(f"T=50, I=H={H}", batches, [point(50, N, H) for N in batches], per_row=True) for H in (128, 256)]
    by_size = [Panel(f"T=50, N={N}", sizes, [point(50, N, H) for H in sizes]) for N in (1, 16)]
    by_threads = [
        Panel(f"T=50, N={N}, I=H={H}", threads, [point(50, N, H, n) for n in threads]) for N, H in ((1, 512), (32, 256))
    ]
    return {
        "sequence_length": ("sequence length T", by_length),
        "batch_size": ("batch size N", by_batch),
        "hidden_size": ("hidden size H = input size I", by_size),
        "threads": ("threads", by_threads),
    }


def measured(panel: Panel, rounds: int) -> Lines:
    """Return the best of the rounds in the panel's unit; points of a curve are not timed in turns."""
    values: Lines = {}
    for case, threads in panel.cases:
        peers, _ = checked_peers(case, threads)
        timings = measure({name: peer.run for name, peer in peers.items()}, rounds, threads=threads, max_time=3.0)
        for name in peers:
            values.setdefault(name, []).append(panel.microseconds(case, timings.best(name)))
        progress(f"{panel.title}: {case.kind} {case.shape}, threads = {threads}")
    return values


def draw(path: Path, title: str, x_label: str, panels: Sequence[Panel], values: Sequence[Lines]) -> None:
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 4.0), layout="constrained")
    for ax, panel, lines in zip(axes, panels, values, strict=True):
        for cls in PEERS:
            if cls.name in lines:
                style: dict[str, Any] = {"color": COLOURS[cls.name], "marker": MARKERS[cls.name], "markersize": 5}
                ax.plot(panel.x, lines[cls.name], label=cls.name, linewidth=2 if cls is PEERS[0] else 1.3, **style)
        ax.set_title(panel.title, fontsize=10)
        ax.set_xlabel(x_label)
        ax.set_ylabel(panel.unit)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(panel.x, [str(x) for x in panel.x])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.grid(visible=True, linewidth=0.5, alpha=0.5)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cell", default="LSTM", choices=["LSTM", "GRU", "RNN"])
    parser.add_argument("--linear-before-reset", type=int, default=1, choices=[0, 1], help="attribute of a GRU")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    lbr = arguments.linear_before_reset if arguments.cell == "GRU" else 0
    RESULTS.mkdir(exist_ok=True)
    for name, (x_label, panels) in figures(arguments.cell, lbr).items():
        values = [measured(panel, arguments.rounds) for panel in panels]
        kind = panels[0].cases[0][0].kind
        threads = "" if x_label == "threads" else ", one thread"
        path = RESULTS / f"{kind.lower().replace(' ', '_').replace('=', '')}_{name}.png"
        draw(path, f"{kind}, float32{threads}: best of several rounds, lower is better", x_label, panels, values)
        data = {
            panel.title: {"x": list(panel.x), "unit": panel.unit, **lines}
            for panel, lines in zip(panels, values, strict=True)
        }
        path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n")
        print(path)


if __name__ == "__main__":
    main()
