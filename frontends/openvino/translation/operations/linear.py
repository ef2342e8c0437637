"""Matrix products, convolutions, attention."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from pyrnnx.dtypes import INTEGERS
from pyrnnx.errors import FormatError, shown

from ..attributes import LARGEST
from ..call import Call, Dims
from ..registry import translates

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")  # of an Einsum's equation


@translates("MatMul")
def _matmul(call: Call) -> str:
    """The last two axes of an input may be exchanged; one with one axis has none to exchange."""
    names = []
    for k, flag in enumerate(("transpose_a", "transpose_b")):
        name = call[k]
        if call.flag(flag, False) and (rank := call.rank(k)) > 1:
            name = call.node("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])
        names.append(name)
    return call.node("MatMul", *names)


@translates("Einsum", since=7)
def _einsum(call: Call) -> str:
    equation = call.text("equation").replace(" ", "")
    _check_equation(call, equation)
    return call.typed("Einsum", call.dtype(0), *call.inputs, equation=equation)


def _check_equation(call: Call, equation: str) -> None:
    """Reject what is no equation: with some such texts onnx's shape inference never ends."""
    given, arrow, result = equation.partition("->")
    terms = given.split(",")
    fits = len(terms) == len(call) and all(_TERM.fullmatch(term) for term in (*terms, result))
    for k, term in enumerate(terms if fits else ()):
        shape, count = call.shape(k), len(term.replace("...", ""))
        fits &= shape is None or count == len(shape) or (count < len(shape) and "..." in term)
    letters = result.replace("...", "")
    fits &= not arrow or (len(set(letters)) == len(letters) and set(result) <= set(given))
    if not fits:
        shapes = ", ".join(str(call.shape(k)) for k in range(len(call)))
        raise FormatError(
            f"{call.label}: equation is {shown(equation)}; expected a term for each input, of as many letters as "
            f"it has axes ({shapes}), such as ij,jk->ik"
        )


# Convolutions

