"""The results of a part."""

from __future__ import annotations

from dataclasses import dataclass

from pyrnnx.dtypes import AnyArray

NAMES = ("name", "index")
OFFSETS = ".offsets"  # behind the name of an output


@dataclass(frozen=True)
class Columns:
    """Of n items, in the order of the source.

    Attributes
    ----------
    names : ndarray of str
        [n].
    indices : ndarray of int64
        [n]: the items' places in the source.
    values : dict
        Of each output with time steps [sum of T, ...], else [n, ...].
    offsets : dict
        Of each output with time steps int64 [n + 1]: those of item i are ``values[offsets[i]:offsets[i + 1]]``.
    """

    names: AnyArray
    indices: AnyArray
    values: dict[str, AnyArray]
    offsets: dict[str, AnyArray]

    def arrays(self) -> dict[str, AnyArray]:
        """All of them by their names in a file."""
        named = {f"{name}{OFFSETS}": array for name, array in self.offsets.items()}
        return {"name": self.names, "index": self.indices, **self.values, **named}
