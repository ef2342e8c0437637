"""Arrays against an operator: where those of a layer or a call are rejected for their rank, shape, dtype or lengths.

A message names the operator or layer (`label`), the argument by its name in the caller's convention, what was given and
what is allowed. What passes here, the kernels take: it is checked on views and copies that no other thread has, and
those are what runs. What a front-end's format declares beyond that, such as a port's shape, is for the front-end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx.conventions import AXIS_NAMES, Convention, arguments_by_name, axis_size, recurrence_axes, weight_axes
from pyrnnx.dtypes import FLOAT_TYPES, AnyArray, dtype_name
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.op import RecurrentOp
from pyrnnx.reduced import Quantized
from pyrnnx.tensor_info import fits

BLAS_MAX = 2**31 - 1  # sizes of a BLAS call are C ints


def as_array(label: str, name: str, value: Any) -> AnyArray:
    """`numpy.asarray`, with what it cannot take, or would lose, as an error."""
    if type(value) is np.ndarray:
        return value
    masked = sys.modules.get("numpy.ma")  # NumPy imports it late, and this module does not hasten it
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise ArgumentError(f"{label}: {name} is a masked array; expected an array without a mask")
    try:
        return np.asarray(value)
    except Exception as error:
        raise ArgumentError(f"{label}: {name} cannot be taken as an array ({error})") from error


def _missing(label: str, name: str) -> ArgumentError:
    return ArgumentError(f"{label}: {name} is missing; it is required")


def native(label: str, name: str, array: AnyArray) -> AnyArray:
    """The array in native byte order: a view, so that no other thread can give it another shape, dtype or strides."""
    if array.dtype.isnative:
        return array.view()
    return copied(label, name, array, lambda: array.astype(array.dtype.newbyteorder("=")))


def copied(label: str, name: str, array: AnyArray, copy: Callable[[], AnyArray]) -> AnyArray:
    """A copy of an array; one that does not fit in memory, as of a broadcast one, is an error of its own."""
    try:
        return copy()
    except MemoryError as error:
        raise ArgumentError(
            f"{label}: {name} has shape {array.shape}; a copy of it exceeds memory ({error})"
        ) from error


def inner_contiguous(label: str, name: str, array: AnyArray) -> AnyArray:
    """The array, or a copy where elements of its last axis do not lie side by side."""
    if array.shape[-1] <= 1 or array.strides[-1] == array.itemsize:
        return array
    return copied(label, name, array, lambda: np.ascontiguousarray(array))


def floating_array(label: str, name: str, value: Any, allowed: Sequence[str] = tuple(FLOAT_TYPES)) -> AnyArray:
    """An array of one of the allowed floating-point types, in native byte order; None is a missing one."""
    if value is None:
        raise _missing(label, name)
    array = native(label, name, as_array(label, name, value))
    if dtype_name(array.dtype) not in allowed:
        expected, hint = " or ".join(allowed), conversion(name, value, array.dtype, allowed[0])
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {expected}{hint}")
    return array


def conversion(name: str, value: Any, dtype: np.dtype[Any], wanted: str) -> str:
    """How to convert what was given, for a message; empty where that is more than a plain `astype`."""
    floats = dtype.name in FLOAT_TYPES and wanted in FLOAT_TYPES
    if not floats and (wanted == "bfloat16" or dtype.kind not in "biuf" or not np.can_cast(dtype, wanted, "same_kind")):
        return ""
    module = "ml_dtypes" if wanted == "bfloat16" else "np"
    if isinstance(value, (np.ndarray, np.generic)):
        return f": {name}.astype({module}.{wanted})"
    return f": np.asarray({name}, {module}.{wanted})"


def _describe(axes: Sequence[str], sizes: Mapping[str, int]) -> str:
    """ "(num_directions=1, 4*hidden_size=24)"; a size that is free here has no number."""
    parts = []
    for axis in axes:
        multiple, _, letter = axis.rpartition("*")
        text = f"{multiple}*{AXIS_NAMES[letter]}" if multiple else AXIS_NAMES[letter]
        size = axis_size(axis, sizes)
        parts.append(text if size is None else f"{text}={shown(size)}")
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def shape(label: str, name: str, given: tuple[int | None, ...], axes: Sequence[str], sizes: Mapping[str, int]) -> None:
    """Reject another rank, or another size on an axis whose size is known; None: a dimension that is open."""
    if not fits([sizes[axis] if axis in sizes else axis_size(axis, sizes) for axis in axes], given):
        raise ArgumentError(f"{label}: {name} has shape {given}; expected {_describe(axes, sizes)}")


def weights(
    label: str, op: RecurrentOp, convention: Convention, given: Mapping[str, Any]
) -> tuple[dict[str, AnyArray | Quantized], int]:
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
    arrays: dict[str, AnyArray | Quantized] = {}
    for argument, value in given.items():
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
        shape(label, name, array.shape, axes[argument], sizes)
        if argument == "W":
            sizes["I"] = array.shape[axes["W"].index("I")]
        arrays[argument] = array
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
    """What a layer was called with, by canonical name: `arrays` in the order of `expected`, and `named` ones.

    A name is the canonical one, OpenVINO's, or the convention's own. None is an argument that is not given.

    Raises
    ------
    ArgumentError
        Too many arrays; an argument that is unknown or given twice.
    """
    names = [convention.name_of(argument) for argument in expected]
    if len(arrays) > len(expected):
        most = "" if all_required else "at most "
        raise ArgumentError(
            f"{label}: {len(arrays)} arrays were given; expected {most}{len(expected)}: {', '.join(names)}"
        )
    given = {argument: value for argument, value in zip(expected, arrays, strict=False) if value is not None}
    known = arguments_by_name(convention)
    for name, value in named.items():
        argument = known.get(name, name)
        if argument not in expected:
            raise ArgumentError(f"{label}: argument {shown(name)} is unknown; expected {', '.join(names)}")
        if value is None:
            continue
        if argument in given:
            own = convention.name_of(argument)
            other = "" if own == name else f", also as {name}"
            raise ArgumentError(f"{label}: {own} was given twice{other}")
        given[argument] = value
    return given


def inputs(
    label: str,
    op: RecurrentOp,
    convention: Convention,
    dtype: np.dtype[Any],
    input_size: int,
    given: Mapping[str, Any],
) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """X and the initial states of a call, those that are given, and the size of every axis by its letter.

    X is looked at first; then all that is missing is named at once, sequence_lens too where `given` has it as a key.

    Raises
    ------
    ArgumentError
        A dtype other than the weights', another rank or shape, required arguments that are missing.
    UnsupportedError
        initial_c of an operator without a cell state.
    """
    sizes = {"I": input_size, "H": op.hidden_size, "D": op.num_directions}
    arrays = {"X": same_shape(label, convention, "X", given.get("X"), (dtype,), sizes)}
    sizes.update(zip(convention.axes_of("X"), arrays["X"].shape, strict=True))
    sizes.setdefault("T", 1)
    states = [argument for argument in ("initial_h", "initial_c") if given.get(argument) is not None]
    if "initial_c" in states and not op.has_cell_state:
        raise _no_cell_state(label, op, convention)
    missing = [
        convention.name_of(argument)
        for argument, value in given.items()
        if value is None and argument in convention.required and (op.has_cell_state or argument != "initial_c")
    ]
    if len(missing) == 1:
        raise _missing(label, missing[0])
    if missing:
        raise ArgumentError(f"{label}: {', '.join(missing[:-1])} and {missing[-1]} are missing; they are required")
    for argument in states:
        arrays[argument] = same_shape(label, convention, argument, given[argument], (dtype,), sizes)
    return arrays, sizes


def same_shape(
    label: str,
    convention: Convention,
    argument: str,
    value: Any,
    dtypes: Sequence[np.dtype[Any]],
    sizes: Mapping[str, int],
) -> AnyArray:
    """X or a state as an array of one of the dtypes, the first of them the weights', and of these sizes."""
    name = convention.name_of(argument)
    if value is None:
        raise _missing(label, name)
    array = native(label, name, as_array(label, name, value))
    dtype = dtypes[0] if array.dtype != dtypes[-1] else dtypes[-1]
    _reject_dtype(label, name, value, array, dtype, "the weights")
    shape(label, name, array.shape, convention.axes_of(argument), sizes)
    # An equal dtype may be another object, which the kernels would not know.
    return array if array.dtype is dtype else array.view(dtype)


