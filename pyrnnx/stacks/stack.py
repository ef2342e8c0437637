"""Stacks: recurrent layers that run one after another, as torch.nn.LSTM, GRU and RNN with num_layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.immutable import Immutable
from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CALL_ARGUMENTS, OUTPUTS, Convention
from pyrnnx.operator.quantized import Quantized
from pyrnnx.stacks.chain import Chain
from pyrnnx.stacks.states import STACKED, StateForm, States
from pyrnnx.stacks.stream import StackStream

Computed = tuple[AnyArray, list[Any], list[States]]  # Y, the states as the stack returns them, and by layer
RAGGED = Convention("sequence of a stack", axes={"X": "TI"})
# Limit of (steps of a padded batch) / (steps of its sequences). The kernels skip padding, so few large batches
# are fast, but writing padding costs time. No value from 1.25 to 2 was faster.
MAX_PADDING = 1.5


class Stack(Immutable):
    """Recurrent layers in sequence: each reads the previous layer's Y, both directions concatenated, as in PyTorch.

    A stack is immutable, thread-safe, and can be pickled and copied.

    Parameters
    ----------
    layers : sequence of Layer
        One or more RNN, GRU and LSTM layers without constants, of one dtype, of any direction and hidden_size, in any
        convention with sequences. The input_size of a layer is num_directions * hidden_size of the previous layer.
    batch_first : bool
        Whether X and Y are [batch_size, seq_length, ...]. As in PyTorch, states are not affected. Default: False.
    name : str, optional
        Name of the stack in error messages.

    Attributes
    ----------
    layers : tuple of Layer
    batch_first : bool
    name : str or None
    label : str
        "Stack", with the name in quotes if it has one.
    dtype : numpy.dtype
        Dtype of the weights, X, the states and the results.
    input_size : int
        input_size of the first layer.
    output_size : int
        num_directions * hidden_size of the last layer.
    hidden_sizes, num_directions : tuple of int
        One entry per layer.
    state_forms : tuple of StateForm
        Form of initial_h and Y_h, and of initial_c and Y_c.

    Raises
    ------
    PyrnnxError
        There is no layer, or one is not a `Layer`, does not fit the previous one, has constants or has no sequences.
    """

    _fixed = frozenset(
        {"name", "label", "batch_first", "layers", "dtype", "input_size", "hidden_sizes", "num_directions"}
        | {"output_size", "state_forms"}
    )

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
        self._order = (1, 0, 2) if self.batch_first else (0, 1, 2)  # transposes X and Y to [T, N, ...] and back
        rows = ((layer.op, layer.convention, layer._packed) for layer in self.layers)
        self._chain = Chain(self.dtype, rows)
        ops = [layer.op for layer in self.layers]
        self.state_forms = StateForm("initial_h", ops), StateForm("initial_c", ops)

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
        X : array_like, or list of array_like
            Input [seq_length, batch_size, input_size], with batch_first [batch_size, seq_length, input_size]; of the
            weights' dtype. A list or tuple contains sequences [seq_length, input_size] of any lengths. They run in
            batches of similar length, with the result of each run alone; `pyrnnx.set_batch_invariant` makes it the
            same bit for bit.
        sequence_lens : array_like of int, optional
            Length of each row, [batch_size], from 0 to seq_length; not with a list. Default: seq_length.
        initial_h : array_like, or list of array_like, optional
            Initial states of all layers. If they have one hidden_size: an array [sum of num_directions, batch_size,
            hidden_size] in PyTorch's order: first layer forward, first layer reverse, second layer and so on. For any
            layers: a list with an array [num_directions, batch_size, hidden_size] or None (zero) per layer. Default:
            zero.
        initial_c : array_like, or list of array_like, optional
            Initial cell states: an array of the LSTM layers only, or a list for all layers with None for the others.
        **named : array_like
            The same arguments by their names in OpenVINO (sequence_lengths, H, C).

        Returns
        -------
        Y : ndarray, or list of ndarray
            Y of the last layer, [seq_length, batch_size, num_directions*hidden_size], with batch_first [batch_size,
            seq_length, ...]: forward first. Zero beyond a row's length. If X is a list: a list of arrays [seq_length,
            num_directions*hidden_size] in the same order.
        Y_h : ndarray or list of ndarray
            States of every layer after the last step: one array, as initial_h, if all layers have one hidden_size, else
            a list. Zero for a row of length 0.
        Y_c : ndarray or list
            Cell states in the same form, if any layer is an LSTM; a list has None for the other layers.

        Raises
        ------
        PyrnnxError
            An array does not fit, or an argument is unknown, missing or duplicated.
        """
        if more or named:
            positional = (X, sequence_lens, initial_h, initial_c, *more)
            return self.run(**check.arguments(self.label, self._convention, CALL_ARGUMENTS, positional, named))
        if isinstance(X, (list, tuple)):
            return self._run_ragged(X, sequence_lens, initial_h, initial_c)
        try:
            computed = None
            is_alone = sequence_lens is None and initial_h is None and initial_c is None
            if is_alone and type(X) is np.ndarray and X.ndim == 3:
                none: States = [None] * len(self.layers)
                computed = self._run(X.transpose(self._order), None, none, none)
            if computed is None:
                computed = self._run_checked(X, sequence_lens, initial_h, initial_c)
            return (computed[0], *computed[1])
        except MemoryError as error:
            raise ArgumentError(
                f"{self.label}: X has shape {np.shape(X)}; the results exceed memory ({error})"
            ) from error

    __call__ = run

    def _run_checked(self, X: Any, sequence_lens: Any, *initial: Any) -> Computed:
        X = check.same_shape(self.label, self._convention, "X", X, (self.dtype,), {"I": self.input_size})
        sizes = dict(zip(self._convention.axes_of("X"), X.shape, strict=True))
        lengths = check.lengths(self.label, self._convention, sequence_lens, sizes)
        h, c = self._initial(sizes["N"], *initial)
        computed = self._run(check.inner_contiguous(self.label, "X", X).transpose(self._order), lengths, h, c)
        assert computed is not None
        return computed

    def stream(self, batch_size: int) -> StackStream:
        """Return a stream: a batch of sequences that arrive piece by piece.

        The stream keeps the states between pushes. They start at zero.

        Parameters
        ----------
        batch_size : int
            Rows of every push.

        Raises
        ------
        PyrnnxError
            A layer does not run forward, or batch_size is not an integer of 0 or above.
        """
        return StackStream(self, batch_size)

    def _initial(self, N: int, *states: Any) -> list[States]:
        return [
            form.split(self.label, state, N, (self.dtype,))
            for form, state in zip(self.state_forms, states, strict=True)
        ]

    def _run(self, X: AnyArray, lengths: AnyArray | None, h: States, c: States) -> Computed | None:
        """Run X [T, N, I] through all layers; return None if the kernels cannot read an array in place."""
        T, N = X.shape[:2]
        outer = (N, T) if self.batch_first else (T, N)
        try:
            Y = np.empty((*outer, self.num_directions[-1], self.hidden_sizes[-1]), self.dtype)
        except ValueError as error:  # the size exceeds an address
            raise MemoryError(str(error)) from error
        results, (Y_h, Y_c) = self._empty_states(N)
        own_Y = Y.transpose(1, 0, 2, 3) if self.batch_first else Y
        if not self._chain.run(config.get_num_threads(), X, lengths, (h, c), own_Y, (Y_h, Y_c)):
            return None
        return Y.reshape(*outer, self.output_size), results, [Y_h, Y_c]

    def _empty_states(self, N: int) -> tuple[list[Any], list[States]]:
        wholes, states = zip(*[form.empty(N, self.dtype) for form in self.state_forms], strict=True)
        return [whole for whole, form in zip(wholes, self.state_forms, strict=True) if form.exists], list(states)

    def _run_ragged(self, X: Any, sequence_lens: Any, *initial: Any) -> tuple[Any, ...]:
        """Run sequences [T, I] of a list; return Y as a list, and the last states of all sequences."""
        if sequence_lens is not None:
            raise ArgumentError(
                f"{self.label}: sequence_lens was given with a {type(X).__name__} of sequences, which have their own "
                "lengths; expected one of them, or X as one array"
            )
        sequences = [
            check.same_shape(
                f"{self.label}: sequence {k}", RAGGED, "X", sequence, (self.dtype,), {"I": self.input_size}
            )
            for k, sequence in enumerate(X)
        ]
        N, initial_states = len(sequences), self._initial(len(sequences), *initial)
        try:
            Y: list[Any] = [None] * N
            results, states = self._empty_states(N)
            for rows in buckets([len(sequence) for sequence in sequences]):
                batch, lengths = padded([sequences[k] for k in rows])
                own = [[None if a is None else a[:, rows] for a in kind] for kind in initial_states]
                computed = self._run(batch, lengths, *own)
                assert computed is not None
                batch_Y, _, last = computed
                for k, own_Y in zip(rows, batch_Y if self.batch_first else batch_Y.swapaxes(0, 1), strict=True):
                    Y[k] = np.array(own_Y[: len(sequences[k])], order="C")
                for whole, part in zip((*states[0], *states[1]), (*last[0], *last[1]), strict=True):
                    if whole is not None:
                        whole[:, rows] = part
            return (Y, *results)
        except MemoryError as error:
            raise ArgumentError(f"{self.label}: X has {N} sequences; the results exceed memory ({error})") from error

    @property
    def output_names(self) -> tuple[str, ...]:
        """Canonical names of the results of a call."""
        return OUTPUTS if self.state_forms[1].exists else OUTPUTS[:2]

    def __reduce__(self) -> tuple[Callable[..., Stack], tuple[Any, ...]]:
        return partial(type(self), batch_first=self.batch_first, name=self.name), (self.layers,)

    def __repr__(self) -> str:
        cells = " -> ".join(
            f"{layer.op.cell} {layer.op.direction.value} {layer.op.hidden_size}" for layer in self.layers
        )
        first = ", batch_first" if self.batch_first else ""
        return f"<{self.label}: input_size={self.input_size} -> {shortened(cells)}, {self.dtype}{first}>"


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
            raise ArgumentError(f"{place} is {shown(layer)}; expected a pyrnnx.Layer")
        _check_layer(f"{place} ({layer.label})", layer)
        if k:
            _check_neighbours(f"{place} ({layer.label})", k, layer, checked[k - 1])
    return checked


