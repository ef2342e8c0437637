"""How long many machines score much audio, by a simulation with figures that were measured on one.

A core that is free asks a scheduler, which answers one after the other; the part comes over the network of its machine,
from a storage that all share; then it is computed, and its results are written. What is measured (bench_score.py) are
the defaults of --compute, --fixed, --dispatch, --index and --listing; machines, network and storage are assumptions.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from report import table

MOST_PARTS = 300_000  # that are simulated; of more, the time is that of these, multiplied
HOUR = 3600.0
YEAR = 365 * 24 * HOUR
FLOATS = 2  # bytes of float32 for each of 16-bit samples
SHARES = 3  # of the memory of a worker: pyrnnx/scoring/parts.py


@dataclass(frozen=True)
class Site:
    """Machines and figures; bytes are those of 16-bit samples, times are seconds.

    Attributes
    ----------
    size, recording : float
        Bytes of all audio, and of one recording.
    machines, cores : int
        And the cores, each with a worker of one thread, of a machine.
    schedulers : int
        Runs beside each other, each with its share of the machines and of the audio.
    network, storage : float
        Bytes per second to one machine, and to all.
    compute : float
        Bytes that a core computes in a second.
    fixed : float
        Of a part in its worker, whatever its size: files opened, renamed, brought to the disk.
    dispatch : float
        Of a part in the scheduler and in the process that started the run.
    failures : float
        Between two failures of one machine.
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
    """Seconds of the run; which share of their time scheduler, storage, network and cores are busy; parts."""

    seconds: float
    busy: dict[str, float]
    parts: int


def simulate(site: Site, part: float) -> Outcome:
    """One run of many parts of that many bytes, first come first served."""
    parts = math.ceil(site.size / part)
    count = min(parts, MOST_PARTS)
    workers = site.machines * site.cores
    # Several schedulers are one that is as many times as fast: their queues are alike.
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
    """The share of all work that failures of machines undo: of each core half a part."""
    seconds = site.fixed + part / site.compute + part * site.cores / site.network
    return seconds / 2 / site.failures


def rows(site: Site, parts: Sequence[float]) -> list[list[str]]:
    """A line for each size of parts."""
    found = []
    for part in parts:
        outcome = simulate(site, part)
        bound = max(outcome.busy, key=lambda one: outcome.busy[one])
        found.append(
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
    return found


HEADINGS = (
    "part, MB of audio", "parts", "hours", "most busy", "cores, %", "scheduler, %", "memory of a worker, MB", "lost, %",
)  # fmt: skip
PARTS = (0.352, 2, 8, 42, 150, 600, 2400)  # MB; 42 is that of the default memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for name, value in vars(Site()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--heavier", type=float, default=20.0, help="a second model, that many times as slow")
    parser.add_argument("--index", type=float, default=150.0, help="bytes of an item where the run is started")
    parser.add_argument("--listing", type=float, default=20_000.0, help="files that are listed in a second")
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
    for title, one in scenes.items():
        print(f"{title}:\n\n{table(list(HEADINGS), rows(one, sizes))}\n")
    items = site.size / site.recording
    for title, runs in (("one run", 1), (f"{site.machines} runs", site.machines)):
        print(
            f"{title}: {items / runs:.2g} recordings, {items / runs * index / 1e9:.2g} GB where each is started, "
            f"listed in {items / runs / listing / HOUR:.2g} hours"
        )


if __name__ == "__main__":
    main()
