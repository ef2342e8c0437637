"""Report of a run, and its progress while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyrnnx.errors import ArgumentError, shortened, shown


@dataclass(frozen=True)
class ScoreReport:
    """Report of a call of `pyrnnx.score`.

    Attributes
    ----------
    sink : str
        Path of the results.
    items : int
        Number of items with results.
    skipped : mapping
        By the name of an item without results: the reason.
    hidden : int
        Number of files and folders of the source that were left out because their names begin with ".".
    parts : int
        Number of parts.
    resumed : int
        Number of parts that an earlier run had finished.
    computed : int
        Number of items that this run scored.
    seconds : float
        Time from the first part to the last.
    workers : int
        Number of worker processes; 0 if this process did the work.
    batch : int
        Maximum number of items that shared a call of the model.
    """

    sink: str
    items: int
    skipped: Mapping[str, str]
    hidden: int
    parts: int
    resumed: int
    computed: int
    seconds: float
    workers: int
    batch: int

    @property
    def rate(self) -> float:
        """Items per second that this run scored; 0 if it scored none."""
        return self.computed / self.seconds if self.computed else 0.0

    def to_dict(self) -> dict[str, object]:
        """Return all attributes and `rate` as values of JSON."""
        return {**vars(self), "skipped": dict(self.skipped), "rate": self.rate}

    def __repr__(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        hidden = f", {self.hidden} hidden" if self.hidden else ""
        resumed = f" ({self.resumed} of an earlier run)" if self.resumed else ""
        speed = f", {self.rate:.4g} items/s" if self.computed else ""
        items = f"{self.items} items{skipped}{hidden}, {self.parts} parts"
        return f"<ScoreReport {shortened(self.sink)}: {items}{resumed}{speed}>"


Progress = Callable[[int, int], None]


def progress_of(value: Any) -> Progress:
    if callable(value):
        return value  # type: ignore[no-any-return]
    if value is not None and not isinstance(value, bool):
        raise ArgumentError(f"score: progress is {shown(value)}; expected True, False, or a function of two integers")
    stream = sys.stderr
    if value is False or (value is None and not (stream is not None and stream.isatty())):
        return lambda done, total: None
    return _line()


def _line() -> Progress:
    started = time.monotonic()

    def show(done: int, total: int) -> None:
        passed = time.monotonic() - started
        left = f", {passed * (total - done) / done:.0f} s left" if 0 < done < total else ""
        sys.stderr.write(f"\r{done}/{total} items{left}\x1b[K")
        sys.stderr.write("\n" if done >= total else "")
        sys.stderr.flush()

    return show