def _check_layer(place: str, layer: Layer) -> None:
    if type(layer).run is not Layer.run or any(isinstance(weight, Quantized) for weight in layer.kept_weights.values()):
        raise UnsupportedError(
            f"{place} is of the class {type(layer).__name__}, which does not compute a plain RNN, GRU or LSTM; "
            "expected a layer that does"
        )
    if "T" not in layer.convention.axes_of("X"):
        raise UnsupportedError(
            f"{place} has the convention {layer.convention.name!r}, without sequences; expected a convention with them"
        )
    if layer.constants:
        raise UnsupportedError(
            f"{place} has the constants {', '.join(layer.constants)}; expected a layer without constants"
        )


def _check_neighbours(place: str, k: int, layer: Layer, before: Layer) -> None:
    D, H = before.op.num_directions, before.op.hidden_size
    if layer.input_size != D * H:
        raise ArgumentError(
            f"{place} has input_size={layer.input_size}; expected {D * H}, num_directions={D} * hidden_size={H} of "
            f"layers[{k - 1}]"
        )
    if layer.dtype != before.dtype:
        raise ArgumentError(f"{place} has dtype {layer.dtype}; expected {before.dtype} as layers[{k - 1}]")


def buckets(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of the sequences of each batch, the longest first, within `MAX_PADDING`."""
    order = sorted(range(len(lengths)), key=lambda k: -lengths[k])
    rows: list[int] = []
    total = 0
    for k in order:
        if rows and (len(rows) + 1) * lengths[rows[0]] > MAX_PADDING * (total + lengths[k]):
            yield rows
            rows, total = [], 0
        rows.append(k)
        total += lengths[k]
    if rows:
        yield rows


def padded(sequences: Sequence[AnyArray]) -> tuple[AnyArray, AnyArray | None]:
    """Return sequences [T, I], the longest first, as a view [T, N, I], and their lengths (None: all are the same).

    Padding is uninitialized.
    """
    T, size = sequences[0].shape
    batch = np.empty((len(sequences), T, size), sequences[0].dtype)  # [N, T, I]: each sequence is copied as one block
    for row, sequence in zip(batch, sequences, strict=True):
        row[: len(sequence)] = sequence
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    return batch.swapaxes(0, 1), None if lengths[-1] == T else lengths
