"""The results of a part."""

from __future__ import annotations

from dataclasses import dataclass

from pyrnnx._internal.dtypes import AnyArray

NAMES = ("name", "index")
OFFSETS = ".offsets"  # appended to the name of an output


@dataclass(frozen=True)
class Columns:
    """Results of n items, in the order of the source."""

    names: AnyArray  # [n]
    indices: AnyArray  # [n]: positions of the items in the source
    values: dict[str, AnyArray]  # by output: [sum of T, ...] if it has time steps, else [n, ...]
    # by output with time steps: int64 [n + 1]; item i has ``values[offsets[i]:offsets[i + 1]]``
    offsets: dict[str, AnyArray]

    def arrays(self) -> dict[str, AnyArray]:
        """Return all arrays by their names in a file."""
        offsets = {f"{name}{OFFSETS}": array for name, array in self.offsets.items()}
        return {"name": self.names, "index": self.indices, **self.values, **offsets}
