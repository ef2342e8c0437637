"""Count the instructions of calls on 64-bit Arm, of pyrnnx and ONNX Runtime, as a Markdown table.

Needs the folder of `.ci/aarch64 FOLDER`, Debian's qemu-user (qemu-user-static has no plugins) and a C compiler. No time
is measured: the same number of instructions can take different times.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from bench_operators import GROUPS
from report import progress, table

from pyrnnx.bench.peers import OnnxRuntime, Peer, Pyrnnx
from pyrnnx.bench.timing import geometric_mean
from pyrnnx.bench.workload import Case, make_arrays
from pyrnnx.comparison.distances import LONG_TOLERANCES

MOST_OPERATIONS = 4e7  # of a call; qemu runs about 1e8 in a second
PEERS: tuple[type[Peer], ...] = (Pyrnnx, OnnxRuntime)
HERE = Path(__file__).parent
PREFIX = "instructions:"
WHEEL = ["--no-deps", "--only-binary=:all:", "--implementation=cp", "--platform=manylinux_2_28_aarch64"]
WHEEL += ["--platform=manylinux_2_27_aarch64"]
# Part of /proc/cpuinfo that ONNX Runtime reads; it crashes on the description of another architecture.
CPUINFO = "processor\t: 0\nFeatures\t: fp asimd fphp asimdhp asimdrdm asimddp\nCPU implementer\t: 0x41\n"
CPUINFO += "CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n"


def shortened(case: Case) -> Case:
    """Return the case, or one with fewer steps and initial states: without them the first step would count too much."""
    T = max(1, int(MOST_OPERATIONS / case.operations * case.T))
    return case if case.T <= T else replace(case, T=T, states=True)


def count_calls(call: Callable[[], Any], calls: int) -> None:
    """Call getsid, at which the plugin prints its counter, twice, and again after `calls` calls."""
    gc.disable()
    call()
    os.getsid(0)
    os.getsid(0)
    for _ in range(calls):
        call()
    os.getsid(0)
    gc.enable()


def run_guest() -> None:
    """Run all cases; under qemu."""
    for case in map(shortened, GROUPS["shapes"]):
        arrays = make_arrays(case)
        peers = [cls(case, arrays, threads=1) for cls in PEERS]
        ours, theirs = (peer.canonical(peer.run()) for peer in peers)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=LONG_TOLERANCES[case.dtype])
        calls = min(20, max(1, int(2 * MOST_OPERATIONS / case.operations)))
        print(PREFIX, calls, file=sys.stderr, flush=True)
        for peer in peers:
            count_calls(peer.run, calls)


def counts(lines: IO[str]) -> Iterator[list[float]]:
    """Yield the instructions of a call of each peer, for each case, from the guest's output."""
    numbers: list[int] = []
    for line in lines:
        if not line.startswith(PREFIX):
            progress(line.rstrip())
            continue
        numbers.append(int(line.removeprefix(PREFIX)))
        if len(numbers) == 1 + 3 * len(PEERS):
            calls, *marks = numbers
            yield [(marks[k + 2] - 2 * marks[k + 1] + marks[k]) / calls for k in range(0, len(marks), 3)]
            numbers = []


def guest_command(folder: Path, scratch: str) -> list[str]:
    """Compile the plugin, install ONNX Runtime for the guest, and return the command of the guest's Python."""
    plugin, site = Path(scratch, "count.so"), folder / "onnxruntime"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", HERE / "instructions.c", "-o", plugin], check=True)
    *_, python = (folder / "python").read_text().split('"$@"')[0].split()
    if not site.exists():
        version = f"--python-version={Path(python).name.removeprefix('python')}"
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", site, version, *WHEEL, "onnxruntime"], check=True
        )
    cpuinfo = folder / "system/proc/cpuinfo"  # qemu reads files of the system in here first
    cpuinfo.parent.mkdir(exist_ok=True)
    cpuinfo.write_text(CPUINFO * (os.cpu_count() or 1))
    path = os.pathsep.join(map(str, (folder / "tree", folder / "site", site)))
    return ["qemu-aarch64", "-plugin", str(plugin), "-L", str(folder / "system"), "-E", f"PYTHONPATH={path}", python]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of `.ci/aarch64 FOLDER`; or - under qemu")
    parser.add_argument("--cpu", default="neoverse-n1", help="processor of qemu (default: %(default)s)")
    arguments = parser.parse_args()
    if str(arguments.folder) == "-":
        return run_guest()
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as scratch:
        command = [*guest_command(arguments.folder.resolve(), scratch), __file__, "-"]
        environment = {**os.environ, "QEMU_CPU": arguments.cpu, "PYTHONHASHSEED": "0"}
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as guest:
            assert guest.stderr is not None
            for case, found in zip(GROUPS["shapes"], counts(guest.stderr), strict=False):
                steps = shortened(case).T
                ratios.append(found[1] / found[0])
                rows.append(
                    [case.kind, case.shape, str(steps), *(f"{n / 1e6:.3f}" for n in found), f"{ratios[-1]:.2f}"]
                )
                progress(" ".join(rows[-1]))
    if guest.returncode:
        raise SystemExit(f"qemu ended with {guest.returncode}")
    print(table(["cell", "T,N,I,H", "steps", *(f"{cls.name}, million" for cls in PEERS), "ratio"], rows))
    print(f"\nGeometric mean of the ratios {geometric_mean(ratios):.2f}, lowest {min(ratios):.2f}.")


if __name__ == "__main__":
    main()
