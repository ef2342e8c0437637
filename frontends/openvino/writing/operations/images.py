"""Operators on images and signals: convolutions, pooling, resampling, moves of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pyrnnx.errors import shown

from ...ir.writer import Value
from ..context import NodeContext, writes
from ..views import View, plain

_MODES = {"nearest": "nearest", "linear": "linear_onnx", "cubic": "cubic"}
_TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn")
_REFUSED = {"antialias": 0, "exclude_outside": 0, "keep_aspect_ratio_policy": "stretch"}


def windows(ctx: NodeContext, rank: int) -> dict[str, Any]:
    """Return strides, dilations and pads in OpenVINO's attributes."""
    pads = ctx.attribute("pads") or [0] * (2 * rank)
    padding = ctx.attribute("auto_pad", "NOTSET")
    return {
        "strides": ctx.attribute("strides") or [1] * rank,
        "dilations": ctx.attribute("dilations") or [1] * rank,
        "pads_begin": pads[:rank],
        "pads_end": pads[rank:],
        "auto_pad": "explicit" if padding == "NOTSET" else padding.lower(),
    }


@writes("Conv")
def _conv(ctx: NodeContext) -> View:
    value, weights = ctx[0], ctx[1]
    data = windows(ctx, len(value.shape) - 2)
    return with_bias(ctx, convolution(ctx, value, weights, data, ctx.output(len(value.shape))), weights.shape[0])


def convolution(ctx: NodeContext, value: Value, weights: Value, data: dict[str, Any], output: Any) -> View:
    """Write a convolution without bias; in IR, groups are an axis of the weights."""
    groups = ctx.attribute("group", 1)
    ctx.attribute("kernel_shape")  # the same as in the shape of the weights
    if groups == 1:
        return ctx.plain("Convolution", 1, [value, weights], output, **data)
    return ctx.plain("GroupConvolution", 1, [value, _grouped(ctx, weights, groups)], output, **data)


