"""A layer of a stack, which runs on the arrays of the stack without copies."""

from __future__ import annotations

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import CANONICAL

# X, lengths, initial_h, initial_c, wide_states and out of `PackedLayer.run`
Arguments = tuple[AnyArray, AnyArray | None, AnyArray | None, AnyArray | None, bool, tuple[AnyArray | None, ...]]


class StackedLayer:
    """A layer that reads X [T, N, I] and returns Y [T, N, D*H] without copies.

    Parameters
    ----------
    layer : Layer
    batch_first : bool
        Whether Y is [N, T, D*H] in memory.
    """

    def __init__(self, layer: Layer, batch_first: bool) -> None:
        self.layer, self._batch_first, self.compute = layer, batch_first, layer._compute
        axes, canonical = layer.convention.axes_of, CANONICAL.axes_of
        self._X = _order(canonical("X"), axes("X"))
        self._Y = _order("NTDH" if batch_first else "TNDH", axes("Y"))
        self._state, self._last = _order("DNH", axes("initial_h")), _order(axes("Y_h"), "DNH")
        self._sizes = layer.op.num_directions, layer.op.hidden_size
        self._states = (None,) * (len(layer.output_names) - 1)

    def arguments(
        self, X: AnyArray, lengths: AnyArray | None, h: AnyArray | None, c: AnyArray | None
    ) -> tuple[Arguments, AnyArray]:
        """Return the arguments of `compute`, and the new array for Y as [T, N, D*H].

        Raises
        ------
        MemoryError
            Y exceeds memory.
        """
        if self._state is not None:
            h = None if h is None else h.transpose(self._state)
            c = None if c is None else c.transpose(self._state)
        T, N, _ = X.shape
        outer = (N, T) if self._batch_first else (T, N)
        D, H = self._sizes
        try:
            Y = np.empty((*outer, D, H), self.layer.dtype)
        except ValueError as error:  # the size exceeds an address
            raise MemoryError(str(error)) from error
        out = Y if self._Y is None else Y.transpose(self._Y), *self._states
        own_X = X if self._X is None else X.transpose(self._X)
        Y = Y.reshape((*outer, D * H))
        return (own_X, lengths, h, c, False, out), Y.transpose((1, 0, 2)) if self._batch_first else Y

    def last(self, Y_h: AnyArray, Y_c: AnyArray | None = None) -> tuple[AnyArray, AnyArray | None]:
        """Return the layer's last states as [D, N, H]."""
        if self._last is None:
            return Y_h, Y_c
        return Y_h.transpose(self._last), None if Y_c is None else Y_c.transpose(self._last)


def _order(axes: str, to: str) -> tuple[int, ...] | None:
    """Return the argument of `transpose` that reorders `axes` to `to`, or None if they are equal."""
    return None if axes == to else tuple([axes.index(axis) for axis in to])
