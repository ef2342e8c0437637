"""Checks of the arrays of a layer or a call: rank, shape, dtype and lengths.

A message names the operator or layer (`label`), the argument in the caller's convention, the mistake and what is
allowed. The checks return views or copies that no other thread has; the kernels accept those without further checks.
A front-end checks what its format declares in addition, such as the shape of a port.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, AnyArray, dtype_name
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.operator.conventions import (
    AXIS_NAMES,
    Convention,
    arguments_by_name,
    axis_size,
    recurrence_axes,
    weight_axes,
)
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.operator.quantized import Quantized
from pyrnnx.operator.tensor_info import fits

BLAS_MAX = 2**31 - 1  # BLAS sizes are C ints


def as_array(label: str, name: str, value: Any) -> AnyArray:
    """Call `numpy.asarray`, and raise an ArgumentError if it fails or would lose a mask."""
    if type(value) is np.ndarray:
        return value
    masked = sys.modules.get("numpy.ma")  # not imported here: NumPy imports it lazily
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise ArgumentError(f"{label}: {name} is a masked array; expected an array without a mask")
    try:
        return np.asarray(value)
    except Exception as error:
        raise ArgumentError(f"{label}: {name} cannot be converted to an array ({error})") from error


def _missing(label: str, name: str) -> ArgumentError:
    return ArgumentError(f"{label}: {name} is missing; it is required")


def native(label: str, name: str, array: AnyArray) -> AnyArray:
    """Return the array in native byte order, as a view whose shape, dtype and strides no other thread can change."""
    if array.dtype.isnative:
        return array.view()
    return copied(label, name, array, lambda: array.astype(array.dtype.newbyteorder("=")))


def copied(label: str, name: str, array: AnyArray, copy: Callable[[], AnyArray]) -> AnyArray:
    """Call `copy`, and raise an ArgumentError if the copy exceeds memory, as that of a broadcast array can."""
    try:
        return copy()
    except MemoryError as error:
        raise ArgumentError(
            f"{label}: {name} has shape {array.shape}; a copy of it exceeds memory ({error})"
        ) from error


def inner_contiguous(label: str, name: str, array: AnyArray) -> AnyArray:
    """Return the array, or a copy if its last axis is not contiguous."""
    if array.shape[-1] <= 1 or array.strides[-1] == array.itemsize:
        return array
    return copied(label, name, array, lambda: np.ascontiguousarray(array))


def floating_array(label: str, name: str, value: Any) -> AnyArray:
    """Return an array of a floating-point dtype in native byte order."""
    if value is None:
        raise _missing(label, name)
    array = native(label, name, as_array(label, name, value))
    if dtype_name(array.dtype) not in FLOAT_TYPES:
        expected, hint = " or ".join(FLOAT_TYPES), conversion(name, value, array.dtype, next(iter(FLOAT_TYPES)))
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {expected}{hint}")
    return array


def conversion(name: str, value: Any, dtype: np.dtype[Any], wanted: str) -> str:
    """Return a hint for a message how to convert `value`; "" if a plain `astype` would not do."""
    floats = dtype.name in FLOAT_TYPES and wanted in FLOAT_TYPES
    if not floats and (wanted == "bfloat16" or dtype.kind not in "biuf" or not np.can_cast(dtype, wanted, "same_kind")):
        return ""
    module = "ml_dtypes" if wanted == "bfloat16" else "np"
    if isinstance(value, (np.ndarray, np.generic)):
        return f": {name}.astype({module}.{wanted})"
    return f": np.asarray({name}, {module}.{wanted})"


def _describe(axes: Sequence[str], sizes: Mapping[str, int]) -> str:
    """Return axes as "(num_directions=1, 4*hidden_size=24)"; an axis of any size has no number."""
    parts = []
    for axis in axes:
        multiple, _, letter = axis.rpartition("*")
        text = f"{multiple}*{AXIS_NAMES[letter]}" if multiple else AXIS_NAMES[letter]
        size = axis_size(axis, sizes)
        parts.append(text if size is None else f"{text}={shown(size)}")
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def shape(label: str, name: str, actual: tuple[int | None, ...], axes: Sequence[str], sizes: Mapping[str, int]) -> None:
    """Check rank and sizes; an axis without a known size, or None in `actual`, may have any."""
    if not fits([sizes[axis] if axis in sizes else axis_size(axis, sizes) for axis in axes], actual):
        raise ArgumentError(f"{label}: {name} has shape {actual}; expected {_describe(axes, sizes)}")


def weights(
    label: str, op: RecurrentOp, convention: Convention, values: Mapping[str, Any]
) -> tuple[dict[str, AnyArray | Quantized], int]:
    """Return the weights of an operator (W, R and, if not None, B and P) as arrays, and input_size."""
    axes = weight_axes(op, convention)
    sizes = {"H": op.hidden_size, "D": op.num_directions}
    arrays: dict[str, AnyArray | Quantized] = {}
    for argument, value in values.items():
        name = convention.name_of(argument)
        if value is None:
            if argument in ("W", "R") or argument in convention.required:
                raise _missing(label, name)
            continue
        if argument not in axes:
            raise UnsupportedError(f"{label}: {name} was given; expected only {', '.join(axes)}")
        if isinstance(value, Quantized):
            array: AnyArray | Quantized = value
        else:
            dtype = arrays["W"].dtype if arrays else None
            array = _of_dtype(label, name, value, dtype, "W") if dtype else floating_array(label, name, value)
        arrays[argument] = array
    for argument in sorted(arrays, key="RWBP".index):  # R first: a function takes hidden_size from it
        shape(label, convention.name_of(argument), arrays[argument].shape, axes[argument], sizes)
        if argument == "W":
            sizes["I"] = arrays["W"].shape[axes["W"].index("I")]
    if max(sizes["I"], len(op.gates) * op.hidden_size) > BLAS_MAX:
        raise ArgumentError(f"{label}: W has shape {arrays['W'].shape}; expected sizes of at most {BLAS_MAX}")
    return arrays, sizes["I"]


def arguments(
    label: str,
    convention: Convention,
    expected: Sequence[str],
    arrays: Sequence[Any],
    named: Mapping[str, Any],
    *,
    all_required: bool = False,
) -> dict[str, Any]:
    """Return the arguments of a call by canonical name, from positional `arrays` and `named` ones.

    A name is the canonical one, OpenVINO's, or the convention's own. None stands for a missing argument.
    """
    names = [convention.name_of(argument) for argument in expected]
    if len(arrays) > len(expected):
        most = "" if all_required else "at most "
        raise ArgumentError(
            f"{label}: {len(arrays)} arrays were given; expected {most}{len(expected)}: {', '.join(names)}"
        )
    values = {argument: value for argument, value in zip(expected, arrays, strict=False) if value is not None}
    known = arguments_by_name(convention)
    for name, value in named.items():
        argument = known.get(name, name)
        if argument not in expected:
            raise ArgumentError(f"{label}: argument {shown(name)} is unknown; expected {', '.join(names)}")
        if value is None:
            continue
        if argument in values:
            own = convention.name_of(argument)
            other = "" if own == name else f", also as {name}"
            raise ArgumentError(f"{label}: {own} was given twice{other}")
        values[argument] = value
    return values


def inputs(
    label: str,
    op: RecurrentOp,
    convention: Convention,
    dtype: np.dtype[Any],
    input_size: int,
    values: Mapping[str, Any],
) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """Return X and the initial states of a call as arrays, and the size of every axis by its letter.

    X is checked first. One error names all missing arguments, including sequence_lens if it is a key of `values`.
    """
    sizes = {"I": input_size, "H": op.hidden_size, "D": op.num_directions}
    arrays = {"X": same_shape(label, convention, "X", values.get("X"), (dtype,), sizes)}
    sizes.update(zip(convention.axes_of("X"), arrays["X"].shape, strict=True))
    sizes.setdefault("T", 1)
    states = [argument for argument in ("initial_h", "initial_c") if values.get(argument) is not None]
    if "initial_c" in states and not op.has_cell_state:
        raise _no_cell_state(label, op, convention)
    missing = [
        convention.name_of(argument)
        for argument, value in values.items()
        if value is None and argument in convention.required and (op.has_cell_state or argument != "initial_c")
    ]
    if len(missing) == 1:
        raise _missing(label, missing[0])
    if missing:
        raise ArgumentError(f"{label}: {', '.join(missing[:-1])} and {missing[-1]} are missing; they are required")
    for argument in states:
        arrays[argument] = same_shape(label, convention, argument, values[argument], (dtype,), sizes)
    return arrays, sizes


def same_shape(
    label: str,
    convention: Convention,
    argument: str,
    value: Any,
    dtypes: Sequence[np.dtype[Any]],
    sizes: Mapping[str, int],
) -> AnyArray:
    """Return X or a state as an array of these sizes and one of the dtypes, the first of which is the weights'."""
    name = convention.name_of(argument)
    if value is None:
        raise _missing(label, name)
    array = native(label, name, as_array(label, name, value))
    dtype = dtypes[0] if array.dtype != dtypes[-1] else dtypes[-1]
    _reject_dtype(label, name, value, array, dtype, "the weights")
    shape(label, name, array.shape, convention.axes_of(argument), sizes)
    # The kernels compare dtypes by identity, and an equal dtype may be another object.
    return array if array.dtype is dtype else array.view(dtype)


