"""Inputs of a comparison: the caller's arrays, checked, and random arrays for the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray, float_type, named_dtype
from pyrnnx._internal.extras import needs
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL
from pyrnnx.operator.op import RecurrentOp

MOST_MADE = 2**26  # elements of an array that is made at random
MOST_AXES = 32  # of any array, in every NumPy
INPUTS = "compare: inputs"  # how errors name them
_ANY_LENGTHS = replace(CANONICAL, length_dtypes=INTEGERS)
_LONGEST = 2**31 - 2  # lengths are int32
_MOST_LENGTHS = 2**16  # up to which random lengths are drawn
HINT = "inputs=..."  # another way to pass an array
NO_DIMS: Mapping[str, int] = MappingProxyType({})


def made_shape(what: str, shape: Iterable[int], hint: str = HINT) -> tuple[int, ...]:
    """Return the shape of an array that is to be made; `what` says who makes which.

    Raises
    ------
    ArgumentError
        A shape that no array has, or of more than `MOST_MADE` elements.
    """
    sizes = tuple(shape)
    if min(sizes, default=0) < 0 or math.prod(size or 1 for size in sizes) > MOST_MADE or len(sizes) > MOST_AXES:
        raise ArgumentError(
            f"{what} has shape {shown(sizes)}; expected at most {MOST_AXES} axes and {MOST_MADE} elements where {hint} "
            "does not give it"
        )
    return sizes


def random_array(
    what: str,
    shape: Iterable[int],
    dtypes: Iterable[str],
    rng: np.random.Generator,
    scale: float = 1,
    hint: str = HINT,
) -> AnyArray:
    """Return normally distributed numbers, in the last dtype, that every dtype can represent.

    Raises
    ------
    PyrnnxError
        As `made_shape`; bfloat16 without ml_dtypes.
    """
    try:
        types = [named_dtype(dtype) for dtype in dtypes]
    except ImportError:
        raise PyrnnxError(needs(f"{what}: dtype bfloat16", "ml_dtypes", "onnx")) from None
    array: AnyArray = rng.normal(0, scale, made_shape(what, shape, hint))
    for dtype in types:
        array = array.astype(dtype)
    return array


def call_inputs(
    inputs: Mapping[str, Any],
    op: RecurrentOp,
    sizes: Mapping[str, int],
    dtypes: Iterable[str],
    rng: np.random.Generator,
    one_step: str,
    least: int,
) -> dict[str, AnyArray]:
    """Return canonical inputs of a call of two layers of these dtypes: those of a caller, and random ones.

    `sizes` are T, N and I; what the caller's X has goes before T and N. `one_step` is the name of a layer that runs one
    step, if there is one. Random lengths are at least `least`.
    """
    for name in inputs:
        if name not in CALL_ARGUMENTS or (name == "initial_c" and not op.has_cell_state):
            raise ArgumentError(f"{INPUTS} has {shown(name)}; expected names out of {', '.join(CALL_ARGUMENTS)}")
    inputs = {name: value for name, value in inputs.items() if value is not None}
    sizes = {**sizes, "H": op.hidden_size, "D": op.num_directions}
    arrays = {name: _real(name, value) for name, value in inputs.items() if name != "sequence_lens"}
    if "X" in arrays and arrays["X"].ndim == 3:
        sizes |= zip("TN", arrays["X"].shape, strict=False)
    if one_step:
        sizes["T"] = 1
    for name in ("X", "initial_h", "initial_c") if op.has_cell_state else ("X", "initial_h"):
        axes = CANONICAL.axes_of(name)
        if name in arrays:
            check.shape(INPUTS, name, arrays[name].shape, axes, sizes)
        else:
            arrays[name] = random_array(f"compare: input {name}", (sizes[axis] for axis in axes), dtypes, rng)
    arrays["sequence_lens"] = _lengths(inputs.get("sequence_lens"), sizes, rng, one_step, least)
    return arrays


def _real(name: str, value: Any) -> AnyArray:
    array = check.as_array(INPUTS, name, value)
    if array.dtype.kind not in "iuf" and float_type(array.dtype) is None:
        raise ArgumentError(f"{INPUTS}: {name} has dtype {array.dtype}; expected real numbers")
    return array


def spread_lengths(rng: np.random.Generator, T: int, N: int, least: int, first: Sequence[int]) -> AnyArray:
    """Return lengths of N rows from `least` to T, distinct if there are enough; those of `first` come first."""
    others = rng.permutation(np.setdiff1d(np.arange(min(least, T), min(T, _MOST_LENGTHS) + 1), first))
    return rng.permutation(np.resize(np.concatenate([first, others]), N).astype(np.int32))


def _lengths(value: Any, sizes: Mapping[str, int], rng: np.random.Generator, one_step: str, least: int) -> AnyArray:
    T, N = sizes["T"], sizes["N"]
    if value is None:
        T = min(T, _LONGEST)
        if one_step:
            return np.ones(N, np.int32)
        return spread_lengths(rng, T, N, least, list(dict.fromkeys([T, min(T, least), min(T, 1)])))
    lengths = check.lengths(INPUTS, _ANY_LENGTHS, value, sizes)
    if lengths is None:
        return np.full(N, min(T, _LONGEST), np.int32)
    if one_step:
        raise ArgumentError(
            f"{INPUTS}: sequence_lens is {shown(lengths.tolist())}; expected 1 for each row: {one_step} runs one step"
        )
    return lengths.astype(np.int32)


def converted(name: str, array: AnyArray, dtype: np.dtype[Any], whose: str) -> AnyArray:
    """Return the numbers in a layer's dtype; the two layers may have different dtypes.

    Raises
    ------
    ArgumentError
        Finite numbers that the dtype does not hold.
    """
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):  # reported below
        result = array.astype(dtype)
    if (np.isinf(result) & ~np.isinf(array)).any():
        raise ArgumentError(f"{INPUTS}: {name} has numbers beyond {dtype}, the dtype of {whose}")
    return result
