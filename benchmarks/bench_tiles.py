"""Estimate with llvm-mca how close the tiles of neon.c come to the limits of processors, as a Markdown table.

Needs a cross compiler (gcc-aarch64-linux-gnu) and llvm-mca, which knows no caches: every load hits L1.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from report import table

PROCESSORS = ("neoverse-n1", "neoverse-n2", "neoverse-v2", "cortex-a72", "cortex-a76", "apple-m1")
KERNELS = Path(__file__).parent.parent / "pyrnnx/_kernels"
FLAGS = ("-O3", "-g0", "-fno-asynchronous-unwind-tables", "-Wno-psabi", "-DNDEBUG", "-fPIC")  # of setup.py
LIMITED = re.compile("fmla|ld")  # what the limit counts


def assembly(compiler: str) -> str:
    command = [compiler, *FLAGS, f"-I{KERNELS}", "-S", "-o", "-", str(KERNELS / "simd/neon.c")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def inner_loops(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each tile of floats, as in TILE_SHAPES, and the instructions of the loop with the most FMAs."""
    for name, body in re.findall(r"^tile_0_(\d_\d_\d)_float_t:\n(.*?)^\t\.size", text, re.DOTALL | re.MULTILINE):
        lines = [line.strip() for line in body.splitlines()]
        loops = []
        for end, line in enumerate(lines):
            jump = re.match(r"b\S+\s+(\.L\d+)$", line)
            if jump and f"{jump[1]}:" in lines[:end]:
                loops.append([x for x in lines[lines.index(f"{jump[1]}:") : end] if re.match("[a-z]", x)])
        longest = max(loops, key=lambda loop: sum("fmla" in line for line in loop), default=[])
        if sum("fmla" in line for line in longest) >= 8:
            yield name, longest


def simulated(tool: str, processor: str, instructions: list[str]) -> tuple[float, float]:
    """Return the cycles of one iteration, and the reciprocal throughput that units and issue width allow."""
    options = [
        "-mtriple=aarch64",
        f"-mcpu={processor}",
        "-iterations=100",
        "-instruction-info=0",
        "-resource-pressure=0",
    ]
    run = subprocess.run([tool, *options], input="\n".join(instructions), check=True, capture_output=True, text=True)
    cycles, limit = (re.search(f"{key}: +([0-9.]+)", run.stdout) for key in ("Total Cycles", "Block RThroughput"))
    if not cycles or not limit:
        raise SystemExit(f"llvm-mca, {processor}: no cycles in its output")
    return float(cycles[1]) / 100, float(limit[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="aarch64-linux-gnu-gcc")
    parser.add_argument("--mca", default="llvm-mca", help="version 22 knows all processors")
    arguments = parser.parse_args()
    rows, shares = [], []
    for name, loop in inner_loops(assembly(arguments.compiler)):
        cells, limited = [], [line for line in loop if LIMITED.match(line)]
        for processor in PROCESSORS:
            cycles, _ = simulated(arguments.mca, processor, loop)
            _, limit = simulated(arguments.mca, processor, limited)
            shares.append(limit / cycles)
            cells.append(f"{cycles:.0f}, {100 * limit / cycles:.0f} %")
        gates, blocks, count = name.split("_")
        products = sum("fmla" in line for line in loop)
        rows.append([f"{count} x {gates} x {blocks}", str(products), str(len(loop) + 1), *cells])
    print(table(["rows x gates x blocks", "FMAs", "instructions", *PROCESSORS], rows))
    near = sum(share >= 0.85 for share in shares)
    print(f"\n{near} of {len(shares)} at 85 % or more, lowest {100 * min(shares):.0f} %.")


if __name__ == "__main__":
    main()
