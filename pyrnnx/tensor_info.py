"""What is declared of an array: its name, dtype and shape, and the one rule of which shapes fit a declaration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Interval(NamedTuple):
    """A dimension between two sizes, both inclusive; `high` None: no upper one."""

    low: int
    high: int | None

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and self.low <= size and (self.high is None or size <= self.high)

    def __str__(self) -> str:
        return f"{self.low}..{'' if self.high is None else self.high}"


Dimension = int | str | Interval | None


def fits(declared: Sequence[Dimension] | None, shape: Sequence[int | None]) -> bool:
    """Whether a shape has the declared rank and sizes.

    Of a declaration, None is any rank; of a dimension, None or a symbolic name is any size. A size that is None in
    `shape` is not known yet, and fits.
    """
    if declared is None:
        return True
    if len(declared) != len(shape):
        return False
    for dimension, size in zip(declared, shape, strict=True):  # a loop, for calls are short
        if dimension == size or dimension is None or size is None or isinstance(dimension, str):
            continue
        if not isinstance(dimension, Interval) or size not in dimension:
            return False
    return True


def may_agree(one: Sequence[Dimension] | None, other: Sequence[Dimension] | None) -> bool:
    """Whether there are shapes that fit both of two declarations."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(map(_overlap, one, other))


def _overlap(one: Dimension, other: Dimension) -> bool:
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return True
    (low, high), (other_low, other_high) = (
        size if isinstance(size, Interval) else (size, size) for size in (one, other)
    )
    return (other_high is None or low <= other_high) and (high is None or other_low <= high)


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model.

    Attributes
    ----------
    name : str
    dtype : str or None
        NumPy name ("float32", "bfloat16", ...); None where the model does not say, or the value is no tensor.
    shape : tuple or None
        Of each dimension its size, its symbolic name, its `Interval`, or None where it is open; None: any rank.
    aliases : tuple of str
        Other names of the same value, taken in its place.
    optional : bool
        An input that the model has a value for, so that a call may leave it out.
    """

    name: str
    dtype: str | None = None
    shape: tuple[Dimension, ...] | None = None
    aliases: tuple[str, ...] = ()
    optional: bool = False

    def in_words(self) -> str:
        """Dtype and shape, "float32 [N, 1..512, ?]"; "?" is what is open."""
        dtype = self.dtype or "any type"
        if self.shape is None:
            return f"{dtype}, any rank"
        sizes = ["?" if one is None else str(one) for one in self.shape]
        return f"{dtype} [{', '.join(sizes)}]"
