"""Recurrent layers one after another, called as torch.nn.LSTM, GRU and RNN are with num_layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from pyrnnx import check
from pyrnnx.conventions import CALL_ARGUMENTS, Convention, rearrange
from pyrnnx.dtypes import INTEGERS, AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown
from pyrnnx.layer import Layer

# Both directions side by side, as the next layer reads them: Y has one axis for D and H.
STACKED = tuple(
    Convention(f"stack, {name}", axes={"X": axes, "state": "DNH", "sequence_lens": "N"}, length_dtypes=INTEGERS)
    for name, axes in (("seq_length first", "TNI"), ("batch_size first", "NTI"))
)
States = list[AnyArray | None]  # of each layer [num_directions, batch_size, hidden_size], None where it has none


class Stack:
    """Layers of which each reads what the one before gives, both directions side by side, as in PyTorch.

    Calling it does not change it: it can be called from several threads at once, and be pickled and copied.

    Parameters
    ----------
    layers : sequence of Layer
        At least one: RNN, GRU and LSTM of any direction and hidden_size, of one dtype and in any convention that has
        sequences; input_size of each is num_directions * hidden_size of the one before. Without constants.
    batch_first : bool
        Whether X and Y are [batch_size, seq_length, ...]. States are not, as in PyTorch. Default: no.
    name : str, optional
        Of the stack, for errors.

    Attributes
    ----------
    layers : tuple of Layer
    batch_first : bool
    name : str or None
    label : str
        How errors name this stack.
    dtype : numpy.dtype
        Of the weights, and so of X, the states and the results.
    input_size : int
        Of the first layer.
    output_size : int
        num_directions * hidden_size of the last layer.
    hidden_sizes, num_directions : tuple of int
        Of each layer.

    Raises
    ------
    PyrnnxError
        No layers, something that is no layer, layers that do not fit each other, hold constants or have no sequences.
    """

    def __init__(self, layers: Iterable[Layer], *, batch_first: bool = False, name: str | None = None) -> None:
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"Stack: name is {shown(name)}; expected a string, or None")
        self.name = name
        self.label = shortened(f"Stack {shown(name)}") if name else "Stack"
        if not isinstance(batch_first, (bool, np.bool_)):
            raise ArgumentError(f"{self.label}: batch_first is {shown(batch_first)}; expected True or False")
        self.batch_first = bool(batch_first)
        self.layers = _checked_layers(self.label, layers)
        self.dtype, self.input_size = self.layers[0].dtype, self.layers[0].input_size
        self.hidden_sizes = tuple([layer.op.hidden_size for layer in self.layers])
        self.num_directions = tuple([layer.op.num_directions for layer in self.layers])
        self.output_size = self.num_directions[-1] * self.hidden_sizes[-1]
        self._convention = STACKED[self.batch_first]

    def run(
        self,
        X: Any = None,
        sequence_lens: Any = None,
        initial_h: Any = None,
        initial_c: Any = None,
        *more: Any,
        **named: Any,
    ) -> tuple[Any, ...]:
        """Run over a batch of sequences.

        Parameters
        ----------
        X : array_like
            Input [seq_length, batch_size, input_size], with batch_first [batch_size, seq_length, input_size]; of the
            weights' dtype.
        sequence_lens : array_like of int, optional
            Length of each row, [batch_size], from 0 to seq_length. Default: seq_length.
        initial_h : array_like, or list of array_like, optional
            Initial states of all layers. Of layers of one hidden_size an array [sum of num_directions, batch_size,
            hidden_size] in PyTorch's order: the first layer forward, the first layer reverse, the second layer and so
            on. Of any layers a list of arrays [num_directions, batch_size, hidden_size], one for each, or None for
            zero. Default: zero.
        initial_c : array_like, or list of array_like, optional
            Initial cell states likewise: an array of the LSTM layers alone, or a list for all layers with None for the
            others.
        **named : array_like
            The same by the names of OpenVINO (sequence_lengths, H, C).

        Returns
        -------
        Y : ndarray
            Of the last layer, [seq_length, batch_size, num_directions*hidden_size], with batch_first [batch_size,
            seq_length, ...]: forward first. Zero beyond a row's length.
        Y_h : ndarray or list of ndarray
            States after the last step of every layer, as initial_h: one array where all layers have one hidden_size,
            else a list. Zero for a row of length 0.
        Y_c : ndarray or list
            The cell states likewise, if any layer is an LSTM; in a list, None for a layer that is not.

        Raises
        ------
        PyrnnxError
            An array that does not fit; an argument that is unknown, missing or given twice.
        """
        if more or named:
            by_place = (X, sequence_lens, initial_h, initial_c, *more)
            return self.run(**check.arguments(self.label, self._convention, CALL_ARGUMENTS, by_place, named))
        X = check.same_shape(self.label, self._convention, "X", X, (self.dtype,), {"I": self.input_size})
        sizes = dict(zip(self._convention.axes_of("X"), X.shape, strict=True))
        lengths = check.lengths(self.label, self._convention, sequence_lens, sizes)
        h, c = self._initial("initial_h", initial_h, sizes["N"]), self._initial("initial_c", initial_c, sizes["N"])
        return self._run(check.inner_contiguous(self.label, "X", X), lengths, h, c)

    __call__ = run

    def _run(self, X: AnyArray, lengths: AnyArray | None, h: States, c: States) -> tuple[Any, ...]:
        """All layers on arrays that have been checked."""
        axes = self._convention.axes_of("X")
        Y, last_h, last_c = rearrange(X, axes, "TNI"), States(), States()
        try:
            for k, layer in enumerate(self.layers):
                Y, Y_h, Y_c = _run_layer(layer, Y, lengths, h[k], c[k])
                last_h.append(Y_h)
                last_c.append(Y_c)
            Y = np.ascontiguousarray(rearrange(Y, "TNI", axes))
            states = [self._together(one) for one in ((last_h, last_c) if self._has_cell_state else (last_h,))]
        except MemoryError as error:
            raise ArgumentError(f"{self.label}: X has shape {X.shape}; the results exceed memory ({error})") from error
        return (Y, *states)

    # States: in one array where that is possible, and of each layer in views of it

    @cached_property
    def _is_joined(self) -> bool:
        """Whether the states of all layers go into one array."""
        return len(set(self.hidden_sizes)) == 1

    def _holds(self, k: int, cell_states: bool) -> bool:
        """Whether layer k has such states."""
        return not cell_states or self.layers[k].op.has_cell_state

    def _directions(self, cell_states: bool) -> list[int]:
        """How many rows of the one array belong to each layer."""
        return [D if self._holds(k, cell_states) else 0 for k, D in enumerate(self.num_directions)]

    @cached_property
    def _has_cell_state(self) -> bool:
        return any(layer.op.has_cell_state for layer in self.layers)

    def _together(self, states: States) -> Any:
        """What a call returns for states of each layer."""
        if not self._is_joined:
            return states
        return np.concatenate([state for state in states if state is not None])

    def _initial(self, argument: str, value: Any, N: int) -> States:
        """The initial states of each layer, None for zero."""
        cell_states = argument == "initial_c"
        counts = self._directions(cell_states)
        if value is None:
            return [None] * len(counts)
        if not any(counts):
            raise UnsupportedError(f"{self.label}: {argument} was given; no layer has a cell state")
        if isinstance(value, (list, tuple)):
            return self._initial_of_each(argument, value, counts, N)
        if not self._is_joined:
            raise ArgumentError(
                f"{self.label}: {argument} is one {type(value).__name__}, and the layers have hidden_sizes "
                f"{shown(self.hidden_sizes)}; expected a list of {len(counts)} arrays, one for each layer"
            )
        state = self._state(self.label, argument, value, sum(counts), N, self.hidden_sizes[0])
        return _split(state, counts)

    def _initial_of_each(self, argument: str, values: Sequence[Any], counts: Sequence[int], N: int) -> States:
        if len(values) != len(counts):
            raise ArgumentError(
                f"{self.label}: {argument} is a {type(values).__name__} of {len(values)}; expected an array, or a list "
                f"of {len(counts)} arrays, one for each layer"
            )
        states: States = []
        for k, (value, D) in enumerate(zip(values, counts, strict=True)):
            label = f"{self.label}: layers[{k}]"
            if value is not None and not D:
                raise UnsupportedError(
                    f"{label}: {argument} was given; expected None, for {self.layers[k].op.cell} has no cell state"
                )
            state = None if value is None else self._state(label, argument, value, D, N, self.hidden_sizes[k])
            states.append(state)
        return states

    def _state(self, label: str, argument: str, value: Any, D: int, N: int, H: int) -> AnyArray:
        sizes = {"D": D, "N": N, "H": H}
        array = check.same_shape(label, self._convention, argument, value, (self.dtype,), sizes)
        return check.inner_contiguous(label, argument, array)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of what a call returns."""
        return ("Y", "Y_h", "Y_c") if self._has_cell_state else ("Y", "Y_h")

    def __reduce__(self) -> tuple[Callable[..., Stack], tuple[Any, ...]]:
        return partial(type(self), batch_first=self.batch_first, name=self.name), (self.layers,)

    def __repr__(self) -> str:
        cells = " -> ".join(
            f"{layer.op.cell} {layer.op.direction.value} {layer.op.hidden_size}" for layer in self.layers
        )
        first = ", batch_first" if self.batch_first else ""
        return f"<{self.label}: input_size={self.input_size} -> {shortened(cells)}, {self.dtype}{first}>"


