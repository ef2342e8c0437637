"""Elementwise operations and those on shapes, as cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from openvino_operations import Case, Maker, boolean, const, empty, f32, i32, i64, make_node, ops, u16

from pyrnnx.frontends.openvino.translation.operations.elementwise import BINARY, UNARY

# Values of an input where they are not from -0.9 to 0.9.
DOMAINS = {
    "Acosh": (1.1, 3), "Ceiling": (-9, 9), "Floor": (-9, 9), "HSigmoid": (-5, 5), "HSwish": (-5, 5), "Log": (0.1, 3),
    "Power": (0.1, 1), "Sqrt": (0.1, 3),
}  # fmt: skip
OTHERS = {
    "BitwiseNot": ([0, 5, -3], i32), "LogicalNot": ([True, False], boolean), "IsNaN": ([np.nan, 1, np.inf], f32),
}  # fmt: skip
INTEGERS = ("Equal", "NotEqual", "GreaterEqual", "LessEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor")


def unary(kind: str, opset: int, name: str = "") -> Case:
    low, high = DOMAINS.get(kind, (-0.9, 0.9))
    values, dtype = OTHERS.get(kind, (None, f32))

    def make(p: Maker) -> Any:
        return make_node(opset, name or kind, [p(2, 3, low=low, high=high, of=values, dtype=dtype)])

    return Case(f"{kind} opset{opset}", make)


def binary(kind: str, opset: int = 1, dtype: Any = None) -> Case:
    of = dtype or (i32 if kind in INTEGERS else boolean if "Logical" in kind or kind == "Xor" else f32)
    low, high = DOMAINS.get(kind, (-1, 1))

    def make(p: Maker) -> Any:
        return make_node(opset, kind, [p(*shape, dtype=of, low=low, high=high) for shape in ((2, 1, 3), (4, 1))])

    return Case(f"{kind} {of.__name__}", make)


ELEMENTWISE = (
    *(unary(kind, opset) for kind, opset, _ in UNARY),
    unary("HSigmoid", 5),
    unary("ReLU", 1, "Relu"),
    unary("Identity", 16),
    unary("Gelu", 2),
    Case("Gelu erf", lambda p: ops(7).gelu(p(2, 3), "erf")),
    Case("Gelu tanh", lambda p: ops(7).gelu(p(2, 3), "tanh")),
    Case("ReLU integers", lambda p: ops(1).relu(p(of=[-2, 0, 3], dtype=i32))),
    Case("IsFinite", lambda p: ops(10).is_finite(p(of=[np.nan, 1, -np.inf]))),
    Case("IsInf", lambda p: ops(10).is_inf(p(of=[np.nan, 1, np.inf, -np.inf]))),
    Case("IsInf negative", lambda p: ops(10).is_inf(p(of=[np.inf, -np.inf]), {"detect_positive": False})),
    Case("IsInf none", lambda p: ops(10).is_inf(p(of=[np.inf, -np.inf]), {"detect_positive": False,
        "detect_negative": False})),
    Case("Round integers", lambda p: ops(5).round(p(2, 3, dtype=i32), "half_to_even")),
    Case("Round even", lambda p: ops(5).round(p(of=[-2.5, -1.5, -0.4, 0.5, 1.5, 2.7]), "half_to_even")),
    Case("Round away", lambda p: ops(5).round(p(of=[-2.5, -1.5, -0.4, 0.5, 1.5, 2.7]), "half_away_from_zero")),
    Case("Clamp", lambda p: ops(1).clamp(p(2, 3), -0.5, 0.25)),
    Case("Clamp integers", lambda p: ops(1).clamp(p(of=[-3, -1, 0, 2, 7], dtype=i32), -1.5, 2.5)),
    Case("Clamp one side", lambda p: ops(1).clamp(p(2, 3), 0.1, 3.5e38)),
    Case("Elu", lambda p: ops(1).elu(p(2, 3), 0.7)),
    Case("Selu", lambda p: ops(1).selu(p(2, 3), const(1.5, f32), const(1.1, f32))),
    Case("HardSigmoid", lambda p: ops(1).hard_sigmoid(p(2, 3, low=-4, high=4), const(0.3, f32), const(0.4, f32))),
    Case("Swish", lambda p: ops(4).swish(p(2, 3))),
    Case("Swish beta", lambda p: ops(4).swish(p(2, 3), const(1.7, f32))),
    Case("PReLU channels", lambda p: ops(1).prelu(p(2, 3, 4), p.constant(3))),
    Case("PReLU one axis", lambda p: ops(1).prelu(p(3), p.constant(3))),
    Case("PReLU numpy", lambda p: ops(1).prelu(p(2, 3, 4), p.constant(1, 3, 1))),
    *(binary(kind, opset) for kind, opset, _ in BINARY),
    *(binary(kind, 13) for kind in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    *(binary(kind) for kind in ("Divide", "NotEqual", "SquaredDifference")),
    binary("Add", dtype=i64),
    binary("BitwiseAnd", 13, boolean),
    binary("Maximum", dtype=u16),
    Case("Mod", lambda p: ops(1).mod(p(of=[7.5, -7.5, 7.5, -7.5]), p(of=[2, 2, -2, -2]))),
    Case("Mod integers", lambda p: ops(1).mod(p(of=[7, -7, 7, -7], dtype=i32), p(of=[2, 2, -2, -2], dtype=i32))),
    Case("FloorMod", lambda p: ops(1).floor_mod(p(of=[7.5, -7.5, 7.5, -7.5, 4]), p(of=[2, 2, -2, -2, -2]))),
    Case("FloorMod integers", lambda p: ops(1).floor_mod(p(of=[7, -7, 7, -7], dtype=i32), p(of=[2, 2, -2, -2],
        dtype=i32))),
    Case("Add no broadcast", lambda p: ops(1).add(p(2, 3), p(2, 3), "none")),
    Case("Select", lambda p: ops(1).select(p(2, 1, dtype=boolean), p(2, 3), p(3))),
    Case("Select u16", lambda p: ops(1).select(p(2, 1, dtype=boolean), p(2, 3, dtype=u16), p(3, dtype=u16))),
    Case("Select boolean", lambda p: ops(1).select(p(4, dtype=boolean), p(4, dtype=boolean), p(4, dtype=boolean))),
    Case("Convert", lambda p: ops(1).convert(p(of=[-1.7, 0.2, 3.9]), "i32")),
    Case("Convert boolean", lambda p: ops(1).convert(p(of=[0.0, 0.5, -2]), "boolean")),
    Case("Convert f16", lambda p: ops(1).convert(p(of=[0.1, 1000.7]), "f16")),
    Case("ConvertLike", lambda p: ops(1).convert_like(p(2, 3, high=9), p(1, dtype=i64))),
    Case("FakeQuantize", lambda p: ops(1).fake_quantize(p(2, 3, 4), const([[[-0.5], [-0.4], [0]]], f32), const([[[0.8],
        [0.5], [0.9]]], f32), const([[[-2], [0], [1]]], f32), const([[[1], [3], [2]]], f32), 16)),
)  # fmt: skip

SHAPES = (
    Case("Reshape special_zero", lambda p: ops(1).reshape(p(2, 3, 4), const([0, -1]), True)),
    Case("Reshape plain", lambda p: ops(1).reshape(p(0, 3), const([3, 0]), False)),
    Case("Reshape computed", lambda p: ops(1).reshape(p(2, 3, 4), p(of=[4, -1], dtype=i32), False), dynamic=False),
    Case("Squeeze", lambda p: ops(1).squeeze(p(2, 1, 3, 1), const([1, -1]))),
    Case("Squeeze one axis", lambda p: ops(1).squeeze(p(2, 1, 3, 1), const(1))),
    Case("Squeeze all", lambda p: make_node(1, "Squeeze", [p(2, 1, 3, 1)]), dynamic=False),
    Case("Squeeze opset15", lambda p: ops(15).squeeze(p(2, 1, 3), const([1]))),
    Case("Unsqueeze", lambda p: ops(1).unsqueeze(p(2, 3), const([0, -1]))),
    Case("Unsqueeze one axis", lambda p: ops(1).unsqueeze(p(2, 3), const(1))),
    Case("Transpose", lambda p: ops(1).transpose(p(2, 3, 4), const([1, 2, 0]))),
    Case("Concat", lambda p: ops(1).concat([p(2, 3), p(2, 1), p.constant(2, 2)], -1)),
    Case("Split", lambda p: ops(1).split(p(2, 6), const(1), 3)),
    Case("VariadicSplit", lambda p: ops(1).variadic_split(p(2, 6), const(1), const([1, 2, 3]))),
    Case("VariadicSplit rest", lambda p: ops(1).variadic_split(p(6, 2), const(-2), const([1, -1, 2]))),
    Case("Broadcast numpy", lambda p: ops(3).broadcast(p(3, 1), const([2, 3, 4]))),
    Case("Broadcast opset1", lambda p: ops(1).broadcast(p(3, 1), const([2, 3, 4]))),
    Case("Broadcast explicit", lambda p: ops(3).broadcast(p(3), const([2, 3, 4]), const([1]), "explicit")),
    Case("ShapeOf", lambda p: ops(3).shape_of(p(2, 3))),
    Case("ShapeOf i32", lambda p: ops(3).shape_of(p(2, 3), "i32")),
    Case("ShapeOf opset1", lambda p: ops(1).shape_of(p(2, 3))),
    Case("Range", lambda p: ops(4).range(p(of=1, dtype=i32), p(of=9, dtype=i32), const(3, i32), "i64")),
    Case("Range f32", lambda p: ops(4).range(p(of=0.5), const(3, f32), p(of=0.75), "f32")),
    Case("Range of f16", lambda p: ops(4).range(const(1, f32), p(of=4.0), const(0.5, f32), "f16")),
    Case("Range u8", lambda p: ops(4).range(const(1), p(of=9, dtype=i64), const(2), "u8")),
    Case("Range f16", lambda p: ops(4).range(const(1), p(of=9, dtype=i64), const(2), "f16")),
    Case("Range opset1", lambda p: ops(1).range(p(of=5, dtype=i64), const(1), const(-2))),
    Case("Tile", lambda p: ops(1).tile(p(2, 3), const([2, 1]))),
    Case("Tile more repeats", lambda p: ops(1).tile(p(3), const([2, 1, 2]))),
    Case("Reverse", lambda p: make_node(1, "Reverse", [p(2, 3, 4), const([0, 2])], mode="index")),
    Case("Reverse nothing", lambda p: make_node(1, "Reverse", [p(2, 3), empty()], mode="index")),
    Case("Reverse mask", lambda p: make_node(1, "Reverse", [p(2, 3), const([True, False], boolean)], mode="mask")),
    Case("ReverseSequence", lambda p: ops(1).reverse_sequence(p(3, 4, 2), p(of=[1, 4, 2], dtype=i32), 0, 1)),
    Case("ReverseSequence other axes", lambda p: ops(1).reverse_sequence(p(4, 2, 3), p(of=[1, 4, 2], dtype=i32), 2, 0)),
    Case("DepthToSpace blocks", lambda p: ops(1).depth_to_space(p(2, 8, 2, 3), "blocks_first", 2)),
    Case("SpaceToDepth blocks", lambda p: ops(1).space_to_depth(p(2, 2, 4, 6), "blocks_first", 2)),
    Case("Slice", lambda p: ops(8).slice(p(5, 6), const([1, -2]), const([9, 0]), const([2, -1]), const([0, 1]))),
    Case("Slice computed", lambda p: ops(8).slice(p(5, 6), p(of=[2], dtype=i32), p(of=[4], dtype=i32), const([1],
        i32))),
    Case("StridedSlice", lambda p: ops(1).strided_slice(p(5, 6), const([1, 1]), const([4, 0]), const([2, 2]), [0, 0],
        [0, 1])),
    Case("StridedSlice backwards", lambda p: ops(1).strided_slice(p(5, 6), const([0, -1]), const([0, -4]), const([-1,
        -1]), [1, 0], [1, 0])),
    Case("StridedSlice all masks", lambda p: ops(1).strided_slice(p(2, 3, 4, 5), const([0, -1, 0, 1]), const([0, 0, 0,
        3]), const([1, 1, 1, 1]), [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0])),
    Case("StridedSlice computed", lambda p: ops(1).strided_slice(p(4, 5, 6), p(of=[1, -1, 2], dtype=i64), p(of=[3, 0,
        5], dtype=i64), const([1, 1, 2]), [1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]), dynamic=False),
    Case("Pad constant", lambda p: ops(1).pad(p(2, 3), const([1, 0]), const([0, 2]), "constant", const(0.5, f32))),
    Case("Pad negative", lambda p: ops(12).pad(p(4, 3), const([-1, 0]), const([0, 2]), "constant", const(0.5, f32))),
    Case("Pad computed", lambda p: ops(1).pad(p(2, 3), p(of=[1, 0], dtype=i64), const([0, 2]), "constant"),
        dynamic=False),
    Case("Pad u16", lambda p: ops(1).pad(p(2, 3, dtype=u16), const([1, 0]), const([0, 2]), "constant", const(7, u16))),
    Case("Pad edge", lambda p: ops(12).pad(p(2, 3), const([1, 0]), const([0, 2]), "edge")),
    Case("Pad reflect", lambda p: ops(12).pad(p(3, 4), const([1, 0]), const([0, 2]), "reflect")),
)  # fmt: skip
