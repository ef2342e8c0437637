"""Measurements of one operator or model in pyrnnx and in the peers whose results agree."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.bench.peers import NOT_INSTALLED, PEERS, Peer, Pyrnnx, checked_peers
from pyrnnx.bench.timing import Timings, measure
from pyrnnx.bench.workload import Case
from pyrnnx.comparison.agreement import LONG, agreement
from pyrnnx.errors import ArgumentError, printable, shown
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.models import MODEL_RUNS, MODEL_RUNTIMES, ModelCase, run_models
from pyrnnx.testing.runtimes.worker import line_of

LIBRARIES: Mapping[str, type[Peer]] = {cls.module: cls for cls in PEERS}  # keys are values of ``--against``
TIMEOUT = 300.0  # seconds of a peer's first call
_REASONS = {"refused": "does not run it"}


@dataclass(frozen=True)
class Measurement:
    """Times of one operator or model."""

    what: str  # operator with its sizes, or model
    threads: int
    seconds: Mapping[str, Sequence[float]]  # of one call in each round, by library
    reasons: Mapping[str, str]  # why a peer has no times
    differences: Mapping[str, float]  # for a model: largest absolute difference of a peer's outputs from pyrnnx's

    @property
    def medians(self) -> dict[str, float]:
        return {name: statistics.median(times) for name, times in self.seconds.items()}

    @property
    def ratios(self) -> dict[str, float]:
        """Median over the rounds of each peer's time divided by pyrnnx's; above 1 pyrnnx is faster."""
        timings = Timings(self.seconds)
        return {name: timings.ratio(name, Pyrnnx.name) for name in self.seconds if name != Pyrnnx.name}

    def to_dict(self) -> dict[str, Any]:
        """Return values of JSON, with times in seconds."""
        return {
            "what": self.what,
            "threads": self.threads,
            "median": self.medians,
            "seconds": {name: list(times) for name, times in self.seconds.items()},
            "ratio": self.ratios,
            "difference": dict(self.differences),
            "reasons": dict(self.reasons),
        }


def chosen_peers(against: Sequence[str] | None, have: Sequence[str]) -> list[str]:
    """Return the peers to time: by default all of `have`, which run the workload, else installed ones of them."""
    if against is None:
        return list(have)
    for name in against:
        if name not in have:
            raise ArgumentError(f"bench: against has {shown(name)}; expected names out of {', '.join(have)}")
        if not LIBRARIES[name].is_installed():
            raise ArgumentError(f"bench: {name} is not installed; expected an installed library")
    return list(dict.fromkeys(against))


def measure_case(
    case: Case,
    against: Sequence[str] | None,
    threads: int,
    rounds: int,
    *,
    progress: Callable[[str], object] = lambda text: None,
) -> Measurement:
    """Time an operator in pyrnnx and in the peers `against`: some of "onnxruntime", "openvino", "torch".

    `progress` is called before each round with a text such as "round 3 of 9". A missing peer, and wrong results of
    pyrnnx, are errors.
    """
    names = chosen_peers(against, [name for name in LIBRARIES if name != Pyrnnx.module])
    peers, reasons = checked_peers(case, threads, [Pyrnnx, *(LIBRARIES[name] for name in names)])
    timings = measure({name: peer.run for name, peer in peers.items()}, rounds, threads=threads, progress=progress)
    forms = (case.directions == 2 and "bidirectional", case.linear_before_reset and "linear_before_reset=1")
    what = " ".join([case.cell, case.shape, case.dtype, *(form for form in forms if form)])
    return Measurement(what, threads, timings.seconds, _relevant(reasons, against), {})


def measure_model(
    path: Path,
    inputs: Mapping[str, Array],
    against: Sequence[str] | None,
    threads: int,
    rounds: int,
    *,
    progress: Callable[[str], object] = lambda text: None,
) -> Measurement:
    """Time a whole model on the given inputs: see `measure_case`."""
    names = chosen_peers(against, [name for name in MODEL_RUNS if name != Pyrnnx.module])
    own = MODEL_RUNS[Pyrnnx.module](path, threads)
    expected = list(own(inputs).values())
    calls: dict[str, Callable[[], Any]] = {Pyrnnx.name: partial(own, inputs)}
    reasons: dict[str, str] = {}
    differences: dict[str, float] = {}
    for module in names:
        name = LIBRARIES[module].name
        if not LIBRARIES[module].is_installed():
            reasons[name] = NOT_INSTALLED
            continue
        # First in another process: libraries may abort, for example on a batch of size 0, and lose all times.
        (trial,) = run_models(MODEL_RUNTIMES[module], [(ModelCase(path.name, path), inputs)], TIMEOUT)
        if trial.status != "ran":
            reasons[name] = f"{_REASONS.get(trial.status, trial.status)} ({trial.detail})"
            continue
        try:
            run = MODEL_RUNS[module](path, threads)
            results = [np.array(array) for array in run(inputs).values()]
        except Exception as error:  # libraries raise errors of any type
            reasons[name] = f"does not run it ({line_of(error)})"
            continue
        differences[name], same = difference(expected, results)
        if same:
            calls[name] = partial(run, inputs)
        else:
            reasons[name] = f"its outputs are {differences[name]:.1g} apart: `pyrnnx check` shows which are right"
    timings = measure(calls, rounds, threads=threads, progress=progress)
    return Measurement(printable(path.name), threads, timings.seconds, _relevant(reasons, against), differences)


def difference(expected: Sequence[Any], results: Sequence[Any]) -> tuple[float, bool]:
    """Return the largest difference of outputs in the same order, and whether all are within tolerance."""
    outputs, right = (dict(enumerate(map(np.asarray, arrays))) for arrays in (results, expected))
    result = agreement(outputs, right, LONG)
    return float(np.nan_to_num(result.largest, posinf=np.inf)), result.apart is None


def _relevant(reasons: Mapping[str, str], against: Sequence[str] | None) -> dict[str, str]:
    """Return the reasons without peers that are not installed, unless the caller has chosen the peers."""
    return {name: reason for name, reason in reasons.items() if against is not None or reason != NOT_INSTALLED}
