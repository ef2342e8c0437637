"""One operator or model, timed in pyrnnx and beside it in the peers that compute the same."""

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
from pyrnnx.comparison.numbers import deviation
from pyrnnx.errors import ArgumentError, printable, shown
from pyrnnx.testing.numbers import Array, long_tolerance
from pyrnnx.testing.runtimes.models import MODEL_RUNS, MODEL_RUNTIMES, ModelCase, run_models
from pyrnnx.testing.runtimes.worker import line_of

LIBRARIES: Mapping[str, type[Peer]] = {cls.module: cls for cls in PEERS}  # by the names that users give
TIMEOUT = 300.0  # seconds of a peer's first call
_REASONS = {"refused": "does not run it"}


@dataclass(frozen=True)
class Measurement:
    """What was measured.

    Attributes
    ----------
    what : str
        The operator with its sizes, or the model.
    threads : int
    seconds : mapping
        Of one call, for each round, by the name of the library: pyrnnx and the peers that compute the same.
    reasons : mapping
        By the name of each other peer: why it has no times.
    differences : mapping
        Largest absolute difference of each peer from pyrnnx, of a model.
    """

    what: str
    threads: int
    seconds: Mapping[str, Sequence[float]]
    reasons: Mapping[str, str]
    differences: Mapping[str, float]

    @property
    def medians(self) -> dict[str, float]:
        return {name: statistics.median(one) for name, one in self.seconds.items()}

    @property
    def ratios(self) -> dict[str, float]:
        """Time of each peer over that of pyrnnx: the median of the rounds' quotients; above 1 pyrnnx is faster."""
        timings = Timings(self.seconds)
        return {name: timings.ratio(name, Pyrnnx.name) for name in self.seconds if name != Pyrnnx.name}

    def to_dict(self) -> dict[str, Any]:
        """What JSON holds; times in seconds."""
        return {
            "what": self.what,
            "threads": self.threads,
            "median": self.medians,
            "seconds": {name: list(one) for name, one in self.seconds.items()},
            "ratio": self.ratios,
            "difference": dict(self.differences),
            "reasons": dict(self.reasons),
        }


def chosen_peers(against: Sequence[str] | None, have: Sequence[str]) -> list[str]:
    """Modules of the peers to time; None are all that are installed.

    Parameters
    ----------
    against : sequence of str or None
        As a caller names them.
    have : sequence of str
        What there is for such a workload.

    Raises
    ------
    ArgumentError
        One that is not among them, or not installed.
    """
    if against is None:
        return list(have)
    for name in against:
        if name not in have:
            raise ArgumentError(f"bench: against has {shown(name)}; expected names out of {', '.join(have)}")
        if not LIBRARIES[name].is_installed():
            raise ArgumentError(f"bench: {name} is not installed")
    return list(dict.fromkeys(against))


def measure_case(case: Case, against: Sequence[str] | None, threads: int, rounds: int) -> Measurement:
    """Time an operator.

    Parameters
    ----------
    case : Case
    against : sequence of str, optional
        "onnxruntime", "openvino", "torch". Default: those that are installed.
    threads, rounds : int

    Raises
    ------
    PyrnnxError
        A peer that is not there; numbers of pyrnnx that are wrong.
    """
    names = chosen_peers(against, [name for name in LIBRARIES if name != Pyrnnx.module])
    peers, reasons = checked_peers(case, threads, [Pyrnnx, *(LIBRARIES[name] for name in names)])
    timings = measure({name: peer.run for name, peer in peers.items()}, rounds, threads=threads)
    forms = (case.directions == 2 and "bidirectional", case.linear_before_reset and "linear_before_reset=1")
    what = " ".join([case.cell, case.shape, case.dtype, *(one for one in forms if one)])
    return Measurement(what, threads, timings.seconds, _told(reasons, against), {})


def measure_model(
    path: Path, inputs: Mapping[str, Array], against: Sequence[str] | None, threads: int, rounds: int
) -> Measurement:
    """Time a whole model on given inputs; as `measure_case`."""
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
        # First in a process of its own: some abort on a batch or sequence of size 0, and all times would be lost.
        (tried,) = run_models(MODEL_RUNTIMES[module], [(ModelCase(path.name, path), inputs)], TIMEOUT)
        if tried.status != "ran":
            reasons[name] = f"{_REASONS.get(tried.status, tried.status)} ({tried.detail})"
            continue
        try:
            run = MODEL_RUNS[module](path, threads)
            results = [np.array(one) for one in run(inputs).values()]
        except Exception as error:  # whatever a library raises
            reasons[name] = f"does not run it ({line_of(error)})"
            continue
        differences[name], same = difference(expected, results)
        if same:
            calls[name] = partial(run, inputs)
        else:
            reasons[name] = f"its outputs are {differences[name]:.1g} apart: `pyrnnx check` tells which are right"
    timings = measure(calls, rounds, threads=threads)
    return Measurement(printable(path.name), threads, timings.seconds, _told(reasons, against), differences)


def difference(expected: Sequence[Any], given: Sequence[Any]) -> tuple[float, bool]:
    """The largest of all outputs, in order, and whether it is none that matters for their dtypes."""
    if len(given) < len(expected):
        return float("inf"), False
    largest, same = 0.0, True
    for wanted, one in zip(expected, given, strict=False):
        found = deviation(np.asarray(one), np.asarray(wanted))
        if found is None:
            return float("inf"), False
        largest = max(largest, 0.0 if np.isnan(found.largest) else found.largest)
        same = same and found.within(long_tolerance(np.asarray(wanted)), 0.0)
    return largest, same


def _told(reasons: Mapping[str, str], against: Sequence[str] | None) -> dict[str, str]:
    """Of all that are installed, those that are not are nothing to tell."""
    return {name: why for name, why in reasons.items() if against is not None or why != NOT_INSTALLED}
