"""Sequences that arrive piece by piece: the states of a layer between two pushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pyrnnx import check, notebook, results
from pyrnnx.conventions import CANONICAL, Convention, rearrange
from pyrnnx.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.op import RecurrentOp
from pyrnnx.scalars import integer

if TYPE_CHECKING:
    from pyrnnx._kernels.packed_layer import PackedLayer


class StreamedLayer(Protocol):
    """What a stream needs of its layer."""

    op: RecurrentOp
    convention: Convention
    label: str
    dtype: np.dtype[Any]
    constants: Mapping[str, AnyArray]
    _packed: PackedLayer

    def _checked(self, given: Mapping[str, Any]) -> tuple[dict[str, AnyArray], AnyArray | None]: ...
    def _compute(
        self, X: Any, lengths: Any, h: Any, c: Any, wide_states: bool, out: tuple[Any, ...] | None
    ) -> tuple[AnyArray, ...] | None: ...
    def _results(self, *arguments: Any) -> tuple[AnyArray, ...]: ...


class Stream:
    """A batch of sequences on their way through a layer; made by `Layer.stream`.

    Pushing a sequence in chunks of any sizes gives what one call of this batch gives for the whole, bit for bit on the
    SIMD engine: the states of float16 and bfloat16 layers are held in float32, as they are within a call. Not for
    several threads at once: a stream has a state; several streams of one layer are independent.

    Attributes
    ----------
    layer : pyrnnx.Layer
    batch_size : int
    """

    def __init__(self, layer: StreamedLayer, batch_size: int) -> None:
        names = _state_names(layer)
        constants = [name for name in names if name in layer.constants]
        if "sequence_lens" in layer.constants or len(constants) not in (0, len(names)):
            raise UnsupportedError(f"{layer.label}: stream: {', '.join(layer.constants)} are constants of the layer")
        if layer.op.direction.reversed != (False,):
            raise UnsupportedError(
                f"{layer.label}: stream: direction is {layer.op.direction.value}; expected forward, "
                "for the other directions begin at the end of a sequence"
            )
        self.layer, self.batch_size = layer, integer(f"{layer.label}: stream", "batch_size", batch_size, 0)
        self._dtype = np.dtype(FLOAT_TYPES[layer.dtype.name].kernel)
        self._push = layer._packed.push
        self._sizes = {"N": self.batch_size, "D": 1, "H": layer.op.hidden_size}
        self.reset()

    def reset(self) -> None:
        """Begin anew: with the states that are constants of the layer, else with zero."""
        names, constants = _state_names(self.layer), self.layer.constants
        if names[0] in constants:
            self.state = tuple(constants[name] for name in names)
            return
        shape = tuple(self._sizes[axis] for axis in self.layer.convention.axes_of("initial_h"))
        try:
            self._hold([np.zeros(shape, self._dtype) for _ in names])
        except (MemoryError, ValueError) as error:
            raise ArgumentError(
                f"{self.layer.label}: stream: states of shape {shown(shape)} exceed memory ({error})"
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.layer, self.batch_size, self.state)

    def _repr_html_(self) -> str:
        states = {
            name: f"{array.dtype} {list(array.shape)}, {_range(array)}"
            for name, array in zip(("h", "c"), self.state, strict=False)
        }
        title = f"{type(self).__name__} of {self.layer.label}"
        return notebook.whole(notebook.facts(title, {"batch_size": str(self.batch_size), **states}))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.layer!r}, batch_size={self.batch_size}>"

    def _hold(self, states: Sequence[AnyArray]) -> None:
        """Go on from these: arrays of the stream's own, which the kernels overwrite."""
        self._h, self._c = states[0], states[1] if len(states) > 1 else None

    @property
    def state(self) -> tuple[AnyArray, ...]:
        """h, and c of an LSTM, as copies, in the shape of the layer's initial states.

        float64 of a float64 layer, else float32. Assign it to go on from there, bit for bit; states in the layer's own
        dtype are taken as well.
        """
        return tuple(array.copy() for array in (self._h, self._c) if array is not None)

    @state.setter
    def state(self, state: Any) -> None:
        label, names = f"{self.layer.label}: stream", _state_names(self.layer)
        if not isinstance(state, (tuple, list)) or len(state) != len(names):
            raise ArgumentError(f"{label}: state is {shown(state)}; expected {len(names)} arrays: {', '.join(names)}")
        dtypes = (self.layer.dtype, self._dtype)
        self._hold(
            [
                np.array(
                    check.same_shape(label, self.layer.convention, name, value, dtypes, self._sizes),
                    self._dtype,
                    order="C",
                )
                for name, value in zip(names, state, strict=True)
            ]
        )

    def push(self, X: Any, sequence_lens: Any = None, *, out: Any = None) -> AnyArray:
        """The next time steps of every row.

        Parameters
        ----------
        X : array_like
            As of a call of the layer: [seq_length, batch_size, input_size] where its convention is canonical.
        sequence_lens : array_like of int, optional
            How many steps of X each row has; a row of length 0 keeps its state. Default: all.
        out : ndarray, optional
            Where to write Y: an array of its shape and dtype. It may overlap X. Default: a new array.

        Returns
        -------
        ndarray
            Y of these steps, zero beyond a row's length; `out`, if given.

        Raises
        ------
        PyrnnxError
            An array that does not fit the layer or the stream's batch_size; then the states are as before.
        """
        if sequence_lens is None:
            Y = self._push(X, self._h, self._c, out)
            if Y is not None:
                return Y
        return self._push_any(X, sequence_lens, out)

    def _push_any(self, X: Any, sequence_lens: Any, out: Any) -> AnyArray:
        """A push that needs a closer look, at its arrays or at how many threads shall work."""
        layer, computed, lengths = self.layer, None, None
        if sequence_lens is None:
            outs = None if out is None else (out, *[None] * len(_state_names(layer)))
            computed = layer._compute(X, None, self._h, self._c, True, outs)
        if computed is None:
            array, lengths = self._checked(X, sequence_lens)
            computed = layer._results(array, lengths, self._h, self._c, True)
            computed = (*results.written(f"{layer.label}: stream", ("out",), computed[:1], (out,)), *computed[1:])
        Y = computed[0]
        if Y.size == 0:  # no steps, or no rows
            return Y
        if lengths is not None:
            resting = lengths == 0
            for new, old in zip(computed[1:], (self._h, self._c), strict=False):
                if old is not None:
                    self._rows(new)[:, resting] = self._rows(old)[:, resting]
        self._hold(computed[1:])
        return Y

    def _checked(self, X: Any, sequence_lens: Any) -> tuple[AnyArray, AnyArray | None]:
        """X as the kernels can read it, and lengths, where not all are seq_length."""
        layer = self.layer
        arrays, lengths = layer._checked(
            {"X": X} if sequence_lens is None else {"X": X, "sequence_lens": sequence_lens}
        )
        given = arrays["X"].shape
        if given[layer.convention.axes_of("X").index("N")] != self.batch_size:
            raise ArgumentError(
                f"{layer.label}: stream: X has shape {given}; expected batch_size={self.batch_size} as the stream"
            )
        return arrays["X"], lengths

    def _rows(self, state: AnyArray) -> AnyArray:
        """A view [num_directions, batch_size, hidden_size]."""
        return rearrange(state, self.layer.convention.axes_of("initial_h"), CANONICAL.axes_of("initial_h"))


def _range(array: AnyArray) -> str:
    return f"from {array.min():.4g} to {array.max():.4g}" if array.size else "empty"


def _state_names(layer: StreamedLayer) -> tuple[str, ...]:
    return ("initial_h", "initial_c") if layer.op.has_cell_state else ("initial_h",)


def _restored(layer: StreamedLayer, batch_size: int, state: tuple[AnyArray, ...]) -> Stream:
    stream = Stream(layer, batch_size)
    stream.state = state
    return stream
