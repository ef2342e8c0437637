"""The arrays of Keras' recurrent layers, in the order of `get_weights`, as layers of pyrnnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrnnx import check
from pyrnnx.conventions import KERAS, KERAS_RESET_AFTER
from pyrnnx.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.errors import ArgumentError, PyrnnxError, shortened, shown
from pyrnnx.layer import Layer
from pyrnnx.op import CELLS as OPERATORS
from pyrnnx.op import Direction, RecurrentOp
from pyrnnx.stack import Stack

from .activations import activation as read_activation
from .config import CELLS, CellConfig, LayerConfig, cell_activations

KINDS = ("kernel", "recurrent_kernel", "bias")
_BY_GATES = {len(row.gates): operator for operator, row in OPERATORS.items()}


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
    """The layer of the arrays that `get_weights` of Keras' SimpleRNN, GRU, LSTM or Bidirectional gives.

    Keras is not needed.

    Parameters
    ----------
    weights : sequence of array_like
        kernel [input_size, G*units], recurrent_kernel [units, G*units] and, if there is one, bias [G*units], of a GRU
        with reset_after [2, G*units]; for both directions those of the forward layer, then those of the backward one.
        G = 1 (SimpleRNN), 3 (GRU: z, r, h), 4 (LSTM: i, f, c, o).
    operator : str, optional
        "SimpleRNN", "GRU" or "LSTM", as which the weights must fit. Default: as the recurrent_kernel tells.
    direction : str
        "forward", "reverse" (go_backwards) or "bidirectional". Y is in the order of time in all of them.
    activation, recurrent_activation : str, None or Activation
        By Keras' names, as `from_layer` knows them; None is "linear". A SimpleRNN has no recurrent_activation.
    reset_after : bool, optional
        Of a GRU. Default: as the bias tells, and without one True, as in Keras.
    name : str, optional
        Of the stack, for errors.
    weight_dtype : str, optional
        "bfloat16" or "int8": keep W and R in fewer bits, see `pyrnnx.Layer`. Default: that of the weights.

    Returns
    -------
    Stack
        With batch_first; it has copies of the weights.

    Raises
    ------
    ArgumentError
        Another number of arrays; shapes and dtypes that do not fit each other or the arguments.
    UnsupportedError
        An activation that ONNX's operators do not have.

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
    """What was given as arrays, of one floating-point type.

    Raises
    ------
    ArgumentError
    """
    if isinstance(weights, (str, bytes, dict)) or not isinstance(weights, (Sequence, np.ndarray)) or not len(weights):
        raise ArgumentError(f"{label}: weights is {shown(weights)}; expected a list of arrays, as of get_weights()")
    arrays: list[AnyArray] = []
    for k, value in enumerate(weights):
        array = check.floating_array(label, f"weights[{k}]", value)
        if arrays:
            check.same_dtype(label, f"weights[{k}]", array, arrays[0].dtype, "weights[0]")
        arrays.append(array)
    return arrays


def _cell_of(label: str, R: AnyArray, operator: str | None) -> tuple[str, int]:
    """The operator that the shape of recurrent_kernel [units, G*units] tells, and units."""
    gates = R.shape[1] // R.shape[0] if R.ndim == 2 and R.shape[0] and R.shape[1] % R.shape[0] == 0 else 0
    found = _BY_GATES.get(gates)
    if found is None or operator not in (None, found):
        wanted = f"{len(OPERATORS[operator].gates)}" if operator else "G"
        counts = "" if operator else ", with G = 1 of a SimpleRNN, 3 of a GRU, 4 of an LSTM"
        raise ArgumentError(
            f"{label}: recurrent_kernel (weights[1]) has shape {R.shape}; expected (units, {wanted}*units){counts}"
        )
    return found, R.shape[0]


