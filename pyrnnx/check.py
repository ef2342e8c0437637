"""The only place where arrays are rejected: their rank, shape, dtype, and the range of lengths.

A message names the operator or layer (`label`), the argument by its name in the caller's convention, what was given and
what is allowed. What passes here cannot fail in a kernel: it is checked on views and copies that no other thread has,
and those are what runs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrnnx.conventions import (
    AXIS_NAMES,
    AnyArray,
    Convention,
    arguments_by_name,
    axis_size,
    recurrence_axes,
    weight_axes,
)
from pyrnnx.dtypes import FLOAT_TYPES, dtype_name, float_type
from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown
from pyrnnx.op import RecurrentOp
from pyrnnx.tensor_info import TensorInfo, fits

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


def _own(label: str, name: str, array: AnyArray) -> AnyArray:
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


def floating_array(label: str, name: str, value: Any, allowed: Sequence[str] = tuple(FLOAT_TYPES)) -> AnyArray:
    """An array of one of the allowed floating-point types, in native byte order; None is a missing one."""
    if value is None:
        raise ArgumentError(f"{label}: {name} is missing; it is required")
    array = _own(label, name, as_array(label, name, value))
    if dtype_name(array.dtype) not in allowed:
        expected, hint = " or ".join(allowed), _conversion(name, array.dtype, allowed[0])
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {expected}{hint}")
    return array


def _conversion(name: str, dtype: np.dtype[Any], wanted: str) -> str:
    """How to convert, for a message; empty where that is more than a plain `astype`."""
    floats = dtype.name in FLOAT_TYPES and wanted in FLOAT_TYPES
    if not floats and (wanted == "bfloat16" or dtype.kind not in "biuf" or not np.can_cast(dtype, wanted, "same_kind")):
        return ""
    module = "ml_dtypes" if wanted == "bfloat16" else "np"
    return f": {name}.astype({module}.{wanted})"


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
        array = _of_dtype(label, name, value, arrays["W"].dtype, "W") if arrays else floating_array(label, name, value)
        shape(label, name, array.shape, axes[argument], sizes)
        if argument == "W":
            sizes["I"] = array.shape[-1]
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
        raise UnsupportedError(f"{label}: {convention.name_of('initial_c')} was given; {op.cell} has no cell state")
    missing = [
        convention.name_of(argument)
        for argument, value in given.items()
        if value is None and argument in convention.required and (op.has_cell_state or argument != "initial_c")
    ]
    if len(missing) == 1:
        raise ArgumentError(f"{label}: {missing[0]} is missing; it is required")
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
        raise ArgumentError(f"{label}: {name} is missing; it is required")
    array = _own(label, name, as_array(label, name, value))
    dtype = dtypes[0] if array.dtype != dtypes[-1] else dtypes[-1]
    _reject_dtype(label, name, array, dtype, "the weights")
    shape(label, name, array.shape, convention.axes_of(argument), sizes)
    # An equal dtype may be another object, which the kernels would not know.
    return array if array.dtype is dtype else array.view(dtype)


def lengths(label: str, convention: Convention, value: Any, sizes: Mapping[str, int]) -> AnyArray | None:
    """sequence_lens as int64 [N], a copy; None where every row has seq_length steps.

    Raises
    ------
    ArgumentError
        A dtype that the convention does not allow, another shape, a length below 0 or above seq_length, or missing.
    UnsupportedError
        Lengths of a cell, which has no sequences.
    """
    name = convention.name_of("sequence_lens")
    if value is None:
        if "sequence_lens" in convention.required:
            raise ArgumentError(f"{label}: {name} is missing; it is required")
        return None
    axes = convention.axes_of("sequence_lens")
    if not axes:
        raise UnsupportedError(f"{label}: {name} was given; the convention {convention.name!r} has no sequences")
    given = as_array(label, name, value)
    if given.size > sizes.get("N", given.size):
        shape(label, name, given.shape, axes, sizes)
    # A copy first, and then a look at that: another thread may write to the caller's meanwhile.
    array = copied(label, name, given, lambda: np.array(given))
    if dtype_name(array.dtype) not in convention.length_dtypes and not _are_python_integers(value, array):
        allowed = " or ".join(convention.length_dtypes)
        hint = _conversion(name, array.dtype, convention.length_dtypes[0]) if array.dtype.kind in "iu" else ""
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {allowed}{hint}")
    shape(label, name, array.shape, axes, sizes)
    outside = (array < 0) | (array > sizes["T"])
    if outside.any():
        row = int(outside.argmax())
        raise ArgumentError(f"{label}: {name}[{row}] is {array[row]}; expected 0 <= length <= seq_length={sizes['T']}")
    return None if (array == sizes["T"]).all() else array.astype(np.int64, copy=False)


def _are_python_integers(value: Any, array: AnyArray) -> bool:
    return isinstance(value, (list, tuple)) and (array.dtype.kind == "i" or array.size == 0)


def constant(label: str, name: str, value: Any) -> AnyArray:
    """An argument of calls that a layer holds; what the calls reject is rejected there."""
    array = as_array(label, name, value)
    if name == "sequence_lens" and _are_python_integers(value, array):
        with contextlib.suppress(OverflowError):
            return np.array(value, np.int32)  # a dtype that all conventions with sequences allow
    return array


def float_type_name(label: str, name: str, array: AnyArray, allowed: Sequence[str], source: str) -> None:
    """Reject a floating-point type that `source` (an operator at an opset, say) does not have."""
    row = float_type(array.dtype)
    if row is not None and row.name not in allowed:
        raise UnsupportedError(f"{label}: {name} has dtype {row.name}; {source} allows {', '.join(allowed)}")


def same_dtype(label: str, name: str, value: Any, dtype: np.dtype[Any], whose: str) -> None:
    """Reject an array (not None) of another dtype."""
    if value is not None:
        _of_dtype(label, name, value, dtype, whose)


def _of_dtype(label: str, name: str, value: Any, dtype: np.dtype[Any], whose: str) -> AnyArray:
    array = _own(label, name, as_array(label, name, value))
    _reject_dtype(label, name, array, dtype, whose)
    return array


def _reject_dtype(label: str, name: str, array: AnyArray, dtype: np.dtype[Any], whose: str) -> None:
    if array.dtype != dtype:
        hint = _conversion(name, array.dtype, dtype.name)
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {dtype}, the dtype of {whose}{hint}")


def hidden_size(label: str, cell: str, convention: Convention, R: Any) -> int:
    """What the last axis of R tells."""
    array, axes = floating_array(label, "R", R), recurrence_axes(cell, convention)
    if array.ndim != len(axes) or array.shape[-1] == 0:
        raise ArgumentError(f"{label}: R has shape {array.shape}; expected {_describe(axes, {})}, none of them 0")
    return int(array.shape[-1])


def names(label: str, argument: str, value: Any) -> tuple[str, ...]:
    """A sequence of strings."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise ArgumentError(f"{label}: {argument} is {shown(value)}; expected a sequence of names")
    result = tuple(value)
    for name in result:
        if not isinstance(name, str):
            raise ArgumentError(f"{label}: {argument} holds {shown(name)}; expected names")
    return result


