"""Operations on one element at a time: arithmetic, comparisons, logic, activation functions, conversions."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from pyrnnx.dtypes import INTEGERS, SIGNED, UNSIGNED
from pyrnnx.errors import FormatError

from ..attributes import LARGEST
from ..call import Call
from ..registry import translates

_UNARY = (
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
_BINARY = (
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
_BITWISE = (
    ("BitwiseAnd", 13, "And"),
    ("BitwiseOr", 13, "Or"),
    ("BitwiseXor", 13, "Xor"),
)


def numpy_broadcast(call: Call) -> None:
    """auto_broadcast: NumPy's rules, or none, which asks for equal shapes and so gives the same."""
    call.choice("auto_broadcast", {"numpy": None, "none": None, "explicit": None}, "numpy")


def _unary(call: Call, op_type: str) -> str:
    return call.node(op_type, call[0])


def _binary(call: Call, op_type: str) -> str:
    numpy_broadcast(call)
    return call.typed(op_type, call.dtype(0), call[0], call[1])


for ir_type, first_opset, onnx_type in _UNARY:
    translates(ir_type, since=first_opset)(partial(_unary, op_type=onnx_type))
for ir_type, first_opset, onnx_type in _BINARY:
    translates(ir_type, since=first_opset)(partial(_binary, op_type=onnx_type))


def _bitwise(call: Call, op_type: str) -> str:
    numpy_broadcast(call)
    return call.node(op_type if call.dtype(0) == "bool" else f"Bitwise{op_type}", call[0], call[1])


for ir_type, first_opset, onnx_type in _BITWISE:
    translates(ir_type, since=first_opset)(partial(_bitwise, op_type=onnx_type))


def _shift(call: Call, direction: str) -> str:
    numpy_broadcast(call)
    dtype = call.dtype(0)
    if dtype not in UNSIGNED:
        call.refuse("element type", dtype, "an unsigned one, as ONNX's BitShift has")
    return call.node("BitShift", call[0], call[1], direction=direction)


translates("BitwiseLeftShift", since=15)(partial(_shift, direction="LEFT"))
translates("BitwiseRightShift", since=15)(partial(_shift, direction="RIGHT"))


@translates("NotEqual")
def _not_equal(call: Call) -> str:
    numpy_broadcast(call)
    return call.node("Not", call.node("Equal", call[0], call[1]))


@translates("SquaredDifference")
def _squared_difference(call: Call) -> str:
    numpy_broadcast(call)
    difference = call.node("Sub", call[0], call[1])
    return call.node("Mul", difference, difference)


def _where_signs_differ(call: Call, remainder: str, divisor: str, dtype: str) -> str:
    """Whether a remainder is not 0 and of another sign than the divisor."""
    zero = call.constant(0, dtype)
    differ = call.node("Xor", call.node("Less", remainder, zero), call.node("Less", divisor, zero))
    return call.node("And", differ, call.node("Not", call.node("Equal", remainder, zero)))


@translates("Divide")
def _divide(call: Call) -> str:
    """With m_pythondiv (the default) integers are rounded down; ONNX rounds them towards zero."""
    numpy_broadcast(call)
    a, b, dtype = call[0], call[1], call.dtype(0)
    if not call.flag("m_pythondiv", True) or dtype not in SIGNED:
        return call.node("Div", a, b)
    quotient = call.node("Div", a, b)
    remainder = call.node("Sub", a, call.node("Mul", quotient, b))
    one_less = _where_signs_differ(call, remainder, b, dtype)
    return call.node("Sub", quotient, call.cast(one_less, dtype))


@translates("Mod")
def _mod(call: Call) -> str:
    """Of the sign of the dividend."""
    numpy_broadcast(call)
    return call.node("Mod", call[0], call[1], fmod=1)


@translates("FloorMod")
def _floor_mod(call: Call) -> str:
    """Of the sign of the divisor."""
    numpy_broadcast(call)
    a, b, dtype = call[0], call[1], call.dtype(0)
    if dtype in INTEGERS:
        return call.node("Mod", a, b, fmod=0)
    remainder = call.node("Mod", a, b, fmod=1)  # the only kind that ONNX has for floating-point numbers
    differ = _where_signs_differ(call, remainder, b, dtype)
    return call.typed("Where", dtype, differ, call.node("Add", remainder, b), remainder, first=1)


@translates("Select")
def _select(call: Call) -> str:
    numpy_broadcast(call)
    return call.typed("Where", call.dtype(1), call.as_dtype(0, "bool"), call[1], call[2], first=1)


# Conversions


@translates("Convert")
def _convert(call: Call) -> str:
    dtype = call.type_attribute("destination_type")
    return call[0] if call.dtype(0) == dtype else call.cast(call[0], dtype)


@translates("ConvertLike")
def _convert_like(call: Call) -> str:
    return call.as_dtype(0, call.dtype(1))


@translates("ConvertPromoteTypes", since=14)
def _convert_promote_types(call: Call) -> list[str]:
    """Its attributes say how the common type is found; the output ports say which it is."""
    call.ignore("promote_unsafe", "pytorch_scalar_promotion", "u64_integer_promotion_target")
    return [call.as_dtype(0, call.output_dtype(0)), call.as_dtype(1, call.output_dtype(1))]


@translates("Identity", since=16)
def _identity(call: Call) -> str:
    return call[0]


# Tests and rounding


