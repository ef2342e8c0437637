"""Elementwise operations: arithmetic, comparisons, logic, conversions, rounding, activation functions."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, SIGNED
from pyrnnx.errors import FormatError

from ...ir.layer import NetLayer, Output
from ..attributes import LARGEST
from ..context import LayerContext, translate_layer, translates

# Rows for both directions: type, first opset, operator of ONNX.
UNARY = (
    ("Abs", 1, "Abs"),
    ("Acos", 1, "Acos"),
    ("Acosh", 4, "Acosh"),
    ("Asin", 1, "Asin"),
    ("Asinh", 4, "Asinh"),
    ("Atan", 1, "Atan"),
    ("Atanh", 4, "Atanh"),
    ("BitwiseNot", 13, "BitwiseNot"),
    ("Ceiling", 1, "Ceil"),
    ("Cos", 1, "Cos"),
    ("Cosh", 1, "Cosh"),
    ("Erf", 1, "Erf"),
    ("Exp", 1, "Exp"),
    ("Floor", 1, "Floor"),
    ("HSwish", 4, "HardSwish"),
    ("IsNaN", 10, "IsNaN"),
    ("Log", 1, "Log"),
    ("LogicalNot", 1, "Not"),
    ("Mish", 4, "Mish"),
    ("Negative", 1, "Neg"),
    ("Sigmoid", 1, "Sigmoid"),
    ("Sign", 1, "Sign"),
    ("Sin", 1, "Sin"),
    ("Sinh", 1, "Sinh"),
    ("SoftPlus", 4, "Softplus"),
    ("SoftSign", 9, "Softsign"),
    ("Sqrt", 1, "Sqrt"),
    ("Tan", 1, "Tan"),
    ("Tanh", 1, "Tanh"),
)
BINARY = (
    ("Add", 1, "Add"),
    ("Equal", 1, "Equal"),
    ("Greater", 1, "Greater"),
    ("GreaterEqual", 1, "GreaterOrEqual"),
    ("Less", 1, "Less"),
    ("LessEqual", 1, "LessOrEqual"),
    ("LogicalAnd", 1, "And"),
    ("LogicalOr", 1, "Or"),
    ("LogicalXor", 2, "Xor"),
    ("Maximum", 1, "Max"),
    ("Minimum", 1, "Min"),
    ("Multiply", 1, "Mul"),
    ("Power", 1, "Pow"),
    ("Subtract", 1, "Sub"),
    ("Xor", 1, "Xor"),
)


def numpy_broadcast(ctx: LayerContext) -> None:
    """Read auto_broadcast: NumPy's rules, or none, the same for equal shapes."""
    ctx.choice("auto_broadcast", {"numpy": None, "none": None, "explicit": None}, "numpy")


def _unary(ctx: LayerContext, op_type: str) -> str:
    return ctx.node(op_type, ctx[0])


def _binary(ctx: LayerContext, op_type: str) -> str:
    numpy_broadcast(ctx)
    return ctx.typed(op_type, ctx.dtype(0), ctx[0], ctx[1])


for ir_type, first_opset, onnx_type in UNARY:
    translates(ir_type, since=first_opset)(partial(_unary, op_type=onnx_type))
for ir_type, first_opset, onnx_type in BINARY:
    translates(ir_type, since=first_opset)(partial(_binary, op_type=onnx_type))


def _bitwise(ctx: LayerContext, op_type: str) -> str:
    numpy_broadcast(ctx)
    return ctx.node(op_type if ctx.dtype(0) == "bool" else f"Bitwise{op_type}", ctx[0], ctx[1])


for onnx_type in ("And", "Or", "Xor"):
    translates(f"Bitwise{onnx_type}", since=13)(partial(_bitwise, op_type=onnx_type))


@translates("NotEqual")
def _not_equal(ctx: LayerContext) -> str:
    numpy_broadcast(ctx)
    return ctx.node("Not", ctx.node("Equal", ctx[0], ctx[1]))


@translates("SquaredDifference")
def _squared_difference(ctx: LayerContext) -> str:
    numpy_broadcast(ctx)
    difference = ctx.node("Sub", ctx[0], ctx[1])
    return ctx.node("Mul", difference, difference)


