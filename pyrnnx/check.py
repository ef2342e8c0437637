"""The only place where arrays are rejected: their rank, shape, dtype, and the range of lengths.

A message names the operator or layer (`label`), the argument by its name in the caller's convention, what was given and
what is allowed. What passes here cannot fail in a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.conventions import AXIS_NAMES, AnyArray, Convention, axis_size, recurrence_axes, weight_axes
from pyrnnx.dtypes import FLOAT_TYPES, float_type
from pyrnnx.errors import ArgumentError, UnsupportedError
from pyrnnx.op import RecurrentOp

if TYPE_CHECKING:
    from pyrnnx.model import TensorInfo

BLAS_MAX = 2**31 - 1  # sizes of a BLAS call are C ints


def as_array(label: str, name: str, value: Any) -> AnyArray:
    """`numpy.asarray`, with what it cannot take, or would lose, as an error."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(f"{label}: {name} is a masked array; expected an array without a mask")
    try:
        return np.asarray(value)
    except Exception as error:
        raise ArgumentError(f"{label}: {name} cannot be taken as an array ({error})") from error


def floating_array(label: str, name: str, value: Any, allowed: Sequence[str] = tuple(FLOAT_TYPES)) -> AnyArray:
    """An array of one of the allowed floating-point types, in native byte order; None is a missing one."""
    if value is None:
        raise ArgumentError(f"{label}: {name} is missing; it is required")
    array = as_array(label, name, value)
    if array.dtype.name not in allowed:
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {' or '.join(allowed)}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _describe(axes: Sequence[str], sizes: Mapping[str, int]) -> str:
    """ "(num_directions=1, 4*hidden_size=24)"; a size that is free here has no number."""
    parts = []
    for axis in axes:
        multiple, _, letter = axis.rpartition("*")
        text = f"{multiple}*{AXIS_NAMES[letter]}" if multiple else AXIS_NAMES[letter]
        size = axis_size(axis, sizes)
        parts.append(text if size is None else f"{text}={size}")
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def shape(label: str, name: str, given: tuple[int | None, ...], axes: Sequence[str], sizes: Mapping[str, int]) -> None:
    """Reject another rank, or another size on an axis whose size is known; None: a dimension that is open."""
    fits = len(given) == len(axes) and all(
        size is None or axis_size(axis, sizes) in (None, size) for axis, size in zip(axes, given, strict=True)
    )
    if not fits:
        raise ArgumentError(f"{label}: {name} has shape {given}; expected {_describe(axes, sizes)}")


def weights(
    label: str, op: RecurrentOp, convention: Convention, given: Mapping[str, Any]
) -> tuple[dict[str, AnyArray], int]:
    """W, R, B and P of an operator, those that are given, and input_size.

    Raises
    ------
    ArgumentError
        A dtype that is not floating-point or differs from W's, another rank or shape, sizes beyond a C int.
    UnsupportedError
        A weight that the operator or the convention does not have.
    """
    axes = weight_axes(op, convention)
    sizes = {"H": op.hidden_size, "D": op.num_directions}
    arrays: dict[str, AnyArray] = {}
    for argument, value in given.items():
        name = convention.name_of(argument)
        if value is None:
            if argument in ("W", "R") or argument in convention.required:
                raise ArgumentError(f"{label}: {name} is missing; it is required")
            continue
        if argument not in axes:
            raise UnsupportedError(f"{label}: {name} was given; expected only {', '.join(axes)}")
        array = floating_array(label, name, value)
        if arrays:
            same_dtype(label, name, array, arrays["W"].dtype, "W")
        shape(label, name, array.shape, axes[argument], sizes)
        if argument == "W":
            sizes["I"] = array.shape[-1]
        arrays[argument] = array
    if max(sizes["I"], len(op.gates) * op.hidden_size) > BLAS_MAX:
        raise ArgumentError(f"{label}: W has shape {arrays['W'].shape}; expected sizes of at most {BLAS_MAX}")
    return arrays, sizes["I"]


def inputs(
    label: str,
    op: RecurrentOp,
    convention: Convention,
    dtype: np.dtype[Any],
    input_size: int,
    given: Mapping[str, Any],
) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """X and the initial states of a call, those that are given, and the size of every axis by its letter.

    Raises
    ------
    ArgumentError
        A dtype other than the weights', another rank or shape, a required argument that is missing.
    UnsupportedError
        initial_c of an operator without a cell state.
    """
    arrays: dict[str, AnyArray] = {}
    sizes = {"I": input_size, "H": op.hidden_size, "D": op.num_directions}
    for argument, value in given.items():
        name = convention.name_of(argument)
        if argument == "initial_c" and not op.has_cell_state:
            if value is not None:
                raise UnsupportedError(f"{label}: {name} was given; {op.cell} has no cell state")
            continue
        if value is None:
            if argument == "X" or argument in convention.required:
                raise ArgumentError(f"{label}: {name} is missing; it is required")
            continue
        array = as_array(label, name, value)
        if array.dtype != dtype or not array.dtype.isnative:
            array = floating_array(label, name, array)
            same_dtype(label, name, array, dtype, "the weights")
        axes = convention.axes_of(argument)
        shape(label, name, array.shape, axes, sizes)
        if argument == "X":
            sizes.update(zip(axes, array.shape, strict=True))
            sizes.setdefault("T", 1)
        arrays[argument] = array
    return arrays, sizes