def build_stack(
    label: str, config: LayerConfig, arrays: Sequence[AnyArray], name: str | None, weight_dtype: str | None
) -> Stack:
    """The layers of a configuration and its arrays, in the order of `get_weights`.

    Raises
    ------
    ArgumentError
        Another number of arrays; shapes that do not fit; no floating-point type, or more than one.
    PyrnnxError
        Weights that exceed memory.
    """
    try:
        return _stack(label, config, arrays, name, weight_dtype)
    except MemoryError as error:
        raise PyrnnxError(f"{label}: the layers exceed memory ({shortened(str(error))})") from error


def _stack(
    label: str, config: LayerConfig, arrays: Sequence[AnyArray], name: str | None, weight_dtype: str | None
) -> Stack:
    counts = [3 if cell.use_bias else 2 for cell in config.cells]
    if len(arrays) != sum(counts):
        raise ArgumentError(f"{label}: {len(arrays)} arrays of weights were given; expected {sum(counts)}")
    if arrays[0].dtype.name not in FLOAT_TYPES:
        raise ArgumentError(f"{label}: kernel has dtype {arrays[0].dtype}; expected one of {', '.join(FLOAT_TYPES)}")
    remaining, layers, input_size = iter(arrays), list[Layer](), None
    for k, cells in enumerate(config.layers):
        own = [[next(remaining) for _ in range(3 if cell.use_bias else 2)] for cell in cells]
        if input_size is None and own[0][0].ndim == 2:
            input_size = own[0][0].shape[0]
        for cell, given in zip(cells, own, strict=True):
            _check_arrays(label, cell, given, input_size, arrays[0].dtype)
        own = _with_equal_biases(cells, own)
        W, R, *bias = (np.stack(one) for one in zip(*own, strict=True))
        layers.append(
            Layer(
                _op(label, cells, config.direction),
                W,
                R,
                bias[0].reshape(len(cells), -1) if bias else None,
                convention=KERAS_RESET_AFTER if cells[0].reset_after else KERAS,
                name=name if len(config.layers) == 1 else f"{name or 'cells'}/{k}",
                weight_dtype=weight_dtype,
            )
        )
        input_size = cells[0].units  # of a cell upon another; there is one direction then
    return Stack(layers, batch_first=True, name=name)


def _op(label: str, cells: Sequence[CellConfig], direction: Direction) -> RecurrentOp:
    return RecurrentOp(
        cells[0].operator,
        cells[0].units,
        direction,
        tuple([cell.activations for cell in cells]),
        linear_before_reset=cells[0].reset_after,
        label=label,
    )


def _check_arrays(
    label: str, cell: CellConfig, arrays: Sequence[AnyArray], input_size: int | None, dtype: np.dtype[Any]
) -> None:
    columns = len(OPERATORS[cell.operator].gates) * cell.units
    bias = (2, columns) if cell.reset_after else (columns,)
    where = f"{cell.path}: " if cell.path else ""
    shapes = (("input_size" if input_size is None else input_size, columns), (cell.units, columns), bias)
    for kind, array, expected in zip(KINDS, arrays, shapes, strict=False):
        if array.shape != expected:
            text = ", ".join(map(str, expected)) + ("," if len(expected) == 1 else "")
            hint = _bias_hint(cell) if kind == "bias" else ""
            raise ArgumentError(f"{label}: {where}{kind} has shape {array.shape}; expected ({text}){hint}")
        if array.dtype != dtype:
            raise ArgumentError(f"{label}: {where}{kind} has dtype {array.dtype}; expected {dtype}, as of the others")


def _bias_hint(cell: CellConfig) -> str:
    return f", of a GRU with reset_after={cell.reset_after}" if cell.operator == "GRU" else ""


def _with_equal_biases(cells: Sequence[CellConfig], own: list[list[AnyArray]]) -> list[list[AnyArray]]:
    """Zeros for the bias of a direction that has none, where the other has one."""
    if len({cell.use_bias for cell in cells}) == 1:
        return own
    bias = next(arrays[2] for arrays in own if len(arrays) == 3)
    return [arrays if len(arrays) == 3 else [*arrays, np.zeros_like(bias)] for arrays in own]
