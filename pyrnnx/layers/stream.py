"""Streams: sequences that arrive piece by piece, and the states of a layer between two pushes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx._internal.scalars import integer
from pyrnnx._kernels.entries import StreamStates
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layers import results
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CANONICAL, rearrange

if TYPE_CHECKING:
    from pyrnnx.layers.layer import Layer

StatePair = tuple[AnyArray, AnyArray | None]  # h, and c of an LSTM, in the kernels' dtype


class Stepper:
    """A layer that runs the next time steps of its rows, from states that the caller passes and owns.

    `fast(X, h, c, out, h_next, c_next)` returns Y, or None if `step` must handle X. The new states overwrite h_next and
    c_next, or else h and c.
    """

    def __init__(self, layer: Layer, batch_size: int) -> None:
        names = ("initial_h", "initial_c") if layer.op.has_cell_state else ("initial_h",)
        constants = [name for name in names if name in layer.constants]
        if "sequence_lens" in layer.constants or len(constants) not in (0, len(names)):
            raise UnsupportedError(f"{layer.label}: stream: {', '.join(layer.constants)} are constants of the layer")
        if layer.op.direction.reversed != (False,):
            raise UnsupportedError(
                f"{layer.label}: stream: direction is {layer.op.direction.value}; expected forward, "
                "because the other directions start at the end of a sequence"
            )
        self.layer, self.state_names, self._label = layer, names, f"{layer.label}: stream"
        self.batch_size = integer(self._label, "batch_size", batch_size, 0)
        self.fast = layer._packed.push
        self._dtype = np.dtype(FLOAT_TYPES[layer.dtype.name].kernel)
        self._axes = layer.convention.axes_of("initial_h")
        self._sizes = {"N": self.batch_size, "D": 1, "H": layer.op.hidden_size}

    def first_states(self) -> StatePair:
        """Return the layer's constant initial states, or zero."""
        constants = self.layer.constants
        if self.state_names[0] in constants:
            return self.read_states(tuple(constants[name] for name in self.state_names))
        shape = tuple(self._sizes[axis] for axis in self._axes)
        try:
            return _pair([np.zeros(shape, self._dtype) for _ in self.state_names])
        except (MemoryError, ValueError) as error:
            raise ArgumentError(f"{self._label}: states of shape {shown(shape)} exceed memory ({error})") from error

    def read_states(self, state: Any) -> StatePair:
        """Return copies of a caller's states in the kernels' dtype."""
        names = self.state_names
        if not isinstance(state, (tuple, list)) or len(state) != len(names):
            expected = f"expected {len(names)} arrays: {', '.join(names)}"
            raise ArgumentError(f"{self._label}: state is {shown(state)}; {expected}")
        dtypes, convention = (self.layer.dtype, self._dtype), self.layer.convention
        arrays = [
            check.same_shape(self._label, convention, name, value, dtypes, self._sizes)
            for name, value in zip(names, state, strict=True)
        ]
        return _pair([np.array(array, self._dtype, order="C") for array in arrays])

    def step(
        self, X: Any, sequence_lens: Any, h: AnyArray, c: AnyArray | None, out: Any = None
    ) -> tuple[AnyArray, StatePair]:
        """Return Y and new states; h and c stay unchanged, and are returned if there are no steps or no rows."""
        layer, outputs, lengths = self.layer, None, None
        if sequence_lens is None:
            outs = None if out is None else (out, *[None] * len(self.state_names))
            outputs = layer._compute(X, None, h, c, True, outs)
        if outputs is None:
            array, lengths = self._checked(X, sequence_lens)
            outputs = layer._results(array, lengths, h, c, True)
            outputs = (*results.written(self._label, ("out",), outputs[:1], (out,)), *outputs[1:])
        Y, *states = outputs
        if Y.size == 0:
            return Y, (h, c)
        if lengths is not None:
            resting = lengths == 0
            for new, old in zip(states, (h, c), strict=False):
                if old is not None:
                    self.rows(new)[:, resting] = self.rows(old)[:, resting]
        return Y, _pair(states)

    def _checked(self, X: Any, sequence_lens: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return X as an array that the kernels can read, and the lengths (None: all are seq_length)."""
        layer = self.layer
        arrays, lengths = layer._checked(
            {"X": X} if sequence_lens is None else {"X": X, "sequence_lens": sequence_lens}
        )
        shape = arrays["X"].shape
        if shape[layer.convention.axes_of("X").index("N")] != self.batch_size:
            raise ArgumentError(
                f"{self._label}: X has shape {shape}; expected batch_size={self.batch_size} as the stream"
            )
        return arrays["X"], lengths

    def rows(self, state: AnyArray) -> AnyArray:
        """Return a view [num_directions, batch_size, hidden_size] of a state in the layer's convention."""
        return rearrange(state, self._axes, CANONICAL.axes_of("initial_h"))


def _pair(states: list[AnyArray]) -> StatePair:
    return states[0], states[1] if len(states) > 1 else None


class Stream(StreamStates):
    """A batch of sequences that a layer processes piece by piece; `Layer.stream` creates it.

    Pushing a sequence in pieces of any size gives the result of one call with the whole sequence, bit for bit on the
    SIMD engine: between pushes, as within a call, float16 and bfloat16 layers have float32 states. A stream is not
    thread-safe. Several streams of one layer are independent.

    Attributes
    ----------
    layer : pyrnnx.Layer
    batch_size : int
    """

    def __init__(self, layer: Layer, batch_size: int) -> None:
        self._stepper = Stepper(layer, batch_size)
        self._packed = layer._packed
        self.reset()

    @property
    def layer(self) -> Layer:
        return self._stepper.layer

    @property
    def batch_size(self) -> int:
        return self._stepper.batch_size

    def reset(self) -> None:
        """Set the states to the layer's constants, or to zero."""
        self._h, self._c = self._stepper.first_states()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.layer, self.batch_size, self.state)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.layer!r}, batch_size={self.batch_size}>"

    @property
    def state(self) -> tuple[AnyArray, ...]:
        """Copies of h and, for an LSTM, c, in the shape of the layer's initial states.

        Their dtype is float64 for a float64 layer, else float32. Assign them to continue from there, bit for bit; the
        setter accepts the layer's own dtype too.
        """
        return tuple(array.copy() for array in (self._h, self._c) if array is not None)

    @state.setter
    def state(self, state: Any) -> None:
        self._h, self._c = self._stepper.read_states(state)

    def _push_checked(self, X: Any, sequence_lens: Any, out: Any) -> AnyArray:
        Y, (self._h, self._c) = self._stepper.step(X, sequence_lens, self._h, self._c, out)
        return Y


def _restored(layer: Layer, batch_size: int, state: tuple[AnyArray, ...]) -> Stream:
    stream = Stream(layer, batch_size)
    stream.state = state
    return stream
