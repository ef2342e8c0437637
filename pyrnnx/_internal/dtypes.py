"""The dtypes of arrays: integers, and floating-point types with the dtype that the kernels compute them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED


@dataclass(frozen=True)
class FloatType:
    """A row of the table of dtypes: its number in _kernels/storage.pxd, and the dtype that the kernels widen it to."""

    name: str
    storage: int
    kernel: type[np.float32] | type[np.float64]


_ROWS = (
    FloatType("float32", 0, np.float32),
    FloatType("float64", 0, np.float64),
    FloatType("float16", 1, np.float32),
    FloatType("bfloat16", 2, np.float32),  # ml_dtypes.bfloat16, known by its name
)
FLOAT_TYPES: Mapping[str, FloatType] = MappingProxyType({row.name: row for row in _ROWS})


@lru_cache(64)
def dtype_name(dtype: np.dtype[np.generic]) -> str:
    """Return the name of a dtype, cached because NumPy needs microseconds to build it."""
    return dtype.name


def float_type(dtype: np.dtype[np.generic]) -> FloatType | None:
    """Return the row of a dtype, or None if it is not a supported floating-point type."""
    return FLOAT_TYPES.get(dtype_name(dtype))


def named_dtype(name: str) -> np.dtype[np.generic]:
    """Return the dtype of a name of NumPy or ml_dtypes ("bfloat16"); raise ImportError if that is not installed."""
    if name.startswith(("bfloat", "float8_", "float4_")):
        import ml_dtypes

        dtype: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    return np.dtype(name)


def widened(a: npt.NDArray[np.generic]) -> npt.NDArray[np.floating]:
    """Return an array C-contiguous, in the dtype that the kernels compute in; a copy only if it has to change."""
    return np.ascontiguousarray(a, dtype=FLOAT_TYPES[dtype_name(a.dtype)].kernel)
