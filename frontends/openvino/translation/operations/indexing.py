"""Gathering, scattering, searching and sorting."""

from __future__ import annotations

import numpy as np

from pyrnnx.dtypes import INTEGERS
from pyrnnx.errors import FormatError

from ..call import Call
from ..graph import WIDENED
from ..registry import translates
from .shapes import inverse


@translates("Gather")
def _gather_1(call: Call) -> str:
    return call.node("Gather", call[0], _indices(call, 1), axis=call.axis_of(call.integer(2, "axis"), 0))


def _indices(call: Call, k: int) -> str:
    """ONNX takes int32 and int64."""
    return call[k] if call.dtype(k) in ("int32", "int64") else call.int64(k)


@translates("Gather", since=7)
def _gather_7(call: Call) -> str:
    """The first batch_dims axes of data and indices go together: each batch is gathered from on its own."""
    batch = call.whole("batch_dims", 0)
    if batch == 0:
        return _gather_1(call)
    rank, of_indices = call.rank(0), call.rank(1)
    batch, axis = call.axis(batch, of_indices + 1, "batch_dims"), call.axis(call.integer(2, "axis"), rank)
    if batch == 0:
        return _gather_1(call)
    if batch > axis:
        raise FormatError(f"{call.label}: batch_dims is {batch}, axis {axis}; expected batch_dims of at most axis")
    between, added = list(range(batch, axis)), of_indices - batch
    order = [*range(batch), axis, *between, *range(axis + 1, rank)]
    places = call.unsqueeze(call.int64(1), [of_indices])
    found = call.node("GatherND", call.transpose(call[0], order), places, batch_dims=batch)
    # batch, added axes, those between, those behind: the added ones belong where the axis was
    after = list(range(batch + added + len(between), rank - 1 + added))
    moved = list(range(batch + added, batch + added + len(between)))
    return call.transpose(found, [*range(batch), *moved, *range(batch, batch + added), *after])


@translates("GatherElements", since=6)
def _gather_elements(call: Call) -> str:
    return call.node("GatherElements", call[0], _indices(call, 1), axis=call.axis_of(call.whole("axis"), 0))


def _batch_dims(call: Call) -> int:
    batch = call.whole("batch_dims", 0, low=0)
    if batch:
        call.axis_of(batch, 0, "batch_dims")
    return batch


@translates("GatherND", since=5)
def _gather_nd_5(call: Call) -> str:
    """The axes of the batch are one axis of the result."""
    batch = _batch_dims(call)
    found = call.node("GatherND", call[0], call.int64(1), batch_dims=batch)
    if batch < 2:
        return found
    rest = call.node("Slice", call.node("Shape", found), call.constant([batch]), call.constant([2**63 - 1]))
    return call.node("Reshape", found, call.concat([call.constant([-1]), rest]))


@translates("GatherND", since=8)
def _gather_nd_8(call: Call) -> str:
    return call.node("GatherND", call[0], call.int64(1), batch_dims=_batch_dims(call))


_REDUCTIONS = {"none": "none", "sum": "add", "prod": "mul", "min": "min", "max": "max"}


@translates("ScatterElementsUpdate", since=3)
def _scatter_elements_3(call: Call) -> str:
    return call.node(
        "ScatterElements", call[0], _indices(call, 1), call[2], axis=call.axis_of(call.integer(3, "axis"), 0)
    )


@translates("ScatterElementsUpdate", since=12)
def _scatter_elements_12(call: Call) -> str:
    """Without use_init_val the places that are written to begin with the reduction's neutral value."""
    reduction, initial = call.choice("reduction", _REDUCTIONS, "none"), call.flag("use_init_val", True)
    if reduction == "none":
        return _scatter_elements_3(call)
    data, indices, dtype = call[0], _indices(call, 1), call.dtype(0)
    axis = call.axis_of(call.integer(3, "axis"), 0)
    if not initial:
        fill = call.node("Expand", call.constant(_neutral(reduction, dtype), dtype), call.node("Shape", call[2]))
        data = call.node("ScatterElements", data, indices, fill, axis=axis)
    return call.node("ScatterElements", data, indices, call[2], axis=axis, reduction=reduction)


def _neutral(reduction: str, dtype: str) -> float | int:
    if reduction in ("add", "mul"):
        return int(reduction == "mul")
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return int(info.max if reduction == "min" else info.min)
    return np.inf if reduction == "min" else -np.inf


@translates("ScatterUpdate", since=3)
def _scatter(call: Call) -> str:
    """Whole slices along an axis: brought to the front, for ScatterND."""
    axis, places = call.integer(3, "axis"), call.node("Unsqueeze", call.int64(1), call.constant([-1]))
    if axis == 0:
        return call.node("ScatterND", call[0], places, call[2])
    rank, of_indices = call.rank(0), call.rank(1)
    axis = call.axis(axis, rank)
    order = [axis, *(k for k in range(rank) if k != axis)]
    moved = list(range(axis, axis + of_indices))
    of_updates = [*moved, *(k for k in range(rank - 1 + of_indices) if k not in moved)]
    data, updates = call.transpose(call[0], order), call.transpose(call[2], of_updates)
    return call.transpose(call.node("ScatterND", data, places, updates), inverse(order))


