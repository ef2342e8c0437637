"""Measure the peak memory of one call beyond inputs, weights and code, each library in a process of its own."""

from __future__ import annotations

import argparse
import gc
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from report import progress, table

from pyrnnx.bench.peers import PEERS
from pyrnnx.bench.workload import Case, make_arrays

CASE = Case("LSTM", 4000, 32, 256, 256)
WARM_UP_STEPS = 16
MB = 2**20
CLEAR_REFS = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")


def status(field: str) -> int:
    """Return a field of /proc/self/status in bytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def growth(name: str, case: Case, threads: int) -> tuple[float, float]:
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
    if CLEAR_REFS.exists():
        CLEAR_REFS.write_text("5")  # resets the peak to the resident size
        before = status("VmRSS")
    else:
        before = _max_rss()
    peer = cls(case, arrays, threads)
    Y = peer.run()
    after = status("VmHWM") if CLEAR_REFS.exists() else _max_rss()
    stays = status("VmRSS") - before if STATUS.exists() else float("nan")
    assert Y is not None
    return after - before, stays


def _max_rss() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def in_process(name: str, arguments: argparse.Namespace) -> tuple[float, float]:
    """Return `growth` of a new interpreter."""
    command = [sys.executable, __file__, "--only", name, "--steps", str(arguments.steps)]
    command += ["--cell", arguments.cell, "--threads", str(arguments.threads)]
    progress(name)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, stays = done.stdout.splitlines()[-1].split()
    return float(peak), float(stays)


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
    Y = 4 * case.T * case.N * case.H
    rows, reasons = [], []
    for cls in PEERS:
        reason = cls.refusal(case)
        if reason:
            reasons.append(f"- {cls.name}: {reason}.")
            continue
        peak, stays = in_process(cls.name, arguments)
        rows.append((cls.name, f"{peak / MB:.0f}", f"{(peak - Y) / MB:.0f}", f"{stays / MB:.0f}"))
    print(f"\n### {case.kind} {case.shape} {case.dtype}, threads = {arguments.threads}: Y is {Y / MB:.0f} MB\n")
    print(table(["library", "peak growth MB", "beyond Y MB", "growth after the call MB"], rows))
    print("\n".join(["\nMB: 2^20 bytes.", *reasons]))


if __name__ == "__main__":
    main()
