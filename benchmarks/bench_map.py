"""Draw a map of the speed of LSTM layers over hidden_size and rows, and print the places below their neighbours.

`python benchmarks/bench_map.py docs/static/map.png` writes the picture in docs/performance.md.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from report import progress

from pyrnnx import Layer, RecurrentOp, config, set_num_threads
from pyrnnx._kernels import engines
from pyrnnx.bench.timing import measure

mpl.use("Agg")
import matplotlib.pyplot as plt

STEPS = 20
ROWS = (1, 2, 3, 4, 6, 8, 12, 16)
SIZES = range(8, 521, 8)
LOWEST = 0.85  # of the mean of both neighbours in hidden_size
PASSES = 12  # over the map, each in another order: other programs disturb another part of each


def speeds(size: int) -> list[float]:
    """Return GFLOP/s of the products of an LSTM with input_size = hidden_size, for each number of rows."""
    rng = np.random.default_rng(size)
    W, R = (rng.uniform(-1, 1, (1, 4 * size, size)).astype(np.float32) / size**0.5 for _ in "WR")
    layer = Layer(RecurrentOp("LSTM", size), W, R)
    inputs = {str(rows): rng.normal(size=(STEPS, rows, size)).astype(np.float32) for rows in ROWS}
    timings = measure({name: lambda X=X: layer(X) for name, X in inputs.items()}, rounds=5)  # type: ignore[misc]
    return [16e-9 * STEPS * rows * size**2 / min(timings.seconds[str(rows)]) for rows in ROWS]


def draw(maps: dict[str, NDArray[Any]], path: str) -> None:
    figure, panels = plt.subplots(len(maps), figsize=(7, 2.2 * len(maps)), layout="constrained", squeeze=False)
    for axes, (isa, best) in zip(panels[:, 0], maps.items(), strict=True):
        image = axes.imshow(best, aspect="auto", origin="lower", vmin=0, extent=(4, 524, -0.5, len(ROWS) - 0.5))
        axes.set_yticks(range(len(ROWS)), [str(rows) for rows in ROWS])
        axes.set_ylabel("rows")
        axes.set_title(isa, fontsize=9)
        figure.colorbar(image, label="GFLOP/s")
    panels[-1, 0].set_xlabel("hidden_size")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    path = parser.parse_args().path
    set_num_threads(1)
    maps = {isa: np.zeros((len(ROWS), len(SIZES))) for isa in engines.supported()}
    order = random.Random(0)
    for number in range(PASSES):
        for isa, best in maps.items():
            config.ISA = isa
            progress(f"{isa}, pass {number + 1} of {PASSES}")
            for place in order.sample(range(len(SIZES)), len(SIZES)):
                best[:, place] = np.maximum(best[:, place], speeds(SIZES[place]))
    for isa, best in maps.items():
        inner = best[:, 1:-1] / ((best[:, :-2] + best[:, 2:]) / 2)
        print(f"{isa}: lowest {inner.min():.2f} of its neighbours")
        for row, column in np.argwhere(inner < LOWEST):
            print(f"  rows {ROWS[row]}, hidden_size {SIZES[column + 1]}: {inner[row, column]:.2f}")
    draw(maps, path)


if __name__ == "__main__":
    main()
