"""A layer of a stack: what its kernels see of arrays that have both directions side by side."""

from __future__ import annotations

import numpy as np

from pyrnnx.conventions import CANONICAL
from pyrnnx.dtypes import AnyArray
from pyrnnx.layer import Layer


class StackedLayer:
    """A layer that takes X [T, N, I] and gives Y [T, N, D*H], of which nothing is copied.

    Parameters
    ----------
    layer : Layer
    batch_first : bool
        Whether Y lies in memory as [N, T, D*H].
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
        """Y, and the last states [D, N, H]; None where an array is not what the kernels can read.

        Raises
        ------
        MemoryError
            More than there is for Y.
        ArgumentError
            More than there is for the call.
        """
        h = None if h is None else h.transpose(self._state)
        c = None if c is None else c.transpose(self._state)
        T, N, _ = X.shape
        outer = (N, T) if self._batch_first else (T, N)
        D, H = self._sizes
        try:
            Y = np.empty((*outer, D, H), self.layer.dtype)
        except ValueError as error:  # more than an address can tell
            raise MemoryError(str(error)) from error
        out = Y.transpose(self._Y), *self._states
        computed = self.layer._compute(X.transpose(self._X), lengths, h, c, False, out)
        if computed is None:
            return None
        Y = Y.reshape((*outer, D * H))
        Y_c = computed[2].transpose(self._last) if len(computed) > 2 else None
        return Y.transpose((1, 0, 2)) if self._batch_first else Y, computed[1].transpose(self._last), Y_c


def _order(axes: str, to: str) -> tuple[int, ...]:
    """How `transpose` makes the axes `to` of `axes`."""
    return tuple([axes.index(axis) for axis in to])