@translates("ScatterNDUpdate", since=4)
def _scatter_nd_4(call: Call) -> str:
    return call.node("ScatterND", call[0], call.int64(1), call[2])


@translates("ScatterNDUpdate", since=15)
def _scatter_nd_15(call: Call) -> str:
    reduction = call.choice("reduction", {**_REDUCTIONS, "sub": "sub"}, "none")
    updates = call[2]
    if reduction == "sub":
        reduction, updates = "add", call.node("Neg", updates)
    return call.node("ScatterND", call[0], call.int64(1), updates, reduction=reduction)


@translates("TopK")
def _top_k(call: Call) -> list[str]:
    """sort: by value, by index, or none, where any order will do."""
    largest = call.choice("mode", {"max": 1, "min": 0})
    by_index = call.choice("sort", {"value": False, "none": False, "index": True}, "value")
    axis = call.axis_of(call.whole("axis"), 0)
    dtype = call.type_attribute("index_element_type", "i32")
    if call.array(1) is not None:
        call.integer(1, "k", low=0)
    call.ignore("stable")  # ONNX takes the lower index first anyway
    k = call.list_of_int64(1)
    values, indices = call.nodes("TopK", call[0], k, outputs=2, axis=axis, largest=largest, sorted=1)
    if by_index:
        indices, order = call.nodes("TopK", indices, k, outputs=2, axis=axis, largest=0, sorted=1)
        values = call.node("GatherElements", values, order, axis=axis)
    return [values, indices if dtype == "int64" else call.cast(indices, dtype)]


@translates("NonZero", since=3)
def _non_zero(call: Call) -> str:
    dtype = call.type_attribute("output_type", "i64")
    given = call[0] if call.dtype(0) in ("float32", "int32", "int64", "uint8", "bool") else call.cast(call[0], "bool")
    found = call.node("NonZero", given)
    return found if dtype == "int64" else call.cast(found, dtype)


@translates("OneHot")
def _one_hot(call: Call) -> str:
    """Negative indices are ignored; from opset 16 on they may count from the end, as they do in ONNX."""
    axis, indices = call.axis_of(call.whole("axis"), 0, behind=1), call.int64(0)
    depth = call.scalar_int64(1)  # ONNX takes [1] too, its evaluator does not
    from_end = False
    if call.opset >= 16:
        modes = {"ignore_negative": False, "normalize": True}
        from_end = call.choice("negative_indices_mode", modes, "ignore_negative")
    if not from_end:
        indices = call.node("Where", call.node("Less", indices, call.constant(0)), depth, indices)
    scalar = call.rank(0) == 0
    if scalar:  # which ONNX does not take
        indices, axis = call.reshape(indices, [1]), 0
    dtype, one = call.dtype(2), call.constant([0, 1])
    if dtype in ("float32", "int64"):
        values = call.concat([_row(call, 3), _row(call, 2)])
        result = call.node("OneHot", indices, depth, values, axis=axis)
    else:
        hot = call.cast(call.node("OneHot", indices, depth, one, axis=axis), "bool")
        result = call.typed("Where", dtype, hot, call[2], call[3], first=1)
    return call.squeeze(result, [1]) if scalar else result


def _row(call: Call, k: int) -> str:
    """The k-th input, [1]."""
    array = call.element(k, "the value")
    return call.reshape(call[k], [1]) if array is None else call.constant(array.reshape(1), array.dtype.name)


@translates("Bucketize", since=3)
def _bucketize(call: Call) -> str:
    """How many of the bounds are below, or, if the left one belongs to a bucket, not above."""
    dtype, right = call.type_attribute("output_type", "i64"), call.flag("with_right_bound", True)
    return _count(call, call[1], call[0], "Less" if right else "LessOrEqual", dtype)


@translates("SearchSorted", since=15)
def _search_sorted(call: Call) -> str:
    dtype = call.type_attribute("output_type", "i64")
    comparison = "LessOrEqual" if call.flag("right_mode", False) else "Less"
    ordered = call[0]
    if call.rank(0) > 1:
        ordered = call.unsqueeze(ordered, [call.rank(0) - 1])
    return _count(call, ordered, call[1], comparison, dtype)


def _count(call: Call, ordered: str, values: str, comparison: str, dtype: str) -> str:
    last = call.constant([-1])
    found = call.node(comparison, ordered, call.node("Unsqueeze", values, last))
    count = call.node("ReduceSum", call.cast(found, "int64"), last, keepdims=0)
    return count if dtype == "int64" else call.cast(count, dtype)


@translates("Unique", since=10)
def _unique(call: Call) -> list[str]:
    """Values, places of their first, number of the value of each element, counts; in ONNX in the same order."""
    axis = call.axis_of(call.integer(1, "axis"), 0) if call.has(1) else None
    ordered = int(call.flag("sorted", True))
    types = [call.type_attribute(f"{name}_element_type", "i64") for name in ("index", "index", "count")]
    dtype = call.dtype(0)
    wide = WIDENED["Unique"].get(dtype)
    given = call.cast(call[0], wide) if wide else call[0]
    values, *rest = call.nodes("Unique", given, outputs=4, axis=axis, sorted=ordered)
    values = call.cast(values, dtype) if wide else values
    return [values, *(one if to == "int64" else call.cast(one, to) for one, to in zip(rest, types, strict=True))]
