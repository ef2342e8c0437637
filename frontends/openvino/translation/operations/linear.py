"""Operations of linear algebra: matrix products, convolutions, attention, Fourier transforms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray
from pyrnnx.errors import FormatError, shown

from ...ir.layer import Output
from ..attributes import LARGEST
from ..context import Dims, LayerContext, translates

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")  # of an Einsum's equation


@translates("MatMul")
def _matmul(ctx: LayerContext) -> str:
    """Multiply matrices; flags swap the last two axes of an input, without effect on a vector."""
    if ctx.dtype(0) == "int32" and (quantized := _quantized_matmul(ctx)):
        return quantized
    names = []
    for k, flag in enumerate(("transpose_a", "transpose_b")):
        name = ctx[k]
        if ctx.flag(flag, False) and (rank := ctx.rank(k)) > 1:
            name = ctx.node("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])
        names.append(name)
    return ctx.node("MatMul", *names)


def _quantized_matmul(ctx: LayerContext) -> str:
    """Return the product of 8-bit data and constants, computed in 8 bits; "" for any other product."""
    array = ctx.array(1)
    if array is None or array.dtype != np.int32 or ctx.flag("transpose_a", False):
        return ""
    is_swapped = ctx.flag("transpose_b", False) and array.ndim > 1
    return _product(ctx, "MatMulInteger", array.swapaxes(-1, -2) if is_swapped else array)


# Products of int32 in quantized models are computed as products of bytes. The factors are Convert(u8) - Convert(zero
# point), and constants whose values span less than 256. All bytes are uint8, because ONNX Runtime's products of uint8
# and int8 saturate on processors without VNNI.
_HALF, _LARGEST = 128, 255


class _Byte(NamedTuple):
    """Name of a uint8 value, and of its zero point; "" means 0."""

    value: str
    zero: str


def _product(ctx: LayerContext, op_type: str, weights: AnyArray, **attributes: Any) -> str:
    """Return the product of input 0 with constant weights by ConvInteger or MatMulInteger; "" if they are no bytes."""
    offset = max(-int(weights.min(initial=0)), 0)
    data = _single_byte(ctx, 0)
    if data is None or offset > _LARGEST or int(weights.max(initial=0)) + offset > _LARGEST:
        return ""
    codes = ctx.constant((weights + offset).astype(np.uint8), "uint8")
    zeros = data.zero or ctx.constant(0, "uint8"), ctx.constant(offset, "uint8")
    return ctx.node(op_type, data.value, codes, *zeros, **attributes)


def _single_byte(ctx: LayerContext, k: int) -> _Byte | None:
    """Return the k-th input as one byte if it is converted from 8 bits, with or without a zero point; else None."""
    source = ctx.layer.sources[k]
    zero = None
    if source.layer.type.lower() == "subtract" and len(source.layer.sources) == 2:
        source, zero = source.layer.sources
    byte = _byte(ctx, source)
    if byte is None or zero is None:
        return byte
    shape, wide = zero.port.shape, source.port.shape  # a scalar's shape may be unknown
    if wide is None or (shape is not None and (len(shape) > len(wide) or any(size != 1 for size in shape))):
        return None
    array = ctx.scope.array(zero)
    if array is not None:
        if array.size != 1:
            return None
        value = int(array.item()) + (_HALF if byte.zero else 0)
        return _Byte(byte.value, ctx.constant(value, "uint8")) if 0 <= value <= _LARGEST else None
    subtracted = _byte(ctx, zero)
    if subtracted is None or bool(subtracted.zero) != bool(byte.zero):
        return None
    return _Byte(byte.value, ctx.reshape(subtracted.value, []))


def _byte(ctx: LayerContext, output: Output) -> _Byte | None:
    """Return the 8 bits that a Convert widens to int32; signed ones are shifted by a zero point of 128."""
    layer = output.layer
    if layer.type.lower() != "convert" or len(layer.sources) != 1 or output.port.precision != "I32":
        return None
    (source,) = layer.sources
    if source.port.precision not in ("U8", "I8"):
        return None
    name = ctx.scope.name(source)
    if source.port.precision == "U8":
        return _Byte(name, "")
    shifted = ctx.node("Add", ctx.cast(name, "int32"), ctx.constant(_HALF, "int32"))
    return _Byte(ctx.cast(shifted, "uint8"), ctx.constant(_HALF, "uint8"))


@translates("Einsum", since=7)
def _einsum(ctx: LayerContext) -> str:
    equation = ctx.text("equation").replace(" ", "")
    _check_equation(ctx, equation)
    return ctx.typed("Einsum", ctx.dtype(0), *ctx.inputs, equation=equation)


def _check_equation(ctx: LayerContext, equation: str) -> None:
    """Raise if the equation is malformed: onnx's shape inference may never end."""
    source, arrow, result = equation.partition("->")
    terms = source.split(",")
    fits = len(terms) == len(ctx) and all(_TERM.fullmatch(term) for term in (*terms, result))
    for k, term in enumerate(terms if fits else ()):
        shape, count = ctx.shape(k), len(term.replace("...", ""))
        fits &= shape is None or count == len(shape) or (count < len(shape) and "..." in term)
    letters = result.replace("...", "")
    fits &= not arrow or (len(set(letters)) == len(letters) and set(result) <= set(source))
    if not fits:
        shapes = ", ".join(str(ctx.shape(k)) for k in range(len(ctx)))
        raise FormatError(
            f"{ctx.label}: equation is {shown(equation)}; expected a term for each input with a letter for each axis "
            f"({shapes}), such as ij,jk->ik"
        )


