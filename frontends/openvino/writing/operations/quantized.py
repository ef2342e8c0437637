"""Operators of codes: quantization, its inverse, and products of integers, all computed in float32."""

from __future__ import annotations

import numpy as np

from pyrnnx.errors import shown

from ...ir.element_types import BY_PRECISION
from ..context import NodeContext, writes
from ..views import View, plain
from .images import centred, check_sums

_CODES = ("I8", "U8", "I16", "U16")


@writes("DequantizeLinear")
def _dequantize(ctx: NodeContext) -> View:
    """Write (codes - zero point) * scale."""
    axis = _axis(ctx)
    ctx.attribute("output_dtype")
    view = ctx.converted(ctx.view(0), "FP32")
    if ctx.has(2):
        view = ctx.binary("Subtract", 1, view, ctx.converted(ctx.along(2, axis, view.rank), "FP32"))
    view = ctx.binary("Multiply", 1, view, ctx.converted(ctx.along(1, axis, view.rank), "FP32"))
    return ctx.converted(view, ctx.output(view.rank)[0])


def _axis(ctx: NodeContext) -> int:
    """Return the axis to which scales of several elements belong; read the attributes of all versions."""
    if ctx.attribute("block_size", 0):
        ctx.refuse(f"block_size {ctx.attribute('block_size')}", "0: one scale for a tensor or for each size of an axis")
    for name in ("saturate", "precision"):  # of 8-bit floating-point types, and of the division
        ctx.attribute(name)
    rank = ctx.view(0).rank
    axis = ctx.attribute("axis", 1)
    return ctx.axis(axis, rank) if ctx.view(1).rank == 1 and ctx.view(1).shape != (1,) else 0


@writes("QuantizeLinear")
def _quantize(ctx: NodeContext) -> View:
    """Write round(X / scale) + zero point, halves to even, limited to the codes."""
    axis = _axis(ctx)
    ctx.attribute("output_dtype")
    precision = ctx.output(ctx.view(0).rank)[0]
    view = ctx.converted(ctx.view(0), "FP32")
    view = ctx.binary("Divide", 1, view, ctx.converted(ctx.along(1, axis, view.rank), "FP32"), m_pythondiv=False)
    return _codes(ctx, view, ctx.along(2, axis, view.rank) if ctx.has(2) else None, precision)


def _codes(ctx: NodeContext, scaled: View, zero: View | None, precision: str) -> View:
    """Round quotients to codes."""
    if precision not in _CODES:
        ctx.refuse(f"codes of type {shown(precision)}", ", ".join(_CODES))
    view = ctx.unary("Round", 5, scaled, mode="half_to_even")
    if zero is not None:
        view = ctx.binary("Add", 1, view, ctx.converted(zero, "FP32"))
    info = np.iinfo(BY_PRECISION[precision].numpy_dtype(ctx.label))
    return ctx.converted(ctx.unary("Clamp", 1, view, min=float(info.min), max=float(info.max)), precision)


@writes("DynamicQuantizeLinear")
def _dynamic_quantize(ctx: NodeContext) -> list[View]:
    """Write codes, scale and zero point of a range that includes 0; the scale of zeros is 1, as in ONNX Runtime."""
    value = ctx[0]
    axes, zero, unit = ctx.const("axes", range(len(value.shape))), *(ctx.const(str(k), k, "FP32") for k in (0, 1))
    scalar = ("FP32", ())
    low, high = (
        ctx.binary(limit, 1, plain(ctx.layer(kind, 1, [value, axes], scalar, keep_dims=False)), plain(zero))
        for kind, limit in (("ReduceMin", "Minimum"), ("ReduceMax", "Maximum"))
    )
    length = ctx.binary("Subtract", 1, high, low)
    steps = plain(ctx.const("steps", 255, "FP32"))
    quotient = ctx.binary("Divide", 1, length, steps, m_pythondiv=False)
    none = ctx.binary("Equal", 1, length, plain(zero), "BOOL")
    scale = plain(ctx.layer("Select", 1, [none.value, unit, quotient.value], scalar, auto_broadcast="numpy"))
    shift = ctx.binary("Divide", 1, ctx.unary("Negative", 1, low), scale, m_pythondiv=False)
    zero_point = _codes(ctx, shift, None, "U8")
    scaled = ctx.binary("Divide", 1, plain(value), scale, m_pythondiv=False)
    return [_codes(ctx, scaled, zero_point, "U8"), scale, zero_point]


@writes("MatMulInteger")
def _matmul_integer(ctx: NodeContext) -> View:
    """Write MatMulInteger in float32, in which its sums are exact; zero points of A belong to rows, of B to columns."""
    rank = ctx.view(1).rank
    a, b = centred(ctx, 0, 2, axis=ctx.view(0).rank - 2), centred(ctx, 1, 3, axis=rank - 1)
    check_sums(ctx, 1, 3, lambda array: np.abs(array).sum(-2))
    precision, shape = ctx.output(max(len(a.shape), len(b.shape)))
    product = ctx.plain("MatMul", 1, [a, b], ("FP32", shape), transpose_a=False, transpose_b=False)
    return ctx.converted(product, precision)
