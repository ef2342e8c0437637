"""Packed layers in sequence, which read and write the arrays of a stack without copies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._kernels.packed_layer import PackedLayer
from pyrnnx._kernels.pipeline import run_pipeline, turn_steps
from pyrnnx.operator.conventions import CANONICAL, Convention
from pyrnnx.operator.op import RecurrentOp

States = Sequence[AnyArray | None]  # one [D, N, H] per layer; None: zero, or no such state


class Chain:
    """Layers in conventions with sequences, each of which reads the Y of the one before, directions concatenated."""

    def __init__(self, dtype: np.dtype[Any], layers: Iterable[tuple[RecurrentOp, Convention, PackedLayer]]) -> None:
        ops, conventions, packed = zip(*layers, strict=True)
        self.dtype, self.packed = dtype, packed
        self._sizes = [(op.num_directions, op.hidden_size) for op in ops]
        self._has_cell_state = [op.has_cell_state for op in ops]
        axes = [convention.axes_of for convention in conventions]
        self._X = [_order(CANONICAL.axes_of("X"), own("X")) for own in axes]
        self._Y = [_order("TNDH", own("Y")) for own in axes]
        self._state = [_order("DNH", own("initial_h")) for own in axes]

    def run(
        self,
        threads: int,
        X: AnyArray,
        lengths: AnyArray | None,
        initial: tuple[States, States],
        Y: AnyArray,
        last: tuple[States, States],
    ) -> bool:
        """Run over X [T, N, I], and return whether the kernels could use the arrays in place.

        The last layer's Y is written to Y [T, N, D, H], and the last states of each layer to `last`; `initial` and
        `last` have h and c of each layer. `lengths` None: T for every row.
        """
        T, N, _ = X.shape
        steps = turn_steps(self.packed, threads, T, N)
        arguments = []  # of a pipeline
        end = len(self.packed) - 1
        for k, packed in enumerate(self.packed):
            state, (h, c, Y_h, Y_c) = self._state[k], [kind[k] for kind in (*initial, *last)]
            out = Y if k == end else np.empty((T, N, *self._sizes[k]), self.dtype)
            outs = [_moved(out, self._Y[k]), _moved(Y_h, state)]
            if self._has_cell_state[k]:
                outs.append(_moved(Y_c, state))
            own = _moved(X, self._X[k]), lengths, _moved(h, state), _moved(c, state), False, tuple(outs)
            if steps:
                arguments.append(own)
            elif packed.run(threads, *own) is None:
                return False
            X = out.reshape(T, N, math.prod(self._sizes[k])) if k < end else X
        return not steps or run_pipeline(self.packed, threads, steps, arguments) is not None


def _order(axes: str, to: str) -> tuple[int, ...] | None:
    """Return the argument of `transpose` that reorders `axes` to `to`, or None if they are equal."""
    return None if axes == to else tuple([axes.index(axis) for axis in to])


def _moved(array: Any, order: tuple[int, ...] | None) -> Any:
    return array if array is None or order is None else array.transpose(order)
