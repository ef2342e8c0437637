"""Size rules for operators with windows over space or time: convolutions, pooling, resizing, spectra.

Temporary arrays of onnx's ReferenceEvaluator count too: padded inputs, dilated kernels, columns of windows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from .call import DOUBLE, LISTED, Call, Rule, count, filled, joined, replaced

_PLACE = 130  # bytes of one place of a window in lists: its indices in a tuple, its value
_SAMPLE = 450  # bytes of an object of RoiAlign with the weights of a place


def _padded(
    call: Call, X: Any, kernel: list[int], ignored: tuple[str, ...] = ("SAME_UPPER", "SAME_LOWER", "VALID")
) -> tuple[list[int], list[int], list[int]]:
    """Return the spatial sizes of the padded input, the dilated kernel and the result.

    Pads are ignored for the values `ignored` of auto_pad.
    """
    nd = X.ndim - 2
    dilations, strides = _of_length(nd, call.attribute("dilations"), 1), _of_length(nd, call.attribute("strides"), 1)
    dilated = [(k - 1) * d + 1 for k, d in zip(_of_length(nd, kernel, 1), dilations, strict=True)]
    auto_pad = call.attribute("auto_pad", "NOTSET")
    pads = list(call.attribute("pads") or [0]) if auto_pad not in ignored else [0]
    if len(pads) != 2 * nd:  # the evaluator may use one value for all sides
        pads = [max(pads)] * (2 * nd)
    both = [pads[a] + pads[a + nd] for a in range(nd)]
    if not ignored and nd == 2:  # the evaluator's MaxPool also reads them as top, bottom, left, right
        both = [max(both[0], pads[0] + pads[1]), max(both[1], pads[2] + pads[3])]
    rounded_up = call.attribute("ceil_mode", 0)
    if not ignored and rounded_up:
        both = [2 * pad for pad in both]
    # The evaluator pads up to the last window, and even by an invalid negative stride.
    more = [
        (k if rounded_up or auto_pad.startswith("SAME") else 0) + max(-s, 0)
        for k, s in zip(dilated, strides, strict=True)
    ]
    padded = [size + pad + m for size, pad, m in zip(map(int, X.shape[2:]), both, more, strict=True)]
    result = [-(-(p - k) // s) + 1 for p, k, s in zip(padded, dilated, strides, strict=True)]
    return padded, dilated, result


def _of_length(length: int, values: Sequence[int] | None, default: int) -> list[int]:
    """Return a value for each axis: the evaluator also runs operators whose lists are too short or too long."""
    return [*(values or ()), *[default] * length][:length]


def _convolution(call: Call, X: Any, W: Any) -> int:
    padded, dilated, result = _padded(call, X, list(call.attribute("kernel_shape") or W.shape[2:]))
    return _columns(call, X.shape[:2], padded, (*W.shape[:2], *dilated), result)


def _columns(
    call: Call, rows: Sequence[int], padded: Sequence[int], kernel: Sequence[int], result: Sequence[int]
) -> int:
    """Return the bytes of a convolution: first columns, their copy and their indices; then columns and the product."""
    itemsize, places = max(call.itemsize, 4), count(result)
    columns = int(rows[1]) * count(kernel[2:]) * places
    gathered = places * DOUBLE + columns * (DOUBLE * len(result) + 2 * int(rows[0]) * itemsize)
    multiplied = int(rows[0]) * (columns * itemsize + int(kernel[0]) * places * DOUBLE * 3)
    return (count((*rows, *padded)) + count(kernel)) * itemsize + max(gathered, multiplied)


def _conv(call: Call) -> int:
    return _convolution(call, call.arrays[0], call.arrays[1])


def _quantized_conv(call: Call) -> int:
    X, W, scales = call.arrays[0], call.arrays[3], (call.arrays[k].shape for k in (1, 6))
    result = X.shape[0], W.shape[0], *_padded(call, X, list(call.attribute("kernel_shape") or W.shape[2:]))[2]
    return _convolution(call, X, W) + (count(joined(result, *scales)) - count(result)) * DOUBLE * 4


def _causal_conv(call: Call) -> int:
    (rows, channels, length), W = call.arrays[0].shape, call.arrays[1]
    padded = [length + W.shape[2] - 1]
    return _columns(call, (rows, channels), padded, (channels, 1, W.shape[2]), [length])


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
        if call.attribute("auto_pad", "NOTSET").startswith("SAME"):
            sizes = [max(size, X.shape[2 + a] * strides[a]) for a, size in enumerate(sizes)]
    columns = int(W.shape[1]) * count(W.shape[2:]) * count(X.shape[2:])
    result = int(X.shape[0] * W.shape[1]) * call.attribute("group", 1) * count(sizes)
    return int(2 * result + columns + count(sizes)) * max(call.itemsize, 4)


def _pool(call: Call) -> int:
    """Return the bytes of AveragePool and LpPool, which take the absolute values to a power first."""
    X, kernel = call.arrays[0], list(call.attribute("kernel_shape"))
    padded, _, result = _padded(call, X, kernel)
    powers = 2 * int(X.size) if call.node.op_type == "LpPool" else 0
    return _windows(X, padded, [*map(min, kernel, padded)], result) + powers * max(int(X.itemsize), 4)


def _max_pool(call: Call) -> int:
    X, kernel = call.arrays[0], list(call.attribute("kernel_shape"))
    if {*(call.attribute("strides") or [1]), *(call.attribute("dilations") or [1])} != {1}:  # without padding
        return count((*X.shape[:2], *_padded(call, X, kernel)[2])) * (int(X.itemsize) + DOUBLE)
    padded, _, result = _padded(call, X, kernel, ignored=())
    return _windows(X, padded, kernel, result)


def _windows(X: Any, padded: Sequence[int], kernel: Sequence[int], result: Sequence[int]) -> int:
    """Return the bytes of pooling: the padded input, the places of one window in lists, the result."""
    images = count(X.shape[:2])
    # The places along each axis are listed before the first window, even if another axis is empty.
    listed = sum(max(int(size), 0) for size in (*X.shape[:2], *result)) * LISTED
    window = (sum(kernel) * LISTED + count(kernel) * _PLACE) * min(images, 1)
    return images * (count(padded) * max(int(X.itemsize), 4) + count(result) * DOUBLE * 3) + listed + window


def _unpool(call: Call) -> int:
    X, sizes = call.arrays[0], call.integers(2)
    kernel, nd = call.attribute("kernel_shape"), X.ndim - 2
    strides, pads = call.attribute("strides") or [1] * nd, call.attribute("pads") or [0] * (2 * nd)
    space = [(X.shape[2 + a] - 1) * strides[a] + kernel[a] - pads[a] - pads[a + nd] for a in range(nd)]
    inferred = count((*X.shape[:2], *space))
    result = inferred if sizes is None else count(sizes)
    return (inferred + result) * int(X.itemsize) + int(X.size) * (int(X.itemsize) + DOUBLE)


def _roi_shape(call: Call) -> Sequence[int]:
    names = ("output_height", "output_width")
    return call.attribute("pooled_shape") or [call.attribute(name, 1) for name in names]


def _roi(call: Call) -> int:
    X, rois = call.arrays[:2]
    return count((rois.shape[0], X.shape[1], *_roi_shape(call))) * int(X.itemsize)


def _aligned_roi(call: Call) -> int:
    """Return the bytes of RoiAlign: the result, and objects for the samples of the largest region."""
    rois, ratio, scale = call.arrays[1], call.attribute("sampling_ratio", 0), call.attribute("spatial_scale", 1.0)
    samples = 1
    for size, begin in zip(_roi_shape(call), (1, 0), strict=True):  # height and width; regions are x, y, x, y
        extent = float(np.nan_to_num(rois[:, begin + 2] - rois[:, begin]).max(initial=0)) * scale
        samples *= size * (ratio if ratio > 0 else math.ceil(max(extent, 1.0) / size))
    return 2 * _roi(call) + samples * _SAMPLE + int(call.arrays[0].nbytes)


def _columns_to_image(call: Call) -> int:
    X, image, block = call.arrays[0], call.integers(1) or [], call.integers(2) or []
    return count((X.shape[0], X.shape[1] // max(count(block), 1), *image)) * int(X.itemsize)


def _grid_sample(call: Call) -> int:
    X, grid = call.arrays[:2]
    places = grid.shape[1:-1]
    # The indices of all places of one image are an array, made from lists.
    indices = count(places) * len(places) * DOUBLE + sum(places) * LISTED if X.size else 0
    return 2 * count((*X.shape[:2], *places)) * int(X.itemsize) + indices


def _affine_grid(call: Call) -> int:
    size = call.integers(1) or []
    return count((size[0], *size[2:], len(size))) * 2 * DOUBLE


def _crop_or_pad(call: Call) -> int:
    X, axes = call.arrays[0], call.attribute("axes")
    return count(replaced(X.shape, call.integers(1) or [], axes)) * int(X.itemsize)


def _resized(call: Call) -> tuple[list[int], list[int]]:
    """Return the axes of Resize or Upsample, and their new sizes."""
    X, axes = call.arrays[0], call.attribute("axes")
    axes = list(range(X.ndim)) if axes is None else list(axes)
    sizes, scales = call.integers(3), call.input(1 if len(call.arrays) == 2 else 2)
    if sizes:
        if call.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
            scale = max(size / X.shape[axis] for size, axis in zip(sizes, axes, strict=True))
            sizes = [math.ceil(X.shape[axis] * scale) for axis in axes]
        return axes, sizes
    factors = call.attribute("scales") if scales is None else scales.ravel().tolist()
    if factors is None:  # Upsample-1
        factors = [1, 1, call.attribute("height_scale"), call.attribute("width_scale")]
    return axes, [math.ceil(X.shape[axis] * factor) for axis, factor in zip(axes, factors, strict=True)]


def _upsample(call: Call) -> int:
    """Return the bytes of Upsample: the result, and at most half of it before the last axis."""
    X, (axes, sizes) = call.arrays[0], _resized(call)
    return filled(replaced(X.shape, sizes, axes)) * int(X.itemsize) * 3 // 2


def _resize(call: Call) -> int:
    """Return the bytes of Resize: axis by axis, in double, all elements that are combined; then the result."""
    X, (axes, sizes) = call.arrays[0], _resized(call)
    inner = [int(X.shape[axis]) for axis in axes]
    most = filled(inner)
    for k, size in enumerate(sizes):
        elements = 4 if call.attribute("mode") == "cubic" else 2
        if call.attribute("antialias", 0):
            elements *= math.ceil(max(inner[k] / max(size, 1), 1)) + 1
        inner[k] = size
        # An empty result can be large in between.
        most = max(most, filled(inner) * (2 * elements + 2) + size * (4 * elements + 10))
    return most * DOUBLE + count(replaced(X.shape, sizes, axes)) * int(X.itemsize)


def _window(call: Call) -> int:
    return max(int(call.arrays[0].item()), 0) * DOUBLE * 4


def _mel_weights(call: Call) -> int:
    bins, length = (max(int(array.item()), 0) for array in call.arrays[:2])
    return (bins + 2) * (length // 2 + 1) * DOUBLE * 2


def _dft(call: Call) -> int:
    """Return the bytes of a DFT, or of copies of the input, which may be longer."""
    X, length = call.arrays[0], call.integers(1)
    axis = call.integers(2)
    padded = replaced(X.shape, length, axis or [call.attribute("axis", 1)]) if length else X.shape
    return max(count(padded[:-1]) * 8 * DOUBLE, 3 * int(X.nbytes))


def _stft(call: Call) -> int:
    signal, step, window, length = (call.input(k) for k in range(4))
    size = window.size if length is None else int(length.item())
    frames = max((signal.shape[1] - size) // int(step.item()) + 1, 0)
    return count((signal.shape[0], frames, max(size, window.size if window is not None else 0))) * 8 * DOUBLE


def _scores(call: Call) -> int:
    """Return the bytes of Attention: products of all queries and keys, and the result."""
    Q, K, V = call.arrays[:3]
    heads = Q.shape[1] if Q.ndim == 4 else max(call.attribute("q_num_heads", 1), 1)
    past = call.input(4)
    keys = K.shape[-2] + (past.shape[-2] if past is not None else 0)
    rest = sum(array.nbytes for array in call.arrays if array is not None)
    # Present keys and values; then both for all heads of Q, scaled, while they are repeated.
    widths = K.nbytes // max(K.shape[-2], 1) + V.nbytes // max(V.shape[-2], 1)
    groups = max(heads // max(K.shape[1] if K.ndim == 4 else call.attribute("kv_num_heads", heads), 1), 1)
    repeated = int(widths) * int(keys) * (2 + 2 * (groups if groups > 1 else 0))
    mask = call.input(3)
    # All are broadcast with each other.
    leading = [(array.shape[0], max(heads, array.shape[1] if array.ndim == 4 else 0)) for array in (Q, K, V)]
    scores = [*joined(*leading[:2], () if mask is None else mask.shape[:-2]), Q.shape[-2]]
    if mask is not None and mask.ndim > 1:
        scores[-1] = max(scores[-1], mask.shape[-2])
    rows, result_rows = count(scores), count(joined(scores, (*leading[2], 1)))
    masked = 2 if call.attribute("is_causal", 0) else 0
    products = (5 + masked) * rows * keys * max(call.itemsize, 4)
    if mask is not None and mask.dtype == bool:
        rest += 2 * DOUBLE * mask.size
    width = V.shape[-1] if V.ndim == 4 else V.shape[-1] // max(call.attribute("kv_num_heads", 1), 1)
    return int(products + repeated + result_rows * width * call.itemsize + rest + Q.nbytes + V.nbytes)


def _linear_attention(call: Call) -> int:
    """Return the bytes of LinearAttention: temporary and final state, and the result."""
    Q, K, V = call.arrays[:3]
    heads, queries = max(call.attribute("kv_num_heads", 1), 1), max(call.attribute("q_num_heads", 1), 1)
    state = int(K.shape[0] * (K.shape[-1] // heads) * V.shape[-1])
    result = int(Q.shape[0] * Q.shape[1]) * queries * int(V.shape[-1] // heads)
    return int(6 * state + 3 * result) * max(call.itemsize, 4)


SPATIAL: Mapping[str, Rule] = MappingProxyType(
    {
        "AffineGrid": _affine_grid,
        "Attention": _scores,
        "AveragePool": _pool,
        "BlackmanWindow": _window,
        "CausalConvWithState": _causal_conv,
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
        "MaxPool": _max_pool,
        "MaxRoiPool": _roi,
        "MaxUnpool": _unpool,
        "MelWeightMatrix": _mel_weights,
        "QLinearConv": _quantized_conv,
        "Resize": _resize,
        "RoiAlign": _aligned_roi,
        "STFT": _stft,
        "Upsample": _upsample,
    }
)
