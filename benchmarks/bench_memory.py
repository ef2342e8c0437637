"""Measure the peak memory of one call beyond inputs, weights and code, each library in a process of its own (Linux)."""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
from dataclasses import replace

from report import MB, progress, reset_peak, status, table, versions

from pyrnnx.bench.peers import PEERS
from pyrnnx.bench.workload import Case, make_arrays

CASE = Case("LSTM", 4000, 32, 256, 256)
WARM_UP_STEPS = 16


def growth(name: str, case: Case, threads: int) -> tuple[int, int]:
    """Return the growth of memory at its peak and after the call, in bytes, from before the layer is built.

    A call with few steps loads all code before. The growth includes building the layer, because a library that plans
    memory for fixed shapes allocates it then; the weights themselves are 2 MB.
    """
    cls = next(cls for cls in PEERS if cls.name == name)
    small = replace(case, T=WARM_UP_STEPS)
    warm = cls(small, make_arrays(small), threads)
    warm.run()
    warm.run()
    arrays = make_arrays(case)
    gc.collect()
    before = reset_peak()
    peer = cls(case, arrays, threads)
    Y = peer.run()
    assert Y is not None
    return status("VmHWM") - before, status("VmRSS") - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cell", default=CASE.cell, choices=["RNN", "GRU", "LSTM"])
    parser.add_argument("--steps", type=int, default=CASE.T)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=[cls.name for cls in PEERS], help="measure one library in this process")
    arguments = parser.parse_args()
    case = replace(CASE, cell=arguments.cell, T=arguments.steps)
    if arguments.only:
        print(*growth(arguments.only, case, arguments.threads))
        return
    Y, rows = 4 * case.T * case.N * case.H, []
    for cls in PEERS:
        if reason := cls.refusal(case):
            progress(f"{cls.name}: {reason}")
            continue
        command = [sys.executable, __file__, *sys.argv[1:], "--only", cls.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peak, after = map(int, done.stdout.splitlines()[-1].split())
        rows.append((cls.name, f"{peak / MB:.0f}", f"{(peak - Y) / MB:.0f}", f"{after / MB:.0f}"))
    print(versions())
    print(f"\n### {case.kind} {case.shape} {case.dtype}, threads = {arguments.threads}: Y is {Y / MB:.0f} MB\n")
    print(table(["library", "peak growth MB", "beyond Y MB", "growth after the call MB"], rows))


if __name__ == "__main__":
    main()
