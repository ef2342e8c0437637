"""Operations that resample images."""

from __future__ import annotations

from pyrnnx.errors import FormatError

from ..attributes import LARGEST
from ..context import LayerContext, translates

_TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


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
    if ctx.shape(0) is not None:
        axes = ctx.axes(axes, ctx.rank(0))
    if ctx.length(target, "sizes or scales") not in (None, len(axes)):
        raise FormatError(
            f"{ctx.label}: input {target} has shape {ctx.shape(target)}; expected one value for each axis, {axes}"
        )
    scales = sizes = ""
    if by_scales:
        scales = ctx.as_dtype(target, "float32")
    else:
        sizes = ctx.list_of_int64(target)
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
    if max(len(begin), len(end)) > rank:
        raise FormatError(f"{ctx.label}: pads_begin is {begin}, pads_end {end}; expected at most {rank} of each")
    begin, end = ((pads + [0] * rank)[:rank] for pads in (begin, end))
    return ctx.node("Pad", ctx[0], ctx.constant(begin + end))


@translates("GridSample", since=9)
def _grid_sample(ctx: LayerContext) -> str:
    mode = ctx.choice("mode", {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}, "bilinear")
    pads = {name: name for name in ("zeros", "border", "reflection")}
    padding = ctx.choice("padding_mode", pads, "zeros")
    corners = int(ctx.flag("align_corners", False))
    return ctx.node("GridSample", ctx[0], ctx[1], mode=mode, padding_mode=padding, align_corners=corners)