def _where_signs_differ(ctx: LayerContext, remainder: str, divisor: str, dtype: str) -> str:
    """Return whether a remainder is not 0 and its sign differs from the divisor's."""
    zero = ctx.constant(0, dtype)
    differ = ctx.node("Xor", ctx.node("Less", remainder, zero), ctx.node("Less", divisor, zero))
    return ctx.node("And", differ, ctx.node("Not", ctx.node("Equal", remainder, zero)))


@translates("Divide")
def _divide(ctx: LayerContext) -> str:
    """Divide; m_pythondiv (the default) rounds integers down, where ONNX rounds them towards zero."""
    numpy_broadcast(ctx)
    a, b, dtype = ctx[0], ctx[1], ctx.dtype(0)
    if not ctx.flag("m_pythondiv", True) or dtype not in SIGNED:
        return ctx.node("Div", a, b)
    quotient = ctx.node("Div", a, b)
    remainder = ctx.node("Sub", a, ctx.node("Mul", quotient, b))
    one_less = _where_signs_differ(ctx, remainder, b, dtype)
    return ctx.node("Sub", quotient, ctx.cast(one_less, dtype))


@translates("Mod")
def _mod(ctx: LayerContext) -> str:
    """Return the remainder with the sign of the dividend."""
    numpy_broadcast(ctx)
    return ctx.node("Mod", ctx[0], ctx[1], fmod=1)


@translates("FloorMod")
def _floor_mod(ctx: LayerContext) -> str:
    """Return the remainder with the sign of the divisor."""
    numpy_broadcast(ctx)
    a, b, dtype = ctx[0], ctx[1], ctx.dtype(0)
    if dtype in INTEGERS:
        return ctx.node("Mod", a, b, fmod=0)
    remainder = ctx.node("Mod", a, b, fmod=1)  # ONNX's only kind for floating-point numbers
    differ = _where_signs_differ(ctx, remainder, b, dtype)
    return ctx.typed("Where", dtype, differ, ctx.node("Add", remainder, b), remainder, first=1)


@translates("Select")
def _select(ctx: LayerContext) -> str:
    numpy_broadcast(ctx)
    return ctx.typed("Where", ctx.dtype(1), ctx.as_dtype(0, "bool"), ctx[1], ctx[2], first=1)


# Conversions


@translates("Convert")
def _convert(ctx: LayerContext) -> str:
    dtype, stored = ctx.type_attribute("destination_type"), ctx.stored(0)
    if stored is not None:
        return ctx.converted(stored, dtype)
    if dtype == "float32" and (weights := _decompressed(ctx)):
        return weights
    return ctx.as_dtype(0, dtype)


_MOVES = ("reshape", "transpose", "squeeze", "unsqueeze")


def _decompressed(ctx: LayerContext) -> str:
    """Return weights that are stored with a scale in f16, computed in f32 as in OpenVINO; "" for any other value.

    Const i8 -> Convert to f16 -> (Subtract a zero point) -> Multiply by a scale -> (Reshape, Transpose) -> this Convert
    """
    layer, layers = ctx.layer.sources[0].layer, list[NetLayer]()
    while layer.type.lower() in _MOVES:
        layers.append(layer)
        layer = layer.sources[0].layer
    if layer.type.lower() != "multiply":
        return ""
    leaves = dict[Output, int]()  # and how many bits each may have
    for kind in ("multiply", "subtract"):
        if layer.type.lower() == kind:
            layers.append(layer)
            first, other = layer.sources
            codes, other = (other, first) if kind == "multiply" and first.layer.type == "Const" else (first, other)
            leaves[other], layer = 32, codes.layer
    leaves[Output(layer, 0)] = 8
    sources = {leaf: _stored(leaf, bits) for leaf, bits in leaves.items()}
    if not all(map(_is_half, layers)) or None in sources.values():
        return ""
    scope = ctx.scope.with_names({leaf: _widened(ctx, source) for leaf, source in sources.items() if source})
    for layer in reversed(layers):
        (scope.names[Output(layer, 0)],) = translate_layer(layer, scope)
    return scope.names[ctx.layer.sources[0]]