def lengths(label: str, convention: Convention, value: Any, sizes: Mapping[str, int]) -> AnyArray | None:
    """sequence_lens as int64 [N]; None where every row has seq_length steps.

    Raises
    ------
    ArgumentError
        A dtype that the convention does not allow, another shape, a length below 0 or above seq_length, or missing.
    """
    name = convention.name_of("sequence_lens")
    if value is None:
        if "sequence_lens" in convention.required:
            raise ArgumentError(f"{label}: {name} is missing; it is required")
        return None
    array = as_array(label, name, value)
    python_integers = isinstance(value, (list, tuple)) and (array.dtype.kind == "i" or array.size == 0)
    if array.dtype.name not in convention.length_dtypes and not python_integers:
        allowed = " or ".join(convention.length_dtypes)
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {allowed}")
    shape(label, name, array.shape, convention.axes_of("sequence_lens"), sizes)
    outside = (array < 0) | (array > sizes["T"])
    if outside.any():
        row = int(outside.argmax())
        raise ArgumentError(f"{label}: {name}[{row}] is {array[row]}; expected 0 <= length <= seq_length={sizes['T']}")
    return None if (array == sizes["T"]).all() else array.astype(np.int64)


def float_type_name(label: str, name: str, array: AnyArray, allowed: Sequence[str], source: str) -> None:
    """Reject a floating-point type that `source` (an operator at an opset, say) does not have."""
    row = float_type(array.dtype)
    if row is not None and row.name not in allowed:
        raise UnsupportedError(f"{label}: {name} has dtype {row.name}; {source} allows {', '.join(allowed)}")


def same_dtype(label: str, name: str, value: Any, dtype: np.dtype[Any], whose: str) -> None:
    """Reject an array (not None) of another dtype."""
    if value is None:
        return
    array = floating_array(label, name, value)
    if array.dtype != dtype:
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {dtype}, the dtype of {whose}")


def hidden_size(label: str, cell: str, convention: Convention, R: Any) -> int:
    """What the last axis of R tells."""
    array, axes = floating_array(label, "R", R), recurrence_axes(cell, convention)
    if array.ndim != len(axes) or array.shape[-1] == 0:
        raise ArgumentError(f"{label}: R has shape {array.shape}; expected {_describe(axes, {})}, none of them 0")
    return int(array.shape[-1])


def names(label: str, argument: str, value: Any) -> tuple[str, ...]:
    """A sequence of strings."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise ArgumentError(f"{label}: {argument} is {value!r}; expected a sequence of names")
    result = tuple(value)
    for name in result:
        if not isinstance(name, str):
            raise ArgumentError(f"{label}: {argument} holds {name!r}; expected names")
    return result


def model_inputs(label: str, infos: Sequence[TensorInfo], arrays: tuple[Any, ...]) -> dict[str, Any]:
    """What a model was called with, by the names of its inputs; values of inputs that are no tensors as they are.

    Raises
    ------
    ArgumentError
        Inputs that are missing, unknown or given twice, and those whose dtype or shape is not the declared one.
    """
    expected = ", ".join(info.name for info in infos) or "none"
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        given = _named_inputs(label, infos, arrays[0], expected)
    elif len(arrays) > len(infos):
        raise ArgumentError(f"{label}: {len(arrays)} arrays were given; expected at most {len(infos)}: {expected}")
    else:
        given = {info.name: value for info, value in zip(infos, arrays, strict=False)}
    values: dict[str, Any] = {}
    for info in infos:
        if info.name in given:
            values[info.name] = _model_input(label, info, given[info.name])
        elif not info.optional:
            raise ArgumentError(f"{label}: input {info.name!r} is missing; expected {expected}")
    return values


def _named_inputs(label: str, infos: Sequence[TensorInfo], arrays: Mapping[str, Any], expected: str) -> dict[str, Any]:
    by_name = {alias: info.name for info in infos for alias in info.aliases}
    by_name |= {info.name: info.name for info in infos}
    given: dict[str, Any] = {}
    for name, value in arrays.items():
        if name not in by_name:
            raise ArgumentError(f"{label}: input {name!r} is unknown; expected {expected}")
        if by_name[name] in given:
            raise ArgumentError(f"{label}: input {by_name[name]!r} was given twice, under two of its names")
        given[by_name[name]] = value
    return given


def _model_input(label: str, info: TensorInfo, value: Any) -> Any:
    if info.dtype is None:
        return value
    name = f"input {info.name!r}"
    if value is None:
        raise ArgumentError(f"{label}: {name} is missing; expected an array of {info.dtype}")
    array = as_array(label, name, value)
    if array.dtype.name != info.dtype and not (info.dtype == "str" and array.dtype.kind in "OU"):
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {info.dtype}")
    fits = info.shape is None or (
        array.ndim == len(info.shape)
        and all(
            size is None or isinstance(size, str) or (real in size if isinstance(size, tuple) else real == size)
            for size, real in zip(info.shape, array.shape, strict=True)
        )
    )
    if not fits:
        declared = ", ".join("?" if size is None else str(size) for size in info.shape or ())
        raise ArgumentError(f"{label}: {name} has shape {array.shape}; expected [{declared}]")
    return array
