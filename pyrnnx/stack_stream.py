"""Sequences that arrive piece by piece, on their way through all layers of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx import check
from pyrnnx.conventions import CANONICAL, rearrange
from pyrnnx.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.scalars import integer
from pyrnnx.stack_states import States
from pyrnnx.stream import Stream

if TYPE_CHECKING:
    from pyrnnx.stack import Stack


class StackStream:
    """A batch of sequences on their way through a stack; made by `Stack.stream`.

    Pushing a sequence in chunks of any sizes gives what one call of this batch gives for the whole, bit for bit on the
    SIMD engine: as of `Stream`, one for each layer. Not for several threads at once: a stream has a state; several
    streams of one stack are independent.

    Attributes
    ----------
    stack : pyrnnx.Stack
    batch_size : int
    """

    def __init__(self, stack: Stack, batch_size: int) -> None:
        self._label = f"{stack.label}: stream"
        for k, layer in enumerate(stack.layers):
            if layer.op.direction.reversed != (False,):
                raise UnsupportedError(
                    f"{self._label}: layers[{k}] ({layer.label}) has direction {layer.op.direction.value}; expected "
                    "forward, for the other directions begin at the end of a sequence"
                )
        self.stack, self.batch_size = stack, integer(self._label, "batch_size", batch_size, 0)
        self._streams = [Stream(layer, self.batch_size) for layer in stack.layers]
        self._sizes = {"N": self.batch_size, "I": stack.input_size}

    def reset(self) -> None:
        """Begin anew, with zero."""
        for stream in self._streams:
            stream.reset()

    @property
    def state(self) -> tuple[Any, ...]:
        """h, and c if any layer is an LSTM, as copies, in the form of the stack's initial states.

        float64 of a float64 stack, else float32. Assign it to go on from there, bit for bit; states in the stack's own
        dtype, and either form of them, are taken as well.
        """
        h, c = States(), States()
        for stream in self._streams:
            axes = stream.layer.convention.axes_of("initial_h")
            own_h, *own_c = [rearrange(one, axes, "DNH") for one in stream.state]
            h.append(own_h)
            c.append(own_c[0] if own_c else None)
        return tuple(self.stack._together((h, c)))

    @state.setter
    def state(self, state: Any) -> None:
        forms = [form for form in self.stack.state_forms if form.exists]
        names = ", ".join(form.argument for form in forms)
        if not isinstance(state, (tuple, list)) or len(state) != len(forms) or any(one is None for one in state):
            raise ArgumentError(f"{self._label}: state is {shown(state)}; expected a tuple of {len(forms)}: {names}")
        dtypes = (self.stack.dtype, np.dtype(FLOAT_TYPES[self.stack.dtype.name].kernel))
        apart = [form.apart(self._label, one, self.batch_size, dtypes) for form, one in zip(forms, state, strict=True)]
        for stream, *own in zip(self._streams, *apart, strict=True):
            stream.state = self._of_layer(stream, own)

    def _of_layer(self, stream: Stream, own: Sequence[AnyArray | None]) -> tuple[AnyArray, ...]:
        """A layer's states in its own axes, zero where they are None."""
        zero, axes = stream.state, stream.layer.convention.axes_of("initial_h")
        return tuple(
            [
                np.zeros_like(old) if one is None else rearrange(one, CANONICAL.axes_of("initial_h"), axes)
                for one, old in zip(own, zero, strict=False)
            ]
        )

    def push(self, X: Any, sequence_lens: Any = None) -> AnyArray:
        """The next time steps of every row.

        Parameters
        ----------
        X : array_like
            [seq_length, batch_size, input_size], with batch_first [batch_size, seq_length, input_size].
        sequence_lens : array_like of int, optional
            How many steps of X each row has; a row of length 0 keeps its states. Default: all.

        Returns
        -------
        ndarray
            Y of these steps, [seq_length, batch_size, output_size], with batch_first [batch_size, seq_length,
            output_size]; zero beyond a row's length.

        Raises
        ------
        PyrnnxError
            An array that does not fit the stack or the stream's batch_size; then the states are as before.
        """
        convention = self.stack._convention
        axes = convention.axes_of("X")
        X = check.same_shape(self._label, convention, "X", X, (self.stack.dtype,), self._sizes)
        lengths = check.lengths(self._label, convention, sequence_lens, dict(zip(axes, X.shape, strict=True)))
        if lengths is not None:
            lengths = lengths.astype(np.int32)  # which every convention of a layer allows
        Y, before = rearrange(X, axes, "TNI"), [stream.state for stream in self._streams]
        try:
            for stream in self._streams:
                own = stream.layer.convention.axes_of
                Y = rearrange(stream.push(rearrange(Y, "TNI", own("X")), lengths), own("Y"), "TNDH")[:, :, 0]
            return np.ascontiguousarray(rearrange(Y, "TNI", axes))
        except BaseException as error:  # memory; the layers before that one have gone on
            for stream, old in zip(self._streams, before, strict=True):
                stream.state = old
            if isinstance(error, MemoryError):
                raise ArgumentError(f"{self._label}: X has shape {X.shape}; {error}") from error
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.stack, self.batch_size, self.state)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.stack!r}, batch_size={self.batch_size}>"


def _restored(stack: Stack, batch_size: int, state: tuple[Any, ...]) -> StackStream:
    stream = StackStream(stack, batch_size)
    stream.state = state
    return stream