@translates("IsFinite", since=10)
def _is_finite(call: Call) -> str:
    return call.node("Not", call.node("Or", call.node("IsNaN", call[0]), call.node("IsInf", call[0])))


@translates("IsInf", since=10)
def _is_inf(call: Call) -> str:
    negative, positive = call.flag("detect_negative", True), call.flag("detect_positive", True)
    if not (negative or positive):
        return call.node("And", *[call.node("IsInf", call[0]), call.constant(False, "bool")])
    return call.node("IsInf", call[0], detect_negative=int(negative), detect_positive=int(positive))


@translates("Round", since=5)
def _round(call: Call) -> str:
    mode = call.choice("mode", {"half_to_even": "even", "half_away_from_zero": "away"}, "half_to_even")
    if call.dtype(0) in INTEGERS:
        return call[0]
    if mode == "even":
        return call.node("Round", call[0])
    magnitude = call.node("Abs", call[0])
    below = call.node("Floor", magnitude)
    half = call.constant(0.5, call.dtype(0))  # compared with, not added to: a sum would be rounded itself
    up = call.node("GreaterOrEqual", call.node("Sub", magnitude, below), half)
    return call.node("Mul", call.node("Sign", call[0]), call.node("Add", below, call.cast(up, call.dtype(0))))


@translates("Clamp")
def _clamp(call: Call) -> str:
    low, high, dtype = call.number("min"), call.number("max"), call.dtype(0)
    if low > high:
        raise FormatError(f"{call.label}: min is {low}, max {high}; expected a min that is not above max")
    if dtype not in INTEGERS:
        return call.node("Clip", call[0], *(call.constant(one, dtype) for one in (low, high)))
    info = np.iinfo(dtype)
    within = (min(max(one, info.min), info.max) for one in (low, high))  # infinities are as good as the type's limits
    bounds = tuple(towards(one) for towards, one in zip((math.ceil, math.floor), within, strict=True))
    return call.typed("Clip", dtype, call[0], *(call.constant(one, dtype) for one in bounds))


# Activation functions


@translates("ReLU")
def _relu(call: Call) -> str:
    dtype = call.dtype(0)
    if dtype in INTEGERS:
        return call.typed("Max", dtype, call[0], call.constant(0, dtype))
    return call.node("Relu", call[0])


@translates("Elu")
def _elu(call: Call) -> str:
    return call.node("Elu", call[0], alpha=call.number("alpha"))


@translates("Selu")
def _selu(call: Call) -> str:
    alpha, gamma = (call.number_input(k, what) for k, what in ((1, "alpha"), (2, "lambda")))
    return call.node("Selu", call[0], alpha=alpha, gamma=gamma)


@translates("HardSigmoid")
def _hard_sigmoid(call: Call) -> str:
    alpha, beta = (call.number_input(k, what) for k, what in ((1, "alpha"), (2, "beta")))
    return call.node("HardSigmoid", call[0], alpha=alpha, beta=beta)


@translates("HSigmoid", since=5)
def _h_sigmoid(call: Call) -> str:
    """min(max(x + 3, 0), 6) / 6."""
    dtype = call.dtype(0)
    shifted = call.node("Add", call[0], call.constant(3, dtype))
    clipped = call.node("Clip", shifted, call.constant(0, dtype), call.constant(6, dtype))
    return call.node("Div", clipped, call.constant(6, dtype))


@translates("Swish", since=4)
def _swish(call: Call) -> str:
    scaled = call.node("Mul", call[0], call[1]) if call.has(1) else call[0]
    return call.node("Mul", call[0], call.node("Sigmoid", scaled))


@translates("Gelu", since=2)
def _gelu(call: Call) -> str:
    approximate = "none"
    if call.opset >= 7:
        approximate = call.choice("approximation_mode", {"erf": "none", "tanh": "tanh"}, "ERF")
    return call.node("Gelu", call[0], approximate=approximate)


@translates("PReLU")
def _prelu(call: Call) -> str:
    """A slope of one dimension belongs to the channels, axis 1; any other is broadcast as NumPy does."""
    slope, shape, of_slope = call[1], call.shape(0), call.shape(1)
    if of_slope is None:
        array = call.array(1)
        of_slope = None if array is None else tuple(array.shape)
    if of_slope is not None and len(of_slope) == 1 and of_slope[0] != 1:
        rank = call.rank(0)
        if rank > 1 and shape is not None and shape[1] in (None, of_slope[0]):
            slope = call.unsqueeze(slope, list(range(1, rank - 1)))
    return call.node("PRelu", call[0], slope)


@translates("FakeQuantize")
def _fake_quantize(call: Call) -> str:
    """Between input_low and input_high, in levels - 1 steps, to between output_low and output_high."""
    numpy_broadcast(call)
    steps, dtype = call.whole("levels", low=2, high=LARGEST) - 1, call.dtype(0)
    x, low, high, out_low, out_high = call.exactly(5)
    count = call.constant(steps, dtype)
    span = call.node("Sub", high, low)
    level = call.node("Round", call.node("Mul", call.node("Div", call.node("Sub", x, low), span), count))
    out_span = call.node("Sub", out_high, out_low)
    inside = call.node("Add", call.node("Mul", call.node("Div", level, count), out_span), out_low)
    under = call.node("LessOrEqual", x, call.node("Min", low, high))
    over = call.node("Greater", x, call.node("Max", low, high))
    return call.node("Where", under, out_low, call.node("Where", over, out_high, inside))
