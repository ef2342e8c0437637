"""Weights kept in fewer bits, for calls that are bound by reading them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import numpy as np

from pyrnnx._kernels import engines
from pyrnnx.dtypes import AnyArray

# How W and R may be kept, and their numbers in the kernels.
WEIGHT_DTYPES: Mapping[str | None, int] = MappingProxyType(engines.WEIGHT_DTYPES)


@dataclass(frozen=True, eq=False)
class Quantized:
    """W or R in codes of 8 bits, w = scale * (code - zero_point), of an LSTM that rounds X and h to 8 bits, too.

    codes [D, G*H, K] are int8 or uint8, scale [D, G*H] float32, zero_point [D, G*H] of the codes' dtype. Of the shape
    and dtype of the float weights it stands for.
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
        """float32, read-only."""
        zero_point, scale = self.zero_point[..., np.newaxis].astype(np.float32), self.scale[..., np.newaxis]
        with np.errstate(invalid="ignore", over="ignore"):  # the scales of a file may be infinite, or NaN
            result = np.asarray((self.codes.astype(np.float32) - zero_point) * scale)
        result.flags.writeable = False
        return result

    def signed(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        """codes in int8, scale, and zero_point in int32; uint8 moves down by 128, which changes no w."""
        zero_point = self.zero_point.astype(np.int32)
        if self.codes.dtype == np.int8:
            return self.codes, self.scale, zero_point
        return (self.codes ^ np.uint8(128)).view(np.int8), self.scale, zero_point - np.int32(128)


def dequantized(weights: Mapping[str, AnyArray | Quantized]) -> Mapping[str, AnyArray]:
    """The same in floats: `weights` itself where they are that, else a view that dequantizes what is asked for."""
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
    """float32 weights [..., K] as an engine that has no such format computes with them: rounded, still float32.

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
