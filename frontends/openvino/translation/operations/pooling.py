"""Operations that pool windows or resample images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..attributes import LARGEST
from ..context import LayerContext, translates
from .linear import auto_pads

_AVERAGES = 2**22  # limit of elements in the weight matrix of an AdaptiveAvgPool
_ROUNDING = {"floor": "floor", "ceil": "ceil", "ceil_torch": "ceil_torch"}
_TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _window(ctx: LayerContext) -> tuple[dict[str, Any], bool]:
    """Return the attributes of the ONNX node, and whether the operation declares pads.

    If the result is rounded up and the input's sizes are known, the pads are enlarged at the end so that the last
    window is complete; else the node rounds up.
    """
    kernel = ctx.wholes("kernel", low=1, high=LARGEST)
    count = len(kernel)
    strides, dilations = (
        ctx.wholes(name, [1] * count, count=count, low=1, high=LARGEST) for name in ("strides", "dilations")
    )
    shape = ctx.shape(0)
    sizes = (None,) * count if shape is None else shape[2:]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    attributes |= auto_pads(ctx, sizes, kernel, strides, dilations)
    rounding, pads = ctx.choice("rounding_type", _ROUNDING, "floor"), attributes.get("pads")
    if pads is None:
        if rounding != "floor" or max(dilations) > 1:
            ctx.refuse("auto_pad", ctx.text("auto_pad"), "explicit pads if the sizes of the input are unknown")
        return attributes, True
    if rounding != "floor":
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        missing = [
            _missing(ctx, rounding, size, (pads[axis], pads[count + axis]), extents[axis], strides[axis])
            for axis, size in enumerate(sizes)
        ]
        if None in missing:
            attributes["ceil_mode"] = 1
        else:
            attributes["pads"] = [*pads[:count], *(pads[count + k] + (more or 0) for k, more in enumerate(missing))]
    return attributes, any(pads)


def _missing(
    ctx: LayerContext, rounding: str, size: int | None, pads: Sequence[int], extent: int, stride: int
) -> int | None:
    """Return how many elements the last window lacks; None if the size is unknown.

    A window that begins in the pads at the end is empty: ceil_torch leaves it out, and implementations of ceil differ.
    """
    before, after = pads
    if size is None:
        if rounding == "ceil_torch" or stride + after <= extent:
            return None
    else:
        missing = -(size + before + after - extent) % stride
        if after + missing < extent:
            return missing
        if rounding == "ceil_torch":
            return 0
    return ctx.refuse("rounding_type", rounding, "floor if a window may begin in the pads after the input")


@translates("MaxPool")
def _max_pool(ctx: LayerContext) -> list[str]:
    """Return values and, since opset 8, indices among elements from `axis` on; ONNX counts all elements."""
    window, _ = _window(ctx)
    if ctx.opset < 8:
        return ctx.nodes("MaxPool", ctx[0], outputs=1, **window)
    axis = ctx.whole("axis", 0)
    dtype = ctx.type_attribute("index_element_type", "i64")
    if not ctx.scope.is_used(ctx.layer, 1):
        return ctx.nodes("MaxPool", ctx[0], outputs=1, **window)
    values, indices = ctx.nodes("MaxPool", ctx[0], outputs=2, **window)
    if ctx.axis(axis, ctx.rank(0)):
        shape = ctx.node("Slice", ctx.node("Shape", ctx[0]), ctx.constant([axis]), ctx.constant([ctx.rank(0)]))
        indices = ctx.node("Mod", indices, ctx.node("ReduceProd", shape, ctx.constant([0]), keepdims=0))
    return [values, indices if dtype == "int64" else ctx.cast(indices, dtype)]


@translates("AvgPool")
def _avg_pool(ctx: LayerContext) -> str:
    """Average the elements of each window, without pads if exclude-pad is set.

    Else the mean includes declared pads and what rounding up adds, as in OpenVINO's CPU plugin.
    """
    window, has_pads = _window(ctx)
    included = not ctx.flag("exclude-pad") and has_pads
    if included and "ceil_mode" in window:
        ctx.refuse("exclude-pad", False, "true if the result is rounded up and the sizes of the input are unknown")
    return ctx.node("AveragePool", ctx[0], count_include_pad=int(included), **window)


@translates("AdaptiveAvgPool", since=8)
def _adaptive_avg_pool(ctx: LayerContext) -> str:
    """Average windows by a weight matrix for each axis; window k of n is floor(k*size/n) to ceil((k+1)*size/n)."""
    shape, rank = ctx.shape(0), ctx.rank(0)
    sizes = ctx.integers(1, "output_shape", count=rank - 2, low=1)
    if all(size == 1 for size in sizes):
        return ctx.node("GlobalAveragePool", ctx[0])
    name = ctx[0]
    for axis, size in enumerate(sizes, start=2):
        whole = None if shape is None else shape[axis]
        if whole is None:
            ctx.refuse("output_shape", sizes, "1 for every axis if the sizes of the input are unknown")
        if whole * size > _AVERAGES:
            ctx.refuse(
                "output_shape", sizes, f"at most {_AVERAGES} for the product of a size with the input's, {shape}"
            )
        k, place = np.arange(size), np.arange(whole)[:, None]
        first, last = k * whole // size, -(-(k + 1) * whole // size)
        weights = ((first <= place) & (place < last)) / np.maximum(last - first, 1)
        order = [*(k for k in range(rank) if k != axis), axis]
        product = ctx.node("MatMul", ctx.transpose(name, order), ctx.constant(weights, ctx.dtype(0)))
        name = ctx.transpose(product, [*range(axis), rank - 1, *range(axis, rank - 1)])
    return name


@translates("Interpolate", since=4)
def _interpolate(ctx: LayerContext) -> str:
    """Resize by the inputs value, sizes, scales, axes; since opset 11, sizes and scales are one input."""
    by_scales = ctx.choice("shape_calculation_mode", {"sizes": False, "scales": True})
    target, axes_input = (1, 2) if ctx.opset >= 11 else (2 if by_scales else 1, 3)
    mode = ctx.choice("mode", {"nearest": "nearest", "linear_onnx": "linear", "linear": "linear", "cubic": "cubic"})
    rounding = ctx.text("nearest_mode", "round_prefer_floor")
    transform = ctx.text("coordinate_transformation_mode", "half_pixel")
    coefficient = ctx.number("cube_coeff", -0.75)
    if mode == "nearest" and rounding not in _NEAREST:
        ctx.refuse("nearest_mode", rounding, " or ".join(_NEAREST))
    if transform not in _TRANSFORMS:
        ctx.refuse("coordinate_transformation_mode", transform, " or ".join(_TRANSFORMS))
    if ctx.flag("antialias", False) and mode != "nearest":
        ctx.refuse("antialias", True, "false")
    axes = ctx.integers(axes_input, "axes") if ctx.has(axes_input) else list(range(ctx.rank(0)))
    scales, sizes = (ctx.as_dtype(target, "float32"), "") if by_scales else ("", ctx.list_of_int64(target))
    return ctx.node(
        "Resize",
        _padded(ctx),
        "",
        scales,
        sizes,
        mode=mode,
        axes=axes,
        coordinate_transformation_mode=transform,
        nearest_mode=rounding if mode == "nearest" else None,
        cubic_coeff_a=coefficient if mode == "cubic" else None,
    )


def _padded(ctx: LayerContext) -> str:
    begin, end = (ctx.wholes(name, [], low=0, high=LARGEST) for name in ("pads_begin", "pads_end"))
    if not any(begin) and not any(end):
        return ctx[0]
    rank = ctx.rank(0)
    begin, end = (pads + [0] * (rank - len(pads)) for pads in (begin, end))
    return ctx.node("Pad", ctx[0], ctx.constant(begin + end))


@translates("GridSample", since=9)
def _grid_sample(ctx: LayerContext) -> str:
    mode = ctx.choice("mode", {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}, "bilinear")
    pads = {name: name for name in ("zeros", "border", "reflection")}
    padding = ctx.choice("padding_mode", pads, "zeros")
    corners = int(ctx.flag("align_corners", False))
    return ctx.node("GridSample", ctx[0], ctx[1], mode=mode, padding_mode=padding, align_corners=corners)
