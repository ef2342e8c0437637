"""Split the time of pyrnnx's LSTM into products, gate functions and the rest, with one thread.

Three calls are timed in turns:

- T steps of N rows;
- the same with Relu for every activation function, which costs almost nothing: the difference is the gate functions;
- one step of ROWS rows with one input and no initial state, which has no products: all the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from report import progress, table

from pyrnnx.bench.peers import Pyrnnx
from pyrnnx.bench.timing import measure
from pyrnnx.bench.workload import Case, make_arrays

T = 50
ROWS = 128  # states and sums of so many rows fit into the cache
SIZES = (64, 128, 256, 512)
BATCHES = (1, 4, 16, 64)
HEADER = ["H", "B", "µs a step", "products", "gate functions", "the rest"]


def shares(H: int, N: int, rounds: int) -> list[str]:
    plain = Case("LSTM", T=T, N=N, I=H, H=H, states=False)
    cases = {
        "plain": plain,
        "Relu": replace(plain, attributes={"activations": ["Relu"] * 3}),
        "no product": replace(plain, T=1, N=ROWS, I=1),
    }
    timings = measure({name: Pyrnnx(case, make_arrays(case), 1).run for name, case in cases.items()}, rounds)
    whole = timings.best("plain")
    gates = max(whole - timings.best("Relu"), 0.0)
    products = max(whole - timings.best("no product") * T * N / ROWS, 0.0)
    parts = [products, gates, max(whole - products - gates, 0.0)]
    return [str(H), str(N), f"{1e6 * whole / T:.2f}", *(f"{part / whole:.0%}" for part in parts)]


def rows(rounds: int) -> Iterator[list[str]]:
    for H in SIZES:
        for N in BATCHES:
            row = shares(H, N, rounds)
            progress(" ".join(row))
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    print(table(HEADER, rows(parser.parse_args().rounds)))


if __name__ == "__main__":
    main()
