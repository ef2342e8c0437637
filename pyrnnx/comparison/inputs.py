"""Random arrays of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray, named_dtype
from pyrnnx._internal.extras import needs
from pyrnnx.errors import ArgumentError, PyrnnxError, shown

MOST_MADE = 2**26  # elements of an array that is made at random
MOST_AXES = 32  # of any array, in every NumPy
INPUTS = "compare: inputs"  # how errors name them
_MOST_LENGTHS = 2**16  # up to which random lengths are drawn
_SHOWN_VALUES = 8
HINT = "inputs=..."  # another way to pass an array
NO_DIMS: Mapping[str, int] = MappingProxyType({})


@contextmanager
def named_after(caller: str) -> Iterator[None]:
    """Rename errors of `compare` and `assert_same` after the called function."""
    try:
        yield
    except PyrnnxError as error:
        start, _, rest = str(error).partition(": ")
        if start not in ("compare", "assert_same") or start == caller:
            raise
        raise type(error)(f"{caller}: {rest}") from error


def made_shape(what: str, shape: Iterable[int], hint: str = HINT) -> tuple[int, ...]:
    """Return the shape of an array that is to be made; `what` says who makes which."""
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
    """Return normally distributed numbers, in the last dtype, that every dtype can represent."""
    try:
        types = [named_dtype(dtype) for dtype in dtypes]
    except ImportError:
        raise PyrnnxError(needs(f"{what}: dtype bfloat16", "ml_dtypes", "onnx")) from None
    array: AnyArray = rng.normal(0, scale, made_shape(what, shape, hint))
    for dtype in types:
        array = array.astype(dtype)
    return array


def spread_lengths(rng: np.random.Generator, T: int, N: int, least: int, first: Sequence[int]) -> AnyArray:
    """Return lengths of N rows from `least` to T, distinct if there are enough; those of `first` come first."""
    others = rng.permutation(np.setdiff1d(np.arange(min(least, T), min(T, _MOST_LENGTHS) + 1), first))
    return rng.permutation(np.resize(np.concatenate([first, others]), N).astype(np.int32))


def in_words(arrays: Mapping[str, Any]) -> str:
    """Return the shapes of inputs, and the numbers of small integer ones."""
    words = []
    for name, array in arrays.items():
        shape, numbers = np.shape(array), np.asarray(array)
        is_small = numbers.dtype.name in (*INTEGERS, "bool") and 0 < numbers.size <= _SHOWN_VALUES
        words.append(f"{shown(name)} {numbers.tolist() if is_small else shape}")
    return ", ".join(words) or "no inputs"