_GROUPS = 4096  # of a transposed convolution: each becomes a node
_AUTO_PAD = {"explicit": "", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID", "notset": ""}


def auto_pads(
    call: Call, sizes: Dims | None, kernel: Sequence[int | None], strides: Sequence[int], dilations: Sequence[int]
) -> dict[str, object]:
    """The attributes pads or auto_pad of a node that slides a kernel over axes of these sizes.

    Pads that can be known are written: what auto_pad means for dilated kernels differs between implementations.
    """
    mode = call.choice("auto_pad", _AUTO_PAD, "explicit")
    count = len(strides)
    begin, end = _pads(call, count)
    if mode == "":
        return {"pads": begin + end}
    if mode == "VALID":
        return {"pads": [0] * 2 * count}
    if sizes is None or None in sizes or None in kernel:
        return {"auto_pad": mode}
    pads = []
    for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        assert size is not None and extent is not None  # noqa: PT018  (looked at above)
        out = -(-size // stride)
        total = max((out - 1) * stride + (extent - 1) * dilation + 1 - size, 0)
        pads.append((total // 2, total - total // 2) if mode == "SAME_UPPER" else (total - total // 2, total // 2))
    return {"pads": [first for first, _ in pads] + [last for _, last in pads]}


def _pads(call: Call, count: int) -> list[list[int]]:
    """pads_begin and pads_end."""
    names = ("pads_begin", "pads_end")
    return [call.wholes(name, [0] * count, count=count, low=-LARGEST, high=LARGEST) for name in names]


def _spatial(shape: Dims | None) -> Dims | None:
    return None if shape is None else shape[2:]


def _kernel(call: Call, k: int, first: int, count: int) -> Dims:
    """The sizes of filters behind their first axes."""
    shape = call.shape(k)
    for one, axes in ((k, first), (0, 2)):
        known = call.shape(one)
        if known is not None and len(known) - axes != count:
            raise FormatError(
                f"{call.label}: strides has {count} values, and input {one} the shape {known}; expected one for each "
                f"axis behind the first {axes}"
            )
    return (None,) * count if shape is None else shape[first:]


def _strides(call: Call) -> tuple[list[int], list[int]]:
    if call.dtype(0) in INTEGERS:
        call.refuse("element type", call.dtype(0), "a floating-point one, as ONNX's Conv has")
    strides = call.wholes("strides", low=1, high=LARGEST)
    ones = [1] * len(strides)
    return strides, call.wholes("dilations", ones, count=len(strides), low=1, high=LARGEST)


@translates("Convolution")
def _convolution(call: Call) -> str:
    strides, dilations = _strides(call)
    kernel = _kernel(call, 1, 2, len(strides))
    pads = auto_pads(call, _spatial(call.shape(0)), kernel, strides, dilations)
    return call.node("Conv", call[0], call[1], strides=strides, dilations=dilations, **pads)


def _groups(call: Call) -> int:
    shape = call.shape(1)
    if shape is None or (call.rank(1, low=3) and shape[0] is None):
        call.refuse("number of groups", "dynamic", "a known one")
    return int(shape[0] or 0)


def _joined(call: Call) -> str:
    """Filters [G, A, B, ...] as [G*A, B, ...]."""
    shape = call.shape(1)
    assert shape is not None  # _groups has looked
    if None not in shape[2:]:
        return call.node("Reshape", call[1], call.constant([-1, *shape[2:]]))
    rest = call.node("Slice", call.node("Shape", call[1]), call.constant([2]), call.constant([len(shape)]))
    return call.node("Reshape", call[1], call.concat([call.constant([-1]), rest]))


@translates("GroupConvolution")
def _group_convolution(call: Call) -> str:
    strides, dilations = _strides(call)
    groups, kernel = _groups(call), _kernel(call, 1, 3, len(strides))
    pads = auto_pads(call, _spatial(call.shape(0)), kernel, strides, dilations)
    return call.node("Conv", call[0], _joined(call), strides=strides, dilations=dilations, group=groups, **pads)


@translates("ConvolutionBackpropData")
def _transposed(call: Call) -> str:
    return _conv_transpose(call, call[1], 1, _kernel(call, 1, 2, len(call.wholes("strides"))))


@translates("GroupConvolutionBackpropData")
def _group_transposed(call: Call) -> str:
    groups = _groups(call)
    return _conv_transpose(call, _joined(call), groups, _kernel(call, 1, 3, len(call.wholes("strides"))))


def _conv_transpose(call: Call, filters: str, groups: int, kernel: Dims) -> str:
    """With an output_shape the pads follow from it, else as given."""
    strides, dilations = _strides(call)
    count = len(strides)
    extra = call.wholes("output_padding", [0] * count, count=count, low=0, high=LARGEST)
    mode = call.choice("auto_pad", _AUTO_PAD, "explicit")
    begin, end = _pads(call, count)
    if call.has(2):
        sizes = _spatial(call.shape(0))
        if sizes is None or None in sizes or None in kernel:
            call.refuse("output_shape", "given", "none, where the sizes of the input or of the kernel are not known")
        for axis, out in enumerate(call.integers(2, "output_shape", count=count, low=0)):
            extent = (int(kernel[axis] or 0) - 1) * dilations[axis] + 1
            total = strides[axis] * (int(sizes[axis] or 0) - 1) + extra[axis] + extent - out
            extra[axis] -= min(total, 0)  # where output_shape is larger than what is computed, zeros fill its end
            total = max(total, 0)
            if mode == "SAME_UPPER":
                begin[axis] = total - total // 2
            elif mode == "SAME_LOWER":
                begin[axis] = total // 2
            end[axis] = total - begin[axis]
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        call.refuse("auto_pad", call.text("auto_pad"), "explicit or valid, where there is no output_shape")
    elif mode == "VALID":
        begin = end = [0] * count
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": [*begin, *end],
        "output_padding": extra if any(extra) else None,
    }
    if groups == 1:
        return call.node("ConvTranspose", call[0], filters, **attributes)
    if not 0 < groups <= _GROUPS:
        call.refuse("number of groups", groups, f"1 to {_GROUPS}")
    # one after the other: onnx's evaluator has no groups here
    data, weights = (
        call.nodes("Split", name, outputs=groups, axis=axis, num_outputs=groups)
        for name, axis in ((call[0], 1), (filters, 0))
    )
    parts = [call.node("ConvTranspose", one, other, **attributes) for one, other in zip(data, weights, strict=True)]
    return call.concat(parts, 1)


# Attention


@translates("ScaledDotProductAttention", since=13)
def _attention(call: Call) -> str:
    """softmax(query * key^T * scale + mask) * value; the scale is by default 1 / sqrt(size of a query)."""
    causal, dtype = call.flag("causal", False), call.dtype(0)
    if len(call) > 5:
        call.refuse("number of inputs", len(call), "at most 5: query, key, value, attention_mask, scale")
    rank = call.rank(1, low=2)
    keys = call.node("Transpose", call[1], perm=[*range(rank - 2), rank - 1, rank - 2])
    if call.has(4):
        scale = call[4]
    else:
        size = call.cast(call.dimension(call[0], -1), dtype)
        scale = call.node("Div", call.constant(1, dtype), call.node("Sqrt", size))
    scores = call.node("MatMul", call.node("Mul", call[0], scale), keys)
    low = call.constant(-np.inf, dtype)
    if causal:
        rows, columns = (
            call.node("Range", call.constant(0), call.reshape(call.dimension(call[k], -2), []), call.constant(1))
            for k in (0, 1)
        )
        allowed = call.node("LessOrEqual", columns, call.unsqueeze(rows, [1]))
        scores = call.node("Where", allowed, scores, low)
    elif call.has(3) and call.dtype(3) == "bool":
        scores = call.node("Where", call[3], scores, low)
    elif call.has(3):
        scores = call.node("Add", scores, call[3])
    return call.node("MatMul", call.node("Softmax", scores, axis=-1), call[2])