def _no_cell_state(label: str, op: RecurrentOp, convention: Convention) -> UnsupportedError:
    return UnsupportedError(f"{label}: {convention.name_of('initial_c')} was given; {op.cell} has no cell state")


def lengths(label: str, convention: Convention, value: Any, sizes: Mapping[str, int]) -> AnyArray | None:
    """Return a copy of sequence_lens as int64 [N], or None if every row has seq_length steps."""
    if value is None:
        if "sequence_lens" in convention.required:
            raise _missing(label, convention.name_of("sequence_lens"))
        return None
    array = _length_array(label, convention, value, sizes)
    return None if (array == sizes["T"]).all() else array.astype(np.int64, copy=False)


def _length_array(label: str, convention: Convention, value: Any, sizes: Mapping[str, int]) -> AnyArray:
    """Return a copy of sequence_lens in its own dtype, checked against N and T if they are known."""
    name, axes = convention.name_of("sequence_lens"), convention.axes_of("sequence_lens")
    if not axes:
        raise UnsupportedError(f"{label}: {name} was given; the convention {convention.name!r} has no sequences")
    original = as_array(label, name, value)
    if original.size > sizes.get("N", original.size):
        shape(label, name, original.shape, axes, sizes)
    # Check a copy: another thread may write to the caller's array meanwhile.
    array = copied(label, name, original, lambda: np.array(original))
    if array.dtype.kind in "iu" or not array.size:  # otherwise report the dtype first
        shape(label, name, array.shape, axes, sizes)
    if dtype_name(array.dtype) not in convention.length_dtypes and not _are_python_integers(value, array):
        allowed = " or ".join(convention.length_dtypes)
        hint = conversion(name, value, array.dtype, convention.length_dtypes[0]) if array.dtype.kind in "iu" else ""
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {allowed}{hint}")
    outside = array < 0
    if "T" in sizes:
        outside |= array > sizes["T"]
    if outside.any():
        row, T = int(outside.argmax()), f"={sizes['T']}" if "T" in sizes else ""
        raise ArgumentError(f"{label}: {name}[{row}] is {array[row]}; expected 0 <= length <= seq_length{T}")
    return array


