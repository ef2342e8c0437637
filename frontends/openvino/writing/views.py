"""Views of values with their axes in another order: Transposes are written only if a layer needs them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..ir.writer import Shape, Value


class View(NamedTuple):
    """A value with its axes in another order: axis k of the view is axis ``order[k]`` of the value.

    Two Transposes in a row are one order, so Transposes that cancel are never written:

        Transpose [1, 0, 2] of X      View(X, (1, 0, 2))
        Transpose [1, 0, 2] of that   View(X, (0, 1, 2)), X itself
    """

    value: Value
    order: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        return tuple(self.value.shape[axis] for axis in self.order)

    @property
    def precision(self) -> str:
        return self.value.precision

    @property
    def rank(self) -> int:
        return len(self.order)

    @property
    def is_plain(self) -> bool:
        """True if the view is the value itself."""
        return self.order == tuple(range(len(self.order)))

    @property
    def last_in_place(self) -> bool:
        """True if the last axis is that of the value."""
        return not self.order or self.order[-1] == len(self.order) - 1

    def transposed(self, order: Sequence[int]) -> View:
        return View(self.value, tuple(self.order[axis] for axis in order))

    def order_without(self, axes: Collection[int]) -> tuple[int, ...]:
        """Return the order of the remaining axes after removal of these axes of the view."""
        remaining = [axis for k, axis in enumerate(self.order) if k not in axes]
        return tuple(sorted(remaining).index(axis) for axis in remaining)


class Sequential(NamedTuple):
    """A sequence of tensors: its elements, unless they are the parts of size 1 of `whole` along `axis`.

    `keeps_axis` says that these elements have the axis.
    """

    views: Sequence[View]
    whole: View | None = None
    axis: int = 0
    keeps_axis: bool = True


def plain(value: Value) -> View:
    """Return the view that is the value itself."""
    return View(value, tuple(range(len(value.shape))))


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape of arrays that are broadcast to each other, as far as it is known."""
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_joined(sizes) for sizes in zip(*padded, strict=True))


def _joined(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size not in (1, None)]
    return known[0] if known else None if None in sizes else 1
