"""Processes that run cases one after another within limits (of Linux), and their report.

A case is its number: it is the same file in any process, after any other cases.
"""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import random
import re
import resource
import signal
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

from fuzz.contract import Finding, check, signature
from fuzz.mutations import broken_bytes, broken_model, broken_numbers, broken_xml
from fuzz.seeds import Seed

import pyrnnx

# The time of operators that are not recurrent is not limited.
SLOW_OPERATORS = ("/onnx/reference/", "/onnxruntime/")
SLOW = "slow operators"
BATCH = 1_000  # cases of one process; the next process begins afresh
EXAMPLES = 5  # cases that a report names for each finding
BREAKS = {"onnx": broken_model, "ir": broken_xml}
SUFFIXES = {"onnx": "onnx", "ir": "xml"}


class Limits(NamedTuple):
    """Limits of one case."""

    seconds: float = 5.0  # of processor time; four times as long by the clock
    memory: int = 2 * 2**30  # bytes, beyond those of the process before its first case


class Task(NamedTuple):
    """Altered files of a format by number: its seeds by their source, and the seed of random numbers."""

    kind: str
    seeds: Mapping[str, Sequence[Seed]]
    seed: int = 0

    def file(self, number: int) -> tuple[Seed, Seed, random.Random]:
        """Return the altered file of a case, the file before, and random numbers for the use of it."""
        rng = random.Random(f"{self.kind} {self.seed} {number}")
        original, other = (rng.choice(self.seeds[rng.choice(list(self.seeds))]) for _ in range(2))
        file = original
        while file.data == original.data and file.weights == original.weights:
            file = self._broken(original, other, rng)
        return file, original, rng

    def _broken(self, file: Seed, other: Seed, rng: random.Random) -> Seed:
        chance = rng.random()
        if file.weights and chance < 0.05:
            return file._replace(weights=broken_bytes(file.weights, other.weights, rng))
        if file.weights and chance < 0.15:
            return file._replace(weights=broken_numbers(file.weights, rng))
        if chance < 0.3:
            return file._replace(data=broken_bytes(file.data, other.data, rng))
        return file._replace(data=BREAKS[self.kind](file.data, other.data, rng))

    def save(self, number: int, folder: Path) -> Path:
        """Write the altered file, and its weights next to it; return its path."""
        file, _, _ = self.file(number)
        path = folder / f"{self.kind}_{self.seed}_{number}.{SUFFIXES[self.kind]}"
        path.write_bytes(file.data)
        if file.weights:
            path.with_suffix(".bin").write_bytes(file.weights)
        return path

    def run(self, number: int, folder: Path) -> tuple[list[str], Finding | None]:
        """Return the steps that gave a result, and the finding."""
        file, original, rng = self.file(number)
        return check(self.kind, file, original, folder, rng)


@dataclass
class Report:
    """Result of a run."""

    cases: int = 0
    seconds: float = 0.0
    passed: Counter[str] = field(default_factory=Counter)  # cases by the steps that gave a result
    slow: list[int] = field(default_factory=list)  # cases in which operators that are not recurrent took too long
    findings: dict[str, list[int]] = field(default_factory=dict)  # cases by signature

    def add(self, number: int, passed: Iterable[str], finding: Finding | None) -> None:
        self.cases += 1
        self.passed.update(set(passed))
        if finding is not None and finding.signature == SLOW:
            self.slow.append(number)
        elif finding is not None:
            self.findings.setdefault(finding.signature, []).append(number)

    def __str__(self) -> str:
        steps = ", ".join(f"{step} {number}" for step, number in self.passed.most_common()) or "none"
        lines = [
            f"{self.cases} cases in {self.seconds:.0f} s",
            f"steps with a result: {steps}",
            f"loops, and operators of others, took too long: {len(self.slow)} {sorted(self.slow)[:EXAMPLES]}",
            f"{sum(map(len, self.findings.values()))} findings of {len(self.findings)} kinds",
        ]
        for name, numbers in sorted(self.findings.items(), key=lambda item: (-len(item[1]), item[0])):
            lines.append(f"{len(numbers):7} {name}   (cases {', '.join(map(str, sorted(numbers)[:EXAMPLES]))})")
        return "\n".join(lines)


def fuzz(
    task: Task,
    number: int | None,
    *,
    seconds: float = 1e9,
    jobs: int = 2,
    limits: Limits = Limits(),  # noqa: B008
) -> Report:
    """Run the cases from 0 on: so many, or (None) as many as the time allows."""
    report, start = Report(), time.monotonic()
    numbers = iter(count() if number is None else range(number))
    gc.freeze()  # the processes share these objects as long as nothing touches them
    with tempfile.TemporaryDirectory() as root:
        workers = [_Worker(task, limits, Path(root) / str(k), report) for k in range(jobs)]
        while time.monotonic() < start + seconds:
            busy = {worker.connection: worker for worker in workers if worker.go_on(numbers)}
            if not busy:
                break
            for connection in wait(list(busy), timeout=0.5):
                busy[connection].receive()  # type: ignore[index]
        for worker in workers:
            worker.stop()
    report.seconds = time.monotonic() - start
    return report


class _Worker:
    """A process, its successors, and the cases that they still have to run."""

    def __init__(self, task: Task, limits: Limits, folder: Path, report: Report) -> None:
        self.task, self.limits, self.folder, self.report = task, limits, folder, report
        self.left: deque[int] = deque()
        self.since = 0.0  # time of the last report
        folder.mkdir()

    def go_on(self, numbers: Iterator[int]) -> bool:
        """Start a process if there is none; return False if no cases are left."""
        if not self.left:
            self.left.extend(islice(numbers, BATCH))
            self._start()
        elif time.monotonic() - self.since > 5 * self.limits.seconds:
            self.process.kill()  # its own timers had no effect
        return bool(self.left)

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe(duplex=False)
        arguments = (theirs, self.task, list(self.left), self.folder, self.limits)
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.since = time.monotonic()
        self.process.start()
        theirs.close()

    def receive(self) -> None:
        """Report the outcome of the next case, or the end of the process."""
        number = self.left[0]
        try:
            passed, finding = self.connection.recv()
        except EOFError:
            self.process.join()
            passed, finding = [], self._last_words()
        self.report.add(number, passed, finding)
        self.left.popleft()
        self.since = time.monotonic()
        if not self.process.is_alive() and self.left:
            self._start()

    def _last_words(self) -> Finding:
        text = (self.folder / "trace").read_text(errors="replace")
        frames = re.findall(r'File "([^"]+)", line \d+ in (\S+)', text)
        reason = f"the process ended ({self.process.exitcode})"
        if self.process.exitcode in (-signal.SIGPROF, -signal.SIGALRM):
            if any(place in file for file, _ in frames for place in SLOW_OPERATORS):
                return Finding(SLOW, "")
            reason = f"more than {self.limits.seconds:g} s"
        elif fatal := re.search(r"Fatal Python error: (.+)", text):
            reason = fatal[1]
        return Finding(signature(reason, frames), text[-20_000:])

    def stop(self) -> None:
        if self.since:
            self.process.kill()
            self.process.join()
            self.connection.close()


def _work(connection: object, task: Task, numbers: Sequence[int], folder: Path, limits: Limits) -> None:
    """Run case after case, and report each."""
    _limit(folder, limits)
    for number in numbers:
        signal.setitimer(signal.ITIMER_PROF, limits.seconds)
        signal.setitimer(signal.ITIMER_REAL, 4 * limits.seconds)
        connection.send(task.run(number, folder))  # type: ignore[attr-defined]


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
