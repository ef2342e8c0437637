"""Products of int32 in quantized models, computed by ONNX's products of bytes.

The factors are Convert(u8) - Convert(zero point), and constants whose values span less than 256. All bytes are uint8,
not int8, because ONNX Runtime's products of uint8 and int8 saturate on processors without VNNI.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ..ir.layer import Output
from .context import LayerContext

_HALF, _LARGEST = 128, 255


class Byte(NamedTuple):
    """Name of a uint8 value, and of its zero point; "" means 0."""

    value: str
    zero: str


def product(ctx: LayerContext, op_type: str, weights: AnyArray, **attributes: Any) -> str:
    """Return the product of input 0 with constant weights by ConvInteger or MatMulInteger; "" if they are no bytes."""
    offset = max(-int(weights.min(initial=0)), 0)
    data = single_byte(ctx, 0)
    if data is None or offset > _LARGEST or int(weights.max(initial=0)) + offset > _LARGEST:
        return ""
    codes = ctx.constant((weights + offset).astype(np.uint8), "uint8")
    zeros = data.zero or ctx.constant(0, "uint8"), ctx.constant(offset, "uint8")
    return ctx.node(op_type, data.value, codes, *zeros, **attributes)


def single_byte(ctx: LayerContext, k: int) -> Byte | None:
    """Return the k-th input as one byte if it is converted from 8 bits, with or without a zero point; else None."""
    source = ctx.layer.sources[k]
    zero = None
    if source.layer.type.lower() == "subtract" and len(source.layer.sources) == 2:
        source, zero = source.layer.sources
    byte = _byte(ctx, source)
    if byte is None or zero is None:
        return byte
    shape, wide = zero.port.shape, source.port.shape  # a scalar's shape may be unknown
    if wide is None or (shape is not None and (len(shape) > len(wide) or any(size != 1 for size in shape))):
        return None
    array = ctx.values.array(zero)
    if array is not None:
        if array.size != 1:
            return None
        value = int(array.item()) + (_HALF if byte.zero else 0)
        return Byte(byte.value, ctx.constant(value, "uint8")) if 0 <= value <= _LARGEST else None
    subtracted = _byte(ctx, zero)
    if subtracted is None or bool(subtracted.zero) != bool(byte.zero):
        return None
    return Byte(byte.value, ctx.reshape(subtracted.value, []))


def _byte(ctx: LayerContext, output: Output) -> Byte | None:
    """Return the 8 bits that a Convert widens to int32; signed ones are shifted by a zero point of 128."""
    layer = output.layer
    if layer.type.lower() != "convert" or len(layer.sources) != 1 or output.port.precision != "I32":
        return None
    (source,) = layer.sources
    if source.port.precision not in ("U8", "I8"):
        return None
    name = ctx.values.name(source)
    if source.port.precision == "U8":
        return Byte(name, "")
    shifted = ctx.node("Add", ctx.cast(name, "int32"), ctx.constant(_HALF, "int32"))
    return Byte(ctx.cast(shifted, "uint8"), ctx.constant(_HALF, "uint8"))
