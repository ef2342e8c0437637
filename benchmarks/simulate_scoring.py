"""Simulate how long many machines score much audio, with figures that were measured on one machine.

A free core asks a scheduler, which answers one request after the other. The part comes from shared storage over the
network of its machine; then it is computed, and its results are written. The defaults of --compute, --fixed,
--dispatch, --index and --listing are measured (bench_score.py); machines, network and storage are assumptions.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from report import table

MOST_PARTS = 300_000  # simulated; the time of more parts is extrapolated
HOUR = 3600.0
YEAR = 365 * 24 * HOUR
FLOATS = 2  # bytes of float32 for each byte of 16-bit samples
SHARES = 3  # of a worker's memory: pyrnnx/scoring/parts.py


@dataclass(frozen=True)
class Site:
    """Machines and figures, in bytes of 16-bit samples and in seconds.

    Attributes
    ----------
    size, recording : float
        Bytes of all audio, and of one recording.
    machines, cores : int
        Number of machines, and of cores per machine, each with a worker of one thread.
    schedulers : int
        Number of concurrent runs, each with its share of the machines and the audio.
    network, storage : float
        Bytes per second to one machine, and to all.
    compute : float
        Bytes that a core computes per second.
    fixed : float
        Seconds per part in a worker, independent of its size: open, rename and flush files.
    dispatch : float
        Seconds per part in the scheduler and in the process that started the run.
    failures : float
        Seconds between two failures of one machine.
    """

    size: float = 1e15
    recording: float = 352e3
    machines: int = 1000
    cores: int = 16
    schedulers: int = 1
    network: float = 1.25e9
    storage: float = 1e12
    compute: float = 95e6
    fixed: float = 0.025
    dispatch: float = 0.0024
    failures: float = YEAR


@dataclass(frozen=True)
class Outcome:
    """The seconds of a run, the shares of time in which each resource is busy, and the number of parts."""

    seconds: float
    busy: dict[str, float]
    parts: int


def simulate(site: Site, part: float) -> Outcome:
    """Simulate one run with parts of so many bytes, first come first served."""
    parts = math.ceil(site.size / part)
    count = min(parts, MOST_PARTS)
    workers = site.machines * site.cores
    # Several schedulers act as one that is faster by their number: their queues are equal.
    dispatch = site.dispatch / site.schedulers
    over_network, from_storage = part * site.cores / site.network, part / site.storage
    own = site.fixed + part / site.compute
    free = [0.0] * min(workers, count)
    scheduler = storage = end = 0.0
    for _ in range(count):
        asked = heapq.heappop(free)
        scheduler = max(asked, scheduler) + dispatch
        storage = max(scheduler, storage) + from_storage
        done = max(storage, scheduler + over_network) + own
        end = max(end, done)
        heapq.heappush(free, done)
    seconds = end * parts / count
    busy = {
        "scheduler": parts * dispatch / seconds,
        "storage": parts * from_storage / seconds,
        "network": parts * over_network / seconds / workers,
        "cores": parts * part / site.compute / seconds / workers,
    }
    return Outcome(seconds, busy, parts)


def lost(site: Site, part: float) -> float:
    """Return the share of all work that is lost by failures of machines: half a part per core."""
    seconds = site.fixed + part / site.compute + part * site.cores / site.network
    return seconds / 2 / site.failures


def rows(site: Site, parts: Sequence[float]) -> list[list[str]]:
    """Return a row of the table for each size of parts."""
    lines = []
    for part in parts:
        outcome = simulate(site, part)
        bound = max(outcome.busy, key=outcome.busy.__getitem__)
        lines.append(
            [
                f"{part / 1e6:g}",
                f"{outcome.parts:,}",
                f"{outcome.seconds / HOUR:.2f}",
                f"{bound}, {100 * outcome.busy[bound]:.0f} %",
                f"{100 * outcome.busy['cores']:.0f}",
                f"{100 * outcome.busy['scheduler']:.0f}",
                f"{part * FLOATS * SHARES / 1e6:,.0f}",
                f"{100 * lost(site, part):.1g}",
            ]
        )
    return lines


HEADINGS = (
    "part, MB of audio", "parts", "hours", "most busy", "cores, %", "scheduler, %", "memory of a worker, MB", "lost, %",
)  # fmt: skip
PARTS = (0.352, 2, 8, 42, 150, 600, 2400)  # MB; 42 is the size for the default memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for name, value in vars(Site()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--heavier", type=float, default=20.0, help="a second model is slower by this factor")
    parser.add_argument("--index", type=float, default=150.0, help="bytes per item in the process that starts the run")
    parser.add_argument("--listing", type=float, default=20_000.0, help="files listed per second")
    arguments = vars(parser.parse_args())
    heavier, index, listing = (arguments.pop(name) for name in ("heavier", "index", "listing"))
    site = Site(**arguments)
    sizes = [1e6 * part for part in PARTS]
    scenes = {
        "One scheduler": site,
        f"One scheduler, a model {heavier:g} times as slow": replace(site, compute=site.compute / heavier),
        "A run on each machine": replace(site, schedulers=site.machines),
        f"A run on each machine, a model {heavier:g} times as slow": replace(
            site, schedulers=site.machines, compute=site.compute / heavier
        ),
    }
    for title, scene in scenes.items():
        print(f"{title}:\n\n{table(list(HEADINGS), rows(scene, sizes))}\n")
    items = site.size / site.recording
    for title, runs in (("one run", 1), (f"{site.machines} runs", site.machines)):
        print(
            f"{title}: {items / runs:.2g} recordings, {items / runs * index / 1e9:.2g} GB where each is started, "
            f"listed in {items / runs / listing / HOUR:.2g} hours"
        )


if __name__ == "__main__":
    main()
