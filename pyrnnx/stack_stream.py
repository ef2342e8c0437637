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

SMALL = 2**16  # elements of X of a push whose memory is not in question; of others the states are kept until it is done


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
        # The axes of each layer's X out of those of what comes before it, the stack's X or a Y; at last the stack's Y.
        axes = [stream.layer.convention.axes_of for stream in self._streams]
        own = stack._convention.axes_of("X")
        wanted = [*(one("X") for one in axes[1:]), own]
        self._first = tuple([own.index(axis) for axis in axes[0]("X")])
        self._next = [
            tuple([one("Y").index(axis) for axis in f"{to}D".replace("I", "H")])
            for one, to in zip(axes, wanted, strict=True)
        ]

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
        if sequence_lens is None and type(X) is np.ndarray and X.ndim == 3 and X.size <= SMALL:
            Y = self._push_small(X)
            if Y is not None:
                return Y
        convention = self.stack._convention
        X = check.same_shape(self._label, convention, "X", X, (self.stack.dtype,), self._sizes)
        sizes = dict(zip(convention.axes_of("X"), X.shape, strict=True))
        lengths = check.lengths(self._label, convention, sequence_lens, sizes)
        if lengths is not None:
            lengths = lengths.astype(np.int32)  # which every convention of a layer allows
        before = [stream.state for stream in self._streams]
        try:
            return self._push_checked(X, lengths)
        except BaseException as error:  # memory; the layers before that one have gone on
            for stream, old in zip(self._streams, before, strict=True):
                stream.state = old
            if isinstance(error, MemoryError):
                raise ArgumentError(f"{self._label}: X has shape {X.shape}; {error}") from error
            raise

    def _push_small(self, X: AnyArray) -> AnyArray | None:
        """A push that no layer can fail; None, with nothing done, if the first one has to look closer at X."""
        first = self._streams[0]
        Y = first._push(X.transpose(self._first), first._h, first._c, None)
        if Y is None:
            return None
        for stream, order in zip(self._streams[1:], self._next, strict=False):
            Y = stream.push(Y.transpose(order)[..., 0])
        return np.ascontiguousarray(Y.transpose(self._next[-1])[..., 0])

    def _push_checked(self, X: AnyArray, lengths: AnyArray | None) -> AnyArray:
        Y = X.transpose(self._first)
        for stream, order in zip(self._streams, self._next, strict=True):
            Y = stream.push(Y, lengths).transpose(order)[..., 0]
        return np.ascontiguousarray(Y)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.stack, self.batch_size, self.state)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.stack!r}, batch_size={self.batch_size}>"


def _restored(stack: Stack, batch_size: int, state: tuple[Any, ...]) -> StackStream:
    stream = StackStream(stack, batch_size)
    stream.state = state
    return stream
