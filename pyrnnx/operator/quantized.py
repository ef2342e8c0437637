"""Weights in fewer bits, which speed up calls that are bound by reading the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._kernels import engines
from pyrnnx.errors import ArgumentError, shown

# Dtypes of stored W and R, with their numbers in the kernels.
WEIGHT_DTYPES: Mapping[str | None, int] = MappingProxyType(engines.WEIGHT_DTYPES)


def check_weight_dtype(label: str, value: Any, dtype: str = "") -> None:
    """Raise an ArgumentError unless a layer, whose `dtype` may be known, can store its weights in `value`."""
    is_known = value is None or (isinstance(value, str) and value in WEIGHT_DTYPES)
    if not is_known or (value is not None and dtype == "float64"):
        own = f" with dtype {dtype}" if dtype else ""
        raise ArgumentError(
            f"{label}: weight_dtype is {shown(value)}{own}; expected one of "
            f"{', '.join(map(repr, WEIGHT_DTYPES))} (with dtype float64: None)"
        )


@dataclass(frozen=True, eq=False)
class Quantized:
    """W or R as 8-bit codes, w = scale * (code - zero_point), of an LSTM that rounds X and h to 8 bits too.

    codes [D, G*H, K] are int8 or uint8, scale [D, G*H] float32, zero_point [D, G*H] of the codes' dtype. `shape` and
    `dtype` are those of the float weights.
    """

    codes: AnyArray
    scale: AnyArray
    zero_point: AnyArray

    @property
    def dtype(self) -> np.dtype[np.float32]:
        return np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape

    @property
    def ndim(self) -> int:
        return self.codes.ndim

    def dequantized(self) -> AnyArray:
        """Return the weights as a read-only float32 array."""
        zero_point, scale = self.zero_point[..., np.newaxis].astype(np.float32), self.scale[..., np.newaxis]
        with np.errstate(invalid="ignore", over="ignore"):  # scales in a file may be infinite or NaN
            result = np.asarray((self.codes.astype(np.float32) - zero_point) * scale)
        result.flags.writeable = False
        return result

    def signed(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return codes as int8, scale, and zero_point as int32. uint8 moves down by 128, which changes no weight."""
        zero_point = self.zero_point.astype(np.int32)
        if self.codes.dtype == np.int8:
            return self.codes, self.scale, zero_point
        return (self.codes ^ np.uint8(128)).view(np.int8), self.scale, zero_point - np.int32(128)


def dequantized(weights: Mapping[str, AnyArray | Quantized]) -> Mapping[str, AnyArray]:
    """Return `weights` if they are floats, else a mapping that dequantizes each weight when it is read."""
    if isinstance(weights.get("W"), Quantized):
        return _Dequantized(weights)
    return cast(Mapping[str, AnyArray], weights)


class _Dequantized(Mapping[str, AnyArray]):
    def __init__(self, weights: Mapping[str, AnyArray | Quantized]) -> None:
        self._weights = weights

    def __getitem__(self, name: str) -> AnyArray:
        weight = self._weights[name]
        return weight.dequantized() if isinstance(weight, Quantized) else weight

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)


def rounded(array: AnyArray, weight_dtype: str | None) -> AnyArray:
    """Round float32 weights [..., K], for an engine that cannot store them in fewer bits.

    bfloat16 rounds to nearest, ties to even; int8 to multiples of the row's largest magnitude / 127, ties away from 0.
    """
    if weight_dtype == "bfloat16":
        bits = array.view(np.uint32)
        upper = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
        return np.asarray(np.where(np.isnan(array), array, upper.view(np.float32)))
    if weight_dtype == "int8" and array.shape[-1]:
        scale = np.abs(array).max(axis=-1, keepdims=True) / np.float32(127)
        steps = np.divide(array, scale, out=np.zeros_like(array), where=scale > 0)
        return np.asarray(np.trunc(steps + np.copysign(np.float32(0.5), steps)) * scale)
    return array
