"""Sequences that arrive piece by piece: the states held between calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx import check
from pyrnnx.conventions import CANONICAL, AnyArray, rearrange
from pyrnnx.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from pyrnnx.layer import Layer


class Stream:
    """A batch of sequences on their way through a layer; made by `Layer.stream`.

    Pushing a sequence in chunks of any sizes gives what one call gives for the whole. Not for several threads at once:
    a stream has a state; several streams of one layer are independent.

    Attributes
    ----------
    layer : Layer
    batch_size : int
    """

    def __init__(self, layer: Layer, batch_size: int, initial: tuple[AnyArray, ...] | None = None) -> None:
        if layer.op.direction.reversed != (False,):
            raise UnsupportedError(
                f"{layer.label}: stream: direction is {layer.op.direction.value}; expected forward, "
                "for the other directions begin at the end of a sequence"
            )
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 0:
            raise ArgumentError(f"{layer.label}: stream: batch_size is {batch_size!r}; expected an integer, 0 or above")
        self.layer, self.batch_size = layer, batch_size
        self._initial = initial
        self.reset()

    def reset(self) -> None:
        """Begin anew: all states zero, or those that an ONNX node has as constants."""
        if self._initial is not None:
            self.state = self._initial
            return
        self._state = tuple(np.zeros(self._shape("initial_h"), self.layer.dtype) for _ in self._names)

    def _shape(self, argument: str, seq_length: int = 0) -> tuple[int, ...]:
        op = self.layer.op
        sizes = {"T": seq_length, "N": self.batch_size, "D": 1, "H": op.hidden_size, "I": self.layer.input_size}
        return tuple(sizes[axis] for axis in self.layer.convention.axes_of(argument))

    @property
    def _names(self) -> tuple[str, ...]:
        return ("initial_h", "initial_c") if self.layer.op.has_cell_state else ("initial_h",)

    @property
    def state(self) -> tuple[AnyArray, ...]:
        """h, and c of an LSTM, as copies; in the shape of the layer's initial states. Assign it to go on from there."""
        return tuple(array.copy() for array in self._state)

    @state.setter
    def state(self, state: Any) -> None:
        if not isinstance(state, (tuple, list)) or len(state) != len(self._names):
            raise ArgumentError(f"{self.layer.label}: stream: state is {type(state).__name__}; expected {self._names}")
        given = {"X": np.empty(self._shape("X"), self.layer.dtype), **dict(zip(self._names, state, strict=True))}
        layer = self.layer
        arrays, _ = check.inputs(layer.label, layer.op, layer.convention, layer.dtype, layer.input_size, given)
        if any(value is None for value in state):
            raise ArgumentError(f"{layer.label}: stream: state holds None; expected {self._names}")
        self._state = tuple(np.array(arrays[name]) for name in self._names)

    def push(self, X: Any, sequence_lens: Any = None) -> AnyArray:
        """The next time steps of every row.

        Parameters
        ----------
        X : array_like
            As of a call of the layer: [seq_length, batch_size, input_size] where its convention is canonical.
        sequence_lens : array_like of int, optional
            How many steps of X each row has; a row of length 0 keeps its state. Default: all.

        Returns
        -------
        ndarray
            Y of these steps, zero beyond a row's length.

        Raises
        ------
        PyrnnxError
            An array that does not fit the layer or the stream's batch_size.
        """
        layer = self.layer
        array = check.as_array(layer.label, "X", X)
        axes = layer.convention.axes_of("X")
        time = axes.find("T")
        if array.ndim == len(axes) and array.shape[axes.index("N")] != self.batch_size:
            raise ArgumentError(
                f"{layer.label}: stream: X has shape {array.shape}; expected batch_size={self.batch_size} as the stream"
            )
        given = sequence_lens
        if given is None and "sequence_lens" in layer.convention.required and array.ndim == len(axes):
            given = np.full(self.batch_size, array.shape[time])
        Y, *states = layer.run(array, given, *self._state)
        if time >= 0 and array.shape[time] == 0:
            return Y
        if sequence_lens is not None:
            resting = np.asarray(sequence_lens) == 0
            for new, old in zip(states, self._state, strict=True):
                self._rows(new)[:, resting] = self._rows(old)[:, resting]
        self._state = tuple(states)
        return Y

    def _rows(self, state: AnyArray) -> AnyArray:
        """A view [num_directions, batch_size, hidden_size]."""
        return rearrange(state, self.layer.convention.axes_of("initial_h"), CANONICAL.axes_of("initial_h"))