def _no_cell_state(label: str, op: RecurrentOp, convention: Convention) -> UnsupportedError:
    return UnsupportedError(f"{label}: {convention.name_of('initial_c')} was given; {op.cell} has no cell state")


def lengths(label: str, convention: Convention, value: Any, sizes: Mapping[str, int]) -> AnyArray | None:
    """sequence_lens as int64 [N], a copy; None where every row has seq_length steps.

    Raises
    ------
    ArgumentError
        Another shape, a dtype that the convention does not allow, a length below 0 or above seq_length, or missing.
    UnsupportedError
        Lengths of a cell, which has no sequences.
    """
    if value is None:
        if "sequence_lens" in convention.required:
            raise _missing(label, convention.name_of("sequence_lens"))
        return None
    array = _length_array(label, convention, value, sizes)
    return None if (array == sizes["T"]).all() else array.astype(np.int64, copy=False)


def _length_array(label: str, convention: Convention, value: Any, sizes: Mapping[str, int]) -> AnyArray:
    """sequence_lens as a copy, in the dtype that it was given in; against those of N and T that are known."""
    name, axes = convention.name_of("sequence_lens"), convention.axes_of("sequence_lens")
    if not axes:
        raise UnsupportedError(f"{label}: {name} was given; the convention {convention.name!r} has no sequences")
    given = as_array(label, name, value)
    if given.size > sizes.get("N", given.size):
        shape(label, name, given.shape, axes, sizes)
    # A copy, and then a look at that: another thread may write to the caller's meanwhile.
    array = copied(label, name, given, lambda: np.array(given))
    if array.dtype.kind in "iu" or not array.size:  # of anything else, the dtype is the greater fault
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
    """Whether integers were given that have no dtype: in lists or tuples, or one alone."""
    return (isinstance(value, (list, tuple)) or type(value) is int) and (array.dtype.kind == "i" or array.size == 0)


