"""Layers: a recurrent operator with prepared weights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.immutable import frozen
from pyrnnx._kernels.entries import LayerEntry
from pyrnnx._kernels.packed_layer import PackedLayer
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.layers import results
from pyrnnx.layers.facts import Described
from pyrnnx.layers.prepare import prepare
from pyrnnx.layers.stream import Stream
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, OUTPUTS, Convention
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.operator.quantized import Quantized, check_weight_dtype, dequantized

LayerType = TypeVar("LayerType", bound="Layer")
SHARED_BYTES = 2**16  # fewest bytes of weights that are worth a search for an equal layer
CONSTANTS = CALL_ARGUMENTS[1:]  # call arguments that a layer may supply itself

# Living layers of models, by what equal layers have in common and a sample of their weights.
_layers: WeakValueDictionary[Any, Layer] = WeakValueDictionary()


class Layer(Described, LayerEntry):
    """A recurrent operator with its weights, prepared once for many calls.

    A layer is immutable, thread-safe, and can be pickled and copied.

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
        Arrangement of the weights and of the arrays of every call. The shapes here are those of the default, ONNX with
        layout 0.
    name : str, optional
        Name of the layer in its model.
    label : str, optional
        Name of this layer in error messages. Default: the cell, and the name.
    weight_dtype : str, optional
        "bfloat16" or "int8" stores W and R in fewer bits, which speeds up small batches. Everything else stays float32.
        bfloat16 rounds each weight to 8 significant bits; int8 rounds it to a multiple of (largest magnitude in its
        row) / 127. With AMX and 16 rows or more, "bfloat16" rounds X and h to bfloat16 too. In the LSTM of Silero VAD,
        over 93 frames, Y (up to 1) changed by at most 0.009 with bfloat16 and 0.043 with int8, and the cell state (up
        to 6.4) by 0.013 and 0.24. Default: the dtype of W.
    constants : mapping, optional
        Default values of sequence_lens, initial_h and initial_c. They fix the batch_size of every call. Default: none.

    Attributes
    ----------
    op, convention, name, label, weight_dtype, constants : see above
    weights : mapping
        "W", "R" and, if the layer has them, "B", "P": read-only arrays, copied if somebody else could write to them.
    dtype : numpy.dtype
        Dtype of the weights, X, the states and the results. float16 and bfloat16 are computed in float32 and rounded
        once.
    input_size : int

    Raises
    ------
    PyrnnxError
        The weights or constants do not fit the operator or each other.
    """

    # True if layers with equal weights share the packed ones: a model packs only once the weights that its nodes share.
    _shares = False
    _fixed = frozenset(
        {"op", "convention", "name", "label", "weight_dtype", "constants", "weights", "dtype", "input_size"}
    )

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
    ) -> None:
        if not isinstance(op, RecurrentOp):
            raise ArgumentError(f"Layer: op is {shown(op)}; expected a RecurrentOp")
        if not isinstance(convention, Convention):
            raise ArgumentError(f"{op.cell}: convention is {shown(convention)}; expected a Convention")
        self.op, self.convention, self.name, self.weight_dtype = op, convention, name, weight_dtype
        for argument, text in (("name", name), ("label", label)):
            if text is not None and not isinstance(text, str):
                raise ArgumentError(f"{op.cell}: {argument} is {shown(text)}; expected a string, or None")
        self.label = shortened(label) if label else f"{op.cell} {shown(name)}" if name else op.cell
        weights, self.input_size = check.weights(self.label, op, convention, {"W": W, "R": R, "B": B, "P": P})
        self.dtype = np.dtype(weights["W"].dtype.type)  # the canonical dtype object: the kernels compare by identity
        check_weight_dtype(self.label, weight_dtype, self.dtype.name)
        self.constants: Mapping[str, AnyArray] = MappingProxyType(
            {} if constants is None else self._read_constants(constants)
        )
        # A call with these arguments goes to the kernels unchecked (see `_run_checked`).
        self._needs_lengths = "sequence_lens" in convention.required
        self._needs_states = "initial_h" in convention.required
        self._length_dtypes = tuple(map(np.dtype, convention.length_dtypes))
        self._has_sequences = "T" in convention.axes_of("X")
        try:
            read_only = {key: a if isinstance(a, Quantized) else frozen(a) for key, a in weights.items()}
            self._kept: Mapping[str, AnyArray | Quantized] = MappingProxyType(read_only)
            equal = self._equal_layer()
            self._is_shared = equal is not None
            self.weights: Mapping[str, AnyArray]
            if equal is not None:
                self._kept, self.weights, self._packed = equal._kept, equal.weights, equal._packed
            else:
                self.weights = dequantized(self._kept)
                self._packed = prepare(op, self._kept, convention, self.weight_dtype)
        except (MemoryError, OverflowError, ValueError) as error:  # sizes beyond memory, an address or a C int
            shapes = ", ".join(f"{key} {array.shape}" for key, array in weights.items())
            raise ArgumentError(f"{self.label}: the weights cannot be prepared: {shapes} ({error})") from error
        self._is_plain = not (self.constants or self._needs_lengths or self._needs_states)

    def _equal_layer(self) -> Layer | None:
        """Return an equal layer that is alive, whose arrays this one can use; None if there is none."""
        if not self._shares:
            return None
        sizes = [weight.nbytes for weight in self._kept.values() if not isinstance(weight, Quantized)]
        if sum(sizes) < SHARED_BYTES and len(sizes) == len(self._kept):
            return None
        key = config.ISA, self._identity, tuple([(name, _sample(weight)) for name, weight in self._kept.items()])
        other = _layers.setdefault(key, self)
        if other is self or not _same_arrays(self._kept, other._kept):
            return None
        packed: PackedLayer | None = other._packed  # None while another thread packs it
        return None if packed is None or packed.one_call else other

    def _read_constants(self, constants: Any) -> dict[str, AnyArray]:
        """Return read-only copies of the call arguments that the layer supplies."""
        expected = f"expected a mapping of {', '.join(CONSTANTS)}"
        if not isinstance(constants, Mapping):
            raise ArgumentError(f"{self.label}: constants is {shown(constants)}; {expected}")
        result = {}
        for name, value in constants.items():
            if name not in CONSTANTS:
                raise ArgumentError(f"{self.label}: constants is a mapping with the key {shown(name)}; {expected}")
            if value is not None:
                array = check.constant(self.label, self.op, self.convention, self.dtype, name, value)
                result[name] = check.copied(self.label, name, array, partial(frozen, array))
        return result

    def _run_checked(
        self,
        X: Any,
        sequence_lens: Any,
        initial_h: Any,
        initial_c: Any,
        *more: Any,
        out: Any,
        **named: Any,
    ) -> tuple[AnyArray, ...]:
        """Run a call that `run` leaves to Python."""
        if more or named:
            positional = (X, sequence_lens, initial_h, initial_c, *more)
            return self.run(**check.arguments(self.label, self.convention, CALL_ARGUMENTS, positional, named), out=out)
        if self.constants:
            sequence_lens, initial_h, initial_c = (
                self.constants.get(name) if value is None else value
                for name, value in zip(CONSTANTS, (sequence_lens, initial_h, initial_c), strict=True)
            )
        if out is not None:
            self._check_out(out)
        are_lengths = not self._needs_lengths if sequence_lens is None else self._are_lengths(sequence_lens)
        has_states = initial_h is not None and (initial_c is not None or not self.op.has_cell_state)
        if are_lengths and (has_states or not self._needs_states):
            outputs = self._compute(X, sequence_lens, initial_h, initial_c, False, out)
            if outputs is not None:
                return outputs
        # The kernels cannot use these arguments as they are: copy them, or raise an error that says why not.
        arguments = {"X": X, "initial_h": initial_h, "initial_c": initial_c, "sequence_lens": sequence_lens}
        arrays, lengths = self._checked(arguments)
        outputs = self._results(arrays["X"], lengths, arrays.get("initial_h"), arrays.get("initial_c"))
        if out is None:
            return outputs
        return results.written(self.label, [f"out: {name}" for name in self.output_names], outputs, out)

    __call__ = LayerEntry.run  # subclasses of front-ends replace __call__ and use `run`

    def _for_one_call(self: LayerType) -> LayerType:
        """Return this layer, set up for one call: AMX splits W and R only if that call recovers the cost."""
        if self._is_shared:  # the other layers may be called often
            self._packed = prepare(self.op, self._kept, self.convention, self.weight_dtype)
            self._is_shared = False
        self._packed.one_call = True
        return self

    def stream(self, batch_size: int) -> Stream:
        """Return a stream: a batch of sequences that arrive piece by piece.

        The stream keeps the states between pushes. It starts with the layer's constant initial states, or with zero.

        Parameters
        ----------
        batch_size : int
            Rows of every push.

        Raises
        ------
        PyrnnxError
            The layer does not run forward, has constant lengths, or has one constant state of two; or batch_size is not
            an integer of 0 or above.
        """
        return Stream(self, batch_size)

    @property
    def kept_weights(self) -> Mapping[str, AnyArray | Quantized]:
        """W, R and, if the layer has them, B and P. W and R stay codes if they are `Quantized`."""
        return self._kept

    def _check_out(self, out: Any) -> None:
        if type(out) is not tuple or len(out) != (3 if self.op.has_cell_state else 2):
            names = self.output_names
            raise ArgumentError(
                f"{self.label}: out is {results.described(out)}; expected a tuple of {len(names)}, each an array or "
                f"None: {', '.join(names)}"
            )

    def _are_lengths(self, lengths: Any) -> bool:
        """Return whether `lengths` is an array of an allowed dtype; the kernels check its shape and values."""
        return type(lengths) is np.ndarray and self._has_sequences and lengths.dtype in self._length_dtypes

    def _checked(self, arguments: Mapping[str, Any]) -> tuple[dict[str, AnyArray], AnyArray | None]:
        """Return X and the states as arrays that the kernels can read, and the lengths (None: all are seq_length)."""
        arrays, sizes = check.inputs(self.label, self.op, self.convention, self.dtype, self.input_size, arguments)
        lengths = arguments.get("sequence_lens")
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
        """Run on arrays in place; return None if the kernels cannot use one of them."""
        try:
            return self._packed.run(config.get_num_threads(), X, lengths, initial_h, initial_c, wide_states, out)
        except MemoryError as error:
            raise self._memory_error(X, error) from error

    def _memory_error(self, X: Any, error: MemoryError) -> ArgumentError:
        return ArgumentError(f"{self.label}: X has shape {X.shape}; {error}")

    def _results(self, *arguments: Any) -> tuple[AnyArray, ...]:
        """Run `_compute` on arrays that were checked."""
        outputs = self._compute(*arguments)
        assert outputs is not None
        return outputs

    @property
    def output_names(self) -> tuple[str, ...]:
        """Canonical names of the results of a call."""
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

    def __eq__(self, other: object) -> bool:
        """Return whether op, convention, weights and constants are equal, bit for bit; names do not count."""
        if not isinstance(other, Layer):
            return NotImplemented
        return self is other or (
            self._identity == other._identity
            and _same_arrays(self._kept, other._kept)
            and _same_arrays(self.constants, other.constants)
        )

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        """Everything except arrays that equal layers share."""
        return type(self), self.op, self.convention, self.weight_dtype, self.dtype, self.input_size


def _sample(weight: AnyArray | Quantized) -> bytes:
    """Return a few bytes that differ for most weights."""
    codes = weight.codes if isinstance(weight, Quantized) else weight
    return codes.flat[-16:].tobytes()


def _same_arrays(a: Mapping[str, AnyArray | Quantized], b: Mapping[str, AnyArray | Quantized]) -> bool:
    """Return whether two mappings have the same names, and arrays of the same bytes."""
    return a.keys() == b.keys() and all(_same_bytes(a[name], b[name]) for name in a)


def _same_bytes(a: AnyArray | Quantized, b: AnyArray | Quantized) -> bool:
    if a is b:
        return True
    if isinstance(a, Quantized) or isinstance(b, Quantized):
        parts = ("codes", "scale", "zero_point")
        return type(a) is type(b) and all(_same_bytes(getattr(a, part), getattr(b, part)) for part in parts)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
