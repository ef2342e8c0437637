"""A recurrent operator with its weights prepared: called many times, from any thread."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from pyrnnx import check, config, notebook, results
from pyrnnx.conventions import CALL_ARGUMENTS, CANONICAL, OUTPUTS, Convention
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, shortened, shown, warn
from pyrnnx.immutable import frozen
from pyrnnx.op import RecurrentOp
from pyrnnx.prepare import prepare
from pyrnnx.reduced import WEIGHT_DTYPES, Quantized, dequantized
from pyrnnx.stream import Stream

LayerType = TypeVar("LayerType", bound="Layer")
CONSTANTS = CALL_ARGUMENTS[1:]  # the arguments of a call that a layer may hold


class Layer:
    """One recurrent operator and its weights, prepared once.

    Calling it does not change it: it can be called from several threads at once, and be pickled and copied.

    Parameters
    ----------
    op : RecurrentOp
    W, R : array_like
        Weights [num_directions, G*hidden_size, input_size] and recurrence weights [num_directions, G*hidden_size,
        hidden_size]; G = 1 (RNN), 3 (GRU: z, r, h), 4 (LSTM: i, o, f, c). float32, float64, float16 or bfloat16.
    B : array_like, optional
        Biases [num_directions, 2*G*hidden_size]: Wb, then Rb. Default: zero.
    P : array_like, optional
        LSTM: peepholes [num_directions, 3*hidden_size] of i, o, f. Default: none.
    convention : Convention
        How the weights, and the arrays of every call, are arranged. The shapes here are those of the default, ONNX's
        with layout 0.
    name : str, optional
        Of the layer in its model.
    label : str, optional
        How errors name this layer. Default: the cell, and the name.
    weight_dtype : str, optional
        "bfloat16" or "int8": keep W and R in fewer bits, for small batches, where a call is bound by reading them.
        Everything else stays float32. bfloat16 rounds each weight to 8 significant bits; int8 to the nearest multiple
        of the largest magnitude in its row / 127. With AMX, batches of 16 rows or more round X and h to bfloat16, too,
        for "bfloat16", which takes one product of the processor's matrices where float32 takes six; "int8" does without
        them. On the LSTM of Silero VAD, over 93 frames, Y (up to 1) moved by at
        most 0.009 with bfloat16 and 0.043 with int8, the cell state (up to 6.4) by 0.013 and 0.24. Default: that of W.
    constants : mapping, optional
        sequence_lens, initial_h, initial_c: what a call takes where it does not give them. They have a batch_size, and
        so then has every call. Default: none.

    Attributes
    ----------
    op, convention, name, label, weight_dtype, constants : as given
    weights : mapping
        "W", "R" and, where given, "B", "P": read-only, as given; copies of what anybody could still write to.
    dtype : numpy.dtype
        Of the weights, and so of X, the states and the results. float16 and bfloat16 are computed in float32 and
        rounded once.
    input_size : int

    Raises
    ------
    PyrnnxError
        Weights and constants that do not fit the operator or each other.
    """

    def __init__(
        self,
        op: RecurrentOp,
        W: Any,
        R: Any,
        B: Any = None,
        P: Any = None,
        *,
        convention: Convention = CANONICAL,
        name: str | None = None,
        label: str | None = None,
        weight_dtype: str | None = None,
        constants: Mapping[str, Any] | None = None,
        weights: str | None = None,
    ) -> None:
        if weights is not None:
            if weight_dtype is not None:
                raise ArgumentError(
                    f"Layer: weight_dtype is {shown(weight_dtype)} and weights, its older name, {shown(weights)}; "
                    "expected weight_dtype alone"
                )
            warn("Layer: weights=... is now weight_dtype=...", DeprecationWarning)
        if not isinstance(op, RecurrentOp):
            raise ArgumentError(f"Layer: op is {shown(op)}; expected a RecurrentOp")
        if not isinstance(convention, Convention):
            raise ArgumentError(f"{op.cell}: convention is {shown(convention)}; expected a Convention")
        self.op, self.convention, self.name, self.weight_dtype = op, convention, name, weight_dtype
        for argument, text in (("name", name), ("label", label)):
            if text is not None and not isinstance(text, str):
                raise ArgumentError(f"{op.cell}: {argument} is {shown(text)}; expected a string, or None")
        self.label = shortened(label) if label else f"{op.cell} {shown(name)}" if name else op.cell
        given, self.input_size = check.weights(self.label, op, convention, {"W": W, "R": R, "B": B, "P": P})
        self.dtype = np.dtype(given["W"].dtype.type)  # the one object for it, which the kernels know arrays by
        if weight_dtype is not None:
            self._check_weight_dtype("weight_dtype", weight_dtype)
        if weights is not None:
            self._check_weight_dtype("weights", weights)
            self.weight_dtype = weights
        self.constants: Mapping[str, AnyArray] = MappingProxyType({} if constants is None else self._held(constants))
        # What a call must have to go straight to the kernels: nothing has to be looked for, or done, before.
        self._needs_lengths = "sequence_lens" in convention.required
        self._needs_states = "initial_h" in convention.required
        self._length_dtypes = tuple(map(np.dtype, convention.length_dtypes))
        self._has_sequences = "T" in convention.axes_of("X")
        try:
            kept = {key: a if isinstance(a, Quantized) else frozen(a) for key, a in given.items()}
            self._kept: Mapping[str, AnyArray | Quantized] = MappingProxyType(kept)
            self.weights: Mapping[str, AnyArray] = dequantized(self._kept)
            self._packed = prepare(op, self._kept, convention, self.weight_dtype)
        except (MemoryError, OverflowError, ValueError) as error:
            shapes = ", ".join(f"{key} {array.shape}" for key, array in given.items())
            raise ArgumentError(f"{self.label}: the weights cannot be prepared: {shapes} ({error})") from error

    def _check_weight_dtype(self, argument: str, value: Any) -> None:
        if not isinstance(value, str) or value not in WEIGHT_DTYPES or self.dtype == np.float64:
            raise ArgumentError(
                f"{self.label}: {argument} is {shown(value)} with dtype {self.dtype}; expected one of "
                f"{', '.join(map(repr, WEIGHT_DTYPES))}, with dtype float64 None"
            )

    def _held(self, constants: Any) -> dict[str, AnyArray]:
        """Arguments that a call takes from the layer: copies that nobody can write to."""
        expected = f"expected a mapping of {', '.join(CONSTANTS)}"
        if not isinstance(constants, Mapping):
            raise ArgumentError(f"{self.label}: constants is {shown(constants)}; {expected}")
        held = {}
        for name, value in constants.items():
            if name not in CONSTANTS:
                raise ArgumentError(f"{self.label}: constants is a mapping with the key {shown(name)}; {expected}")
            if value is not None:
                array = check.constant(self.label, self.op, self.convention, self.dtype, name, value)
                held[name] = check.copied(self.label, name, array, partial(frozen, array))
        return held

    def run(
        self,
        X: Any = None,
        sequence_lens: Any = None,
        initial_h: Any = None,
        initial_c: Any = None,
        *more: Any,
        out: Any = None,
        **named: Any,
    ) -> tuple[AnyArray, ...]:
        """Run over a batch of sequences.

        Parameters
        ----------
        X : array_like
            Input [seq_length, batch_size, input_size], of the weights' dtype.
        sequence_lens : array_like of int, optional
            Length of each row, [batch_size], from 0 to seq_length. Default: the layer's constant, else seq_length.
        initial_h, initial_c : array_like, optional
            Initial states [num_directions, batch_size, hidden_size]; initial_c for an LSTM only. Default: the layer's
            constants, else zero.
        out : tuple, optional
            For each result an array of its shape and dtype to write it to, or None. They may overlap the inputs, and
            initial_h and initial_c may be given for Y_h and Y_c. Default: new arrays.
        **named : array_like
            The same by the names of OpenVINO (sequence_lengths, H, C) or of the layer's convention.

        Returns
        -------
        Y : ndarray
            [seq_length, num_directions, batch_size, hidden_size]; zero beyond a row's length.
        Y_h : ndarray
            State after the last step, [num_directions, batch_size, hidden_size]; zero for a row of length 0.
        Y_c : ndarray
            The cell state likewise; LSTM only.

        Raises
        ------
        PyrnnxError
            An array that does not fit; an argument that is unknown, missing or given twice. The shapes here are those
            of the canonical convention.
        """
        if more or named:
            by_place = (X, sequence_lens, initial_h, initial_c, *more)
            return self.run(**check.arguments(self.label, self.convention, CALL_ARGUMENTS, by_place, named), out=out)
        if self.constants:
            sequence_lens, initial_h, initial_c = self._or_constants(sequence_lens, initial_h, initial_c)
        if out is not None:
            self._check_out(out)
        are_lengths = not self._needs_lengths if sequence_lens is None else self._are_lengths(sequence_lens)
        if are_lengths and (not self._needs_states or self._has_states(initial_h, initial_c)):
            try:
                computed = self._compute(X, sequence_lens, initial_h, initial_c, False, out)
            except ValueError as error:
                if sequence_lens is None or isinstance(error, PyrnnxError):
                    raise
                computed = None  # lengths that do not fit X: what is wrong with them is told below
            if computed is not None:
                return computed
        given = {"X": X, "initial_h": initial_h, "initial_c": initial_c, "sequence_lens": sequence_lens}
        arrays, lengths = self._checked(given)
        computed = self._results(arrays["X"], lengths, arrays.get("initial_h"), arrays.get("initial_c"))
        return computed if out is None else results.written(self.label, self._out_names, computed, out)

    __call__ = run  # front-ends call with their own arguments, and run with these

    def _for_one_call(self: LayerType) -> LayerType:
        """This layer, for a caller who makes one for each call: matrices take W and R only where one call pays it."""
        self._packed.one_call = True
        return self

    def stream(self, batch_size: int) -> Stream:
        """A batch of sequences that arrive piece by piece, with states that are held between pushes.

        It begins with the initial states that are constants of the layer, else with zero.

        Parameters
        ----------
        batch_size : int
            Rows of every push.

        Raises
        ------
        PyrnnxError
            A layer that does not run forward, or with constant lengths, or with one constant state of two; a batch_size
            that is not an integer of 0 or above.
        """
        return Stream(self, batch_size)

    @property
    def _out_names(self) -> tuple[str, ...]:
        return tuple([f"out: {name}" for name in self.output_names])

    def _check_out(self, out: Any) -> None:
        if type(out) is not tuple or len(out) != (3 if self.op.has_cell_state else 2):
            names = ", ".join(self.output_names)
            raise ArgumentError(
                f"{self.label}: out is {results.given(out)}; expected a tuple of arrays, or None: {names}"
            )

    def _or_constants(self, *given: Any) -> tuple[Any, ...]:
        """sequence_lens, initial_h and initial_c as given, else as the layer holds them."""
        return tuple(
            self.constants.get(name) if value is None else value for name, value in zip(CONSTANTS, given, strict=True)
        )

    def _are_lengths(self, given: Any) -> bool:
        """Whether lengths are an array of a dtype that they may have; the kernels look at its shape and values."""
        return type(given) is np.ndarray and self._has_sequences and given.dtype in self._length_dtypes

    def _has_states(self, initial_h: Any, initial_c: Any) -> bool:
        return initial_h is not None and (initial_c is not None or not self.op.has_cell_state)

    def _checked(self, given: Mapping[str, Any]) -> tuple[dict[str, AnyArray], AnyArray | None]:
        """X and the states of a call as the kernels can read them, and the lengths, if not all are seq_length."""
        arrays, sizes = check.inputs(self.label, self.op, self.convention, self.dtype, self.input_size, given)
        lengths = given.get("sequence_lens")
        if lengths is not None:
            lengths = check.lengths(self.label, self.convention, lengths, sizes)
        return {name: check.inner_contiguous(self.label, name, array) for name, array in arrays.items()}, lengths

    def _compute(
        self,
        X: Any,
        lengths: AnyArray | None,
        initial_h: Any,
        initial_c: Any,
        wide_states: bool = False,
        out: Any = None,
    ) -> tuple[AnyArray, ...] | None:
        """Run on arrays as they are; None where one of them is not what the kernels can read or write."""
        try:
            return self._packed.run(config.get_num_threads(), X, lengths, initial_h, initial_c, wide_states, out)
        except MemoryError as error:
            raise ArgumentError(f"{self.label}: X has shape {X.shape}; {error}") from error

    def _results(self, *arguments: Any) -> tuple[AnyArray, ...]:
        """As `_compute`, with arrays that have been checked."""
        computed = self._compute(*arguments)
        assert computed is not None
        return computed

    @property
    def output_names(self) -> tuple[str, ...]:
        """Canonical names of what a call returns."""
        return OUTPUTS if self.op.has_cell_state else OUTPUTS[:2]

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(
            type(self),
            convention=self.convention,
            name=self.name,
            label=self.label,
            weight_dtype=self.weight_dtype,
            constants=dict(self.constants),
        )
        return make, (self.op, *(self._kept.get(name) for name in ("W", "R", "B", "P")))

    def facts(self) -> dict[str, str]:
        """What it is, in words: of its operator, its arrays and their convention."""
        arrays = {name: f"{array.dtype} {list(array.shape)}" for name, array in self.weights.items()}
        held = {name: f"constant, {array.dtype} {list(array.shape)}" for name, array in self.constants.items()}
        reduced = {} if self.weight_dtype is None else {"weight_dtype": self.weight_dtype}
        sizes = {"input_size": str(self.input_size)}
        return {**self.op.facts(), **sizes, "convention": self.convention.name, **arrays, **reduced, **held}

    def _repr_html_(self) -> str:
        return notebook.whole(notebook.facts(f"{type(self).__name__} {self.label}", self.facts()))

    def __repr__(self) -> str:
        reduced = "" if self.weight_dtype is None else f" with weights in {self.weight_dtype}"
        return (
            f"<{type(self).__name__} {self.label}: {self.op.direction.value}, input_size={self.input_size}, "
            f"hidden_size={self.op.hidden_size}, {self.dtype}{reduced}, {self.convention.name}>"
        )
