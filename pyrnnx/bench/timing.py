"""Interleaved timing (A B C, C A B, ...), so that drift of the machine affects all calls and not their ratios.

The order is shuffled in each round, because another process with the same rhythm could always disturb the same call.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MIN_ROUNDS = 5
MAX_TIME = 10.0  # seconds
MIN_TIME = 2e-3  # far above the clock's resolution
SPIN_TIME = 0.06  # seconds until the idle threads of every library sleep (measured: ONNX Runtime 50 ms)
# Seconds of untimed calls with more than one thread. The system may wake two threads on one core, and moves them apart
# after milliseconds: in single calls after a pause, the session that was created first took up to twice as long.
SETTLING_TIME = 0.02


@dataclass(frozen=True)
class Timings:
    """Seconds of one call, by name, in each round."""

    seconds: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, numerator: str, denominator: str) -> float:
        """Return the median over the rounds of the ratio of two times of the same round."""
        return statistics.median(self.ratios(numerator, denominator))

    def ratios(self, numerator: str, denominator: str) -> list[float]:
        """Return the ratio of two times of the same round, for each round."""
        pairs = zip(self.seconds[numerator], self.seconds[denominator], strict=True)
        return [a / b for a, b in pairs]


def measure(
    calls: Mapping[str, Callable[[], Any]],
    rounds: int = 9,
    *,
    threads: int = 1,
    max_time: float = MAX_TIME,
    min_time: float = MIN_TIME,
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[str], object] = lambda text: None,
) -> Timings:
    """Time calls against each other; short calls are repeated. Each timing follows untimed calls.

    With more than one of `threads`, each timing waits until idle threads have stopped spinning, and then until threads
    have settled on cores. After `max_time` seconds no further round begins, but not before MIN_ROUNDS. One timing is of
    as many calls as take `min_time` seconds. The clock `time.process_time` is better on a busy machine, but only for
    calls of one thread. `progress` is called before each round with a text such as "round 3 of 9".
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    shuffled = random.Random(0)
    with _no_gc():
        repetitions = {name: _calibrate(call, min_time, clock) for name, call in calls.items()}
        start = time.perf_counter()
        for round_ in range(rounds):
            if round_ >= MIN_ROUNDS and time.perf_counter() - start > max_time:
                break
            progress(f"round {round_ + 1} of {rounds}")
            for name in shuffled.sample(list(calls), len(calls)):
                call = calls[name]
                if threads > 1:
                    time.sleep(SPIN_TIME)
                    settled = time.perf_counter() + SETTLING_TIME
                    while time.perf_counter() < settled:
                        call()
                else:
                    _elapsed(call, math.ceil(repetitions[name] / 4), clock)
                seconds[name].append(_elapsed(call, repetitions[name], clock) / repetitions[name])
    return Timings(seconds)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def milliseconds(seconds: float) -> str:
    """Return milliseconds with three significant digits and no exponent."""
    value = seconds * 1e3
    for digits, limit in ((4, 0.1), (3, 1.0), (2, 10.0), (1, 100.0)):
        if value < limit:
            return f"{value:.{digits}f}"
    return f"{value:.0f}"


def _calibrate(call: Callable[[], Any], min_time: float, clock: Callable[[], float]) -> int:
    """Return the number of calls that take `min_time`."""
    call()
    call()
    repetitions = 1
    while (elapsed := _elapsed(call, repetitions, clock)) < min_time:
        repetitions = max(repetitions + 1, min(10 * repetitions, math.ceil(1.1 * repetitions * min_time / elapsed)))
    return repetitions


def _elapsed(call: Callable[[], Any], repetitions: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repetitions):
        call()
    return clock() - start


@contextmanager
def _no_gc() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