def _are_python_integers(value: Any, array: AnyArray) -> bool:
    """Return whether `value` is a Python integer, or a list or tuple of them, so that its dtype is free."""
    return (isinstance(value, (list, tuple)) or type(value) is int) and (array.dtype.kind == "i" or array.size == 0)


def as_declared_integers(label: str, name: str, value: Any, array: AnyArray, dtype: str) -> AnyArray:
    """Convert Python integers to the declared integer dtype; return an array with a dtype of its own unchanged."""
    if array.dtype.name == dtype or not _are_python_integers(value, array):
        return array
    limits = np.iinfo(dtype)
    for extreme in (array.min(initial=0), array.max(initial=0)):
        if not limits.min <= extreme <= limits.max:
            raise ArgumentError(f"{label}: {name} contains {extreme}; expected {dtype}, {limits.min} to {limits.max}")
    return array.astype(dtype)


def constant(
    label: str, op: RecurrentOp, convention: Convention, dtype: np.dtype[Any], argument: str, value: Any
) -> AnyArray:
    """Return a call argument that a layer supplies itself, checked as far as possible without batch_size."""
    label = f"{label}: constants"
    if argument == "sequence_lens":
        array = _length_array(label, convention, value, {})
        # All conventions with sequences allow int32.
        return as_declared_integers(label, convention.name_of(argument), value, array, "int32")
    if argument == "initial_c" and not op.has_cell_state:
        raise _no_cell_state(label, op, convention)
    sizes = {"H": op.hidden_size, "D": op.num_directions}
    return same_shape(label, convention, argument, value, (dtype,), sizes)


def same_dtype(label: str, name: str, value: Any, dtype: np.dtype[Any], whose: str) -> None:
    """Check the dtype of an array, unless it is None."""
    if value is not None:
        _of_dtype(label, name, value, dtype, whose)


def like_x(label: str, X: Any, weights: Mapping[str, Any]) -> None:
    """Raise if one of the weights, by their names, has another dtype than X: the caller knows that one is wrong."""
    dtype = np.asarray(X).dtype
    for name, value in weights.items() if dtype_name(dtype) in FLOAT_TYPES else ():
        same_dtype(label, name, value, dtype, "X")


def _of_dtype(label: str, name: str, value: Any, dtype: np.dtype[Any], whose: str) -> AnyArray:
    array = native(label, name, as_array(label, name, value))
    _reject_dtype(label, name, value, array, dtype, whose)
    return array


def _reject_dtype(label: str, name: str, value: Any, array: AnyArray, dtype: np.dtype[Any], whose: str) -> None:
    if array.dtype != dtype:
        hint = conversion(name, value, array.dtype, dtype.name)
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {dtype}, the dtype of {whose}{hint}")


def hidden_size(label: str, cell: str, convention: Convention, R: Any) -> int:
    """Return hidden_size from an axis of R, the last in most conventions; `weights` checks the rest of R."""
    if R is None:
        raise _missing(label, "R")
    array = R if isinstance(R, Quantized) else as_array(label, "R", R)
    axes = recurrence_axes(cell, convention)
    place = max(k for k, axis in enumerate(axes) if axis == "H")
    if array.ndim == len(axes) and array.shape[place]:
        return int(array.shape[place])
    expected = _describe(axes, {})
    raise ArgumentError(f"{label}: R has shape {array.shape}; expected {expected}, hidden_size at least 1")
