"""What a run did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyrnnx.errors import shortened


@dataclass(frozen=True)
class ScoreReport:
    """What `pyrnnx.score` did.

    Attributes
    ----------
    sink : str
        Where the results are.
    items : int
        That have results.
    skipped : mapping
        Items that have none, by their names, and why.
    parts : int
        That the results are in.
    resumed : int
        Parts that an earlier run had finished, of `parts`.
    computed : int
        Items that this run scored, of `items`.
    seconds : float
        From the first part to the last.
    workers : int
        Processes that scored; 0: this one.
    batching : str
        Which items a call of the model took.
    """

    sink: str
    items: int
    skipped: Mapping[str, str]
    parts: int
    resumed: int
    computed: int
    seconds: float
    workers: int
    batching: str

    @property
    def rate(self) -> float:
        """Items that this run scored in a second; 0 if it scored none."""
        return self.computed / self.seconds if self.computed else 0.0

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**vars(self), "skipped": dict(self.skipped), "rate": self.rate}

    def __repr__(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        resumed = f" ({self.resumed} of an earlier run)" if self.resumed else ""
        speed = f", {self.rate:.4g} items/s" if self.computed else ""
        return f"<ScoreReport {shortened(self.sink)}: {self.items} items{skipped}, {self.parts} parts{resumed}{speed}>"
