"""A layer of a stack: what its kernels see of arrays that have both directions side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyrnnx.conventions import CANONICAL
from pyrnnx.dtypes import AnyArray
from pyrnnx.layer import Layer

# Bytes of the weights of a layer that is prepared once more, for axes of which nothing has to be copied. Beyond, the
# copies take some hundredths of a call; of the smallest layers they take a third.
MOST_TWICE = 2**20
_AXES = {"X": "TNI", "state": "DNH", "sequence_lens": "N"}
# What a call gives is then Y as the stack returns it: batch_size or seq_length first, directions side by side.
SIDE_BY_SIDE = ({**_AXES, "Y": "TNDH"}, {**_AXES, "X": "NTI", "Y": "NTDH"})


class StackedLayer:
    """A layer that takes X [T, N, I] and gives Y [T, N, D*H], as views where that is possible.

    Parameters
    ----------
    layer : Layer
    batch_first : bool
        Whether Y is laid out as [N, T, D*H].
    is_last : bool
        Whether it has to be.

    Attributes
    ----------
    layer : Layer
        That one, or one that computes the same on arrays with other axes.
    """

    def __init__(self, layer: Layer, batch_first: bool, is_last: bool) -> None:
        self.layer = _with_fitting_axes(layer, batch_first, is_last)
        axes, canonical = self.layer.convention.axes_of, CANONICAL.axes_of
        self._X = _order(canonical("X"), axes("X"))
        self._Y = _order(axes("Y"), "TNDH")
        self._state, self._last = _order("DNH", axes("initial_h")), _order(axes("Y_h"), "DNH")
        self._size = layer.op.num_directions * layer.op.hidden_size

    def run(
        self, X: AnyArray, lengths: AnyArray | None, h: AnyArray | None, c: AnyArray | None
    ) -> tuple[AnyArray, AnyArray, AnyArray | None] | None:
        """Y, and the last states [D, N, H]; None where an array is not what the kernels can read.

        Raises
        ------
        MemoryError
            More than there is for Y with both directions side by side.
        ArgumentError
            More than there is for the call.
        """
        h = None if h is None else h.transpose(self._state)
        c = None if c is None else c.transpose(self._state)
        computed = self.layer._compute(X.transpose(self._X), lengths, h, c)
        if computed is None:
            return None
        Y = computed[0].transpose(self._Y)
        T, N, _, _ = Y.shape
        Y_c = computed[2].transpose(self._last) if len(computed) > 2 else None
        return Y.reshape((T, N, self._size)), computed[1].transpose(self._last), Y_c


def _order(axes: str, to: str) -> tuple[int, ...]:
    """How `transpose` makes the axes `to` of `axes`."""
    return tuple([axes.index(axis) for axis in to])


def _with_fitting_axes(layer: Layer, batch_first: bool, is_last: bool) -> Layer:
    """The layer, if its Y need not be copied or its weights are too many to keep them twice; else with other axes."""
    axes = SIDE_BY_SIDE[batch_first]
    given, wanted = layer.convention.axes_of("Y"), axes["Y"]
    if layer.op.num_directions == 1:
        fits = not is_last or given.replace("D", "") == wanted.replace("D", "")
    else:
        fits = given == wanted or (given.endswith("DH") and not is_last)
    if fits or sum(array.nbytes for array in layer.weights.values()) > MOST_TWICE:
        return layer
    weights: dict[str, Any] = dict(layer.weights)
    return Layer(
        layer.op,
        **weights,
        convention=replace(layer.convention, axes=axes),
        label=layer.label,
        weight_dtype=layer.weight_dtype,
    )
