"""Operators between constants, in NumPy: importing onnx's evaluator takes longer than a load.

Only plain nodes, whose results equal the evaluator's. The evaluator runs the others, and those that fail here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ..onnx_package import import_onnx
from .walk import Node

if TYPE_CHECKING:
    from onnx import NodeProto

Attributes = Mapping[str, Any]
_LISTS = {"value_floats": np.float32, "value_float": np.float32, "value_ints": np.int64, "value_int": np.int64}


def _need(condition: bool) -> None:
    if not condition:
        raise ValueError("onnx's evaluator has to run the node")


def _integers(values: Any) -> list[int]:
    """Return a list of integers from an attribute or a one-dimensional array."""
    array = np.asarray(values)
    _need(array.ndim == 1 and array.dtype.kind in "iu")
    integers: list[int] = array.tolist()
    return integers


def _need_numbers(*arrays: AnyArray) -> None:
    """Reject arrays that differ in dtype, or whose dtype is not one of NumPy's own."""
    _need(len({array.dtype for array in arrays}) == 1)
    _need(arrays[0].dtype.isbuiltin == 1 and arrays[0].dtype.kind in "iuf")


def _axes(attributes: Attributes, inputs: Sequence[AnyArray]) -> tuple[int, ...]:
    """Return axes from an attribute or input, in an order in which one by one equals all at once."""
    axes = _integers(inputs[0] if inputs else attributes["axes"])
    _need(bool(axes) and (len(axes) == 1 or (axes == sorted(set(axes)) and axes[0] >= 0)))
    return tuple(axes)


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def compute(attributes: Attributes, A: AnyArray, B: AnyArray) -> Any:
        _need_numbers(A, B)
        return function(A, B)

    return compute


def _div(attributes: Attributes, A: AnyArray, B: AnyArray) -> Any:
    _need_numbers(A, B)
    if A.dtype.kind == "f":
        return A / B
    _need(bool((A >= 0).all() and (B > 0).all()))  # the rounding direction does not matter then
    return A // B


def _cast(attributes: Attributes, X: AnyArray) -> Any:
    dtype = import_onnx().helper.tensor_dtype_to_np_dtype(attributes["to"])
    _need(all(t.isbuiltin == 1 and t.kind in "biuf" for t in (X.dtype, dtype)))
    return X.astype(dtype)


def _concat(attributes: Attributes, *arrays: AnyArray) -> Any:
    _need(len({array.dtype for array in arrays}) == 1)
    return np.concatenate(arrays, attributes["axis"])


def _constant(attributes: Attributes) -> Any:
    ((name, value),) = attributes.items()
    return np.array(value, _LISTS[name])


def _constant_of_shape(attributes: Attributes, shape: AnyArray) -> Any:
    value = np.zeros(1, np.float32)
    if "value" in attributes:
        value = import_onnx().numpy_helper.to_array(attributes["value"])
    _need(value.size == 1)
    return np.full(_integers(shape), value.ravel()[0])


def _expand(attributes: Attributes, X: AnyArray, shape: AnyArray) -> Any:
    _need_numbers(X)
    return np.broadcast_to(X, np.broadcast_shapes(X.shape, tuple(_integers(shape)))).copy()


def _gather(attributes: Attributes, X: AnyArray, indices: AnyArray) -> Any:
    return np.take(X, indices, axis=attributes.get("axis", 0))


def _range(attributes: Attributes, start: AnyArray, limit: AnyArray, delta: AnyArray) -> Any:
    _need_numbers(start, limit, delta)
    _need(start.dtype.itemsize >= 4)  # later opsets define the precision for float16
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)


def _reshape(attributes: Attributes, X: AnyArray, shape: AnyArray) -> Any:
    _need(not attributes.get("allowzero", 0))
    return X.reshape([size or X.shape[axis] for axis, size in enumerate(_integers(shape))])


def _shape(attributes: Attributes, X: AnyArray) -> Any:
    return np.array(X.shape, np.int64)


def _slice(attributes: Attributes, X: AnyArray, *others: AnyArray) -> Any:
    starts, ends = map(_integers, others[:2])
    axes = _integers(others[2]) if len(others) > 2 else list(range(len(starts)))
    steps = _integers(others[3]) if len(others) > 3 else [1] * len(starts)
    slices = [slice(None)] * X.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        slices[axis] = slice(start, end, step)
    return X[tuple(slices)]


def _squeeze(attributes: Attributes, X: AnyArray, *axes: AnyArray) -> Any:
    return np.squeeze(X, _axes(attributes, axes) if axes or attributes else None)


def _unsqueeze(attributes: Attributes, X: AnyArray, *axes: AnyArray) -> Any:
    return np.expand_dims(X, _axes(attributes, axes))


def _where(attributes: Attributes, condition: AnyArray, X: AnyArray, Y: AnyArray) -> Any:
    _need(condition.dtype == np.bool_)
    _need_numbers(X, Y)
    return np.where(condition, X, Y)


@dataclass(frozen=True)
class Row:
    """Operator of the table.

    Attributes
    ----------
    compute : callable
        (attributes, *inputs) -> result.
    first_opset : int
        First opset with these semantics.
    attributes : tuple of str
        Supported attributes.
    """

    compute: Callable[..., Any]
    first_opset: int = 1
    attributes: tuple[str, ...] = ()


TABLE: Mapping[str, Row] = MappingProxyType(
    {
        "Add": Row(_arithmetic(np.add), 7),
        "Cast": Row(_cast, 6, ("to",)),
        "Concat": Row(_concat, 4, ("axis",)),
        "Constant": Row(_constant, 12, tuple(_LISTS)),
        "ConstantOfShape": Row(_constant_of_shape, 9, ("value",)),
        "Div": Row(_div, 7),
        "Equal": Row(_arithmetic(np.equal), 7),
        "Expand": Row(_expand, 8),
        "Gather": Row(_gather, 1, ("axis",)),
        "Identity": Row(lambda attributes, X: X, 1),
        "Mul": Row(_arithmetic(np.multiply), 7),
        "Range": Row(_range, 11),
        "Reshape": Row(_reshape, 5, ("allowzero",)),
        "Shape": Row(_shape, 1),
        "Slice": Row(_slice, 10),
        "Squeeze": Row(_squeeze, 1, ("axes",)),
        "Sub": Row(_arithmetic(np.subtract), 7),
        "Transpose": Row(lambda attributes, X: np.transpose(X, attributes.get("perm") or None), 1, ("perm",)),
        "Unsqueeze": Row(_unsqueeze, 1, ("axes",)),
        "Where": Row(_where, 9),
    }
)


def compute(node: Node | NodeProto, arrays: Sequence[AnyArray | None], opset: int) -> AnyArray | None:
    """Return the result of a node of the default domain; None if onnx's evaluator has to run it."""
    row = TABLE.get(node.op_type)
    if row is None or node.domain or opset < row.first_opset or len(node.output) != 1:
        return None
    if any(array is None for array in arrays) or any(
        attribute.name not in row.attributes for attribute in node.attribute
    ):
        return None
    try:
        value_of = import_onnx().helper.get_attribute_value
        with np.errstate(all="ignore"):
            return np.asarray(
                row.compute({attribute.name: value_of(attribute) for attribute in node.attribute}, *arrays)
            )
    except Exception:  # the evaluator raises the error
        return None
