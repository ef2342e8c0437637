"""Resampling of images."""

from __future__ import annotations

from pyrnnx.errors import FormatError

from ..attributes import LARGEST
from ..call import Call
from ..registry import translates

_TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@translates("Interpolate", since=4)
def _interpolate_4(call: Call) -> str:
    """Inputs: the value, sizes, scales, axes."""
    by_scales = _by_scales(call)
    return _resize(call, 2 if by_scales else 1, 3, by_scales)


@translates("Interpolate", since=11)
def _interpolate_11(call: Call) -> str:
    """Inputs: the value, sizes or scales, axes."""
    return _resize(call, 1, 2, _by_scales(call))


def _by_scales(call: Call) -> bool:
    return call.choice("shape_calculation_mode", {"sizes": False, "scales": True})


def _resize(call: Call, given: int, axes_input: int, by_scales: bool) -> str:
    mode = call.choice("mode", {"nearest": "nearest", "linear_onnx": "linear", "linear": "linear", "cubic": "cubic"})
    rounding = call.text("nearest_mode", "round_prefer_floor")
    transform = call.text("coordinate_transformation_mode", "half_pixel")
    coefficient = call.number("cube_coeff", -0.75)
    if mode == "nearest" and rounding not in _NEAREST:
        call.refuse("nearest_mode", rounding, " or ".join(_NEAREST))
    if transform not in _TRANSFORMS:
        call.refuse("coordinate_transformation_mode", transform, " or ".join(_TRANSFORMS))
    if call.flag("antialias", False) and mode != "nearest":
        call.refuse("antialias", True, "false")
    axes = call.integers(axes_input, "axes") if call.has(axes_input) else list(range(call.rank(0)))
    if call.shape(0) is not None:
        axes = call.axes(axes, call.rank(0))
    if call.length(given, "sizes or scales") not in (None, len(axes)):
        raise FormatError(
            f"{call.label}: input {given} has shape {call.shape(given)}; expected one for each axis, {axes}"
        )
    scales = sizes = ""
    if by_scales:
        scales = call.as_dtype(given, "float32")
    else:
        sizes = call.list_of_int64(given)
    return call.node(
        "Resize",
        _padded(call),
        "",
        scales,
        sizes,
        mode=mode,
        axes=axes,
        coordinate_transformation_mode=transform,
        nearest_mode=rounding if mode == "nearest" else None,
        cubic_coeff_a=coefficient if mode == "cubic" else None,
    )


def _padded(call: Call) -> str:
    begin, end = (call.wholes(name, [], low=0, high=LARGEST) for name in ("pads_begin", "pads_end"))
    if not any(begin) and not any(end):
        return call[0]
    rank = call.rank(0)
    if max(len(begin), len(end)) > rank:
        raise FormatError(f"{call.label}: pads_begin is {begin}, pads_end {end}; expected at most {rank} of each")
    pads = [(given + [0] * rank)[:rank] for given in (begin, end)]
    return call.node("Pad", call[0], call.constant(pads[0] + pads[1]))


@translates("GridSample", since=9)
def _grid_sample(call: Call) -> str:
    mode = call.choice("mode", {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}, "bilinear")
    pads = {name: name for name in ("zeros", "border", "reflection")}
    padding = call.choice("padding_mode", pads, "zeros")
    corners = int(call.flag("align_corners", False))
    return call.node("GridSample", call[0], call[1], mode=mode, padding_mode=padding, align_corners=corners)
