"""Matrix products, convolutions, pooling, images and spectra, as cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from openvino_operations import Case, Maker, boolean, const, f32, i32, make_node, ops, u8


def conv(
    strides: list[int], begin: list[int], end: list[int], dilations: list[int], auto_pad: str
) -> Callable[[Maker], Any]:
    return lambda p: ops(1).convolution(p(2, 3, 11), p.constant(4, 3, 3), strides, begin, end, dilations, auto_pad)


def attention(rows: int, columns: int) -> Callable[[Maker], Any]:
    return lambda p: ops(13).scaled_dot_product_attention(
        p(1, rows, 4), p(1, columns, 4), p(1, columns, 6), causal=True
    )


def bytes_of(p: Maker, *shape: int, dtype: Any = u8, zero: Any = None) -> Any:
    """An input of 8 bits, less a zero point, in int32: as quantized models have it."""
    wide = ops(1).convert(p(*shape, dtype=dtype), "i32")
    if zero is None:
        return wide
    zero = ops(1).convert(p(of=zero, dtype=dtype), "i32") if isinstance(zero, list) else const(zero, i32)
    return ops(1).subtract(wide, zero)


def ramp(low: int, high: int, *shape: int) -> Callable[[Maker], Any]:
    """Constant filters that take both values."""
    values = np.linspace(low, high, math.prod(shape)).round().reshape(shape)
    return lambda p: const(values, i32)


LINEAR = (
    Case("MatMul of bytes", lambda p: ops(1).matmul(bytes_of(p, 2, 3, 4, zero=[[5]]), ramp(-99, 99, 5, 4)(p), False,
        True)),
    Case("MatMul of int32", lambda p: ops(1).matmul(p(2, 3, 4, dtype=i32), ramp(-999, 999, 4, 5)(p), False, False)),
    Case("MatMul", lambda p: ops(1).matmul(p(2, 3, 4), p(4, 5), False, False)),
    Case("MatMul transposed", lambda p: ops(1).matmul(p(4, 3), p.constant(5, 4), True, True)),
    Case("MatMul vectors", lambda p: ops(1).matmul(p(4), p(2, 5, 4), True, True)),
    Case("Einsum", lambda p: ops(7).einsum([p(2, 3), p(3, 4)], "ij,jk->ki")),
    Case("Einsum ellipsis", lambda p: ops(7).einsum([p(2, 3, 4)], "...ij->...ji")),
    Case("Convolution", conv([1], [0], [0], [1], "explicit")),
    Case("Convolution valid", conv([2], [0], [0], [1], "valid")),
    Case("Convolution same_upper", conv([2], [0], [0], [1], "same_upper")),
    Case("Convolution same_lower", conv([3], [0], [0], [1], "same_lower")),
    Case("Convolution same dilated", conv([1], [0], [0], [2], "same_lower"), dynamic=False),
    Case("Convolution 2d", lambda p: ops(1).convolution(p(1, 2, 6, 7), p.constant(3, 2, 3, 2), [2, 1], [1, 0], [0, 1],
        [1, 2], "explicit")),
    Case("GroupConvolution", lambda p: ops(1).group_convolution(p(1, 4, 9), p.constant(2, 3, 2, 3), [2], [1], [1], [1],
        "explicit")),
    Case("GroupConvolution computed filters", lambda p: ops(1).group_convolution(p(1, 4, 9), p(2, 3, 2, 3), [1], [0],
        [0], [1], "explicit"), dynamic=False),
    Case("ConvolutionBackpropData", lambda p: ops(1).convolution_backprop_data(p(1, 3, 5), p.constant(3, 2, 3), [2],
        None, [1], [0], [1], "explicit", [1])),
    Case("ConvolutionBackpropData output_shape", lambda p: ops(1).convolution_backprop_data(p(1, 3, 5), p.constant(3, 2,
        4), [2], const([9])), dynamic=False),
    Case("ConvolutionBackpropData larger output_shape", lambda p: ops(1).convolution_backprop_data(p(1, 3, 5),
        p.constant(3, 2, 4), [2], const([15])), dynamic=False),
    Case("ConvolutionBackpropData same_upper", lambda p: ops(1).convolution_backprop_data(p(1, 3, 5), p.constant(3, 2,
        3), [2], const([10]), None, None, None, "same_upper"), dynamic=False),
    Case("ConvolutionBackpropData same_lower", lambda p: ops(1).convolution_backprop_data(p(1, 3, 5), p.constant(3, 2,
        4), [2], const([9]), None, None, None, "same_lower"), dynamic=False),
    Case("ConvolutionBackpropData valid", lambda p: ops(1).convolution_backprop_data(p(1, 3, 5), p.constant(3, 2, 3),
        [2], None, None, None, None, "valid")),
    Case("GroupConvolutionBackpropData", lambda p: ops(1).group_convolution_backprop_data(p(1, 4, 5), p.constant(2, 2,
        3, 3), [2], None, [1], [1], [1], "explicit")),
    Case("ScaledDotProductAttention", lambda p: ops(13).scaled_dot_product_attention(p(2, 3, 4), p(2, 5, 4), p(2, 5,
        6))),
    Case("ScaledDotProductAttention mask scale", lambda p: ops(13).scaled_dot_product_attention(p(2, 3, 4), p(2, 5, 4),
        p(2, 5, 6), p(2, 3, 5), p(of=0.3))),
    Case("ScaledDotProductAttention boolean mask", lambda p: ops(13).scaled_dot_product_attention(p(1, 2, 4), p(1, 3,
        4), p(1, 3, 6), p(of=[[[1, 0, 1], [0, 1, 1]]], dtype=boolean))),
    Case("ScaledDotProductAttention causal", lambda p: ops(13).scaled_dot_product_attention(p(1, 4, 4), p(1, 4, 4), p(1,
        4, 6), causal=True)),
    *(Case(f"ScaledDotProductAttention causal {rows} queries {columns} keys", attention(rows, columns))
        for rows, columns in ((2, 5), (5, 2))),
    Case("ScaledDotProductAttention causal scale", lambda p: ops(13).scaled_dot_product_attention(p(2, 3, 4, 4), p(2, 3,
        4, 4), p(2, 3, 4, 6), p(4, 4), p(of=0.3), causal=True)),
)  # fmt: skip


def max_pool(
    opset: int, kernel: int, stride: int, pads: str = "00", rounding: str = "floor", auto_pad: str = "explicit"
) -> Callable[[Maker], Any]:
    """Pool in one dimension; `pads` are the digits of the first and the last pad."""
    begin, end = ([int(pad)] for pad in pads)
    dilations = [[1]] if opset > 1 else []
    return lambda p: (
        ops(opset).max_pool(p(2, 3, 11), [stride], *dilations, begin, end, [kernel], rounding, auto_pad).output(0)
    )


def avg_pool(
    opset: int, kernel: int, stride: int, pads: str = "00", rounding: str = "floor", **more: Any
) -> Callable[[Maker], Any]:
    begin, end = ([int(pad)] for pad in pads)
    attributes = {"exclude_pad": True, "rounding_type": rounding, **more}
    return lambda p: ops(opset).avg_pool(p(2, 3, 11), [stride], begin, end, [kernel], **attributes)


def indices(axis: int) -> Callable[[Maker], Any]:
    sizes = [[2, 2], [1, 1], [0, 0], [0, 0], [3, 2]]
    return lambda p: ops(8).max_pool(p(2, 3, 7, 6), *sizes, "floor", "explicit", "i32", axis)


POOLING = (
    Case("MaxPool opset1", max_pool(1, 3, 2, "10")),
    Case("MaxPool opset1 ceil", max_pool(1, 3, 3, "00", "ceil")),
    Case("MaxPool ceil", max_pool(8, 4, 3, "00", "ceil")),
    Case("MaxPool ceil even", max_pool(8, 3, 2, "00", "ceil")),
    Case("MaxPool ceil_torch", max_pool(14, 3, 3, "11", "ceil_torch")),
    Case("MaxPool same_upper", max_pool(8, 3, 2, auto_pad="same_upper")),
    Case("MaxPool same_lower", max_pool(8, 4, 2, auto_pad="same_lower")),
    Case("MaxPool valid", max_pool(8, 3, 2, auto_pad="valid")),
    *(Case(f"MaxPool indices axis {axis}", indices(axis)) for axis in (0, 1, 2)),
    Case("AvgPool exclude", avg_pool(1, 3, 2, "11")),
    Case("AvgPool include", avg_pool(1, 3, 2, "11", exclude_pad=False)),
    Case("AvgPool ceil", avg_pool(14, 4, 3, "00", "ceil")),
    Case("AvgPool ceil_torch", avg_pool(14, 4, 3, "11", "ceil_torch")),
    Case("AvgPool ceil include", avg_pool(14, 4, 3, "10", "ceil_torch", exclude_pad=False), dynamic=False),
    Case("AvgPool dilated ceil include", avg_pool(16, 3, 3, "11", "ceil_torch", exclude_pad=False, dilations=[2]),
        dynamic=False),
    Case("AvgPool ceil include no pads", avg_pool(14, 4, 3, "00", "ceil_torch", exclude_pad=False)),
    Case("AvgPool dilated ceil no pads", avg_pool(16, 3, 3, "00", "ceil_torch", exclude_pad=False, dilations=[2])),
    Case("AvgPool opset16 ceil include", avg_pool(16, 4, 3, "10", "ceil_torch", exclude_pad=False, dilations=[1]),
        dynamic=False),
    Case("MaxPool 2d same_upper", lambda p: ops(1).max_pool(p(1, 2, 7, 6), [1, 1], [0, 0], [0, 0], [2, 4], "floor",
        "same_upper")),
    Case("AvgPool same_upper", avg_pool(1, 3, 2, auto_pad="same_upper")),
    Case("AvgPool same_lower", avg_pool(1, 4, 2, auto_pad="same_lower")),
    Case("AvgPool opset16", avg_pool(16, 3, 2, "11", dilations=[1])),
    Case("AdaptiveAvgPool one", lambda p: ops(8).adaptive_avg_pool(p(2, 3, 7, 5), const([1, 1]))),
    Case("AdaptiveAvgPool", lambda p: ops(8).adaptive_avg_pool(p(2, 3, 7, 5), const([3, 2])), dynamic=False),
)  # fmt: skip


def resize(
    mode: str, transform: str, sizes: Any, *, nearest: str = "round_prefer_floor", scales: bool = False
) -> Callable[[Maker], Any]:
    """Resize the last two of four axes."""

    def make(p: Maker) -> Any:
        given = const(sizes, f32) if scales else const(sizes)
        calculation = "scales" if scales else "sizes"
        return ops(11).interpolate(
            p(1, 2, 4, 5), given, mode, calculation, [0], [0], transform, nearest, False, -0.75, const([2, 3])
        )

    return make


def resize_4(p: Maker, calculation: str) -> Any:
    inputs = [p(1, 2, 4, 5), const([8, 7]), const([2, 1.5], f32), const([2, 3])]
    return make_node(4, "Interpolate", inputs, mode="linear_onnx", shape_calculation_mode=calculation)


def grid_sample(mode: str, padding: str, corners: bool) -> Callable[[Maker], Any]:
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    return lambda p: ops(9).grid_sample(p(1, 2, 4, 5), p(1, 3, 2, 2, low=-1.2, high=1.2), attributes)


IMAGES = (
    *(
        Case(f"Interpolate nearest {transform} {nearest}", resize("nearest", transform, [7, 3], nearest=nearest))
        for transform in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
    *(
        Case(f"Interpolate {mode} {transform}", resize(mode, transform, [8, 7]))
        for mode in ("linear_onnx", "linear", "cubic")
        for transform in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
    ),
    Case("Interpolate linear_onnx down", resize("linear_onnx", "half_pixel", [3, 2])),
    Case("Interpolate linear_onnx scales", resize("linear_onnx", "half_pixel", [2.0, 1.5], scales=True)),
    Case("Interpolate nearest scales", resize("nearest", "asymmetric", [2.0, 1.5], nearest="floor", scales=True)),
    Case("Interpolate opset4 sizes", lambda p: resize_4(p, "sizes")),
    Case("Interpolate opset4 scales", lambda p: resize_4(p, "scales")),
    *(
        Case(
            f"GridSample {mode} {padding} {corners}",
            grid_sample(mode, padding, corners),
            tolerance=1e-4,  # coordinates are computed in float32 in another order, and multiply differences of pixels
        )
        for mode in ("bilinear", "bicubic", "nearest")
        for padding, corners in (("zeros", True), ("border", False), ("reflection", False))
    ),
)


def short_time(*shape: int, window: int = 8, transposed: bool = False) -> Callable[[Maker], Any]:
    return lambda p: ops(15).stft(p(*shape), p(window), const(8), const(3), transposed)


SPECTRA = (
    Case("RDFT", lambda p: ops(9).rdft(p(2, 8), const([1]))),
    Case("RDFT two axes", lambda p: ops(9).rdft(p(2, 4, 8), const([1, 2]))),
    Case("RDFT size", lambda p: ops(9).rdft(p(2, 8), const([1]), const([6]))),
    Case("STFT", short_time(2, 20)),
    Case("STFT of one", short_time(20, transposed=True)),
    Case("STFT transposed", short_time(2, 20, transposed=True)),
    Case("STFT narrow window", short_time(2, 20, window=5)),
)
