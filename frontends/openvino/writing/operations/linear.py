"""Operators of linear algebra: products, normalizations and reductions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ir.writer import Value
from ..context import NodeContext, writes
from ..views import View, broadcast, plain


@writes("MatMul")
def _matmul(ctx: NodeContext) -> View:
    """Write MatMul; with a matrix, only the last axis of `a` must be in place."""
    a, b = ctx.view(0), ctx.view(1)
    if not (a.rank and b.rank):
        ctx.refuse("a factor without axes", "one axis or more")
    if not (a.last_in_place and a.rank > 1 and b.is_plain and b.rank == 2):
        a = plain(ctx[0])
    rank = len(broadcast(a.shape, ctx[1].shape)) if min(a.rank, b.rank) > 1 else max(a.rank, b.rank) - 1
    return _product(ctx, [a.value, ctx[1]], a.order if rank == a.rank else range(rank))


def _product(ctx: NodeContext, factors: Sequence[Value], order: Sequence[int], *transposed: bool) -> View:
    flags = dict(zip(("transpose_a", "transpose_b"), transposed or (False, False), strict=True))
    return ctx.result("MatMul", 1, factors, order, **flags)


@writes("Gemm")
def _gemm(ctx: NodeContext) -> View:
    """Write alpha * A' B' + beta * C; Transposes of the inputs become its own."""
    operands, transposed = [], []
    for position, name in ((0, "transA"), (1, "transB")):
        view = ctx.view(position)
        if view.rank != 2:
            ctx.refuse(f"input {position} of {view.rank} axes", "2")
        operands.append(view.value)
        transposed.append(bool(ctx.attribute(name, 0)) != (not view.is_plain))
    ctx.attribute("broadcast")  # before opset 7; the shape of C decides
    result = _scaled(ctx, _product(ctx, operands, (0, 1), *transposed), "alpha")
    beta = ctx.attribute("beta", 1.0)
    if not ctx.has(2):
        return result
    return ctx.binary("Add", 1, result, ctx.view(2) if beta == 1 else _scaled(ctx, ctx.view(2), "beta"))


def _scaled(ctx: NodeContext, view: View, name: str) -> View:
    factor = ctx.attribute(name, 1.0)
    return view if factor == 1 else ctx.binary("Multiply", 1, view, plain(ctx.const(name, factor, view.precision)))


@writes("LayerNormalization")
def _layer_normalization(ctx: NodeContext) -> View:
    view = ctx.view(0)
    axis = ctx.axis(ctx.attribute("axis", -1), view.rank)
    ctx.attribute("stash_type", 1)
    if view.precision != "FP32":
        ctx.refuse(f"type {view.precision}", "FP32, in which ONNX and OpenVINO compute")
    if not (view.last_in_place and axis == view.rank - 1):
        view = plain(ctx[0])
    axes = ctx.const("axes", range(axis, view.rank))
    epsilon = float(ctx.attribute("epsilon", 1e-5))
    modes: dict[str, Any] = {"eps": epsilon, "eps_mode": "inside_sqrt", "normalize_variance": True}
    result = ctx.unary("MVN", 6, view, axes, **modes)
    result = ctx.binary("Multiply", 1, result, ctx.view(1))
    return ctx.binary("Add", 1, result, ctx.view(2)) if ctx.has(2) else result


@writes("BatchNormalization")
def _batch_normalization(ctx: NodeContext) -> View:
    """Write BatchNormalization in inference."""
    for name, expected in (("training_mode", 0), ("spatial", 1)):
        if ctx.attribute(name, expected) != expected:
            ctx.refuse(f"{name} {1 - expected}", f"{expected}")
    if ctx.opset < 7 and not ctx.attribute("is_test", 0):
        ctx.refuse("training mode", "is_test 1")
    ctx.attribute("momentum")  # for training
    value = ctx[0]
    inputs = [value, *(ctx[position] for position in range(1, 5))]
    return ctx.result("BatchNormInference", 5, inputs, len(value.shape), epsilon=float(ctx.attribute("epsilon", 1e-5)))


@writes("InstanceNormalization")
def _instance_normalization(ctx: NodeContext) -> View:
    """Write InstanceNormalization: each channel of each row is normalized, then scaled and shifted."""
    value = ctx[0]
    rank = len(value.shape)
    modes: dict[str, Any] = {"eps": float(ctx.attribute("epsilon", 1e-5)), "eps_mode": "inside_sqrt"}
    axes = ctx.const("axes", np.arange(2, rank))
    result = ctx.unary("MVN", 6, plain(value), axes, normalize_variance=True, **modes)
    result = ctx.binary("Multiply", 1, result, ctx.along(1, 1, rank))
    return ctx.binary("Add", 1, result, ctx.along(2, 1, rank))


@writes("Einsum")
def _einsum(ctx: NodeContext) -> View:
    values = [ctx.in_order(view) for view in ctx.views()]
    equation = ctx.attribute("equation").replace(" ", "")
    return ctx.plain("Einsum", 7, values, ctx.output(), equation=equation)


def _reduce(ctx: NodeContext, kind: str, opset: int) -> View:
    view = ctx.view(0)
    keep = bool(ctx.attribute("keepdims", 1))
    listed = ctx.integers("axes", 1)
    if ctx.attribute("noop_with_empty_axes", 0) and not listed:
        if kind in ("ReduceL1", "ReduceL2"):  # runtimes return magnitudes
            ctx.refuse("no axes with noop_with_empty_axes 1", "axes")
        return view
    axes = {ctx.axis(axis, view.rank) for axis in listed or range(view.rank)}
    inner = {view.order[axis] for axis in axes}
    inputs = [view.value, ctx.const("axes", np.array(sorted(inner), np.int64))]
    return ctx.result(kind, opset, inputs, view.order if keep else view.order_without(axes), keep_dims=keep)


for ir_type, first_opset in (("Max", 1), ("Mean", 1), ("Min", 1), ("Prod", 1), ("Sum", 1), ("L1", 4), ("L2", 4)):
    writes(f"Reduce{ir_type}")(partial(_reduce, kind=f"Reduce{ir_type}", opset=first_opset))