def as_declared_integers(label: str, name: str, value: Any, array: AnyArray, dtype: str) -> AnyArray:
    """Python's integers in the integer type that is declared for them; what has a dtype of its own, as it is.

    Raises
    ------
    ArgumentError
        A number that the type does not hold.
    """
    if array.dtype.name == dtype or not _are_python_integers(value, array):
        return array
    limits = np.iinfo(dtype)
    for extreme in (array.min(initial=0), array.max(initial=0)):
        if not limits.min <= extreme <= limits.max:
            raise ArgumentError(f"{label}: {name} holds {extreme}; expected {dtype}, {limits.min} to {limits.max}")
    return array.astype(dtype)


def constant(
    label: str, op: RecurrentOp, convention: Convention, dtype: np.dtype[Any], argument: str, value: Any
) -> AnyArray:
    """An argument of calls that a layer holds, against all that is known before a call: not its batch_size.

    Raises
    ------
    PyrnnxError
        As of `inputs` and `lengths`.
    """
    label = f"{label}: constants"
    if argument == "sequence_lens":
        array = _length_array(label, convention, value, {})
        # int32 is a dtype that all conventions with sequences allow.
        return as_declared_integers(label, convention.name_of(argument), value, array, "int32")
    if argument == "initial_c" and not op.has_cell_state:
        raise _no_cell_state(label, op, convention)
    sizes = {"H": op.hidden_size, "D": op.num_directions}
    return same_shape(label, convention, argument, value, (dtype,), sizes)


def same_dtype(label: str, name: str, value: Any, dtype: np.dtype[Any], whose: str) -> None:
    """Reject an array (not None) of another dtype."""
    if value is not None:
        _of_dtype(label, name, value, dtype, whose)


def _of_dtype(label: str, name: str, value: Any, dtype: np.dtype[Any], whose: str) -> AnyArray:
    array = native(label, name, as_array(label, name, value))
    _reject_dtype(label, name, value, array, dtype, whose)
    return array


def _reject_dtype(label: str, name: str, value: Any, array: AnyArray, dtype: np.dtype[Any], whose: str) -> None:
    if array.dtype != dtype:
        hint = conversion(name, value, array.dtype, dtype.name)
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {dtype}, the dtype of {whose}{hint}")


def hidden_size(label: str, cell: str, convention: Convention, R: Any) -> int:
    """What one axis of R tells, the last of most conventions; all else of R is for `weights` to check."""
    if R is None:
        raise _missing(label, "R")
    array = R if isinstance(R, Quantized) else as_array(label, "R", R)
    axes = recurrence_axes(cell, convention)
    place = max(k for k, axis in enumerate(axes) if axis == "H")
    if array.ndim == len(axes) and array.shape[place]:
        return int(array.shape[place])
    expected = _describe(axes, {})
    raise ArgumentError(f"{label}: R has shape {array.shape}; expected {expected}, hidden_size at least 1")
