"""Operations that reduce axes: sums, cumulative sums, softmax, normalizations."""

from __future__ import annotations

from functools import partial

from ..context import LayerContext, translates

_REDUCTIONS = (
    ("ReduceL1", 4, "ReduceL1"),
    ("ReduceL2", 4, "ReduceL2"),
    ("ReduceLogicalAnd", 1, "ReduceMin"),
    ("ReduceLogicalOr", 1, "ReduceMax"),
    ("ReduceMax", 1, "ReduceMax"),
    ("ReduceMean", 1, "ReduceMean"),
    ("ReduceMin", 1, "ReduceMin"),
    ("ReduceProd", 1, "ReduceProd"),
    ("ReduceSum", 1, "ReduceSum"),
)


def _reduce(ctx: LayerContext, op_type: str) -> str:
    keep, axes, dtype = ctx.flag("keep_dims", False), ctx.array(1), ctx.dtype(0)
    if axes is not None and axes.size == 0:
        return ctx[0]
    if dtype == "bool":
        reduced = ctx.reduce(op_type, ctx.cast(ctx[0], "uint8"), ctx.list_of_int64(1), "uint8", keep=keep)
        return ctx.cast(reduced, "bool")
    return ctx.reduce(op_type, ctx[0], ctx.list_of_int64(1), dtype, keep=keep)


for ir_type, first_opset, onnx_type in _REDUCTIONS:
    translates(ir_type, since=first_opset)(partial(_reduce, op_type=onnx_type))


def _softmax(ctx: LayerContext, op_type: str) -> str:
    return ctx.node(op_type, ctx[0], axis=ctx.whole("axis", 1))


translates("SoftMax")(partial(_softmax, op_type="Softmax"))
translates("LogSoftmax", since=5)(partial(_softmax, op_type="LogSoftmax"))


@translates("CumSum", since=3)
def _cum_sum(ctx: LayerContext) -> str:
    exclusive, reverse = ctx.flag("exclusive", False), ctx.flag("reverse", False)
    axis = ctx.scalar_int64(1)
    return ctx.typed("CumSum", ctx.dtype(0), ctx[0], axis, last=1, exclusive=int(exclusive), reverse=int(reverse))


# Normalizations


def _normalized(ctx: LayerContext, axes: str, *, variance: bool, eps: float, inside: bool) -> str:
    """Return (x - mean) / deviation over the axes."""
    dtype = ctx.dtype(0)
    centred = ctx.node("Sub", ctx[0], ctx.reduce("ReduceMean", ctx[0], axes, dtype))
    if not variance:
        return centred
    spread = ctx.reduce("ReduceMean", ctx.node("Mul", centred, centred), axes, dtype)
    epsilon = ctx.constant(eps, dtype)
    if inside:
        return ctx.node("Div", centred, ctx.node("Sqrt", ctx.node("Add", spread, epsilon)))
    return ctx.node("Div", centred, ctx.node("Add", ctx.node("Sqrt", spread), epsilon))


@translates("MVN", since=6)
def _mvn_6(ctx: LayerContext) -> str:
    inside = ctx.choice("eps_mode", {"inside_sqrt": True, "outside_sqrt": False})
    eps, variance = ctx.number("eps"), ctx.flag("normalize_variance", True)
    return _normalized(ctx, ctx.list_of_int64(1), variance=variance, eps=eps, inside=inside)


@translates("MVN", since=2)
def _mvn_1(ctx: LayerContext) -> str:
    """Normalize over reduction_axes; by default over the axes from 2 on, or with across_channels from 1 on."""
    first = 1 if ctx.flag("across_channels", False) else 2
    axes = ctx.wholes("reduction_axes", []) or list(range(first, ctx.rank(0)))
    variance, eps = ctx.flag("normalize_variance", True), ctx.number("eps", 1e-9)
    return _normalized(ctx, ctx.constant(axes), variance=variance, eps=eps, inside=True)


@translates("NormalizeL2")
def _normalize_l2(ctx: LayerContext) -> str:
    how = ctx.choice("eps_mode", {"add": "Add", "max": "Max"})
    dtype, eps = ctx.dtype(0), ctx.number("eps")
    square = ctx.reduce("ReduceSum", ctx.node("Mul", ctx[0], ctx[0]), ctx.list_of_int64(1), dtype)
    return ctx.node("Div", ctx[0], ctx.node("Sqrt", ctx.node(how, square, ctx.constant(eps, dtype))))


@translates("BatchNormInference")
def _batch_norm(ctx: LayerContext) -> str:
    inputs = ctx.inputs
    if ctx.opset < 5:  # gamma and beta come first
        inputs = [inputs[2], *inputs[:2], *inputs[3:]]
    return ctx.node("BatchNormalization", *inputs, epsilon=ctx.number("epsilon"))


@translates("GroupNormalization", since=12)
def _group_norm(ctx: LayerContext) -> str:
    groups, epsilon = ctx.whole("num_groups", low=1), ctx.number("epsilon")
    return ctx.node("GroupNormalization", *ctx.inputs, num_groups=groups, epsilon=epsilon)
