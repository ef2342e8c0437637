"""Stacks of layers from arrays of Keras' recurrent layers, in the order of `get_weights`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import KERAS, KERAS_RESET_AFTER
from pyrnnx.operator.op import CELLS as OPERATORS
from pyrnnx.operator.op import CellName, Direction, RecurrentOp
from pyrnnx.stacks.stack import Stack

from .activations import activation as read_activation
from .config import CELLS, CellConfig, LayerConfig, cell_activations

KINDS = ("kernel", "recurrent_kernel", "bias")
_BY_GATES = {len(row.gates): row.name for row in OPERATORS.values()}


def from_weights(
    weights: Sequence[Any],
    *,
    operator: str | None = None,
    direction: str = "forward",
    activation: Any = "tanh",
    recurrent_activation: Any = "sigmoid",
    reset_after: bool | None = None,
    name: str | None = None,
    weight_dtype: str | None = None,
) -> Stack:
    """Build a stack from the arrays of `get_weights` of Keras' SimpleRNN, GRU, LSTM or Bidirectional, without Keras.

    Parameters
    ----------
    weights : sequence of array_like
        kernel [input_size, G*units], recurrent_kernel [units, G*units] and optionally bias [G*units], or [2, G*units]
        for a GRU with reset_after. For both directions, the arrays of the forward layer precede those of the backward
        layer. G = 1 (SimpleRNN), 3 (GRU: z, r, h), 4 (LSTM: i, f, c, o).
    operator : str, optional
        "SimpleRNN", "GRU" or "LSTM", which the weights must fit. Default: taken from the shape of recurrent_kernel.
    direction : str
        "forward", "reverse" (go_backwards) or "bidirectional". Y is always in time order.
    activation, recurrent_activation : str, None or Activation
        Keras' names of the functions that `from_layer` supports; None is "linear". A SimpleRNN has no
        recurrent_activation.
    reset_after : bool, optional
        Attribute of a GRU. Default: taken from the shape of the bias; without a bias True, as in Keras.
    name : str, optional
        Name of the stack in errors.
    weight_dtype : str, optional
        "bfloat16" or "int8": store W and R in fewer bits, see `pyrnnx.Layer`. Default: the dtype of the weights.

    Returns
    -------
    Stack
        A stack with batch_first and copies of the weights.

    Raises
    ------
    ArgumentError
        The number of arrays is wrong, or shapes and dtypes do not fit each other or the arguments.
    UnsupportedError
        ONNX's operators do not have an activation.

    Source: keras.layers.SimpleRNN, GRU, LSTM of Keras 3.
    """
    label = "from_weights" if name is None else f"from_weights: {shown(name)}"
    towards = Direction.named(label, direction)
    if operator is not None and (not isinstance(operator, str) or operator not in CELLS):
        allowed = ", ".join(map(repr, CELLS))
        raise ArgumentError(f"{label}: operator is {shown(operator)}; expected one of {allowed}, or None")
    if reset_after is not None and not isinstance(reset_after, bool):
        raise ArgumentError(f"{label}: reset_after is {shown(reset_after)}; expected True, False or None")
    D = towards.num_directions
    arrays = read_arrays(label, weights)
    if len(arrays) not in (2 * D, 3 * D):
        raise ArgumentError(
            f"{label}: {len(arrays)} arrays were given; expected {3 * D}, or without biases {2 * D}, for direction "
            f"{towards.value!r}: {', '.join(KINDS)}"
        )
    R = arrays[1]
    cell, units = _cell_of(label, R, None if operator is None else CELLS[operator])
    own = read_activation(label, "activation", activation)
    recurrent = read_activation(label, "recurrent_activation", recurrent_activation)
    has_bias = len(arrays) == 3 * D
    if cell != "GRU" and reset_after is not None:
        raise ArgumentError(f"{label}: reset_after is {reset_after}; only a GRU has it")
    if cell == "GRU" and reset_after is None:
        reset_after = arrays[2].ndim == 2 if has_bias else True
    config = CellConfig(cell, units, cell_activations(cell, own, recurrent), has_bias, bool(reset_after), "")
    return build_stack(label, LayerConfig(towards, ((config,) * D,)), arrays, name, weight_dtype)


def read_arrays(label: str, weights: Any) -> list[AnyArray]:
    """Return checked arrays of one floating-point type; raise an ArgumentError for anything else."""
    if isinstance(weights, (str, bytes, dict)) or not isinstance(weights, (Sequence, np.ndarray)) or not len(weights):
        raise ArgumentError(
            f"{label}: weights is {shown(weights)}; expected a list of arrays, as get_weights() returns"
        )
    arrays: list[AnyArray] = []
    for k, value in enumerate(weights):
        array = check.floating_array(label, f"weights[{k}]", value)
        if arrays:
            check.same_dtype(label, f"weights[{k}]", array, arrays[0].dtype, "weights[0]")
        arrays.append(array)
    return arrays


def _cell_of(label: str, R: AnyArray, operator: str | None) -> tuple[CellName, int]:
    """Return the operator and units by the shape of recurrent_kernel, [units, G*units]."""
    gates = R.shape[1] // R.shape[0] if R.ndim == 2 and R.shape[0] and R.shape[1] % R.shape[0] == 0 else 0
    cell = _BY_GATES.get(gates)
    if cell is None or operator not in (None, cell):
        expected = f"{len(OPERATORS[operator].gates)}" if operator else "G"
        counts = "" if operator else ", with G = 1 for a SimpleRNN, 3 for a GRU, 4 for an LSTM"
        raise ArgumentError(
            f"{label}: recurrent_kernel (weights[1]) has shape {R.shape}; expected (units, {expected}*units){counts}"
        )
    return cell, R.shape[0]


def build_stack(
    label: str, config: LayerConfig, arrays: Sequence[AnyArray], name: str | None, weight_dtype: str | None
) -> Stack:
    """Build a stack from a configuration and the result of `read_arrays`, in the order of `get_weights`."""
    counts = [3 if cell.use_bias else 2 for cell in config.cells]
    if len(arrays) != sum(counts):
        raise ArgumentError(f"{label}: {len(arrays)} arrays of weights were given; expected {sum(counts)}")
    remaining, layers, input_size = iter(arrays), list[Layer](), None
    for k, cells in enumerate(config.layers):
        own = [[next(remaining) for _ in range(3 if cell.use_bias else 2)] for cell in cells]
        if input_size is None and own[0][0].ndim == 2:
            input_size = own[0][0].shape[0]
        for cell, cell_arrays in zip(cells, own, strict=True):
            _check_arrays(label, cell, cell_arrays, input_size)
        own = _with_equal_biases(cells, own)
        W, R, *bias = (np.stack(directions) for directions in zip(*own, strict=True))
        op = RecurrentOp(
            cells[0].operator,
            cells[0].units,
            config.direction,
            tuple([cell.activations for cell in cells]),
            linear_before_reset=cells[0].reset_after,
            label=label,
        )
        layers.append(
            Layer(
                op,
                W,
                R,
                bias[0].reshape(len(cells), -1) if bias else None,
                convention=KERAS_RESET_AFTER if cells[0].reset_after else KERAS,
                name=name if len(config.layers) == 1 else f"{name or 'cells'}/{k}",
                weight_dtype=weight_dtype,
            )
        )
        input_size = cells[0].units  # of the next cell; stacked cells have one direction
    return Stack(layers, batch_first=True, name=name)


def _check_arrays(label: str, cell: CellConfig, arrays: Sequence[AnyArray], input_size: int | None) -> None:
    columns = len(OPERATORS[cell.operator].gates) * cell.units
    bias = (2, columns) if cell.reset_after else (columns,)
    place = f"{cell.path}: " if cell.path else ""
    shapes = (("input_size" if input_size is None else input_size, columns), (cell.units, columns), bias)
    for kind, array, expected in zip(KINDS, arrays, shapes, strict=False):
        if array.shape != expected:
            text = ", ".join(map(str, expected)) + ("," if len(expected) == 1 else "")
            is_gru_bias = kind == "bias" and cell.operator == "GRU"
            hint = f" for a GRU with reset_after={cell.reset_after}" if is_gru_bias else ""
            raise ArgumentError(f"{label}: {place}{kind} has shape {array.shape}; expected ({text}){hint}")


def _with_equal_biases(cells: Sequence[CellConfig], own: list[list[AnyArray]]) -> list[list[AnyArray]]:
    """Add a bias of zeros to a direction that has none if the other has one."""
    if len({cell.use_bias for cell in cells}) == 1:
        return own
    bias = next(arrays[2] for arrays in own if len(arrays) == 3)
    return [arrays if len(arrays) == 3 else [*arrays, np.zeros_like(bias)] for arrays in own]
