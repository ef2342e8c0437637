"""Streams of stacks: sequences that arrive piece by piece and pass through all layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx._internal.scalars import integer
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layers.stream import StatePair, Stepper
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CANONICAL, rearrange
from pyrnnx.stacks.states import STACKED, States

if TYPE_CHECKING:
    from pyrnnx.stacks.stack import Stack

SMALL = 2**16  # a push with at most this many elements of X tries the fast path


class StackStream:
    """A batch of sequences that a stack processes piece by piece; `Stack.stream` creates it.

    Pushing a sequence in pieces of any size gives the result of one call with the whole sequence, bit for bit on the
    SIMD engine, as `Stream` does for one layer. A stream is not thread-safe. Several streams of one stack are
    independent.

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
                    "forward, because the other directions start at the end of a sequence"
                )
        self._stack, size = stack, integer(self._label, "batch_size", batch_size, 0)
        self._convention = STACKED[stack.batch_first]
        self._sizes = {"N": size, "I": stack.input_size}
        self._steppers = [Stepper(layer, size) for layer in stack.layers]
        # Axes of the first layer's X in the stack's X; then those of the next X, at last the stack's Y, in each Y.
        axes = [layer.convention.axes_of for layer in stack.layers]
        X = self._convention.axes_of("X")
        self._first = tuple([X.index(axis) for axis in axes[0]("X")])
        self._next = [
            tuple([of_layer("Y").index(axis) for axis in f"{to}D".replace("I", "H")])
            for of_layer, to in zip(axes, [*(of_next("X") for of_next in axes[1:]), X], strict=True)
        ]
        self.reset()

    @property
    def stack(self) -> Stack:
        return self._stack

    @property
    def batch_size(self) -> int:
        return self._sizes["N"]

    def reset(self) -> None:
        """Set the states to zero."""
        self._set_states([stepper.first_states() for stepper in self._steppers])

    def _set_states(self, states: list[StatePair]) -> None:
        """Continue from these states, and allocate arrays for the next ones.

        A push writes to `_spare` and swaps it with `_states` when all layers are done, so any error, KeyboardInterrupt
        too, leaves the states unchanged.
        """
        spare = [(np.empty_like(h), None if c is None else np.empty_like(c)) for h, c in states]
        self._states, self._spare = states, spare

    @property
    def state(self) -> tuple[Any, ...]:
        """Copies of h and, if any layer is an LSTM, c, in the form of the stack's initial states.

        Their dtype is float64 for a float64 stack, else float32. Assign them to continue from there, bit for bit; the
        setter accepts the stack's own dtype and either form too.
        """
        h, c = States(), States()
        for stepper, (own_h, own_c) in zip(self._steppers, self._states, strict=True):
            h.append(stepper.rows(own_h.copy()))
            c.append(None if own_c is None else stepper.rows(own_c.copy()))
        return tuple([form.join(own) for form, own in zip(self.stack.state_forms, (h, c), strict=True) if form.exists])

    @state.setter
    def state(self, state: Any) -> None:
        forms = [form for form in self.stack.state_forms if form.exists]
        names = ", ".join(form.argument for form in forms)
        if not isinstance(state, (tuple, list)) or len(state) != len(forms) or any(value is None for value in state):
            raise ArgumentError(f"{self._label}: state is {shown(state)}; expected a tuple of {len(forms)}: {names}")
        dtypes = (self.stack.dtype, np.dtype(FLOAT_TYPES[self.stack.dtype.name].kernel))
        by_form = [
            form.split(self._label, value, self.batch_size, dtypes) for form, value in zip(forms, state, strict=True)
        ]
        self._set_states([_read_states(stepper, own) for stepper, *own in zip(self._steppers, *by_form, strict=True)])

    def push(self, X: Any, sequence_lens: Any = None) -> AnyArray:
        """Run the next time steps of every row.

        Parameters
        ----------
        X : array_like
            [seq_length, batch_size, input_size], with batch_first [batch_size, seq_length, input_size].
        sequence_lens : array_like of int, optional
            Number of steps of each row; a row of length 0 keeps its states. Default: all steps of X.

        Returns
        -------
        ndarray
            Y of these steps, [seq_length, batch_size, output_size], with batch_first [batch_size, seq_length,
            output_size]; zero beyond a row's length.

        Raises
        ------
        PyrnnxError
            An array does not fit the stack or the stream's batch_size. The states are unchanged.
        """
        if sequence_lens is None and type(X) is np.ndarray and X.ndim == 3 and X.size <= SMALL:
            Y = self._push_small(X)
            if Y is not None:
                return Y
        X = check.same_shape(self._label, self._convention, "X", X, (self.stack.dtype,), self._sizes)
        sizes = dict(zip(self._convention.axes_of("X"), X.shape, strict=True))
        lengths = check.lengths(self._label, self._convention, sequence_lens, sizes)
        if lengths is not None:
            lengths = lengths.astype(np.int32)  # a dtype that every convention of a layer allows
        try:
            return self._push_checked(X, lengths)
        except MemoryError as error:
            raise ArgumentError(f"{self._label}: X has shape {X.shape}; {error}") from error

    def _push_small(self, X: AnyArray) -> AnyArray | None:
        """Push without checks; return None, with the states unchanged, if the fast path of a layer refuses."""
        Y: AnyArray | None = X.transpose(self._first)
        states, spare = self._states, self._spare
        for stepper, order, (h, c), (h_next, c_next) in zip(self._steppers, self._next, states, spare, strict=True):
            Y = stepper.fast(Y, h, c, None, h_next, c_next)
            if Y is None:
                return None
            Y = Y.transpose(order)[..., 0]
        Y = np.ascontiguousarray(Y)
        self._states, self._spare = spare, states
        return Y

    def _push_checked(self, X: AnyArray, lengths: AnyArray | None) -> AnyArray:
        Y, states = X.transpose(self._first), []
        for stepper, order, (h, c) in zip(self._steppers, self._next, self._states, strict=True):
            Y, own = stepper.step(Y, lengths, h, c)
            Y = Y.transpose(order)[..., 0]
            states.append(own)
        Y = np.ascontiguousarray(Y)
        self._set_states(states)
        return Y

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.stack, self.batch_size, self.state)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.stack!r}, batch_size={self.batch_size}>"


def _read_states(stepper: Stepper, states: Sequence[AnyArray | None]) -> StatePair:
    """Return the states of a layer from h and c [D, N, H], which are None for zero."""
    axes = stepper.layer.convention.axes_of("initial_h")
    return stepper.read_states(
        [
            zero if state is None else rearrange(state, CANONICAL.axes_of("initial_h"), axes)
            for state, zero in zip(states, stepper.first_states(), strict=False)
            if zero is not None
        ]
    )


def _restored(stack: Stack, batch_size: int, state: tuple[Any, ...]) -> StackStream:
    stream = StackStream(stack, batch_size)
    stream.state = state
    return stream
