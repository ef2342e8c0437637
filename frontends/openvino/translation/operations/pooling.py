"""Pooling operations."""

from __future__ import annotations

import numpy as np

from pyrnnx.errors import FormatError

from ..attributes import LARGEST
from ..context import LayerContext
from ..registry import translates
from .linear import auto_pads

_AVERAGES = 2**22  # limit of elements in the weight matrix of an AdaptiveAvgPool
_ROUNDING = {"floor": "floor", "ceil": "ceil", "ceil_torch": "ceil_torch"}


class _Window:
    """The windows of a pooling operation.

    Attributes
    ----------
    pads : list of int or None
        Pads before each axis, then after each axis, for a result that is rounded down; None if they depend on an
        unknown size of the input.
    """

    def __init__(self, ctx: LayerContext) -> None:
        self.ctx, self.kernel = ctx, ctx.wholes("kernel", low=1, high=LARGEST)
        self.count = len(self.kernel)
        self.strides, self.dilations = (
            ctx.wholes(name, [1] * self.count, count=self.count, low=1, high=LARGEST)
            for name in ("strides", "dilations")
        )
        self.extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        shape = ctx.shape(0)
        if shape is not None and len(shape) != 2 + self.count:
            raise FormatError(
                f"{ctx.label}: kernel is {self.kernel}, and input 0 has shape {shape}; expected one size for each "
                "axis after the first 2"
            )
        self.sizes = [None] * self.count if shape is None else list(shape[2:])
        attributes = auto_pads(ctx, tuple(self.sizes), self.kernel, self.strides, self.dilations)
        self.same, pads = str(attributes.get("auto_pad", "")), attributes.get("pads")
        self.declared: list[int] = list(pads) if isinstance(pads, list) else [0] * 2 * self.count
        self.rounding = ctx.choice("rounding_type", _ROUNDING, "floor")
        self.pads = None if self.same else self._rounded_down()

    def _rounded_down(self) -> list[int] | None:
        """Return the pads, enlarged at the end so that the last window is complete."""
        pads = list(self.declared)
        if self.rounding == "floor":
            return pads
        for axis, size in enumerate(self.sizes):
            self._check_last_window(axis)
            if size is None:
                return None
            pads[self.count + axis] += self._missing(axis, size)
        return pads

    def _missing(self, axis: int, size: int) -> int:
        before, after = self.declared[axis], self.declared[self.count + axis]
        missing = -(size + before + after - self.extents[axis]) % self.strides[axis]
        start = size + before + after + missing - self.extents[axis]
        is_empty = start >= size + before
        return 0 if self.rounding == "ceil_torch" and is_empty else missing

    def _check_last_window(self, axis: int) -> None:
        """Raise if a window begins in the pads at the end: it is empty, and implementations differ."""
        size, after = self.sizes[axis], self.declared[self.count + axis]
        if self.rounding == "ceil_torch" or self.strides[axis] + after <= self.extents[axis]:
            return
        if size is not None:
            start = size + self.declared[axis] + after + self._missing(axis, size) - self.extents[axis]
            if start < size + self.declared[axis]:
                return
        self.ctx.refuse("rounding_type", self.rounding, "floor if a window may begin in the pads after the input")

    def attributes(self, pads: list[int] | None = None) -> dict[str, object]:
        common: dict[str, object] = {"kernel_shape": self.kernel, "strides": self.strides, "dilations": self.dilations}
        return common if pads is None else {**common, "pads": pads}

    def pads_by_nodes(self) -> str:
        """Return the pads of a Pad node, which include batch and channels."""
        ctx, n = self.ctx, self.count
        sizes = ctx.node("Slice", ctx.node("Shape", ctx[0]), ctx.constant([2]), ctx.constant([2 + n]))
        strides, extents = ctx.constant(self.strides), ctx.constant(self.extents)
        if self.same:
            last = ctx.node("Sub", sizes, ctx.constant([1]))
            start = ctx.node("Mul", ctx.node("Div", last, strides), strides)  # of the last window
            total = ctx.node("Sub", ctx.node("Add", start, extents), sizes)
            total = ctx.node("Max", total, ctx.constant([0]))
            less = ctx.node("Div", total, ctx.constant([2]))
            more = ctx.node("Sub", total, less)
            before, after = (less, more) if self.same == "SAME_UPPER" else (more, less)
        else:
            whole = ctx.node("Add", sizes, ctx.constant(np.add(self.declared[:n], self.declared[n:])))
            missing = ctx.node("Mod", ctx.node("Sub", extents, whole), strides)
            if self.rounding == "ceil_torch":
                last = ctx.node("Sub", ctx.node("Add", whole, missing), extents)
                inside = ctx.node("Less", last, ctx.node("Add", sizes, ctx.constant(self.declared[:n])))
                missing = ctx.node("Mul", missing, ctx.cast(inside, "int64"))
            before = ctx.constant(self.declared[:n])
            after = ctx.node("Add", ctx.constant(self.declared[n:]), missing)
        none = ctx.constant([0, 0])
        return ctx.concat([none, before, none, after])


