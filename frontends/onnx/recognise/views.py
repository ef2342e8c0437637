"""Views: operations on the leading axes of a value that only move it, such as Transpose and the slice of a time step.

    ("squeeze", axis)   ("unsqueeze", axis)   ("transpose", axes)   ("select", axis, index)   ("flip", axis)

An index is an int, or ITERATION, the iteration number of a Loop. No view moves or removes the last axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

View: TypeAlias = tuple[Any, ...]
ITERATION = "i"


def pushed(view: View, shape: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the shape after a view; None if it does not fit."""
    kind, last = view[0], len(shape) - 1
    if kind == "transpose":
        axes = view[1]
        is_fit = len(axes) == len(shape) and axes[-1] == last
        return tuple(shape[axis] for axis in axes) if is_fit else None
    axis = view[1]
    if kind in ("flip", "select") and axis < last and shape[axis] is None:
        return None  # operands of other sizes may meet here: one element may stand for all
    if kind == "flip":
        return shape if axis < last else None
    if kind == "unsqueeze":
        return (*shape[:axis], 1, *shape[axis:]) if axis <= last else None
    if axis >= last or (kind == "squeeze" and shape[axis] != 1):
        return None
    return (*shape[:axis], *shape[axis + 1 :])


def compose(first: Sequence[View], second: Sequence[View]) -> tuple[View, ...]:
    """Return both views in order, without pairs that cancel each other."""
    views = list(first)
    for view in second:
        before = views[-1] if views else ("",)
        kinds = {before[0], view[0]}
        is_undone = before == ("unsqueeze", view[1]) and view == ("select", view[1], 0)
        if is_undone or (before[1:] == view[1:] and kinds in ({"squeeze", "unsqueeze"}, {"flip"})):
            views.pop()
        elif kinds == {"transpose"}:
            axes = tuple(before[1][axis] for axis in view[1])
            views.pop()
            if axes != tuple(range(len(axes))):
                views.append(("transpose", axes))
        else:
            views.append(view)
    return tuple(views)
