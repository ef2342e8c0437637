"""Time of a model's nodes by layer and operator, from ONNX Runtime's profile; of a call, from a clock without it."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrnnx import config
from pyrnnx.bench.timing import measure
from pyrnnx.errors import ArgumentError, printable
from pyrnnx.layers.custom_operators import RECURRENT
from pyrnnx.load import load
from pyrnnx.models.model import session_of
from pyrnnx.testing.numbers import Array

MIN_TIME = 2e-3  # seconds of the calls of a round, as in `timing`
MOST_EVENTS = 400_000  # ONNX Runtime drops the events of a session beyond a million
_UNTIMED = 3  # calls before: the first ones allocate
LAYER, OPERATOR = "layer", "operator"
_CALL = "model_run"  # event of a call, from its start
_KERNEL = "_kernel_time"  # what an event of a node has after its name
_BODIES = ("If", "Loop", "Scan", "SequenceMap")  # the nodes of their bodies have events of their own


@dataclass(frozen=True)
class Part:
    """Part of the time of all nodes."""

    kind: str  # "layer": a recurrent layer; "operator": all other nodes of an operator
    name: str  # of the operator, or of the layer's node, with "_" for characters such as spaces
    nodes: float  # runs of its nodes in a call; in a loop, a node runs several times
    seconds: float  # in a call, with a profile: of each node the mean of the middle half of its runs


@dataclass(frozen=True)
class Breakdown:
    """Time of the nodes of a model in a profile, by recurrent layer and by operator.

    ONNX Runtime describes the arrays of a node within the node's own time. That takes microseconds, so the sum of all
    nodes can be above the time of a call without a profile.
    """

    what: str  # the model
    threads: int
    calls: int  # profiled calls
    call: float  # seconds of a call without a profile, the median of the rounds
    parts: tuple[Part, ...]  # the slowest first; the nodes of If, Loop and Scan count, and not what runs them

    @property
    def nodes(self) -> float:
        """Seconds of all nodes; the shares of the parts sum to it."""
        return sum(part.seconds for part in self.parts)

    def share(self, part: Part) -> float:
        """Return the share of a part in the time of all nodes; 0 if the clock of the profile saw none of them."""
        return part.seconds / self.nodes if self.nodes else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return values of JSON, with times in seconds."""
        parts = [{**vars(part), "share": self.share(part)} for part in self.parts]
        return {**vars(self), "nodes": self.nodes, "parts": parts}


def measure_parts(
    path: Path,
    inputs: Mapping[str, Array],
    threads: int,
    rounds: int,
    *,
    progress: Callable[[str], object] = lambda text: None,
) -> Breakdown:
    """Time the layers and operators of a model on the given inputs; `progress` is called with texts about it.

    Raises
    ------
    PyrnnxError
        ONNX Runtime does not run the model.
    """
    from onnxruntime import SessionOptions

    config.set_num_threads(threads)
    plain = load(path)
    call = measure({"": lambda: plain(inputs)}, rounds, threads=threads, progress=progress).median("")
    options = SessionOptions()
    options.intra_op_num_threads, options.log_severity_level, options.enable_profiling = threads, 4, True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = f"{folder}/profile"
        model = load(path, session_options=options)
        calls = min(max(rounds, round(rounds * MIN_TIME / call)), max(1, MOST_EVENTS // len(model.plan.rows() or [1])))
        progress(f"{calls} calls with a profile")
        for _ in range(_UNTIMED + calls):
            model(inputs)
        events = json.loads(Path(session_of(model).end_profiling()).read_text(encoding="utf-8"))
    parts = parts_of(events, calls)
    if not parts:
        raise ArgumentError(f"bench: --layers: {printable(path.name)} has no nodes")
    return Breakdown(printable(path.name), threads, calls, call, parts)


def parts_of(events: Sequence[Mapping[str, Any]], calls: int) -> tuple[Part, ...]:
    """Return the parts of a call, from the events of `calls` calls and of the untimed ones before."""
    starts = sorted(event["ts"] for event in events if event["name"] == _CALL)[_UNTIMED:]
    timed = [event for event in events if event["cat"] == "Node" and starts and event["ts"] >= starts[0]]
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in timed:
        if event["name"].endswith(_KERNEL) and event["args"]["op_name"] not in _BODIES:
            times[event["name"].removesuffix(_KERNEL), event["args"]["op_name"]].append(event["dur"] * 1e-6)
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for (name, operator), durations in times.items():
        runs = len(durations) / calls
        part = sums[(LAYER, name) if operator == RECURRENT else (OPERATOR, operator)]
        part[0] += runs
        part[1] += runs * _middle(durations)
    parts = [Part(*key, runs, seconds) for key, (runs, seconds) in sums.items()]
    return tuple(sorted(parts, key=lambda part: -part.seconds))


def _middle(values: Sequence[float]) -> float:
    """Return the mean of the middle half: a median, for times in whole microseconds."""
    quarter = len(values) // 4
    return statistics.fmean(sorted(values)[quarter : len(values) - quarter])
