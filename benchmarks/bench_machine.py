"""Measure the limits of one core, and the LSTM's share of them: multiply-adds at a large batch, reads at batch 1."""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from report import table
from versions import cache_sizes

from pyrnnx.bench.peers import checked_peers
from pyrnnx.bench.timing import Timings, measure, milliseconds
from pyrnnx.bench.workload import GATES, Case

SOURCE = Path(__file__).with_name("machine.c")
TRIES = 15
TRY_TIME = 0.02  # seconds of one try
ALIGNMENT = 4096  # bytes of one piece of the read loop
LARGE_BATCH = Case("LSTM", 50, 64, 512, 512)
SWEEPS = (("RNN", 512), ("LSTM", 256), ("GRU", 384), ("LSTM", 384), ("GRU", 512), ("LSTM", 512), ("LSTM", 1024))
BATCH_1 = Case("LSTM", 100, 1, 256, 256)


def compile_machine(folder: str) -> ctypes.CDLL:
    """Compile machine.c for this processor, by the system's C compiler or that of the variable CC."""
    library = str(Path(folder, "machine.so"))
    command = [os.environ.get("CC", "cc"), "-O3", "-std=gnu11", "-fPIC", "-shared", "-o", library, str(SOURCE)]
    for target in ("-march=native", "-mcpu=native"):
        done = subprocess.run([*command, target], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
    else:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    machine = ctypes.CDLL(library)
    result = ctypes.POINTER(ctypes.c_float)
    machine.operations_per_pass.restype = ctypes.c_size_t
    machine.multiply_add.argtypes = [ctypes.c_size_t, result]
    machine.read_block.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, result]
    machine.multiply_add.restype = machine.read_block.restype = ctypes.c_double
    return machine


def peak_operations(machine: ctypes.CDLL) -> float:
    """Return float32 operations per second, two for a multiply-add: the best of several tries."""
    result = ctypes.c_float()
    passes = 1_000_000
    passes = int(passes * TRY_TIME / machine.multiply_add(passes, result)) + 1
    best = min(machine.multiply_add(passes, result) for _ in range(TRIES))
    return float(machine.operations_per_pass() * passes / best)


def read_rate(machine: ctypes.CDLL, size: int, *, to_and_fro: bool = False) -> float:
    """Return bytes per second of repeated reads of a block of that size: the best of several tries."""
    size -= size % ALIGNMENT
    memory = np.full(size + ALIGNMENT, 0, np.uint8)  # written, so that its pages are mapped
    address = memory.ctypes.data + -memory.ctypes.data % ALIGNMENT
    result = ctypes.c_float()
    once = max(machine.read_block(address, size, 2, to_and_fro, result) / 2, 1e-9)
    passes = int(TRY_TIME / once) + 1
    best: float = min(machine.read_block(address, size, passes, to_and_fro, result) for _ in range(TRIES))
    return size * passes / best


def blocks() -> dict[str, int]:
    """Return sizes of blocks: one that fits into each cache, and one far larger than the last cache."""
    sizes = cache_sizes() or {"L1": 2**15, "L2": 2**19, "L3": 2**23}
    return {level: size // 2 for level, size in sizes.items()} | {"memory": 4 * max(sizes.values())}


def sweeps(machine: ctypes.CDLL) -> Iterator[list[str]]:
    """Yield rows about the gain of steps that read R in alternating directions."""
    for cell, H in SWEEPS:
        size = 4 * GATES[cell] * H * H
        rates = [read_rate(machine, size, to_and_fro=to_and_fro) for to_and_fro in (False, True)]
        yield [cell, str(H), str(size // 1024), *(f"{rate / 1e9:.0f}" for rate in rates), f"{rates[1] / rates[0]:.2f}"]


def time_case(case: Case, rounds: int) -> Timings:
    peers, _ = checked_peers(case, 1)
    return measure({name: peer.run for name, peer in peers.items()}, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        machine = compile_machine(folder)
        peak = peak_operations(machine)
        print("\n### one core\n")
        rates = {
            f"reads from {level}, block of {size // 1024} KB": read_rate(machine, size)
            for level, size in blocks().items()
        }
        rows = [("float32 multiply-adds", f"{peak / 1e9:.0f} GFLOP/s")]
        print(
            table(["limit", "measured"], [*rows, *((name, f"{rate / 1e9:.0f} GB/s") for name, rate in rates.items())])
        )

        print("\n### R, read front to back, and to and fro\n")
        print(table(["cell", "H", "R, KB", "front to back, GB/s", "to and fro, GB/s", "ratio"], sweeps(machine)))

        timings = time_case(LARGE_BATCH, rounds)
        peak = max(peak, peak_operations(machine))
    print_share(LARGE_BATCH, timings, peak)
    print_bytes(BATCH_1, time_case(BATCH_1, rounds))


def print_share(case: Case, timings: Timings, peak: float) -> None:
    print(f"\n### {case.cell} {case.shape}, one thread: share of the multiply-add peak, {peak / 1e9:.0f} GFLOP/s\n")
    rows = []
    for name in timings.seconds:
        rate = case.operations / timings.best(name)
        rows.append((name, milliseconds(timings.best(name)), f"{rate / 1e9:.0f}", f"{rate / peak:.0%}"))
    print(table(["library", "best ms", "GFLOP/s", "share of peak"], rows))


def print_bytes(case: Case, timings: Timings) -> None:
    weights = 4 * GATES[case.cell] * case.H
    size = f"R {weights * case.H // 1024} KB, W {weights * case.I // 1024} KB"
    print(f"\n### {case.cell} {case.shape}, one thread: bytes of weights per second ({size})\n")
    rows = []
    for name in timings.seconds:
        steps = case.T / timings.best(name)
        R, both = steps * weights * case.H / 1e9, steps * weights * (case.H + case.I) / 1e9
        rows.append((name, milliseconds(timings.best(name)), f"{R:.0f}", f"{both:.0f}"))
    print(table(["library", "best ms", "GB/s of R", "GB/s of R and W"], rows))
    print("\nAs if each step read the weights once; W may be read less often, because X is known for all steps.")


if __name__ == "__main__":
    main()