def _split(joined: AnyArray, counts: Sequence[int]) -> States:
    """Views for each layer, None for one that has no rows."""
    ends = np.cumsum(counts)
    return [joined[end - D : end] if D else None for end, D in zip(ends, counts, strict=True)]


def _run_layer(
    layer: Layer, X: AnyArray, lengths: AnyArray | None, h: AnyArray | None, c: AnyArray | None
) -> tuple[AnyArray, AnyArray, AnyArray | None]:
    """Y [T, N, D*H] and the last states [D, N, H] of a layer, whose kernels see X [T, N, I] in the layer's own axes."""
    axes = layer.convention.axes_of
    own_h, own_c = [None if a is None else rearrange(a, "DNH", axes("initial_h")) for a in (h, c)]
    Y, *states = layer._results(rearrange(X, "TNI", axes("X")), lengths, own_h, own_c)
    T, N, D, H = (Y := rearrange(Y, axes("Y"), "TNDH")).shape
    Y_h, *more = [rearrange(state, axes("Y_h"), "DNH") for state in states]
    return Y.reshape((T, N, D * H)), Y_h, more[0] if more else None


def _checked_layers(label: str, layers: Any) -> tuple[Layer, ...]:
    expected = "expected a sequence of pyrnnx.Layer"
    if isinstance(layers, (Layer, str, bytes)) or not isinstance(layers, Iterable):
        raise ArgumentError(f"{label}: layers is {shown(layers)}; {expected}")
    checked = tuple(layers)
    if not checked:
        raise ArgumentError(f"{label}: layers is empty; {expected}, at least one")
    for k, layer in enumerate(checked):
        place = f"{label}: layers[{k}]"
        if not isinstance(layer, Layer):
            raise ArgumentError(f"{place} is {shown(layer)}; {expected}")
        _check_layer(f"{place} ({layer.label})", layer)
        if k:
            _check_neighbours(f"{place} ({layer.label})", k, layer, checked[k - 1])
    return checked


def _check_layer(place: str, layer: Layer) -> None:
    if type(layer).run is not Layer.run:
        raise UnsupportedError(
            f"{place} is a {type(layer).__name__}, which computes something else than an RNN, GRU or LSTM; expected a "
            "layer of these"
        )
    if "T" not in layer.convention.axes_of("X"):
        raise UnsupportedError(
            f"{place} has the convention {layer.convention.name!r}, without sequences; expected one with them"
        )
    if layer.constants:
        raise UnsupportedError(
            f"{place} holds the constants {', '.join(layer.constants)}; expected a layer without constants"
        )


def _check_neighbours(place: str, k: int, layer: Layer, before: Layer) -> None:
    D, H = before.op.num_directions, before.op.hidden_size
    if layer.input_size != D * H:
        raise ArgumentError(
            f"{place} has input_size={layer.input_size}; expected {D * H}, num_directions={D} * hidden_size={H} of "
            f"layers[{k - 1}]"
        )
    if layer.dtype != before.dtype:
        raise ArgumentError(f"{place} has dtype {layer.dtype}; expected {before.dtype}, that of layers[{k - 1}]")