# Convolutions

_AUTO_PAD = {"explicit": "", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID", "notset": ""}


def auto_pads(
    ctx: LayerContext,
    sizes: Dims | None,
    kernel: Sequence[int | None],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> dict[str, Any]:
    """Return the attribute pads or auto_pad of a node that slides a kernel over axes of these sizes.

    Known pads are written out: implementations of auto_pad differ for dilated kernels.
    """
    mode = ctx.choice("auto_pad", _AUTO_PAD, "explicit")
    count = len(strides)
    begin, end = _pads(ctx, count)
    if mode == "":
        return {"pads": begin + end}
    if mode == "VALID":
        return {"pads": [0] * 2 * count}
    if sizes is None or None in sizes or None in kernel:
        return {"auto_pad": mode}
    pads = []
    for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        assert size is not None and extent is not None  # noqa: PT018  (checked above)
        out = -(-size // stride)
        total = max((out - 1) * stride + (extent - 1) * dilation + 1 - size, 0)
        pads.append((total // 2, total - total // 2) if mode == "SAME_UPPER" else (total - total // 2, total // 2))
    return {"pads": [first for first, _ in pads] + [last for _, last in pads]}


def _pads(ctx: LayerContext, count: int) -> list[list[int]]:
    """Return pads_begin and pads_end."""
    names = ("pads_begin", "pads_end")
    return [ctx.wholes(name, [0] * count, count=count, low=-LARGEST, high=LARGEST) for name in names]


def _kernel(ctx: LayerContext, k: int, first: int, count: int) -> Dims:
    """Return the sizes of filters after their first axes."""
    shape = ctx.shape(k)
    return (None,) * count if shape is None else shape[first:]


def _strides(ctx: LayerContext) -> tuple[list[int], list[int]]:
    strides = ctx.wholes("strides", low=1, high=LARGEST)
    ones = [1] * len(strides)
    return strides, ctx.wholes("dilations", ones, count=len(strides), low=1, high=LARGEST)


def _groups(ctx: LayerContext) -> int:
    shape = ctx.shape(1)
    if shape is None or (shape[0] is None):
        ctx.refuse("number of groups", "dynamic", "a known one")
    return int(shape[0] or 0)


def _joined(ctx: LayerContext) -> str:
    """Reshape filters [G, A, B, ...] to [G*A, B, ...]."""
    shape = ctx.shape(1)
    assert shape is not None  # checked by _groups
    if None not in shape[2:]:
        return ctx.node("Reshape", ctx[1], ctx.constant([-1, *shape[2:]]))
    rest = ctx.node("Slice", ctx.node("Shape", ctx[1]), ctx.constant([2]), ctx.constant([len(shape)]))
    return ctx.node("Reshape", ctx[1], ctx.concat([ctx.constant([-1]), rest]))


def _convolution(ctx: LayerContext, *, grouped: bool) -> str:
    """Translate to Conv, or to a product of bytes for int32; grouped filters have a first axis of groups."""
    strides, dilations = _strides(ctx)
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations}
    if grouped:
        attributes["group"] = _groups(ctx)
    kernel = _kernel(ctx, 1, 2 + grouped, len(strides))
    sizes = ctx.shape(0)
    attributes |= auto_pads(ctx, None if sizes is None else sizes[2:], kernel, strides, dilations)
    dtype = ctx.dtype(0)
    if dtype not in INTEGERS:
        return ctx.node("Conv", ctx[0], _joined(ctx) if grouped else ctx[1], **attributes)
    array = ctx.array(1) if dtype == ctx.dtype(1) == "int32" else None
    name = ""
    if array is not None:
        filters = array.reshape(-1, *array.shape[2:]) if grouped else array
        name = _product(ctx, "ConvInteger", filters, **attributes)
    if not name:
        ctx.refuse("element type", dtype, "a floating-point one, or values and constant filters of 8 bits")
    return name


translates("Convolution")(partial(_convolution, grouped=False))
translates("GroupConvolution")(partial(_convolution, grouped=True))


def _conv_transpose(ctx: LayerContext, *, grouped: bool) -> str:
    """Translate to ConvTranspose; its pads follow from output_shape if there is one."""
    groups = _groups(ctx) if grouped else 1
    if ctx.dtype(0) in INTEGERS:
        ctx.refuse("element type", ctx.dtype(0), "a floating-point one, as ONNX's ConvTranspose has")
    strides, dilations = _strides(ctx)
    count = len(strides)
    kernel = _kernel(ctx, 1, 2 + grouped, count)
    extra = ctx.wholes("output_padding", [0] * count, count=count, low=0, high=LARGEST)
    mode = ctx.choice("auto_pad", _AUTO_PAD, "explicit")
    begin, end = _pads(ctx, count)
    filled = [0] * count
    if ctx.has(2):
        sizes = (ctx.shape(0) or (None,) * 3)[2:]
        if None in sizes or None in kernel:
            ctx.refuse("output_shape", "given", "none if the sizes of the input or of the kernel are unknown")
        for axis, out in enumerate(ctx.integers(2, "output_shape", count=count, low=0)):
            extent = (int(kernel[axis] or 0) - 1) * dilations[axis] + 1
            total = strides[axis] * (int(sizes[axis] or 0) - 1) + extra[axis] + extent - out
            # Zeros fill the end of an output_shape larger than the result; ONNX limits output_padding.
            lacking, room = max(-total, 0), max(strides[axis], dilations[axis]) - 1 - extra[axis]
            filled[axis] = max(lacking - max(room, 0), 0)
            extra[axis] += lacking - filled[axis]
            total = max(total, 0)
            if mode == "SAME_UPPER":
                begin[axis] = total - total // 2
            elif mode == "SAME_LOWER":
                begin[axis] = total // 2
            end[axis] = total - begin[axis]
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        ctx.refuse("auto_pad", ctx.text("auto_pad"), "explicit or valid without an output_shape")
    elif mode == "VALID":
        begin = end = [0] * count
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": [*begin, *end],
        "output_padding": extra if any(extra) else None,
        "group": groups,
    }
    result = ctx.node("ConvTranspose", ctx[0], _joined(ctx) if grouped else ctx[1], **attributes)
    return ctx.node("Pad", result, ctx.constant([0] * (count + 4) + filled)) if any(filled) else result


translates("ConvolutionBackpropData")(partial(_conv_transpose, grouped=False))
translates("GroupConvolutionBackpropData")(partial(_conv_transpose, grouped=True))


@translates("ScaledDotProductAttention", since=13)
def _attention(ctx: LayerContext) -> str:
    """Compute softmax(query * key^T * scale + mask) * value; the default scale is 1 / sqrt(size of a query)."""
    causal, dtype = ctx.flag("causal", False), ctx.dtype(0)
    if len(ctx) > 5:
        ctx.refuse("number of inputs", len(ctx), "at most 5: query, key, value, attention_mask, scale")
    rank = ctx.rank(1)
    keys = ctx.node("Transpose", ctx[1], perm=[*range(rank - 2), rank - 1, rank - 2])
    if ctx.has(4):
        scale = ctx[4]
    else:
        size = ctx.cast(ctx.dimension(ctx[0], -1), dtype)
        scale = ctx.node("Div", ctx.constant(1, dtype), ctx.node("Sqrt", size))
    scores = ctx.node("MatMul", ctx.node("Mul", ctx[0], scale), keys)
    low = ctx.constant(-np.inf, dtype)
    if causal:
        rows, columns = (
            ctx.node("Range", ctx.constant(0), ctx.reshape(ctx.dimension(ctx[k], -2), []), ctx.constant(1))
            for k in (0, 1)
        )
        allowed = ctx.node("LessOrEqual", columns, ctx.unsqueeze(rows, [1]))
        scores = ctx.node("Where", allowed, scores, low)
    elif ctx.has(3) and ctx.dtype(3) == "bool":
        scores = ctx.node("Where", ctx[3], scores, low)
    elif ctx.has(3):
        scores = ctx.node("Add", scores, ctx[3])
    return ctx.node("MatMul", ctx.node("Softmax", scores, axis=-1), ctx[2])


@translates("STFT", since=15)
def _short_time(ctx: LayerContext) -> str:
    """Map signal [L] or [N, L], window [w], frame_size, frame_step -> [(N), frames, frequencies, 2].

    A window that is shorter than a frame is centred between zeros.
    """
    transposed, rank = ctx.flag("transpose_frames"), ctx.rank(0)
    size, step = (ctx.integer(k, what, low=1, high=LARGEST) for k, what in ((2, "frame_size"), (3, "frame_step")))
    window, dtype = ctx[1], ctx.dtype(0)
    if ctx.shape(1) != (size,):
        missing = ctx.node("Sub", ctx.constant(size), ctx.dimension(window, 0))
        before = ctx.node("Div", missing, ctx.constant([2]))
        window = ctx.node("Pad", window, ctx.concat([before, ctx.node("Sub", missing, before)]))
    signal = ctx.unsqueeze(ctx[0], [rank] if rank == 2 else [0, 2])
    result = ctx.typed("STFT", dtype, signal, ctx.constant(step), window, ctx.constant(size), onesided=1)
    if rank == 1:
        result = ctx.squeeze(result, [0])
    return ctx.transpose(result, [*range(rank - 1), rank, rank - 1, rank + 1]) if transposed else result


@translates("RDFT", since=9)
def _real(ctx: LayerContext) -> str:
    """Transform real numbers; the last of the axes has only the first half of the frequencies."""
    rank = ctx.rank(0)
    axes = [ctx.axis(axis, rank, "axes") for axis in ctx.integers(1, "axes")]
    sizes = ctx.integers(2, "signal_size", count=len(axes), low=-1) if ctx.has(2) else [-1] * len(axes)
    if 0 in sizes:
        raise FormatError(f"{ctx.label}: signal_size (input 2) is {sizes}; expected -1, or 1 or more, for each axis")
    name = ctx.unsqueeze(ctx[0], [rank])
    for k in (len(axes) - 1, *range(len(axes) - 1)):
        length = "" if sizes[k] == -1 else ctx.constant(sizes[k])  # -1 means the input's size
        name = ctx.node("DFT", name, length, ctx.constant(axes[k]), inverse=0, onesided=int(k == len(axes) - 1))
    return name
