"""Operations that move, repeat, split and join elements, and those on shapes themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyrnnx.errors import FormatError

from ..attributes import LARGEST
from ..call import BEGIN, END, Call
from ..registry import translates


@translates("Reshape")
def _reshape(call: Call) -> str:
    """special_zero: 0 stands for the size that the input has there."""
    special = call.flag("special_zero")
    return call.node("Reshape", call[0], call.list_of_int64(1), allowzero=None if special else 1)


@translates("Squeeze", since=15)
def _squeeze_15(call: Call) -> str:
    """allow_axis_skip: axes that are not 1 stay. ONNX does not have that: the sizes must be known."""
    if not call.flag("allow_axis_skip", False):
        return _squeeze(call)
    shape = call.shape(0)
    if shape is None or not call.has(1):
        call.refuse("allow_axis_skip", True, "false, where the rank or the axes are not known")
    axes = call.axes(call.integers(1, "axes"), len(shape))
    if any(shape[axis] is None for axis in axes):
        call.refuse("allow_axis_skip", True, "false, where the size of an axis is not known")
    return call.squeeze(call[0], [axis for axis in axes if shape[axis] == 1])


@translates("Squeeze")
def _squeeze(call: Call) -> str:
    axes = call.array(1) if call.has(1) else None
    if not call.has(1) or (axes is not None and axes.size == 0):
        return call.node("Squeeze", call[0])
    return call.node("Squeeze", call[0], call.list_of_int64(1))


@translates("Unsqueeze")
def _unsqueeze(call: Call) -> str:
    return call.node("Unsqueeze", call[0], call.list_of_int64(1))


@translates("Transpose")
def _transpose(call: Call) -> str:
    order = call.integers(1, "order")
    if order and sorted(order) != list(range(call.rank(0))):
        raise FormatError(f"{call.label}: order (input 1) is {order}; expected each axis of input 0 once")
    return call.node("Transpose", call[0], perm=order or None)


@translates("Concat")
def _concat(call: Call) -> str:
    axis = call.axis_of(call.whole("axis"), 0)
    return call.node("Concat", *call.inputs, axis=axis)


@translates("Split")
def _split(call: Call) -> list[str]:
    axis, count = call.axis_of(call.integer(1, "axis"), 0), call.whole("num_splits")
    if count != len(call.layer.outputs):
        raise FormatError(f"{call.label}: num_splits is {count}; the layer has {len(call.layer.outputs)} outputs")
    return call.nodes("Split", call[0], outputs=count, axis=axis, num_outputs=count)


@translates("VariadicSplit")
def _variadic_split(call: Call) -> list[str]:
    axis, count = call.axis_of(call.integer(1, "axis"), 0), len(call.layer.outputs)
    sizes = call.list_of_int64(2)
    lengths = None if call.array(2) is None else call.integers(2, "split_lengths", count=count, low=-1)
    if lengths is None or -1 in lengths:  # -1 stands for the rest
        zero = call.constant([0])
        is_rest = call.node("Less", sizes, zero)
        others = call.node("ReduceSum", call.node("Where", is_rest, zero, sizes), zero, keepdims=1)
        sizes = call.node("Where", is_rest, call.node("Sub", call.dimension(call[0], axis), others), sizes)
    return call.nodes("Split", call[0], sizes, outputs=count, axis=axis)


@translates("Broadcast")
def _broadcast(call: Call) -> str:
    """numpy and bidirectional; explicit: axes_mapping says to which axis of the result each axis goes."""
    mode = call.text("mode", "numpy").lower()
    if mode not in ("numpy", "bidirectional", "none", "explicit"):
        call.refuse("mode", mode, "numpy, bidirectional or explicit")
    target = call.list_of_int64(1)
    data = call[0]
    if mode in ("explicit", "none") and call.has(2):
        mapping = call.integers(2, "axes_mapping")
        rank = call.length(1, "target_shape")
        if rank is None:
            call.refuse("mode", mode, "numpy or bidirectional, where the rank of the result is not known")
        call.axes(mapping, rank, "axes_mapping")
        data = call.unsqueeze(data, [axis for axis in range(rank) if axis not in mapping])
    return call.node("Expand", data, target)


@translates("ShapeOf")
def _shape_of(call: Call) -> str:
    dtype = "int64"
    if call.opset >= 3:
        dtype = call.type_attribute("output_type", "i64")
    shape = call.node("Shape", call[0])
    return shape if dtype == "int64" else call.cast(shape, dtype)


@translates("Range")
def _range(call: Call) -> str:
    """ONNX has it for fewer types, and for scalars only."""
    dtype = call.type_attribute("output_type") if call.opset >= 4 else call.output_dtype()
    inner = dtype if dtype in ("float32", "float64", "int16", "int32", "int64") else "int64"
    if dtype in ("float16", "bfloat16"):
        inner = "float32"
    ends = []
    for k in range(3):
        array = call.element(k, ("start", "stop", "step")[k])
        if array is not None:
            ends.append(call.cast(call.constant(array, array.dtype.name), inner))
        else:
            ends.append(call.reshape(call.as_dtype(k, inner), []))
    result = call.node("Range", *ends)
    return result if inner == dtype else call.cast(result, dtype)


@translates("Tile")
def _tile(call: Call) -> str:
    """The shorter of shape and repeats gets ones in front."""
    data, repeats, rank = call[0], call.list_of_int64(1), call.rank(0)
    count = call.length(1, "repeats")
    if count is None:
        count = rank
    if count > rank:
        data = call.unsqueeze(data, list(range(count - rank)))
    elif count < rank:
        repeats = call.concat([call.constant([1] * (rank - count)), repeats])
    return call.node("Tile", data, repeats)


@translates("Reverse")
def _reverse(call: Call) -> str:
    mode = call.choice("mode", {"index": "index", "mask": "mask"})
    chosen = np.flatnonzero(call.constant_input(1, "axes")).tolist() if mode == "mask" else call.integers(1, "axes")
    return flipped(call, call[0], call.axes(chosen, call.rank(0)))


def flipped(call: Call, name: str, axes: Sequence[int]) -> str:
    """The value with the order of its elements along the axes turned round."""
    if not axes:
        return name
    n = len(axes)
    parts = ([END] * n, [BEGIN] * n, list(axes), [-1] * n)
    return call.node("Slice", name, *(call.constant(one) for one in parts))


@translates("ReverseSequence")
def _reverse_sequence(call: Call) -> str:
    """ONNX has it for the first two axes."""
    rank = call.rank(0)
    batch, time = (call.axis(call.whole(name), rank, name) for name in ("batch_axis", "seq_axis"))
    if batch == time:
        raise FormatError(f"{call.label}: batch_axis and seq_axis are {batch}; expected two different axes")
    lengths = call.int64(1)
    if {batch, time} == {0, 1}:
        return call.typed("ReverseSequence", call.dtype(0), call[0], lengths, last=1, batch_axis=batch, time_axis=time)
    order = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    turned = call.node("ReverseSequence", call.transpose(call[0], order), lengths, batch_axis=0, time_axis=1)
    return call.transpose(turned, inverse(order))


def inverse(order: Sequence[int]) -> list[int]:
    """The permutation that undoes another."""
    return [list(order).index(k) for k in range(len(order))]


def regrouped(call: Call, name: str, axis: int, rank: int, groups: int) -> str:
    """An axis of groups * n elements, in the order of n * groups."""
    order = [*(k for k in range(rank) if k != axis), axis]
    last = call.reshape(call.transpose(name, order), [0] * (rank - 1) + [groups, -1])
    swapped = call.transpose(last, [*range(rank - 1), rank, rank - 1])
    return call.transpose(call.reshape(swapped, [0] * (rank - 1) + [-1]), inverse(order))


@translates("ShuffleChannels")
def _shuffle_channels(call: Call) -> str:
    rank = call.rank(0)
    axis, groups = call.axis(call.whole("axis", 1), rank), call.whole("group", 1, low=1)
    return regrouped(call, call[0], axis, rank, groups)


@translates("DepthToSpace")
def _depth_to_space(call: Call) -> str:
    _need_4d(call)
    mode = call.choice("mode", {"blocks_first": "DCR", "depth_first": "CRD"})
    return call.node("DepthToSpace", call[0], blocksize=call.whole("block_size", 1, low=1, high=LARGEST), mode=mode)


@translates("SpaceToDepth")
def _space_to_depth(call: Call) -> str:
    _need_4d(call)
    mode = call.choice("mode", {"blocks_first": "blocks", "depth_first": "depth"})
    size = call.whole("block_size", 1, low=1, high=LARGEST)
    moved = call.node("SpaceToDepth", call[0], blocksize=size)
    return moved if mode == "blocks" else regrouped(call, moved, 1, 4, size * size)


def _need_4d(call: Call) -> None:
    if call.rank(0) != 4:
        call.refuse("rank of the input", call.rank(0), "4")


@translates("Roll", since=7)
def _roll(call: Call) -> str:
    """Axis by axis: the elements with the numbers (k - shift) modulo the size."""
    name, rank = call[0], call.rank(0)
    axes = [call.axis(axis, rank, "axes") for axis in call.integers(2, "axes")]  # one that stands twice is rolled twice
    shifts = call.integers(1, "shift", low=-LARGEST, high=LARGEST)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise FormatError(f"{call.label}: shift (input 1) is {shifts}, axes (input 2) {axes}; expected as many of both")
    for shift, axis in zip(shifts, axes, strict=True):
        size = call.reshape(call.dimension(name, axis), [])
        numbers = call.node("Range", call.constant(0), size, call.constant(1))
        places = call.node("Mod", call.node("Sub", numbers, call.constant(shift)), size)
        name = call.node("Gather", name, places, axis=axis)
    return name


@translates("Eye", since=9)
def _eye(call: Call) -> str:
    """Ones where column - row is the number of the diagonal."""
    dtype = call.type_attribute("output_type")
    rows, columns = (
        call.node("Range", call.constant(0), call.reshape(call.int64(k), []), call.constant(1)) for k in (0, 1)
    )
    distance = call.node("Sub", columns, call.unsqueeze(rows, [1]))
    result = call.cast(call.node("Equal", distance, call.reshape(call.int64(2), [])), dtype)
    if not call.has(3):
        return result
    batch = call.list_of_int64(3)
    return call.node("Expand", result, call.concat([batch, call.node("Shape", result)]))
