"""Size rules for operators with windows over space or time: convolutions, pooling, resizing, spectra.

Temporary arrays of onnx's ReferenceEvaluator count too: padded inputs, dilated kernels, columns of windows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .call import DOUBLE, Call, Rule, count, replaced

LISTED = 40  # bytes of an integer in a list of Python


def _padded(call: Call, X: Any, kernel: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the spatial sizes of the padded input, the dilated kernel and the result."""
    nd = X.ndim - 2
    dilations, strides = _of_length(nd, call.attribute("dilations"), 1), _of_length(nd, call.attribute("strides"), 1)
    pads = list(call.attribute("pads") or [0])
    if len(pads) != 2 * nd:  # the evaluator may use one value for all sides
        pads = [max(pads)] * (2 * nd)
    dilated = [(k - 1) * d + 1 for k, d in zip(_of_length(nd, kernel, 1), dilations, strict=True)]
    same = call.attribute("auto_pad", "NOTSET").startswith("SAME")  # the evaluator's MaxPool pads in both ways
    padded = [
        size + (dilated[a] if same else 0) + pads[a] + pads[a + nd] for a, size in enumerate(map(int, X.shape[2:]))
    ]
    result = [-(-(p - k) // s) + 1 for p, k, s in zip(padded, dilated, strides, strict=True)]
    return padded, dilated, result


def _of_length(length: int, values: Sequence[int] | None, default: int) -> list[int]:
    """Return a value for each axis: the evaluator also runs operators whose lists are too short or too long."""
    return [*(values or ()), *[default] * length][:length]


def _convolution(call: Call, X: Any, W: Any) -> int:
    kernel = list(call.attribute("kernel_shape") or W.shape[2:])
    padded, dilated, result = _padded(call, X, kernel)
    places = int(X.shape[0]) * count(result)
    columns = X.shape[1] * count(dilated) * places
    weights = W.shape[0] * W.shape[1] * count(dilated)
    return int(count((*X.shape[:2], *padded)) + weights + columns + W.shape[0] * places) * max(call.itemsize, 4)


def _conv(call: Call) -> int:
    return _convolution(call, call.arrays[0], call.arrays[1])


def _quantized_conv(call: Call) -> int:
    return _convolution(call, call.arrays[0], call.arrays[3])


def _deformed(call: Call) -> int:
    X, W, offset = call.arrays[:3]
    return int(X.shape[0] * W.shape[0] * count(offset.shape[2:])) * call.itemsize + int(offset.nbytes)


def _transposed(call: Call) -> int:
    X, W = call.arrays[:2]
    nd = X.ndim - 2
    sizes = call.attribute("output_shape")
    if sizes is None:
        names = {"strides": 1, "dilations": 1, "output_padding": 0}
        strides, dilations, extra = (list(call.attribute(name) or [value] * nd) for name, value in names.items())
        pads = list(call.attribute("pads") or [0] * (2 * nd))
        sizes = [
            strides[a] * (X.shape[2 + a] - 1) + extra[a] + (W.shape[2 + a] - 1) * dilations[a] + 1
            - pads[a] - pads[a + nd] for a in range(nd)
        ]  # fmt: skip
    channels = W.shape[1] * call.attribute("group", 1)
    columns = channels * count(W.shape[2:]) * count(X.shape[2:])
    return int(X.shape[0] * channels * count(sizes) + columns) * DOUBLE


def _pool(call: Call) -> int:
    X = call.arrays[0]
    padded, _, result = _padded(call, X, list(call.attribute("kernel_shape")))
    # The evaluator pads even by an invalid negative stride.
    reach = [max(size, abs(s)) for size, s in zip(padded, call.attribute("strides") or [1] * len(padded), strict=False)]
    # It lists the places along each axis before it begins, even if another axis is empty.
    listed = sum(max(int(size), 0) for size in (*X.shape[:2], *result)) * LISTED
    return int(count(X.shape[:2]) * (count(reach) + 2 * count(result))) * DOUBLE + listed


def _unpool(call: Call) -> int:
    X, sizes = call.arrays[0], call.integers(2)
    if sizes is None:
        kernel, nd = call.attribute("kernel_shape"), X.ndim - 2
        strides, pads = call.attribute("strides") or [1] * nd, call.attribute("pads") or [0] * (2 * nd)
        space = [(X.shape[2 + a] - 1) * strides[a] + kernel[a] - pads[a] - pads[a + nd] for a in range(nd)]
        sizes = [*X.shape[:2], *space]
    return count(sizes) * int(X.itemsize)


def _roi(call: Call) -> int:
    X, rois = call.arrays[:2]
    height, width = call.attribute("pooled_shape") or (
        call.attribute("output_height", 1),
        call.attribute("output_width", 1),
    )
    return count((rois.shape[0], X.shape[1], height, width)) * int(X.itemsize)


def _columns_to_image(call: Call) -> int:
    X, image, block = call.arrays[0], call.integers(1) or [], call.integers(2) or []
    return count((X.shape[0], X.shape[1] // max(count(block), 1), *image)) * int(X.itemsize)


def _grid_sample(call: Call) -> int:
    X, grid = call.arrays[:2]
    return count((*X.shape[:2], *grid.shape[1:-1])) * int(X.itemsize)


def _affine_grid(call: Call) -> int:
    size = call.integers(1) or []
    return count((size[0], *size[2:], len(size))) * 2 * DOUBLE


def _crop_or_pad(call: Call) -> int:
    X, axes = call.arrays[0], call.attribute("axes")
    return count(replaced(X.shape, call.integers(1) or [], axes)) * int(X.itemsize)


def _resize(call: Call) -> int:
    X, axes = call.arrays[0], call.attribute("axes")
    axes = list(range(X.ndim)) if axes is None else list(axes)
    sizes, scales = call.integers(3), call.input(1 if len(call.arrays) == 2 else 2)
    if sizes:
        if call.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
            scale = max(size / X.shape[axis] for size, axis in zip(sizes, axes, strict=True))
            sizes = [math.ceil(X.shape[axis] * scale) for axis in axes]
    else:
        factors = call.attribute("scales") if scales is None else scales.ravel().tolist()
        if factors is None:  # Upsample-1
            factors = [1, 1, call.attribute("height_scale"), call.attribute("width_scale")]
        sizes = [math.ceil(X.shape[axis] * factor) for axis, factor in zip(axes, factors, strict=True)]
    # Axis by axis: an empty result can be large in between.
    return count(max(size, 1) for size in replaced(X.shape, sizes, axes)) * int(X.itemsize)


def _window(call: Call) -> int:
    return max(int(call.arrays[0].item()), 0) * DOUBLE


def _mel_weights(call: Call) -> int:
    bins, length = (max(int(array.item()), 0) for array in call.arrays[:2])
    return (bins + 2) * (length // 2 + 1) * DOUBLE


def _dft(call: Call) -> int:
    X, length = call.arrays[0], call.integers(1)
    axis = call.integers(2)
    shape = replaced(X.shape, length, axis or [call.attribute("axis", 1)]) if length else X.shape
    return count(shape) * 4 * DOUBLE


def _stft(call: Call) -> int:
    signal, step, window, length = (call.input(k) for k in range(4))
    size = window.size if length is None else int(length.item())
    frames = max((signal.shape[1] - size) // int(step.item()) + 1, 0)
    return count((signal.shape[0], frames, max(size, window.size if window is not None else 0))) * 4 * DOUBLE


def _scores(call: Call) -> int:
    """Return the bytes of Attention: products of all queries and keys, and the result."""
    Q, K, V = call.arrays[:3]
    heads = Q.shape[1] if Q.ndim == 4 else max(call.attribute("q_num_heads", 1), 1)
    past = call.input(4)
    keys = K.shape[-2] + (past.shape[-2] if past is not None else 0)
    rest = sum(array.nbytes for array in call.arrays if array is not None)
    return int(2 * Q.shape[0] * heads * Q.shape[-2] * keys) * max(call.itemsize, 4) + int(rest + Q.nbytes + V.nbytes)


def _linear_attention(call: Call) -> int:
    """Return the bytes of LinearAttention: temporary and final state, and the result."""
    Q, K, V = call.arrays[:3]
    heads, queries = max(call.attribute("kv_num_heads", 1), 1), max(call.attribute("q_num_heads", 1), 1)
    state = int(K.shape[0] * (K.shape[-1] // heads) * V.shape[-1])
    result = int(Q.shape[0] * Q.shape[1]) * queries * int(V.shape[-1] // heads)
    return int(3 * state + result) * max(call.itemsize, 4)


SPATIAL: Mapping[str, Rule] = MappingProxyType(
    {
        "AffineGrid": _affine_grid,
        "Attention": _scores,
        "AveragePool": _pool,
        "BlackmanWindow": _window,
        "CenterCropPad": _crop_or_pad,
        "Col2Im": _columns_to_image,
        "Conv": _conv,
        "ConvInteger": _conv,
        "ConvTranspose": _transposed,
        "DFT": _dft,
        "DeformConv": _deformed,
        "GridSample": _grid_sample,
        "HammingWindow": _window,
        "HannWindow": _window,
        "LinearAttention": _linear_attention,
        "LpPool": _pool,
        "MaxPool": _pool,
        "MaxRoiPool": _roi,
        "MaxUnpool": _unpool,
        "MelWeightMatrix": _mel_weights,
        "QLinearConv": _quantized_conv,
        "Resize": _resize,
        "RoiAlign": _roi,
        "STFT": _stft,
        "Upsample": _resize,
    }
)
