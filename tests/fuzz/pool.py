"""A process that runs cases one after another within limits (of Linux), its successors, and their report.

A case is its number: it is the same file in any process, after any other cases.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import random
import re
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple

from fuzz.contract import Finding, check, signature
from fuzz.mutations import broken_bytes, broken_model, broken_numbers, broken_xml
from fuzz.seeds import Seed

import pyrnnx
from pyrnnx._internal.child_process import Child, DiedError, serve

# The time of operators that are not recurrent is not limited.
SLOW_OPERATORS = ("/onnx/reference/", "/onnxruntime/")
SLOW = "slow operators"
BATCH = 1_000  # cases of one process; the next process begins afresh
EXAMPLES = 5  # cases that a report names for each finding
BREAKS = {"onnx": broken_model, "ir": broken_xml}


class Limits(NamedTuple):
    """Limits of one case."""

    seconds: float = 5.0  # of processor time; four times as long by the clock
    memory: int = 2 * 2**30  # bytes, beyond those of the process before its first case


class Task(NamedTuple):
    """Altered files of a format by number: its seeds by their source, and the seed of random numbers."""

    kind: str
    seeds: Mapping[str, Sequence[Seed]]
    seed: int = 0

    def file(self, number: int) -> tuple[Seed, random.Random]:
        """Return the altered file of a case, and random numbers for the use of it."""
        rng = random.Random(f"{self.kind} {self.seed} {number}")
        original, other = (rng.choice(self.seeds[rng.choice(list(self.seeds))]) for _ in range(2))
        file = original
        while file.data == original.data and file.weights == original.weights:
            file = self._broken(original, other, rng)
        return file, rng

    def _broken(self, file: Seed, other: Seed, rng: random.Random) -> Seed:
        chance = rng.random()
        if file.weights and chance < 0.05:
            return file._replace(weights=broken_bytes(file.weights, other.weights, rng))
        if file.weights and chance < 0.15:
            return file._replace(weights=broken_numbers(file.weights, rng))
        if chance < 0.3:
            return file._replace(data=broken_bytes(file.data, other.data, rng))
        return file._replace(data=BREAKS[self.kind](file.data, other.data, rng))

    def run(self, number: int, folder: Path) -> tuple[list[str], Finding | None]:
        """Return the steps that gave a result, and the finding."""
        file, rng = self.file(number)
        return check(self.kind, file, folder, rng)


@dataclass
class Report:
    """Result of a run."""

    cases: int = 0
    seconds: float = 0.0
    passed: Counter[str] = field(default_factory=Counter)  # cases by the steps that gave a result
    slow: list[int] = field(default_factory=list)  # cases in which operators that are not recurrent took too long
    findings: dict[str, list[int]] = field(default_factory=dict)  # cases by signature

    def add(self, number: int, passed: Iterable[str], finding: str) -> None:
        self.cases += 1
        self.passed.update(set(passed))
        if finding:
            (self.slow if finding == SLOW else self.findings.setdefault(finding, [])).append(number)

    def __str__(self) -> str:
        steps = ", ".join(f"{step} {number}" for step, number in self.passed.most_common()) or "none"
        lines = [
            f"{self.cases} cases in {self.seconds:.0f} s",
            f"steps with a result: {steps}",
            f"loops, and operators of others, took too long: {len(self.slow)} {self.slow[:EXAMPLES]}",
            f"{sum(map(len, self.findings.values()))} findings of {len(self.findings)} kinds",
        ]
        for name, numbers in sorted(self.findings.items(), key=lambda item: (-len(item[1]), item[0])):
            lines.append(f"{len(numbers):7} {name}   (cases {', '.join(map(str, numbers[:EXAMPLES]))})")
        return "\n".join(lines)


def fuzz(task: Task, number: int | None, *, seconds: float = 1e9, limits: Limits = Limits()) -> Report:  # noqa: B008
    """Run the cases from 0 on: so many, or (None) as many as the time allows."""
    report, start = Report(), time.monotonic()
    gc.freeze()  # the processes share these objects as long as nothing touches them
    with tempfile.TemporaryDirectory() as root:
        child = None
        for case in count() if number is None else range(number):
            if time.monotonic() > start + seconds:
                break
            if child is not None and case % BATCH == 0:
                child.close()
                child = None
            child = child or Child.fork(lambda: _work(task, Path(root), limits))
            try:
                passed, finding = json.loads(child.ask(str(case).encode(), timeout=5 * limits.seconds))
            except (DiedError, TimeoutError) as error:
                passed, finding, child = [], _last_words(Path(root), limits, error), None
            report.add(case, passed, finding)
        if child is not None:
            child.close()
    report.seconds = time.monotonic() - start
    return report


def _last_words(folder: Path, limits: Limits, error: Exception) -> str:
    text = (folder / "trace").read_text(errors="replace")
    fatal = re.search(r"Fatal Python error: (.+)", text)
    text = text.rpartition("Current thread")[2].partition("child_process.py")[0]  # other threads come first
    frames = re.findall(r'File "([^"]+)", line \d+ in (\S+)', text)
    status = error.status if isinstance(error, DiedError) else -signal.SIGALRM
    reason = f"the process ended ({status})"
    if status in (-signal.SIGPROF, -signal.SIGALRM):
        if any(place in file for file, _ in frames for place in SLOW_OPERATORS):
            return SLOW
        reason = f"more than {limits.seconds:g} s"
    elif fatal:
        reason = fatal[1]
    return signature(reason, frames)


def _work(task: Task, folder: Path, limits: Limits) -> None:
    """Run the cases whose numbers are asked for, and answer each with its steps and its finding."""
    _limit(folder, limits)

    def answer(message: bytes) -> bytes:
        signal.setitimer(signal.ITIMER_PROF, limits.seconds)
        signal.setitimer(signal.ITIMER_REAL, 4 * limits.seconds)
        passed, finding = task.run(int(message), folder)
        return json.dumps((passed, finding.signature if finding else "")).encode()

    serve(answer)


def _limit(folder: Path, limits: Limits) -> None:
    """Limit this process, whose last traceback goes to the file "trace"."""
    trace = (folder / "trace").open("wb", buffering=0)
    os.dup2(trace.fileno(), 2)
    faulthandler.enable(trace)
    for timer in (signal.SIGPROF, signal.SIGALRM):  # write the traceback, then end the process, also in native code
        faulthandler.register(timer, trace, chain=True)
    pyrnnx.set_num_threads(1)
    pyrnnx.set_memory_limit(limits.memory // 2)
    data = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (data + limits.memory,) * 2)
