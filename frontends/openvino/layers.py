"""Recurrent layers of an IR: as declared (`IRLayer`), and with their weights (`BoundLayer`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from pyrnnx import check, notebook
from pyrnnx.conventions import Convention, weight_axes
from pyrnnx.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import ArgumentError
from pyrnnx.layer import Layer
from pyrnnx.op import RecurrentOp
from pyrnnx.tensor_info import TensorInfo, fits

from .ir.element_types import BY_PRECISION
from .ir.layer import layer_label
from .schemas import WEIGHTS, Operation


@dataclass(frozen=True)
class Port:
    """What a layer declares of one input or output.

    Attributes
    ----------
    id : int
    name : str
        The operation's own name of that input or output: X, H, sequence_lengths, W, ...
    shape : tuple
        None stands for a dynamic dimension.
    precision : str or None
        "FP32", "I64", ...; None where the port does not say.
    """

    id: int
    name: str
    shape: tuple[int | None, ...]
    precision: str | None = None

    def __str__(self) -> str:
        return f"port {self.id} ({self.name})"

    @property
    def dtype(self) -> str | None:
        """NumPy name of the dtype that the port declares; None where it does not say."""
        row = BY_PRECISION.get(self.precision or "")
        return None if row is None else row.dtype

    def check(self, label: str, array: AnyArray) -> None:
        """Reject an array that does not fit the declaration."""
        if not fits(self.shape, array.shape):
            raise ArgumentError(
                f"{label}: {self} was given an array of shape {array.shape}; the layer declares {self.shape}"
            )
        dtype = self.dtype
        if dtype is not None and array.dtype.name != dtype:
            raise ArgumentError(
                f"{label}: {self} was given dtype {array.dtype}; the layer declares {self.precision}; convert it with "
                f"array.astype({dtype!r})"
            )


class BoundLayer(Layer):
    """A layer with its W, R, B and P; called with the rest of the operation's inputs, in port order.

    Parameters
    ----------
    operation : Operation
        What it is in the table of operations; says how the arrays are arranged.
    op, W, R, B, P, name, label, weight_dtype
        As of `Layer`; the label is by default the operation's type.

    Raises
    ------
    PyrnnxError
        Weights that do not fit the operator or each other.
    """

    def __init__(
        self,
        operation: Operation,
        op: RecurrentOp,
        W: Any,
        R: Any,
        B: Any = None,
        P: Any = None,
        *,
        name: str | None = None,
        label: str | None = None,
        weight_dtype: str | None = None,
    ) -> None:
        self.operation = operation
        self._arguments = tuple(argument for argument in operation.inputs if argument not in WEIGHTS)
        label = label or operation.type
        convention = operation.convention
        super().__init__(op, W, R, B, P, convention=convention, name=name, label=label, weight_dtype=weight_dtype)

    def __call__(self, *arrays: Any, **named: Any) -> tuple[AnyArray, ...]:
        """``layer(X, H[, C][, sequence_lengths])``, in the operation's own arrangement.

        Parameters
        ----------
        *arrays, **named : array_like
            In port order, or by name: the operation's own (H, sequence_lengths) or ONNX's (initial_h, sequence_lens).

        Returns
        -------
        tuple of ndarray
            Y, Ho[, Co] of a sequence; Ho[, Co] of a cell.

        Raises
        ------
        ArgumentError
            Arrays that are missing (all of them are named), too many, unknown, given twice, or that do not fit.
        """
        given = check.arguments(self.label, self.convention, self._arguments, arrays, named, all_required=True)
        if len(given) != len(self._arguments):
            if "X" in given:  # an error in X is told before one about what is missing
                check.inputs(self.label, self.op, self.convention, self.dtype, self.input_size, {"X": given["X"]})
            raise _missing(self.label, self.convention, self._arguments, given)
        outputs = zip(self.output_names, self.run(**given), strict=True)
        return tuple(array for name, array in outputs if name in self.operation.outputs)

    def __reduce__(self) -> tuple[Any, ...]:
        weights = (self.weights.get(name) for name in WEIGHTS)
        make = partial(BoundLayer, name=self.name, label=self.label, weight_dtype=self.weight_dtype)
        return make, (self.operation, self.op, *weights)


@dataclass(frozen=True, repr=False)
class IRLayer:
    """A recurrent `<layer>` as it stands in an IR: its operator and ports, without weights.

    Attributes
    ----------
    op : RecurrentOp
    operation : Operation
    name, id, type : str
        As in the XML; `type` in the specification's spelling.
    inputs, outputs : tuple of Port
        In port order.
    """

    op: RecurrentOp
    operation: Operation
    name: str
    id: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def type(self) -> str:
        return self.operation.type

    @property
    def convention(self) -> Convention:
        return self.operation.convention

    @cached_property
    def label(self) -> str:
        """How errors name this layer."""
        return layer_label(self.type, self.name, self.id)

    @property
    def dtype(self) -> str | None:
        """Name of the floating-point dtype that the ports declare; None where they do not say."""
        return next((port.dtype for port in self.inputs if port.dtype in FLOAT_TYPES), None)

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each axis of X that the ports fix, by its letter: T seq_length, N batch_size, I input_size."""
        axes = self.convention.axes_of("X")
        return {axis: size for axis, size in zip(axes, self.inputs[0].shape, strict=True) if size is not None}

    @property
    def arguments(self) -> tuple[str, ...]:
        """Canonical names of the inputs that the layer has, in port order."""
        return self.operation.inputs[: len(self.inputs)]

    def _repr_html_(self) -> str:
        ports = {port.name: TensorInfo(port.name, port.dtype, port.shape).in_words() for port in self.inputs}
        return notebook.whole(notebook.facts(f"{type(self).__name__} {self.label}", {**self.op.facts(), **ports}))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.label}: {self.op.direction.value}, input_size={self.sizes.get('I', '?')}, "
            f"hidden_size={self.op.hidden_size}, {self.dtype or 'any dtype'}, {self.convention.name}>"
        )

    def check_weights(self, given: Mapping[str, Any]) -> dict[str, AnyArray]:
        """The weights that are given, any of W, R, B and P, as arrays.

        Raises
        ------
        PyrnnxError
            Weights that do not fit the ports, the operator or each other.
        """
        axes = weight_axes(self.op, self.convention)
        sizes = {"H": self.op.hidden_size, "D": self.op.num_directions, **self.sizes}
        arrays: dict[str, AnyArray] = {}
        for argument, port in zip(self.arguments, self.inputs, strict=True):
            if argument not in given:
                continue
            array = check.as_array(self.label, port.name, given[argument])
            port.check(self.label, array)
            array = check.floating_array(self.label, port.name, array)
            for first, other in arrays.items():
                check.same_dtype(self.label, port.name, array, other.dtype, self.convention.name_of(first))
            check.shape(self.label, port.name, array.shape, axes[argument], sizes)
            if argument == "W":
                sizes["I"] = array.shape[-1]
            arrays[argument] = array
        return arrays

    def bind(self, W: Any, R: Any, B: Any = None, P: Any = None, *, weight_dtype: str | None = None) -> BoundLayer:
        """The layer with its weights prepared, for many calls; P, and B of LSTMCell-1, are zero where they are absent.

        `weight_dtype` "bfloat16" or "int8" keeps W and R in fewer bits: see `Layer`.

        Raises
        ------
        PyrnnxError
            Weights that do not fit the ports or each other.
        """
        weights = {"W": W, "R": R, "B": B, "P": P}
        weights |= self.check_weights({name: a for name, a in weights.items() if a is not None or name in "WR"})
        return BoundLayer(
            self.operation, self.op, **weights, name=self.name, label=self.label, weight_dtype=weight_dtype
        )

    def __call__(self, *arrays: Any, **named: Any) -> tuple[AnyArray, ...]:
        """All inputs in port order, weights included, or by name; outputs in port order.

        Parameters
        ----------
        *arrays, **named : array_like
            As of `BoundLayer`, with W, R, B and P.

        Raises
        ------
        PyrnnxError
            Arrays that are missing (all of them are named), too many, unknown or given twice; one that does not fit its
            port or the others.
        """
        given = check.arguments(self.label, self.convention, self.arguments, arrays, named, all_required=True)
        for argument, port in zip(self.arguments, self.inputs, strict=True):
            if argument in given and argument not in WEIGHTS:
                value, array = given[argument], check.as_array(self.label, port.name, given[argument])
                # A list of lengths need not be of the declared type.
                if argument != "sequence_lens" or isinstance(value, np.ndarray):
                    port.check(self.label, array)
                    given[argument] = array
        if len(given) != len(self.arguments):
            raise _missing(self.label, self.convention, self.arguments, given)
        bound = self.bind(**{name: given.pop(name) for name in WEIGHTS if name in given})
        return bound._for_one_call()(**given)


def _missing(label: str, convention: Convention, arguments: Sequence[str], given: Mapping[str, Any]) -> ArgumentError:
    absent = ", ".join(convention.name_of(argument) for argument in arguments if argument not in given)
    names = ", ".join(convention.name_of(argument) for argument in arguments)
    return ArgumentError(
        f"{label}: {len(given)} arrays were given; expected {len(arguments)}: {names}; missing, and required: {absent}"
    )