def model_inputs(
    label: str, infos: Sequence[TensorInfo], arrays: tuple[Any, ...], named: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """What a model was called with, by the names of its inputs; values of inputs that are no tensors as they are.

    Raises
    ------
    ArgumentError
        Inputs that are missing, unknown or given twice, and those whose dtype or shape is not the declared one.
    """
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        given = _named_inputs(label, infos, arrays[0], {})
    elif len(arrays) > len(infos):
        raise ArgumentError(
            f"{label}: {len(arrays)} arrays were given; expected at most {len(infos)}: {_listed(infos)}"
        )
    else:
        given = {info.name: value for info, value in zip(infos, arrays, strict=False)}
    if named:
        given = _named_inputs(label, infos, named, given)
    values: dict[str, Any] = {}
    for info in infos:
        if info.name in given:
            values[info.name] = _model_input(label, info, given[info.name])
        elif not info.optional:
            raise ArgumentError(f"{label}: input {shown(info.name)} is missing; expected {_listed(infos)}")
    return values


def _listed(infos: Sequence[TensorInfo]) -> str:
    return ", ".join(shortened(info.name) for info in infos) or "none"


def _named_inputs(
    label: str, infos: Sequence[TensorInfo], arrays: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Those given `before`, and these by the inputs' own names."""
    by_name = {alias: info.name for info in infos for alias in info.aliases}
    by_name |= {info.name: info.name for info in infos}
    given = dict(before)
    for name, value in arrays.items():
        if name not in by_name:
            raise ArgumentError(f"{label}: input {shown(name)} is unknown; expected {_listed(infos)}")
        if by_name[name] in given:
            how = "under two of its names" if by_name[name] not in before else "by place and by name"
            raise ArgumentError(f"{label}: input {shown(by_name[name])} was given twice, {how}")
        given[by_name[name]] = value
    return given


def _model_input(label: str, info: TensorInfo, value: Any) -> Any:
    if info.dtype is None:
        return value
    if type(value) is np.ndarray and value.dtype.name == info.dtype and fits(info.shape, value.shape):
        return value
    name = f"input {shown(info.name)}"
    if value is None:
        raise ArgumentError(f"{label}: {name} is missing; expected an array of {info.dtype}")
    array = as_array(label, name, value)
    if array.dtype.name != info.dtype and not (info.dtype == "str" and array.dtype.kind in "OU"):
        hint = "" if info.dtype == "str" else _conversion("array", array.dtype, info.dtype)
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {info.dtype}{hint}")
    if not fits(info.shape, array.shape):
        declared = ", ".join("?" if size is None else str(size) for size in info.shape or ())
        raise ArgumentError(f"{label}: {name} has shape {array.shape}; expected [{declared}]")
    return array
