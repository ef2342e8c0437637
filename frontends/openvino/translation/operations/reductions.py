"""Reductions over axes, cumulative sums, softmax, and normalizations that are made of them."""

from __future__ import annotations

from functools import partial

from ..call import END, Call
from ..registry import translates

_REDUCTIONS = (
    ("ReduceL1", 4),
    ("ReduceL2", 4),
    ("ReduceMax", 1),
    ("ReduceMean", 1),
    ("ReduceMin", 1),
    ("ReduceProd", 1),
    ("ReduceSum", 1),
)
_LRN_CHANNELS = 256  # of a window: each becomes a node
_LOGICAL = {"ReduceLogicalAnd": "ReduceMin", "ReduceLogicalOr": "ReduceMax"}


def _reduce(call: Call, op_type: str) -> str:
    keep, axes = call.flag("keep_dims", False), call.array(1)
    if axes is not None and axes.size == 0:
        return call[0]
    return call.reduce(op_type, call[0], call.list_of_int64(1), call.dtype(0), keep=keep)


for ir_type, first_opset in _REDUCTIONS:
    translates(ir_type, since=first_opset)(partial(_reduce, op_type=ir_type))


def _reduce_logical(call: Call, op_type: str) -> str:
    keep, axes = call.flag("keep_dims", False), call.array(1)
    if axes is not None and axes.size == 0:
        return call[0]
    counted = call.reduce(op_type, call.cast(call[0], "uint8"), call.list_of_int64(1), "uint8", keep=keep)
    return call.cast(counted, "bool")


for ir_type, onnx_type in _LOGICAL.items():
    translates(ir_type)(partial(_reduce_logical, op_type=onnx_type))


@translates("SoftMax")
def _softmax(call: Call) -> str:
    return call.node("Softmax", call[0], axis=call.axis_of(call.whole("axis", 1), 0))


@translates("LogSoftmax", since=5)
def _log_softmax(call: Call) -> str:
    return call.node("LogSoftmax", call[0], axis=call.axis_of(call.whole("axis", 1), 0))


@translates("CumSum", since=3)
def _cum_sum(call: Call) -> str:
    exclusive, reverse = call.flag("exclusive", False), call.flag("reverse", False)
    axis = call.constant(call.axis_of(call.integer(1, "axis"), 0)) if call.array(1) is not None else call.int64(1)
    return call.typed("CumSum", call.dtype(0), call[0], axis, last=1, exclusive=int(exclusive), reverse=int(reverse))


# Normalizations


def _normalized(call: Call, axes: str, *, variance: bool, eps: float, inside: bool) -> str:
    """(x - mean) / deviation over the axes."""
    dtype = call.dtype(0)
    centred = call.node("Sub", call[0], call.reduce("ReduceMean", call[0], axes, dtype))
    if not variance:
        return centred
    spread = call.reduce("ReduceMean", call.node("Mul", centred, centred), axes, dtype)
    epsilon = call.constant(eps, dtype)
    if inside:
        return call.node("Div", centred, call.node("Sqrt", call.node("Add", spread, epsilon)))
    return call.node("Div", centred, call.node("Add", call.node("Sqrt", spread), epsilon))


@translates("MVN", since=6)
def _mvn_6(call: Call) -> str:
    inside = call.choice("eps_mode", {"inside_sqrt": True, "outside_sqrt": False})
    eps, variance = call.number("eps"), call.flag("normalize_variance", True)
    return _normalized(call, call.list_of_int64(1), variance=variance, eps=eps, inside=inside)


@translates("MVN", since=2)
def _mvn_1(call: Call) -> str:
    """Over the axes from 2 on, and over the channels if asked for; or over reduction_axes."""
    first = 1 if call.flag("across_channels", False) else 2
    axes = call.wholes("reduction_axes", []) or list(range(first, call.rank(0)))
    call.axes(axes, call.rank(0), "reduction_axes")
    variance, eps = call.flag("normalize_variance", True), call.number("eps", 1e-9)
    return _normalized(call, call.constant(axes), variance=variance, eps=eps, inside=True)


@translates("NormalizeL2")
def _normalize_l2(call: Call) -> str:
    how = call.choice("eps_mode", {"add": "Add", "max": "Max"})
    dtype, eps = call.dtype(0), call.number("eps")
    square = call.reduce("ReduceSum", call.node("Mul", call[0], call[0]), call.list_of_int64(1), dtype)
    return call.node("Div", call[0], call.node("Sqrt", call.node(how, square, call.constant(eps, dtype))))


@translates("GRN")
def _grn(call: Call) -> str:
    dtype = call.dtype(0)
    square = call.reduce("ReduceSum", call.node("Mul", call[0], call[0]), call.constant([1]), dtype)
    return call.node(
        "Div", call[0], call.node("Sqrt", call.node("Add", square, call.constant(call.number("bias"), dtype)))
    )


@translates("LRN")
def _lrn(call: Call) -> str:
    axes = call.integers(1, "axes")
    if axes != [1]:
        call.refuse("axes", axes, "[1], the channels")
    size, dtype, rank = call.whole("size", low=1), call.dtype(0), call.rank(0, low=2)
    if size > _LRN_CHANNELS:
        call.refuse("size", size, f"at most {_LRN_CHANNELS}")
    alpha, beta, bias = (call.number(name) for name in ("alpha", "beta", "bias"))
    before, behind = (size - 1) // 2, size // 2
    pads = [0, before, *[0] * (rank - 2), 0, behind, *[0] * (rank - 2)]
    square = call.node("Pad", call.node("Mul", call[0], call[0]), call.constant(pads))
    # the sum over a window of channels, written out: onnx's evaluator has LRN wrong
    shifted = [call.slice(square, k, k + 1 - size or END, 1) for k in range(size)]
    total = call.node("Sum", *shifted)
    scaled = call.node("Add", call.node("Mul", total, call.constant(alpha / size, dtype)), call.constant(bias, dtype))
    return call.node("Div", call[0], call.node("Pow", scaled, call.constant(beta, dtype)))


@translates("BatchNormInference")
def _batch_norm_1(call: Call) -> str:
    gamma, beta, data, mean, variance = call.exactly(5)
    return call.node("BatchNormalization", data, gamma, beta, mean, variance, epsilon=call.number("epsilon"))


@translates("BatchNormInference", since=5)
def _batch_norm_5(call: Call) -> str:
    return call.node("BatchNormalization", *call.exactly(5), epsilon=call.number("epsilon"))


@translates("GroupNormalization", since=12)
def _group_norm(call: Call) -> str:
    groups, epsilon = call.whole("num_groups", low=1), call.number("epsilon")
    return call.node("GroupNormalization", *call.exactly(3), num_groups=groups, epsilon=epsilon)


@translates("RMS")
def _rms(call: Call) -> str:
    """x / sqrt(mean(x^2) + epsilon) over the last axis, times a scale."""
    dtype, output = call.dtype(0), call.output_dtype()
    mean = call.reduce("ReduceMean", call.node("Mul", call[0], call[0]), call.constant([-1]), dtype)
    root = call.node("Sqrt", call.node("Add", mean, call.constant(call.number("epsilon"), dtype)))
    normal = call.node("Div", call[0], root)
    if call.has(1) and call.flag("elementwise_affine", True):
        normal = call.node("Mul", normal, call[1])
    return normal if output == dtype else call.cast(normal, output)
