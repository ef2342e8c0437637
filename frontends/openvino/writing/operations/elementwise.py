"""Elementwise operators: arithmetic, comparisons, logic, activation functions, conversions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from pyrnnx.errors import shown

from ...translation.operations.elementwise import BINARY, UNARY
from ..context import NodeContext, writes
from ..views import View, plain

_COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


def _unary(ctx: NodeContext, kind: str, opset: int) -> View:
    view = ctx.view(0)
    return ctx.unary(kind, opset, view, precision="BOOL" if kind == "IsNaN" else None)


def _binary(ctx: NodeContext, kind: str, opset: int) -> View:
    """Combine two arrays; Max and Min combine any number."""
    precision = "BOOL" if ctx.node.op_type in _COMPARISONS else None
    result, *others = ctx.views()
    for other in others:
        result = ctx.binary(kind, opset, result, other, precision)
    return result


# The first row of an operator wins: LogicalXor, not Xor.
for ir_type, first_opset, onnx_type in reversed(UNARY):
    writes(onnx_type)(partial(_unary, kind=ir_type, opset=first_opset))
for ir_type, first_opset, onnx_type in reversed(BINARY):
    writes(onnx_type)(partial(_binary, kind=ir_type, opset=first_opset))
writes("Relu")(partial(_unary, kind="ReLU", opset=1))
writes("Sum")(partial(_binary, kind="Add", opset=1))


@writes("Pow")
def _pow(ctx: NodeContext) -> View:
    """Write Pow, computed in floating point if either input is; the result has the base's type."""
    a, b = ctx.view(0), ctx.view(1)
    computed = b.precision if _is_float(b) and not _is_float(a) else a.precision
    power = ctx.binary("Power", 1, ctx.converted(a, computed), ctx.converted(b, computed))
    return ctx.converted(power, a.precision)


def _is_float(view: View) -> bool:
    return view.precision.startswith(("FP", "BF", "F"))


@writes("Div")
def _div(ctx: NodeContext) -> View:
    """Write Div; integers are rounded towards zero, as in ONNX."""
    return ctx.binary("Divide", 1, ctx.view(0), ctx.view(1), m_pythondiv=False)


@writes("Mod")
def _mod(ctx: NodeContext) -> View:
    """Write Mod; with fmod, the result has the sign of the dividend, else of the divisor."""
    return ctx.binary("Mod" if ctx.attribute("fmod", 0) else "FloorMod", 1, ctx.view(0), ctx.view(1))


@writes("Reciprocal")
def _reciprocal(ctx: NodeContext) -> View:
    view = ctx.view(0)
    return ctx.binary("Divide", 1, plain(ctx.const("one", 1, view.precision)), view, m_pythondiv=False)


@writes("Where")
def _where(ctx: NodeContext) -> View:
    values = [ctx[position] for position in range(3)]
    return ctx.result("Select", 1, values, max(len(value.shape) for value in values), auto_broadcast="numpy")


@writes("Identity")
def _identity(ctx: NodeContext) -> View:
    return ctx.view(0)


@writes("Dropout")
def _dropout(ctx: NodeContext) -> View:
    """Write Dropout in inference: the identity."""
    for name in ("ratio", "seed"):
        ctx.attribute(name)
    if ctx.opset < 7:
        training = not ctx.attribute("is_test", 0)
    else:
        constant = ctx.constant(2)
        training = ctx.has(2) and (constant is None or bool(constant.any()))
    if training:
        ctx.refuse("training mode", "inference: training_mode, a constant, is false; below opset 7, is_test is 1")
    return ctx.view(0)


def _cast(ctx: NodeContext) -> View:
    view = ctx.view(0)
    for name in ("to", "saturate", "round_mode"):  # the last two are for 8-bit floating-point types only
        ctx.attribute(name)
    precision = ctx.view(1).precision if ctx.node.op_type == "CastLike" else ctx.output(view.rank)[0]
    if "F8" in precision + view.precision:
        ctx.refuse(f"a conversion from {view.precision} to {precision}", "other types, which have one rounding")
    return ctx.converted(view, precision)


writes("Cast", "CastLike")(_cast)


