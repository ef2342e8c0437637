"""Declarations of arrays (name, dtype, shape) and the rule for which shapes fit a declaration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Interval(NamedTuple):
    """Inclusive range of sizes of a dimension; `high` is None if there is no upper bound."""

    low: int
    high: int | None

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and self.low <= size and (self.high is None or size <= self.high)

    def __str__(self) -> str:
        return f"{self.low}..{'' if self.high is None else self.high}"


Dimension = int | str | Interval | None


def fits(declared: Sequence[Dimension] | None, shape: Sequence[int | None]) -> bool:
    """Return whether a shape has the declared rank and sizes.

    A declaration of None allows any rank, a dimension of None or a symbolic name any size. A size of None in `shape` is
    not known yet, and fits.
    """
    if declared is None:
        return True
    if len(declared) != len(shape):
        return False
    for dimension, size in zip(declared, shape, strict=True):  # a plain loop: calls are short
        if dimension == size or dimension is None or size is None or isinstance(dimension, str):
            continue
        if not isinstance(dimension, Interval) or size not in dimension:
            return False
    return True


def may_agree(a: Sequence[Dimension] | None, b: Sequence[Dimension] | None) -> bool:
    """Return whether a shape exists that fits both declarations."""
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(map(_overlap, a, b))


def _overlap(a: Dimension, b: Dimension) -> bool:
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return True
    (a_low, a_high), (b_low, b_high) = (size if isinstance(size, Interval) else (size, size) for size in (a, b))
    return (b_high is None or a_low <= b_high) and (a_high is None or b_low <= a_high)


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model.

    Attributes
    ----------
    name : str
    dtype : str or None
        NumPy name ("float32", "bfloat16", ...); None if the model does not declare it, or the value is not a tensor.
    shape : tuple or None
        For each dimension its size, symbolic name or `Interval`, or None if any size is allowed. None: any rank.
    aliases : tuple of str
        Other names that a call may use for the same value.
    optional : bool
        Whether a call may omit this input, because the model has a default.
    """

    name: str
    dtype: str | None = None
    shape: tuple[Dimension, ...] | None = None
    aliases: tuple[str, ...] = ()
    optional: bool = False

    def in_words(self) -> str:
        """Return dtype and shape, as "float32 [N, 1..512, ?]"; "?" is a dimension of any size."""
        dtype = self.dtype or "any type"
        if self.shape is None:
            return f"{dtype}, any rank"
        sizes = ["?" if dimension is None else str(dimension) for dimension in self.shape]
        return f"{dtype} [{', '.join(sizes)}]"
