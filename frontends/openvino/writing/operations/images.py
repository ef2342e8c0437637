"""Operators that resample images, or move blocks of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyrnnx.errors import shown

from ..context import NodeContext, writes
from ..views import View

_MODES = {"nearest": "nearest", "linear": "linear_onnx", "cubic": "cubic"}
_TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn")
_REFUSED = {"antialias": 0, "exclude_outside": 0, "keep_aspect_ratio_policy": "stretch"}


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
