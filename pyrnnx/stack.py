"""Recurrent layers one after another, called as torch.nn.LSTM, GRU and RNN are with num_layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyrnnx import check, notebook
from pyrnnx.conventions import CALL_ARGUMENTS, OUTPUTS, Convention
from pyrnnx.dtypes import INTEGERS, AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown
from pyrnnx.layer import Layer
from pyrnnx.ragged import buckets, padded
from pyrnnx.reduced import Quantized
from pyrnnx.stack_states import StateForm, States
from pyrnnx.stack_stream import StackStream
from pyrnnx.stacked_layer import StackedLayer

# Both directions side by side, as the next layer reads them: Y has one axis for D and H.
STACKED = tuple(
    Convention(f"stack, {name}", axes={"X": axes, "state": "DNH", "sequence_lens": "N"}, length_dtypes=INTEGERS)
    for name, axes in (("seq_length first", "TNI"), ("batch_size first", "NTI"))
)
Computed = tuple[AnyArray, States, States]  # Y [T, N, D*H], Y_h and Y_c of each layer
RAGGED = Convention("sequence of a stack", axes={"X": "TI"})


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
    state_forms : tuple of StateForm
        How initial_h and Y_h, and initial_c and Y_c, are arranged.

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
        self._order = (1, 0, 2) if self.batch_first else (0, 1, 2)  # of X and Y, from [T, N, ...] and back
        last = len(self.layers) - 1
        self._layers = [StackedLayer(one, self.batch_first and k == last) for k, one in enumerate(self.layers)]
        self._no_states: States = [None] * len(self.layers)
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
            weights' dtype. A list or tuple is one of sequences [seq_length, input_size], each with its own length,
            which are run in batches of like length: each as if it were run alone, bit for bit as far as
            `pyrnnx.set_batch_invariant` says.
        sequence_lens : array_like of int, optional
            Length of each row, [batch_size], from 0 to seq_length; not with a list. Default: seq_length.
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
        Y : ndarray, or list of ndarray
            Of the last layer, [seq_length, batch_size, num_directions*hidden_size], with batch_first [batch_size,
            seq_length, ...]: forward first. Zero beyond a row's length. Of a list, a list in its order of arrays
            [seq_length, num_directions*hidden_size].
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
        if isinstance(X, (list, tuple)):
            return self._run_ragged(X, sequence_lens, initial_h, initial_c)
        try:
            computed = None
            if sequence_lens is None and initial_h is None and initial_c is None:
                computed = self._run_as_it_is(X)
            if computed is None:
                computed = self._run_checked(X, sequence_lens, initial_h, initial_c)
            Y, *states = computed
            return (np.ascontiguousarray(Y.transpose(self._order)), *self._together(states))
        except MemoryError as error:
            raise ArgumentError(
                f"{self.label}: X has shape {np.shape(X)}; the results exceed memory ({error})"
            ) from error

    __call__ = run

    def _run_as_it_is(self, X: Any) -> Computed | None:
        """Of X alone, if it is an array that the kernels can read: else it needs a closer look."""
        if type(X) is not np.ndarray or X.ndim != 3:
            return None
        return self._run(X.transpose(self._order), None, self._no_states, self._no_states)

    def _run_checked(self, X: Any, sequence_lens: Any, *initial: Any) -> Computed:
        X = check.same_shape(self.label, self._convention, "X", X, (self.dtype,), {"I": self.input_size})
        sizes = dict(zip(self._convention.axes_of("X"), X.shape, strict=True))
        lengths = check.lengths(self.label, self._convention, sequence_lens, sizes)
        h, c = self._initial(sizes["N"], *initial)
        computed = self._run(check.inner_contiguous(self.label, "X", X).transpose(self._order), lengths, h, c)
        assert computed is not None
        return computed

    def stream(self, batch_size: int) -> StackStream:
        """A batch of sequences that arrive piece by piece, with states that are held between pushes, at first zero.

        Parameters
        ----------
        batch_size : int
            Rows of every push.

        Raises
        ------
        PyrnnxError
            A layer that does not run forward; a batch_size that is not an integer of 0 or above.
        """
        return StackStream(self, batch_size)

    def _initial(self, N: int, *given: Any) -> list[States]:
        return [
            form.apart(self.label, one, N, (self.dtype,)) for form, one in zip(self.state_forms, given, strict=True)
        ]

    def _together(self, states: Sequence[States]) -> list[Any]:
        """What is returned of Y_h and Y_c of each layer."""
        return [form.together(one) for form, one in zip(self.state_forms, states, strict=True) if form.exists]

    def _run(self, X: AnyArray, lengths: AnyArray | None, h: States, c: States) -> Computed | None:
        """All layers: X [T, N, I] to Y [T, N, D*H] and the last states of each layer; None as of `StackedLayer.run`."""
        last_h, last_c = States(), States()
        for k, layer in enumerate(self._layers):
            computed = layer.run(X, lengths, h[k], c[k])
            if computed is None:
                return None
            X, Y_h, Y_c = computed
            last_h.append(Y_h)
            last_c.append(Y_c)
        return X, last_h, last_c

    def _run_ragged(self, X: Any, sequence_lens: Any, *initial: Any) -> tuple[Any, ...]:
        """Sequences [T, I] in a list: Y in a list, and the last states of all of them."""
        if sequence_lens is not None:
            raise ArgumentError(
                f"{self.label}: sequence_lens was given with a {type(X).__name__} of sequences, which have their own "
                "lengths; expected one of them, or X as one array"
            )
        sequences = [
            check.same_shape(f"{self.label}: sequence {k}", RAGGED, "X", one, (self.dtype,), {"I": self.input_size})
            for k, one in enumerate(X)
        ]
        N, initial_states = len(sequences), self._initial(len(sequences), *initial)
        try:
            Y: list[Any] = [None] * N
            states = [form.empty(N, self.dtype) for form in self.state_forms]
            for rows in buckets([len(sequence) for sequence in sequences]):
                batch, lengths = padded([sequences[k] for k in rows])
                own = [[None if a is None else a[:, rows] for a in one] for one in initial_states]
                found = self._run(batch, lengths, *own)
                assert found is not None
                computed, *last = found
                for row, k in enumerate(rows):
                    Y[k] = np.array(computed[: len(sequences[k]), row], order="C")
                for whole, part in zip((*states[0], *states[1]), (*last[0], *last[1]), strict=True):
                    if whole is not None:
                        whole[:, rows] = part
            return (Y, *self._together(states))
        except MemoryError as error:
            raise ArgumentError(f"{self.label}: X has {N} sequences; the results exceed memory ({error})") from error

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of what a call returns."""
        return OUTPUTS if self.state_forms[1].exists else OUTPUTS[:2]

    def __reduce__(self) -> tuple[Callable[..., Stack], tuple[Any, ...]]:
        return partial(type(self), batch_first=self.batch_first, name=self.name), (self.layers,)

    def _repr_html_(self) -> str:
        rows = [
            (layer.label, ", ".join(f"{name} {value}" for name, value in layer.facts().items()))
            for layer in self.layers
        ]
        return notebook.whole(notebook.table((self.label, f"input_size={self.input_size}, {self.dtype}"), rows))

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
            raise ArgumentError(f"{place} is {shown(layer)}; {expected}")
        _check_layer(f"{place} ({layer.label})", layer)
        if k:
            _check_neighbours(f"{place} ({layer.label})", k, layer, checked[k - 1])
    return checked


def _check_layer(place: str, layer: Layer) -> None:
    if type(layer).run is not Layer.run or any(isinstance(one, Quantized) for one in layer._kept.values()):
        raise UnsupportedError(
            f"{place} is of the class {type(layer).__name__}, which computes something else than an RNN, GRU or LSTM; "
            "expected a layer of these"
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
