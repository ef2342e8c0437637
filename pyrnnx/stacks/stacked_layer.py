"""A layer of a stack, which runs on the arrays of the stack without copies."""

from __future__ import annotations

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import CANONICAL


class StackedLayer:
    """A layer that reads X [T, N, I] and returns Y [T, N, D*H] without copies.

    Parameters
    ----------
    layer : Layer
    batch_first : bool
        Whether Y is [N, T, D*H] in memory.
    """

    def __init__(self, layer: Layer, batch_first: bool) -> None:
        self.layer, self._batch_first = layer, batch_first
        axes, canonical = layer.convention.axes_of, CANONICAL.axes_of
        self._X = _order(canonical("X"), axes("X"))
        self._Y = _order("NTDH" if batch_first else "TNDH", axes("Y"))
        self._state, self._last = _order("DNH", axes("initial_h")), _order(axes("Y_h"), "DNH")
        self._sizes = layer.op.num_directions, layer.op.hidden_size
        self._states = (None,) * (len(layer.output_names) - 1)

    def run(
        self, X: AnyArray, lengths: AnyArray | None, h: AnyArray | None, c: AnyArray | None
    ) -> tuple[AnyArray, AnyArray, AnyArray | None] | None:
        """Return Y and the last states [D, N, H], or None if the kernels cannot read an array.

        Raises
        ------
        MemoryError
            Y exceeds memory.
        ArgumentError
            The call exceeds memory.
        """
        h = None if h is None else h.transpose(self._state)
        c = None if c is None else c.transpose(self._state)
        T, N, _ = X.shape
        outer = (N, T) if self._batch_first else (T, N)
        D, H = self._sizes
        try:
            Y = np.empty((*outer, D, H), self.layer.dtype)
        except ValueError as error:  # the size exceeds an address
            raise MemoryError(str(error)) from error
        out = Y.transpose(self._Y), *self._states
        computed = self.layer._compute(X.transpose(self._X), lengths, h, c, False, out)
        if computed is None:
            return None
        Y = Y.reshape((*outer, D * H))
        Y_c = computed[2].transpose(self._last) if len(computed) > 2 else None
        return Y.transpose((1, 0, 2)) if self._batch_first else Y, computed[1].transpose(self._last), Y_c


def _order(axes: str, to: str) -> tuple[int, ...]:
    """Return the argument of `transpose` that reorders `axes` to `to`."""
    return tuple([axes.index(axis) for axis in to])