def _is_half(layer: NetLayer) -> bool:
    return len(layer.outputs) == 1 and layer.outputs[0].precision == "FP16"


def _stored(output: Output, most: int) -> Output | None:
    """Return the constant, of at most so many bits, that a value of f16 is or is converted from; None for others."""
    layer = output.layer
    source = layer.sources[0] if layer.type.lower() == "convert" and layer.sources else output
    bits = source.layer.const_data.element_type.bits if source.layer.type == "Const" and _is_half(layer) else None
    return source if bits is not None and bits <= most else None


def _widened(ctx: LayerContext, constant: Output) -> str:
    array = ctx.scope.array(constant) if constant.layer.const_data.element_type.stored_only else None
    return ctx.cast(ctx.scope.name(constant), "float32") if array is None else ctx.converted(array, "float32")


@translates("ConvertLike")
def _convert_like(ctx: LayerContext) -> str:
    return ctx.as_dtype(0, ctx.dtype(1))


@translates("Identity", since=16)
def _identity(ctx: LayerContext) -> str:
    return ctx[0]


# Tests and rounding


@translates("IsFinite", since=10)
def _is_finite(ctx: LayerContext) -> str:
    return ctx.node("Not", ctx.node("Or", ctx.node("IsNaN", ctx[0]), ctx.node("IsInf", ctx[0])))


@translates("IsInf", since=10)
def _is_inf(ctx: LayerContext) -> str:
    negative, positive = ctx.flag("detect_negative", True), ctx.flag("detect_positive", True)
    if not (negative or positive):
        return ctx.node("And", ctx.node("IsInf", ctx[0]), ctx.constant(False, "bool"))
    return ctx.node("IsInf", ctx[0], detect_negative=int(negative), detect_positive=int(positive))


@translates("Round", since=5)
def _round(ctx: LayerContext) -> str:
    mode = ctx.choice("mode", {"half_to_even": "even", "half_away_from_zero": "away"}, "half_to_even")
    if ctx.dtype(0) in INTEGERS:
        return ctx[0]
    if mode == "even":
        return ctx.node("Round", ctx[0])
    magnitude = ctx.node("Abs", ctx[0])
    below = ctx.node("Floor", magnitude)
    half = ctx.constant(0.5, ctx.dtype(0))  # compared, not added: the sum would be rounded
    up = ctx.node("GreaterOrEqual", ctx.node("Sub", magnitude, below), half)
    return ctx.node("Mul", ctx.node("Sign", ctx[0]), ctx.node("Add", below, ctx.cast(up, ctx.dtype(0))))


@translates("Clamp")
def _clamp(ctx: LayerContext) -> str:
    low, high, dtype = ctx.number("min"), ctx.number("max"), ctx.dtype(0)
    if low > high:
        raise FormatError(f"{ctx.label}: min is {low}, max {high}; expected min <= max")
    if dtype not in INTEGERS:
        return ctx.node("Clip", ctx[0], *(ctx.constant(bound, dtype) for bound in (low, high)))
    info = np.iinfo(dtype)
    low, high = (min(max(bound, info.min), info.max) for bound in (low, high))  # infinities become the type's limits
    return ctx.typed(
        "Clip", dtype, ctx[0], *(ctx.constant(bound, dtype) for bound in (math.ceil(low), math.floor(high)))
    )


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
    x, low, high, out_low, out_high = ctx.inputs
    count = ctx.constant(steps, dtype)
    span = ctx.node("Sub", high, low)
    level = ctx.node("Round", ctx.node("Mul", ctx.node("Div", ctx.node("Sub", x, low), span), count))
    out_span = ctx.node("Sub", out_high, out_low)
    inside = ctx.node("Add", ctx.node("Mul", ctx.node("Div", level, count), out_span), out_low)
    under = ctx.node("LessOrEqual", x, ctx.node("Min", low, high))
    over = ctx.node("Greater", x, ctx.node("Max", low, high))
    return ctx.node("Where", under, out_low, ctx.node("Where", over, out_high, inside))