def _grouped(ctx: NodeContext, weights: Value, groups: int) -> Value:
    """Divide the first axis of weights into groups and the rest."""
    if None in weights.shape:
        ctx.refuse("groups of weights of dynamic shape", "a known shape")
    return ctx.reshaped(weights, (groups, (weights.shape[0] or 0) // groups, *weights.shape[1:]), "shape")


def with_bias(ctx: NodeContext, result: View, channels: int | None) -> View:
    """Add the bias, input 2, to the channels."""
    if not ctx.has(2):
        return result
    bias = ctx.reshaped(ctx[2], (1, channels, *[1] * (result.rank - 2)), "bias")
    return ctx.binary("Add", 1, result, plain(bias))


@writes("ConvTranspose")
def _conv_transpose(ctx: NodeContext) -> View:
    """Write ConvTranspose; pads that follow from the size of the result are computed here."""
    value, weights = ctx[0], ctx[1]
    rank, groups = len(value.shape) - 2, ctx.attribute("group", 1)
    ctx.attribute("kernel_shape")
    data = windows(ctx, rank)
    data["output_padding"] = ctx.attribute("output_padding") or [0] * rank
    shape, padding = ctx.attribute("output_shape"), data["auto_pad"]
    if shape or padding.startswith("same"):
        pads = _transposed_pads(ctx, value, weights, data, shape)
        less, more = [total // 2 for total in pads], [total - total // 2 for total in pads]
        data["pads_begin"], data["pads_end"] = (less, more) if padding == "same_upper" else (more, less)
        data["auto_pad"] = "explicit"
    channels = None if weights.shape[1] is None else weights.shape[1] * groups
    kind = "ConvolutionBackpropData"
    if groups != 1:
        weights, kind = _grouped(ctx, weights, groups), "GroupConvolutionBackpropData"
    return with_bias(ctx, ctx.plain(kind, 1, [value, weights], ctx.output(rank + 2), **data), channels)


def _transposed_pads(
    ctx: NodeContext, value: Value, weights: Value, data: dict[str, Any], shape: Sequence[int] | None
) -> list[int]:
    """Return the sum of the pads of each axis; those of auto_pad do not depend on the input's size."""
    rank = len(data["strides"])
    sizes, kernel = value.shape[2:], weights.shape[2:]
    if None in kernel or (shape and None in sizes):
        ctx.refuse("output_shape or auto_pad of dynamic sizes", "known sizes of the input and of the weights")
    totals = []
    for k, (stride, dilation, more) in enumerate(
        zip(data["strides"], data["dilations"], data["output_padding"], strict=True)
    ):
        extent = ((kernel[k] or 1) - 1) * dilation + 1 + more
        target = stride - extent if not shape else shape[k - rank] - stride * ((sizes[k] or 1) - 1) - extent
        totals.append(max(-target, 0))
        data["output_padding"] = [*data["output_padding"][:k], more + max(target, 0), *data["output_padding"][k + 1 :]]
    return totals


def _pool(ctx: NodeContext, value: Value) -> dict[str, Any]:
    """Return the attributes of a pooling; rounded up, a window begins in the input or in the pads before it."""
    data = windows(ctx, len(value.shape) - 2)
    data["kernel"] = ctx.attribute("kernel_shape")
    data["rounding_type"] = "ceil_torch" if ctx.attribute("ceil_mode", 0) else "floor"
    return data


@writes("MaxPool")
def _max_pool(ctx: NodeContext) -> list[View]:
    """Write MaxPool; its indices count all elements, row by row."""
    value, several = ctx[0], len(ctx.node.output) > 1
    if ctx.attribute("storage_order", 0) and several:
        ctx.refuse("storage_order 1", "0")
    data = {**_pool(ctx, value), "index_element_type": "i64", "axis": 0}
    output = ctx.output(len(value.shape))
    return [plain(result) for result in ctx.layers("MaxPool", 14, [value], [output, ("I64", output[1])], data)]


@writes("AveragePool")
def _average_pool(ctx: NodeContext) -> View:
    value = ctx[0]
    data = _pool(ctx, value)
    padded = data["auto_pad"].startswith("same") or any((*data["pads_begin"], *data["pads_end"]))
    included = bool(ctx.attribute("count_include_pad", 0)) and padded
    if included and data["rounding_type"] != "floor":
        ctx.refuse("ceil_mode 1 with count_include_pad 1", "one of the two")
    data["exclude-pad"] = not included
    dilated = any(dilation != 1 for dilation in data["dilations"])
    if not dilated:
        del data["dilations"]
    return ctx.plain("AvgPool", 16 if dilated else 14, [value], ctx.output(len(value.shape)), **data)


def _global_pool(ctx: NodeContext, kind: str) -> View:
    value = ctx[0]
    rank = len(value.shape)
    return ctx.result(kind, 1, [value, ctx.const("axes", np.arange(2, rank))], rank, keep_dims=True)


writes("GlobalAveragePool")(partial(_global_pool, kind="ReduceMean"))
writes("GlobalMaxPool")(partial(_global_pool, kind="ReduceMax"))


@writes("ConvInteger")
def _conv_integer(ctx: NodeContext) -> View:
    """Write ConvInteger in float32, in which its sums are exact."""
    value, weights = centred(ctx, 0, 2), centred(ctx, 1, 3, axis=0)
    check_sums(ctx, 1, 3, lambda array: np.abs(array).reshape(len(array), -1).sum(1))
    precision, shape = ctx.output(len(value.shape))
    data = windows(ctx, len(value.shape) - 2)
    return ctx.converted(convolution(ctx, value, weights, data, ("FP32", shape)), precision)


def centred(ctx: NodeContext, position: int, zero: int, axis: int | None = None) -> Value:
    """Return an input of codes minus its zero point, in float32; zero points of several elements belong to `axis`."""
    view = ctx.converted(plain(ctx[position]), "FP32")
    if not ctx.has(zero):
        return view.value
    return ctx.binary("Subtract", 1, view, ctx.converted(ctx.along(zero, axis, view.rank), "FP32")).value


def check_sums(ctx: NodeContext, position: int, zero: int, sums: Any) -> None:
    """Raise unless all sums of products of 8-bit codes with constant weights are exact in float32."""
    weights = ctx.constant(position)
    if weights is None:
        ctx.refuse("sums of products of integers, with weights computed at run time,", "constant weights")
    largest = 255 * float(sums(np.asarray(weights, np.int64) - _zeros(ctx, zero, weights.ndim)).max(initial=0))
    if largest > 2**24:
        ctx.refuse(f"sums of integers up to {math.ceil(largest)}", f"at most {2**24}, which float32 represents exactly")


def _zeros(ctx: NodeContext, zero: int, rank: int) -> Any:
    if not ctx.has(zero):
        return 0
    array = ctx.constant(zero)
    if array is None:
        ctx.refuse("a zero point of weights, computed at run time,", "a constant")
    if array.size == 1:
        return np.asarray(array, np.int64).reshape(())
    return np.asarray(array, np.int64).reshape([-1, *[1] * (rank - 1)] if ctx.node.op_type == "ConvInteger" else [-1])


@writes("Resize")
def _resize(ctx: NodeContext) -> View:
    """Write Resize; the version of opset 10 is Upsample."""
    if ctx.opset < 11:
        return _upsample(ctx)
    for name, expected in _REFUSED.items():
        if ctx.attribute(name, expected) != expected:
            ctx.refuse(f"{name} {shown(ctx.attribute(name))}", str(expected))
    transform = ctx.attribute("coordinate_transformation_mode", "half_pixel")
    if transform not in _TRANSFORMS:
        ctx.refuse(f"coordinate_transformation_mode {shown(transform)}", ", ".join(_TRANSFORMS))
    ctx.attribute("extrapolation_value")  # of tf_crop_and_resize
    rank = ctx.view(0).rank
    axes = [ctx.axis(axis, rank) for axis in ctx.attribute("axes") or range(rank)]
    data = {
        "coordinate_transformation_mode": transform,
        "nearest_mode": ctx.attribute("nearest_mode", "round_prefer_floor"),
        "cube_coeff": float(ctx.attribute("cubic_coeff_a", -0.75)),
    }
    by_sizes = ctx.has(3)
    return _interpolated(ctx, 3 if by_sizes else 2, axes, "sizes" if by_sizes else "scales", data)


@writes("Upsample")
def _upsample(ctx: NodeContext) -> View:
    """Write Upsample, whose scales are an attribute before opset 9."""
    data = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return _interpolated(ctx, 1, list(range(ctx.view(0).rank)), "scales", data)


def _interpolated(ctx: NodeContext, position: int, axes: list[int], by: str, data: dict[str, Any]) -> View:
    """Write Interpolate along the axes whose sizes change; `position` is the input with sizes or scales."""
    view, mode = ctx.view(0), ctx.attribute("mode", "nearest")
    if mode not in _MODES:
        ctx.refuse(f"mode {shown(mode)}", ", ".join(_MODES))
    listed = ctx.attribute("scales") if by == "scales" else None
    constant = ctx.constant(position) if listed is None else np.array(listed, np.float32)
    precision = "FP32" if by == "scales" else "I64"
    if constant is None:
        if mode != "nearest":
            ctx.refuse(f"{by}, computed at run time, in mode {mode},", "constants, or mode nearest")
        target = ctx[position]
    else:
        same = [1.0] * len(axes) if by == "scales" else [view.shape[axis] for axis in axes]
        changed = [k for k, value in enumerate(constant.tolist()) if value != same[k]]
        axes, constant = [axes[k] for k in changed], constant[changed]
        if not axes:
            return view
        target = ctx.const(by, constant, precision)
    inputs = [ctx[0], target, ctx.const("axes", axes)]
    return ctx.result("Interpolate", 11, inputs, view.rank, mode=_MODES[mode], shape_calculation_mode=by, **data)


def _blocks(ctx: NodeContext, kind: str) -> View:
    """Write DepthToSpace or SpaceToDepth; in mode DCR, the parts of a block are the outer part of the depth."""
    modes = {"DCR": "blocks_first", "CRD": "depth_first"}
    mode = ctx.attribute("mode", "DCR")
    if mode not in modes:
        ctx.refuse(f"mode {shown(mode)}", "DCR or CRD")
    return ctx.result(kind, 1, [ctx[0]], 4, mode=modes[mode], block_size=ctx.attribute("blocksize"))


for operator in ("DepthToSpace", "SpaceToDepth"):
    writes(operator)(partial(_blocks, kind=operator))
