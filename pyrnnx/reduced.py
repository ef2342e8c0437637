"""Weights kept in fewer bits, for calls that are bound by reading them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from pyrnnx._kernels import engines
from pyrnnx.dtypes import AnyArray

# How W and R may be kept, and their numbers in the kernels.
WEIGHT_DTYPES: Mapping[str | None, int] = MappingProxyType(engines.WEIGHT_DTYPES)


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
