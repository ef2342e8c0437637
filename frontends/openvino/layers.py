"""Recurrent layers of an IR, as declared (`IRLayer`) and with weights (`BoundLayer`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import ArgumentError
from pyrnnx.layers.facts import Described
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import Convention, axis_size, operator_axes, weight_axes
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.operator.tensor_info import fits

from .ir.element_types import BY_DTYPE, BY_PRECISION
from .ir.layer import layer_label
from .schemas import WEIGHTS, Operation


@dataclass(frozen=True)
class Port:
    """Declaration of one input or output of a layer.

    Attributes
    ----------
    id : int
    name : str
        The operation's own name of that input or output: X, H, sequence_lengths, W, ...
    shape : tuple
        None is a dynamic dimension.
    precision : str or None
        "FP32", "I64", ...; None if the port declares none.
    """

    id: int
    name: str
    shape: tuple[int | None, ...]
    precision: str | None = None

    def __str__(self) -> str:
        return f"port {self.id} ({self.name})"

    @property
    def dtype(self) -> str | None:
        """NumPy name of the declared dtype; None if the port declares none."""
        row = BY_PRECISION.get(self.precision or "")
        return None if row is None else row.dtype

    def check(self, label: str, array: AnyArray) -> None:
        """Raise if an array does not fit the declaration."""
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
    """A layer with its W, R, B and P; calls take the operation's other inputs, in port order.

    Parameters
    ----------
    operation : Operation
        Row of the table of operations, whose convention arranges the arrays.
    op, W, R, B, P, name, label, weight_dtype
        As for `Layer`; the default label is the operation's type.

    Raises
    ------
    PyrnnxError
        The weights do not fit the operator or each other.
    """

    _fixed = Layer._fixed | {"operation"}

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
        """Run ``layer(X, H[, C][, sequence_lengths])`` in the operation's own arrangement.

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
            An array is missing (the message lists all of them), superfluous, unknown, passed twice, or does not fit.
        """
        inputs = check.arguments(self.label, self.convention, self._arguments, arrays, named, all_required=True)
        if len(inputs) != len(self._arguments):
            raise _missing(self.label, self.convention, self._arguments, inputs)
        outputs = zip(self.output_names, self.run(**inputs), strict=True)
        return tuple(array for name, array in outputs if name in self.operation.outputs)

    def __reduce__(self) -> tuple[Any, ...]:
        weights = (self.weights.get(name) for name in WEIGHTS)
        make = partial(BoundLayer, name=self.name, label=self.label, weight_dtype=self.weight_dtype)
        return make, (self.operation, self.op, *weights)


@dataclass(frozen=True, repr=False)
class IRLayer(Described):
    """A recurrent `<layer>` as declared in an IR: operator and ports, without weights.

    Attributes
    ----------
    op : RecurrentOp
    operation : Operation
    name, id, type : str
        Those of the XML; `type` in the specification's spelling.
    inputs, outputs : tuple of Port
        In port order.
    warnings : tuple of str
        Messages about attributes without effect.
    """

    op: RecurrentOp
    operation: Operation
    name: str
    id: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def type(self) -> str:
        return self.operation.type

    @property
    def convention(self) -> Convention:
        return self.operation.convention

    @cached_property
    def label(self) -> str:
        """Name of this layer in errors."""
        return layer_label(self.type, self.name, self.id)

    @property
    def dtype(self) -> str | None:
        """Name of the floating-point dtype that the ports declare; None if they declare none."""
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

    def check_weights(self, weights: Mapping[str, Any]) -> dict[str, AnyArray]:
        """Return any of W, R, B and P as checked arrays.

        Raises
        ------
        PyrnnxError
            The weights do not fit the ports, the operator or each other.
        """
        axes = weight_axes(self.op, self.convention)
        sizes = {"H": self.op.hidden_size, "D": self.op.num_directions, **self.sizes}
        arrays: dict[str, AnyArray] = {}
        for argument, port in zip(self.arguments, self.inputs, strict=True):
            if argument not in weights:
                continue
            array = check.as_array(self.label, port.name, weights[argument])
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
        """Return the layer with prepared weights, for many calls; an absent P, or B of LSTMCell-1, is zero.

        `weight_dtype` "bfloat16" or "int8" stores W and R in fewer bits: see `Layer`.

        Raises
        ------
        PyrnnxError
            The weights do not fit the ports or each other.
        """
        weights = {"W": W, "R": R, "B": B, "P": P}
        weights |= self.check_weights({name: a for name, a in weights.items() if a is not None or name in "WR"})
        return BoundLayer(
            self.operation, self.op, **weights, name=self.name, label=self.label, weight_dtype=weight_dtype
        )

    def __call__(self, *arrays: Any, **named: Any) -> tuple[AnyArray, ...]:
        """Run the layer on all inputs, weights included, in port order or by name; return outputs in port order.

        Parameters
        ----------
        *arrays, **named : array_like
            As for `BoundLayer`, with W, R, B and P.

        Raises
        ------
        PyrnnxError
            An array is missing (the message lists all of them), superfluous, unknown or passed twice, or does not fit
            its port or the other arrays.
        """
        inputs = check.arguments(self.label, self.convention, self.arguments, arrays, named, all_required=True)
        for argument, port in zip(self.arguments, self.inputs, strict=True):
            if argument in inputs and argument not in WEIGHTS:
                value, array = inputs[argument], check.as_array(self.label, port.name, inputs[argument])
                # A list of lengths need not have the declared type.
                if argument != "sequence_lens" or isinstance(value, np.ndarray):
                    port.check(self.label, array)
                    inputs[argument] = array
        if len(inputs) != len(self.arguments):
            raise _missing(self.label, self.convention, self.arguments, inputs)
        bound = self.bind(**{name: inputs.pop(name) for name in WEIGHTS if name in inputs})
        return bound._for_one_call()(**inputs)


def declare(
    op: RecurrentOp,
    operation: Operation,
    arguments: Sequence[str],
    sizes: Mapping[str, int | None],
    *,
    dtype: str | None,
    lengths: str | None,
    name: str = "",
    identifier: str = "0",
) -> IRLayer:
    """Return a layer with ports for these arguments, in the operation's order, and for all outputs.

    `sizes` are those of static axes by letter, `lengths` is the dtype of sequence_lens.
    """
    known = {"H": op.hidden_size, "D": op.num_directions}
    known |= {axis: size for axis, size in sizes.items() if size is not None}
    axes = operator_axes(op, operation.convention)
    ports = []
    for number, argument in enumerate((*arguments, *operation.outputs)):
        shape = tuple(axis_size(axis, known) for axis in axes[argument])
        declared = lengths if argument == "sequence_lens" else dtype
        precision = None if declared is None else BY_DTYPE[declared].precision
        ports.append(Port(number, operation.convention.name_of(argument), shape, precision))
    inputs, outputs = tuple(ports[: len(arguments)]), tuple(ports[len(arguments) :])
    return IRLayer(op, operation, name, identifier, inputs, outputs)


def _missing(label: str, convention: Convention, arguments: Sequence[str], inputs: Mapping[str, Any]) -> ArgumentError:
    absent = ", ".join(convention.name_of(argument) for argument in arguments if argument not in inputs)
    names = ", ".join(convention.name_of(argument) for argument in arguments)
    return ArgumentError(
        f"{label}: {len(inputs)} arrays were given; expected {len(arguments)}: {names}; required but missing: {absent}"
    )
