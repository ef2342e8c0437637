"""Products of int32 as sums of ONNX's products of bytes, exact modulo 2**32.

A value is a sum of bytes, each minus a zero point, times powers of 256:

    x = (x_0 - z_0) + 256 (x_1 - z_1) + ...        x * w = sum of 256**(j + k) (x_j - z_j) * (w_k - z_k), j + k < 4

Factors in quantized models have one byte each: Convert(u8) - Convert(zero point), times constants of 8 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ...ir.layer import Output
from ..context import LayerContext

_BYTES, _HALF, _LARGEST = 4, 128, 255


class Byte(NamedTuple):
    """Byte x_j of the sum above: name of its uint8 value, name of its zero point ("" means 0), and j."""

    value: str
    zero: str
    power: int


def product(ctx: LayerContext, op_type: str, data: Sequence[Byte], weights: Sequence[Byte], **attributes: Any) -> str:
    """Return the sum of the products of all bytes, by ConvInteger or MatMulInteger."""
    result = ""
    for x in data:
        for w in weights:
            power = x.power + w.power
            if power >= _BYTES:
                continue
            zeros = [byte.zero or ctx.constant(0, "uint8") for byte in (x, w)]
            term = ctx.node(op_type, x.value, w.value, *zeros, **attributes)
            if power:
                term = ctx.node("Mul", term, ctx.constant(256**power, "int32"))
            result = ctx.node("Add", result, term) if result else term
    return result


def data_bytes(ctx: LayerContext, k: int) -> list[Byte]:
    """Return the bytes of the k-th input, of int32."""
    single = single_byte(ctx, k)
    return [single] if single else value_bytes(ctx, ctx[k])


def value_bytes(ctx: LayerContext, name: str) -> list[Byte]:
    """Return the four bytes of any int32 value, computed one after the other by nodes of the graph."""
    result = []
    for power in range(_BYTES):
        byte = ctx.cast(name, "uint8")
        result.append(Byte(byte, "", power))
        if power < _BYTES - 1:
            rest = ctx.node("Sub", name, ctx.cast(byte, "int32"))
            name = ctx.node("Div", rest, ctx.constant(256, "int32"))
    return result


def constant_bytes(ctx: LayerContext, array: AnyArray) -> list[Byte]:
    """Return a constant as a sum of as few bytes as possible.

    One byte is enough if the values span less than 256. Otherwise byte j contains the j-th digit of the values to
    base 256, from -128 to 127, with zero point 128. All bytes are uint8, not int8, because ONNX Runtime's products of
    uint8 and int8 saturate on processors without VNNI.
    """
    offset = max(-int(array.min(initial=0)), 0)
    if offset <= _LARGEST and int(array.max(initial=0)) + offset <= _LARGEST:
        return [Byte(ctx.constant((array + offset).astype(np.uint8), "uint8"), ctx.constant(offset, "uint8"), 0)]
    zero = ctx.constant(_HALF, "uint8")
    result, rest = [], array.astype(np.int64)
    for power in range(_BYTES):
        if power and not rest.any():
            break
        digit = (rest + _HALF) % 256 - _HALF
        rest = (rest - digit) // 256
        if digit.any() or not power:
            result.append(Byte(ctx.constant(digit + _HALF, "uint8"), zero, power))
    return result


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
    array = ctx.array_of(zero)
    if array is not None:
        if array.size != 1:
            return None
        value = int(array.item()) + (_HALF if byte.zero else 0)
        return Byte(byte.value, ctx.constant(value, "uint8"), 0) if 0 <= value <= _LARGEST else None
    subtracted = _byte(ctx, zero)
    if subtracted is None or bool(subtracted.zero) != bool(byte.zero):
        return None
    return Byte(byte.value, ctx.reshape(subtracted.value, []), 0)


def _byte(ctx: LayerContext, output: Output) -> Byte | None:
    """Return the 8 bits that a Convert widens to int32; signed ones are shifted by a zero point of 128."""
    layer = output.layer
    if layer.type.lower() != "convert" or len(layer.sources) != 1 or output.port.precision != "I32":
        return None
    (source,) = layer.sources
    if source.port.precision not in ("U8", "I8"):
        return None
    name = ctx.name_of(source)
    if source.port.precision == "U8":
        return Byte(name, "", 0)
    shifted = ctx.node("Add", ctx.cast(name, "int32"), ctx.constant(_HALF, "int32"))
    return Byte(ctx.cast(shifted, "uint8"), ctx.constant(_HALF, "uint8"), 0)
