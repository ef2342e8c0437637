"""Measurements of one operator or model in pyrnnx and in the peers whose results agree."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.bench.peers import PEERS, Peer, Pyrnnx, checked_peers
from pyrnnx.bench.timing import MAX_TIME, Timings, measure
from pyrnnx.bench.workload import Case
from pyrnnx.comparison.agreement import LONG, agreement
from pyrnnx.errors import UnsupportedError, printable
from pyrnnx.testing.models.checked import chosen
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.execution import line_of
from pyrnnx.testing.runtimes.models import FATAL, MODEL_RUNS, MODEL_RUNTIMES, ModelCase, Run, run_models

LIBRARIES: Mapping[str, type[Peer]] = {cls.module: cls for cls in PEERS}  # keys are values of ``--against``
TIMEOUT = 300.0  # seconds of a peer's first call


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

    def spread(self, name: str) -> tuple[float, float]:
        """Return the lower and upper quartile over the rounds of a peer's time divided by pyrnnx's."""
        ratios = Timings(self.seconds).ratios(name, Pyrnnx.name)
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, high

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


def chosen_peers(against: Sequence[str] | None, have: Collection[str]) -> list[str]:
    """Return the peers to time: by default the installed ones of `have`, which run the workload."""
    return chosen("bench", against, {name: LIBRARIES[name].is_installed() for name in have if name != Pyrnnx.module})


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
    names = chosen_peers(against, LIBRARIES)
    peers, reasons = checked_peers(case, threads, [Pyrnnx, *(LIBRARIES[name] for name in names)])
    timings = measure({name: peer.run for name, peer in peers.items()}, rounds, threads=threads, progress=progress)
    forms = (case.directions == 2 and "bidirectional", case.linear_before_reset and "linear_before_reset=1")
    what = " ".join([case.cell, case.shape, case.dtype, *(form for form in forms if form)])
    return Measurement(what, threads, timings.seconds, reasons, {})


def measure_model(
    path: Path,
    inputs: Mapping[str, Array],
    against: Sequence[str] | None,
    threads: int,
    rounds: int,
    *,
    same: bool = True,
    trial: bool = True,
    max_time: float = MAX_TIME,
    progress: Callable[[str], object] = lambda text: None,
) -> Measurement:
    """Time a whole model on the given inputs, as its users call it: see `measure_case` and `opened`.

    With `same`, a peer whose outputs differ is not timed. With `trial`, each peer runs in another process first: it may
    abort, for example on a batch of size 0, and lose all times.
    """
    own = opened(Pyrnnx.module, path, threads)
    expected = list(own(inputs).values())
    calls: dict[str, Callable[[], Any]] = {Pyrnnx.name: partial(own, inputs)}
    reasons: dict[str, str] = {}
    differences: dict[str, float] = {}
    for module in chosen_peers(against, MODEL_RUNS):
        name = LIBRARIES[module].name
        for ran in run_models(MODEL_RUNTIMES[module], [(ModelCase(path.name, path), inputs)], TIMEOUT) if trial else ():
            if ran.status != "ran":
                reasons[name] = f"{ran.status.replace('refused', 'does not run it')} ({ran.detail})"
        if name in reasons:
            continue
        try:
            run = opened(module, path, threads)
            results = [np.array(array) for array in run(inputs).values()]
        except Exception as error:  # libraries raise errors of any type
            reasons[name] = f"does not run it ({line_of(error)})"
            continue
        differences[name], agrees = difference(expected, results)
        if agrees or not same:
            calls[name] = partial(run, inputs)
        else:
            reasons[name] = f"its outputs are {differences[name]:.1g} apart: `pyrnnx check` shows which are right"
    timings = measure(calls, rounds, threads=threads, max_time=max_time, progress=progress)
    return Measurement(printable(path.name), threads, timings.seconds, reasons, differences)


def opened(module: str, path: Path, threads: int) -> Run:
    """Return a call of a model by the door that its users take, with default options.

    ONNX models run in `InferenceSession` of ONNX Runtime and of `pyrnnx.onnxruntime`. An IR runs in `pyrnnx.load`, in
    OpenVINO, and in ONNX Runtime after `to_onnx`.
    """
    if module == "openvino" or path.suffix.lower() == ".xml":
        return MODEL_RUNS[module](path, threads)
    package = import_module("pyrnnx.onnxruntime" if module == Pyrnnx.module else module)
    options = package.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, FATAL
    try:
        session = package.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of several types
        raise UnsupportedError(f"bench: {printable(path.name)}: no session runs it ({line_of(error)})") from error
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, inputs), strict=True))


def difference(expected: Sequence[Any], results: Sequence[Any]) -> tuple[float, bool]:
    """Return the largest difference of outputs in the same order, and whether all are within tolerance."""
    outputs, right = (dict(enumerate(map(np.asarray, arrays))) for arrays in (results, expected))
    result = agreement(outputs, right, LONG)
    return float(np.nan_to_num(result.largest, posinf=np.inf)), result.apart is None
