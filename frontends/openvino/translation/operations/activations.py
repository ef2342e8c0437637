"""Activation functions, and the rounding to levels of FakeQuantize."""

from __future__ import annotations

from functools import partial

from pyrnnx._internal.dtypes import INTEGERS

from ..attributes import LARGEST
from ..context import LayerContext, translates
from .elementwise import numpy_broadcast


@translates("ReLU")
def _relu(ctx: LayerContext) -> str:
    dtype = ctx.dtype(0)
    if dtype in INTEGERS:
        return ctx.typed("Max", dtype, ctx[0], ctx.constant(0, dtype))
    return ctx.node("Relu", ctx[0])


@translates("Elu")
def _elu(ctx: LayerContext) -> str:
    return ctx.node("Elu", ctx[0], alpha=ctx.number("alpha"))


def _by_numbers(ctx: LayerContext, op_type: str, **names: str) -> str:
    """Translate a function whose parameters are inputs, here with their names in ONNX and OpenVINO."""
    parameters = {name: ctx.number_input(k, what) for k, (name, what) in enumerate(names.items(), start=1)}
    return ctx.node(op_type, ctx[0], **parameters)


translates("Selu")(partial(_by_numbers, op_type="Selu", alpha="alpha", gamma="lambda"))
translates("HardSigmoid")(partial(_by_numbers, op_type="HardSigmoid", alpha="alpha", beta="beta"))


@translates("HSigmoid", since=5)
def _h_sigmoid(ctx: LayerContext) -> str:
    """Compute min(max(x + 3, 0), 6) / 6."""
    dtype = ctx.dtype(0)
    shifted = ctx.node("Add", ctx[0], ctx.constant(3, dtype))
    clipped = ctx.node("Clip", shifted, ctx.constant(0, dtype), ctx.constant(6, dtype))
    return ctx.node("Div", clipped, ctx.constant(6, dtype))


@translates("Swish", since=4)
def _swish(ctx: LayerContext) -> str:
    scaled = ctx.node("Mul", ctx[0], ctx[1]) if ctx.has(1) else ctx[0]
    return ctx.node("Mul", ctx[0], ctx.node("Sigmoid", scaled))


@translates("Gelu", since=2)
def _gelu(ctx: LayerContext) -> str:
    approximate = "none"
    if ctx.opset >= 7:
        approximate = ctx.choice("approximation_mode", {"erf": "none", "tanh": "tanh"}, "ERF")
    return ctx.node("Gelu", ctx[0], approximate=approximate)


@translates("PReLU")
def _prelu(ctx: LayerContext) -> str:
    """Translate PReLU: a one-dimensional slope belongs to the channels, axis 1; NumPy broadcasts any other."""
    slope, shape, of_slope = ctx[1], ctx.shape(0), ctx.shape(1)
    if of_slope is None:
        array = ctx.array(1)
        of_slope = None if array is None else tuple(array.shape)
    if of_slope is not None and len(of_slope) == 1 and of_slope[0] != 1:
        rank = ctx.rank(0)
        if rank > 1 and shape is not None and shape[1] in (None, of_slope[0]):
            slope = ctx.unsqueeze(slope, list(range(1, rank - 1)))
    return ctx.node("PRelu", ctx[0], slope)


@translates("FakeQuantize")
def _fake_quantize(ctx: LayerContext) -> str:
    """Quantize input_low to input_high in levels - 1 steps; scale to output_low to output_high."""
    numpy_broadcast(ctx)
    steps, dtype = ctx.whole("levels", low=2, high=LARGEST) - 1, ctx.dtype(0)
    x, low, high, out_low, out_high = ctx.exactly(5)
    count = ctx.constant(steps, dtype)
    span = ctx.node("Sub", high, low)
    level = ctx.node("Round", ctx.node("Mul", ctx.node("Div", ctx.node("Sub", x, low), span), count))
    out_span = ctx.node("Sub", out_high, out_low)
    inside = ctx.node("Add", ctx.node("Mul", ctx.node("Div", level, count), out_span), out_low)
    under = ctx.node("LessOrEqual", x, ctx.node("Min", low, high))
    over = ctx.node("Greater", x, ctx.node("Max", low, high))
    return ctx.node("Where", under, out_low, ctx.node("Where", over, out_high, inside))
