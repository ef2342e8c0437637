"""Operations with indices, reductions and normalizations, as cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openvino_operations import Case, Maker, boolean, const, empty, f32, i8, i32, i64, make_node, ops, u8, u32


def scatter_elements(reduction: str) -> Callable[[Maker], Any]:
    return lambda p: ops(12).scatter_elements_update(p(5), p(of=[1, 1, 3], dtype=i64), p(3), const(0), reduction)


def scatter_nd(reduction: str) -> Callable[[Maker], Any]:
    return lambda p: ops(15).scatter_nd_update(p(5), p(of=[[1], [1], [3]], dtype=i64), p(3), reduction)


def reduce(name: str, axes: Any, keep: bool) -> Callable[[Maker], Any]:
    opset = 4 if name in ("ReduceL1", "ReduceL2") else 1
    return lambda p: make_node(opset, name, [p(2, 3, 4), const(axes)], keep_dims=keep)


def mvn_2(channels: bool, variance: bool) -> Callable[[Maker], Any]:
    attributes = {"across_channels": channels, "normalize_variance": variance, "eps": 0.1}
    return lambda p: make_node(2, "MVN", [p(2, 3, 4, 5)], **attributes)


INDEXING = (
    Case("Gather", lambda p: ops(8).gather(p(4, 5, 3), p(of=[[0, -1], [2, 3]], dtype=i32), const(1))),
    Case("Gather opset1", lambda p: ops(1).gather(p(4, 5), p(of=[1, 3], dtype=i64), const(-1))),
    Case("Gather opset7", lambda p: ops(7).gather(p(4, 5), p(of=[1, 3], dtype=i64), const(0))),
    Case("Gather i8", lambda p: ops(8).gather(p(4, 5), p(of=[1, 3], dtype=i8), const(0))),
    Case("Gather scalar", lambda p: ops(8).gather(p(4, 5), const(2), const(0))),
    Case("GatherElements", lambda p: ops(6).gather_elements(p(3, 4), p(of=[[0, 2, 1, 1]], dtype=i64), 0)),
    Case("GatherND", lambda p: ops(8).gather_nd(p(2, 3, 4), p(of=[[0, 1], [1, 2]], dtype=i32)), dynamic=False),
    Case("GatherND batch_dims", lambda p: ops(8).gather_nd(p(2, 3, 4), p(of=[[1], [2]], dtype=i32), 1), dynamic=False),
    Case("ScatterElementsUpdate", lambda p: ops(3).scatter_elements_update(p(3, 4), p(of=[[0, 2, 1, 1]], dtype=i32),
        p(1, 4), const(0))),
    *(Case(f"ScatterElementsUpdate {name}", scatter_elements(name)) for name in ("none", "sum", "prod", "min", "max")),
    Case("ScatterUpdate", lambda p: ops(3).scatter_update(p(4, 3), p(of=[3, 1], dtype=i64), p(2, 3), const(0))),
    Case("ScatterUpdate axis", lambda p: ops(3).scatter_update(p(2, 5, 3), p(of=[[3], [1]], dtype=i64), p(2, 2, 1, 3),
        const(1))),
    Case("ScatterNDUpdate", lambda p: ops(4).scatter_nd_update(p(4, 3), p(of=[[3], [1]], dtype=i32), p(2, 3))),
    *(Case(f"ScatterNDUpdate {name}", scatter_nd(name)) for name in ("none", "sum", "sub", "prod", "min", "max")),
    Case("TopK max", lambda p: ops(11).topk(p(3, 6), const(2), 1, "max", "value")),
    Case("TopK min i64", lambda p: ops(11).topk(p(6, 2), const(3), 0, "min", "value", "i64")),
    Case("TopK by index", lambda p: ops(11).topk(p(3, 6), const(4), -1, "max", "index")),
    Case("TopK opset1", lambda p: ops(1).topk(p(3, 6), const(2), 1, "max", "value")),
    Case("TopK opset3", lambda p: ops(3).topk(p(3, 6), const(2), 1, "max", "value")),
    Case("TopK k computed", lambda p: ops(11).topk(p(3, 6), p(of=2, dtype=i64), 1, "max", "value"), dynamic=False),
    Case("NonZero", lambda p: ops(3).non_zero(p(of=[[1, 0, 2], [0, 0, 3]]), "i64")),
    Case("NonZero i32", lambda p: ops(3).non_zero(p(of=[[1, 0, 2], [0, 0, 3]], dtype=i8), "i32")),
    Case("OneHot", lambda p: ops(1).one_hot(p(of=[[0, 2], [3, -1]], dtype=i64), const(3), const(2.5, f32), const(-1,
        f32), -1)),
    Case("OneHot axis", lambda p: ops(1).one_hot(p(of=[0, 2, 1], dtype=i32), const(3), const(1), const(0), 0)),
    Case("OneHot u8", lambda p: ops(1).one_hot(p(of=[0, 2, 1], dtype=i32), const(4), const(7, u8), const(1, u8), 1)),
    Case("OneHot scalar", lambda p: ops(1).one_hot(p(of=2, dtype=i64), const(4), const(1, f32), const(0, f32), 0)),
    Case("OneHot from the end", lambda p: ops(16).one_hot(p(of=[0, -1], dtype=i64), const(3), const(1, f32), const(0,
        f32), 1, "normalize")),
    Case("OneHot negative ignored", lambda p: ops(16).one_hot(p(of=[0, -1], dtype=i64), const(3), const(1, f32),
        const(0, f32), 1, "ignore_negative")),
)  # fmt: skip

REDUCTIONS = (
    *(
        Case(f"{name} {axes} {keep}", reduce(name, axes, keep))
        for name in ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
        for axes, keep in (([0, -1], False), (1, True))
    ),
    Case("ReduceSum u32", lambda p: ops(1).reduce_sum(p(2, 3, dtype=u32), const(1), False)),
    Case("ReduceSum computed", lambda p: ops(1).reduce_sum(p(2, 3), p(of=[1], dtype=i32), True), dynamic=False),
    Case("ReduceMean no axes", lambda p: ops(1).reduce_mean(p(2, 3), empty(), True)),
    Case("ReduceLogicalAnd", lambda p: ops(1).reduce_logical_and(p(3, 4, dtype=boolean), const([1]), True)),
    Case("ReduceLogicalOr", lambda p: ops(1).reduce_logical_or(p(3, 4, dtype=boolean), const(0), False)),
    Case("SoftMax", lambda p: ops(8).softmax(p(2, 3, 4), -2)),
    Case("SoftMax opset1", lambda p: ops(1).softmax(p(2, 3, 4), 2)),
    Case("LogSoftmax", lambda p: ops(5).log_softmax(p(2, 3, 4), 1)),
    Case("CumSum", lambda p: ops(3).cum_sum(p(3, 4), const(1))),
    Case("CumSum exclusive reverse", lambda p: ops(3).cum_sum(p(3, 4), const(0), True, True)),
    Case("MVN inside", lambda p: ops(6).mvn(p(2, 3, 4), const([1, 2]), True, 0.1, "inside_sqrt")),
    Case("MVN outside", lambda p: ops(6).mvn(p(2, 3, 4), const([-1]), True, 0.1, "outside_sqrt")),
    Case("MVN mean only", lambda p: ops(6).mvn(p(2, 3, 4), const([-1]), False, 0.1, "inside_sqrt")),
    *(
        Case(f"MVN opset2 channels={channels} variance={variance}", mvn_2(channels, variance))
        for channels, variance in ((False, True), (True, True), (True, False))
    ),
    Case("NormalizeL2 add", lambda p: ops(1).normalize_l2(p(2, 3, 4), const([1]), 0.1, "add")),
    Case("NormalizeL2 max", lambda p: ops(1).normalize_l2(p(2, 3, 4), const([1, 2]), 0.5, "max")),
    Case("BatchNormInference", lambda p: ops(5).batch_norm_inference(p(2, 3, 4), *_statistics(p), 0.1)),
    Case("BatchNormInference opset1", lambda p: ops(1).batch_norm_inference(p(2, 3, 4), *_statistics(p), 0.1)),
    Case("GroupNormalization", lambda p: ops(12).group_normalization(p(2, 6, 4), p.constant(6), p.constant(6), 3, 0.1)),
)


def _statistics(p: Maker) -> list[Any]:
    """gamma, beta, mean and a variance above 0."""
    return [p.constant(3), p.constant(3), p.constant(3), const([0.5, 1.5, 0.7], f32)]