@writes("Clip")
def _clip(ctx: NodeContext) -> View:
    """Write min(max(X, low), high); the bounds are attributes, or inputs since opset 11."""
    result = ctx.view(0)
    for position, name, kind in ((1, "min", "Maximum"), (2, "max", "Minimum")):
        bound = ctx.attribute(name)
        if bound is not None:
            result = ctx.binary(kind, 1, result, plain(ctx.const(name, bound, result.precision)))
        elif ctx.has(position):
            result = ctx.binary(kind, 1, result, ctx.view(position))
    return result


@writes("Elu")
def _elu(ctx: NodeContext) -> View:
    return ctx.unary("Elu", 1, ctx.view(0), alpha=float(ctx.attribute("alpha", 1.0)))


def _with_parameters(ctx: NodeContext, kind: str, shape: Sequence[int], **defaults: float) -> View:
    """Write a function whose attributes are inputs of one element."""
    view = ctx.view(0)
    values = {name: np.full(shape, ctx.attribute(name, default)) for name, default in defaults.items()}
    return ctx.unary(kind, 1, view, *(ctx.const(name, value, view.precision) for name, value in values.items()))


_ALPHA, _GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
writes("LeakyRelu")(partial(_with_parameters, kind="PReLU", shape=[1], alpha=0.01))
writes("Selu")(partial(_with_parameters, kind="Selu", shape=[1], alpha=_ALPHA, gamma=_GAMMA))
writes("HardSigmoid")(partial(_with_parameters, kind="HardSigmoid", shape=[], alpha=0.2, beta=0.5))


@writes("PRelu")
def _prelu(ctx: NodeContext) -> View:
    """Write PRelu; slopes of channels become one-dimensional, which only axis 1 has in IR."""
    value, slope = ctx[0], ctx.constant(1)
    if slope is not None and len(value.shape) > 1:
        by_channel = slope.ndim == 1 and ctx.opset < 7 and slope.size > 1
        shape = (*[1] * (len(value.shape) - slope.ndim), *slope.shape)
        if by_channel or slope.size == 1 or all(size == 1 for axis, size in enumerate(shape) if axis != 1):
            return ctx.unary("PReLU", 1, plain(value), ctx.const("slope", slope.reshape(-1), value.precision))
    zero = plain(ctx.const("zero", np.zeros(()), value.precision))
    below = ctx.binary("Less", 1, plain(value), zero, "BOOL")
    product = ctx.binary("Multiply", 1, plain(value), ctx.view(1))
    inputs = [below.value, ctx.in_order(product), value]
    return ctx.result("Select", 1, inputs, len(value.shape), auto_broadcast="numpy")


@writes("Round")
def _round(ctx: NodeContext) -> View:
    return ctx.unary("Round", 5, ctx.view(0), mode="half_to_even")


@writes("IsInf")
def _is_inf(ctx: NodeContext) -> View:
    signs = {name: bool(ctx.attribute(name, 1)) for name in ("detect_negative", "detect_positive")}
    return ctx.unary("IsInf", 10, ctx.view(0), precision="BOOL", **signs)


@writes("Gelu")
def _gelu(ctx: NodeContext) -> View:
    modes = {"none": "ERF", "tanh": "TANH"}
    approximate = ctx.attribute("approximate", "none")
    if approximate not in modes:
        ctx.refuse(f"approximate {shown(approximate)}", "none or tanh")
    return ctx.unary("Gelu", 7, ctx.view(0), approximation_mode=modes[approximate])


def _softmax(ctx: NodeContext, kind: str, opset: int) -> View:
    """Write Softmax; before opset 13 it flattens all axes from `axis` on."""
    view = ctx.view(0)
    axis = ctx.axis(ctx.attribute("axis", -1 if ctx.opset >= 13 else 1), view.rank)
    if ctx.opset < 13 and axis != view.rank - 1:
        ctx.refuse(f"axis {axis} of {view.rank} before opset 13, where it begins a range of axes,", "the last axis")
    return ctx.unary(kind, opset, view, axis=view.order[axis])


writes("Softmax")(partial(_softmax, kind="SoftMax", opset=8))
writes("LogSoftmax")(partial(_softmax, kind="LogSoftmax", opset=5))