def _max_pool(ctx: LayerContext, window: _Window, outputs: int) -> list[str]:
    if window.pads is not None:
        return ctx.nodes("MaxPool", ctx[0], outputs=outputs, **window.attributes(window.pads))
    if outputs > 1:
        allowed = "floor and explicit pads if the sizes of the input are unknown and output 1 is used"
        ctx.refuse("rounding_type or auto_pad", f"{window.rounding}, {window.same}", allowed)
    dtype = ctx.dtype(0)
    low = -np.inf if dtype.startswith(("float", "bfloat")) else np.iinfo(dtype).min
    padded = ctx.node("Pad", ctx[0], window.pads_by_nodes(), ctx.constant(low, dtype))
    return [ctx.node("MaxPool", padded, **window.attributes())]


@translates("MaxPool")
def _max_pool_1(ctx: LayerContext) -> str:
    return _max_pool(ctx, _Window(ctx), 1)[0]


@translates("MaxPool", since=8)
def _max_pool_8(ctx: LayerContext) -> list[str]:
    """Return values and their indices among elements from `axis` on; ONNX counts all elements."""
    window, axis = _Window(ctx), ctx.whole("axis", 0)
    dtype = ctx.type_attribute("index_element_type", "i64")
    if not ctx.used(1):
        return _max_pool(ctx, window, 1)
    values, indices = _max_pool(ctx, window, 2)
    axis = ctx.axis(axis, ctx.rank(0))
    if axis:
        shape = ctx.node("Slice", ctx.node("Shape", ctx[0]), ctx.constant([axis]), ctx.constant([ctx.rank(0)]))
        count = ctx.node("ReduceProd", shape, ctx.constant([0]), keepdims=0)
        indices = ctx.node("Mod", indices, count)
    return [values, indices if dtype == "int64" else ctx.cast(indices, dtype)]


@translates("AvgPool")
def _avg_pool(ctx: LayerContext) -> str:
    """Average the elements of each window, without pads if exclude-pad is set.

    Else the mean includes declared pads and what rounding up adds, as in OpenVINO's CPU plugin.
    """
    window = _Window(ctx)
    included = not ctx.flag("exclude-pad") and (bool(window.same) or any(window.declared))
    if window.pads is not None:
        attributes = window.attributes(window.pads)
        return ctx.node("AveragePool", ctx[0], count_include_pad=int(included), **attributes)
    pads, dtype = window.pads_by_nodes(), ctx.dtype(0)
    mean = ctx.node("AveragePool", ctx.node("Pad", ctx[0], pads), **window.attributes())
    if included:
        return mean
    ones = ctx.node("Expand", ctx.constant(1, dtype), ctx.node("Shape", ctx[0]))
    share = ctx.node("AveragePool", ctx.node("Pad", ones, pads), **window.attributes())
    return ctx.node("Div", mean, share)


@translates("AdaptiveAvgPool", since=8)
def _adaptive_avg_pool(ctx: LayerContext) -> str:
    """Average windows by a weight matrix for each axis; window k of n is floor(k*size/n) to ceil((k+1)*size/n)."""
    shape, rank = ctx.shape(0), ctx.rank(0, low=3)
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


@translates("AdaptiveMaxPool", since=8)
def _adaptive_max_pool(ctx: LayerContext) -> list[str]:
    """Translate AdaptiveMaxPool with equal windows."""
    shape = ctx.shape(0)
    sizes = ctx.integers(1, "output_shape", count=None if shape is None else ctx.rank(0, low=3) - 2, low=1)
    ctx.type_attribute("index_element_type", "i64")
    if ctx.used(1):
        ctx.refuse("output 1 (indices)", "used", "output 0 only")
    if all(size == 1 for size in sizes):
        return [ctx.node("GlobalMaxPool", ctx[0])]
    spatial = (None,) * len(sizes) if shape is None else shape[2:]
    kernel = [whole // size for whole, size in zip(spatial, sizes, strict=True) if whole and whole % size == 0]
    if len(kernel) != len(sizes):
        ctx.refuse("output_shape", sizes, f"1 for every axis, or divisors of the sizes of the input, {spatial}")
    return [ctx.node("MaxPool", ctx[0], kernel_shape=kernel, strides=kernel)]
