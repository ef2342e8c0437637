"""Nodes that move numbers, look at shapes or compare an integer or two: by NumPy, in the buffers of a bound plan.

A session takes microseconds even for a Squeeze. In a bound plan all shapes are known, so that

- what depends on shapes and constants alone is *fixed*: computed once, with the branch of an If that it chooses;
- what moves nothing in memory (Squeeze, Reshape, Gather of one place) is a *view* of a buffer, and takes no time;
- what is left, such as a comparison of one input with a constant, is an *action* of NumPy.

None of them computes with floating-point numbers, so results have the bits that a session gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..graph.constants import array_of, shape_of
from ..onnx_package import import_onnx
from .types import Tensors

_MOST_ACTIONS = 4  # for more, a session is as fast
_LARGEST = 1024  # elements of what an action makes, and of a constant that is looked at

Attributes = Mapping[str, Any]


class _NotViewed(Exception):  # noqa: N818  # no error of a caller's
    """A node that is left to a session."""


class Scope:
    """The values of a graph, by name: buffers and views of them; `fixed` are those that no call changes."""

    def __init__(self, values: Mapping[str, Any], fixed: Iterable[str]) -> None:
        self.values, self.fixed = dict(values), set(fixed)

    def inner(self, constants: Mapping[str, Any]) -> Scope:
        """Of a body, with constants of its own."""
        return Scope({**self.values, **constants}, self.fixed | constants.keys())

    def set(self, name: str, value: Any, *, fixed: bool) -> None:
        self.values[name] = value
        (self.fixed.add if fixed else self.fixed.discard)(name)


class Views:
    """What NumPy makes of some nodes.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto
        Sorted.
    tensors : mapping
        Constants that they see: onnx.TensorProto or array, by name.
    scope : Scope
        What they see beside them.

    Attributes
    ----------
    scope : Scope
        With those values of the nodes that NumPy makes.
    actions : list of callable
        What is done in each call; when they are made, they have run.
    """

    def __init__(self, nodes: Sequence[Any], tensors: Tensors, scope: Scope) -> None:
        self.actions: list[Callable[[], Any]] = []
        small = {name: one for name, one in tensors.items() if math.prod(shape_of(one)) <= _LARGEST}
        self.scope = scope.inner({name: array_of(one, name) for name, one in small.items()})
        self._add(nodes, self.scope)

    def _add(self, nodes: Iterable[Any], scope: Scope) -> None:
        """The values of those nodes that can be viewed."""
        for node in nodes:
            try:
                results, fixed = self._results(node, scope)
            except Exception:  # inputs of which the operator makes nothing, too: the session will say so
                continue
            for name, value in zip(node.output, results, strict=False):
                if name:
                    scope.set(name, value, fixed=fixed)

    def _results(self, node: Any, scope: Scope) -> tuple[Sequence[Any], bool]:
        """The results of a node, and whether they are fixed."""
        if node.domain:
            raise _NotViewed
        inputs = [scope.values[name] if name else None for name in node.input]
        fixed = [not name or name in scope.fixed for name in node.input]
        if node.op_type == "If" and fixed[0]:
            return self._branch(node, inputs[0], scope)
        get = import_onnx().helper.get_attribute_value
        attributes = {one.name: get(one) for one in node.attribute}
        if node.op_type in _SHAPES:
            return [_SHAPES[node.op_type](attributes, *inputs)], True
        if node.op_type in _VIEWS and all(fixed[1:]):
            return _VIEWS[node.op_type](attributes, *inputs), fixed[0]
        if node.op_type == "Cast" and inputs[0] is not None and _dtype(attributes["to"]) == inputs[0].dtype:
            return inputs, fixed[0]
        if node.op_type == "ConstantOfShape" and fixed[0]:
            return [_filled(attributes, inputs[0])], True
        if node.op_type in _FUNCTIONS:
            result, action = _FUNCTIONS[node.op_type](attributes, *inputs)
            if not all(fixed):
                self.actions.append(action)
            return [result], all(fixed)
        raise _NotViewed

    def _branch(self, node: Any, condition: Any, scope: Scope) -> tuple[Sequence[Any], bool]:
        (chosen,) = (one.g for one in node.attribute if one.name == ("then_branch" if condition else "else_branch"))
        inner = scope.inner({one.name: _array(one) for one in chosen.initializer})
        self._add(chosen.node, inner)
        names = [one.name for one in chosen.output]
        return [inner.values[name] for name in names], all(name in inner.fixed for name in names)

    def gives(self, names: Iterable[str], expected: Sequence[Any]) -> bool:
        """Whether values of these names are all there, and the expected ones to the last bit."""
        found = [self.scope.values.get(name) for name in names]
        if len(self.actions) > _MOST_ACTIONS:
            return False
        return all(_is_same(one, other) for one, other in zip(found, expected, strict=True))

    def fixed(self, names: Iterable[str], expected: Sequence[Any]) -> set[str]:
        """Those of the names whose values are fixed."""
        given = zip(names, expected, strict=True)
        return {name for name, one in given if name in self.scope.fixed and _is_same(self.scope.values[name], one)}


def _is_same(value: Any, expected: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype == expected.dtype
        and value.shape == expected.shape
        and value.tobytes() == expected.tobytes()
    )


def _array(tensor: Any) -> Any:
    return import_onnx().numpy_helper.to_array(tensor)


# Views: attributes, what is viewed, fixed values -> results


def _axes(attributes: Attributes, axes: Any) -> Any:
    """Those of Squeeze and Unsqueeze; None where there are none."""
    found = attributes.get("axes") if axes is None else axes.tolist()
    return None if found is None else tuple(found)


def _reshape(attributes: Attributes, data: Any, shape: Any) -> list[Any]:
    sizes = shape.tolist()
    if not attributes.get("allowzero", 0):
        sizes = [data.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    return [data.reshape(sizes)]


def _flatten(attributes: Attributes, data: Any) -> list[Any]:
    axis = attributes.get("axis", 1)
    axis += data.ndim if axis < 0 else 0
    rows = int(np.prod(data.shape[:axis], dtype=np.int64))
    return [data.reshape(rows, -1)]


def _transpose(attributes: Attributes, data: Any) -> list[Any]:
    return [data.transpose(attributes.get("perm"))]


def _gather(attributes: Attributes, data: Any, indices: Any) -> list[Any]:
    """One place along an axis, with the axes of the indices in its stead."""
    axis = range(data.ndim)[attributes.get("axis", 0)]
    place = range(data.shape[axis])[indices.item()]
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    return [data[(slice(None),) * axis + (place,)].reshape(before + indices.shape + after)]


def _slice(attributes: Attributes, data: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> list[Any]:
    picked = [slice(None)] * data.ndim
    along = range(len(starts)) if axes is None else axes.tolist()
    by = np.ones_like(starts) if steps is None else steps
    for axis, start, end, step in zip(along, starts.tolist(), ends.tolist(), by.tolist(), strict=True):
        picked[axis] = slice(start, end, step)
    return [data[tuple(picked)]]


def _split(attributes: Attributes, data: Any, sizes: Any = None) -> list[Any]:
    axis = attributes.get("axis", 0)
    parts = attributes.get("split") if sizes is None else sizes.tolist()
    if parts is None:
        raise _NotViewed
    return np.split(data, np.cumsum(parts)[:-1].tolist(), axis)


def _dtype(element: int) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(import_onnx().helper.tensor_dtype_to_np_dtype(element))
    return dtype


_VIEWS: dict[str, Callable[..., list[Any]]] = {
    "Flatten": _flatten,
    "Gather": _gather,
    "Identity": lambda _, data: [data],
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": lambda attributes, data, axes=None: [data.squeeze(_axes(attributes, axes))],
    "Transpose": _transpose,
    "Unsqueeze": lambda attributes, data, axes=None: [np.expand_dims(data, _axes(attributes, axes))],
}

# Shapes: attributes, any value -> a fixed result


def _shape(attributes: Attributes, data: Any) -> Any:
    return np.array(data.shape[attributes.get("start", 0) : attributes.get("end")], np.int64)


_SHAPES: dict[str, Callable[..., Any]] = {
    "Shape": _shape,
    "Size": lambda _, data: np.array(data.size, np.int64),
}


def _filled(attributes: Attributes, shape: Any) -> Any:
    """The result of ConstantOfShape."""
    value = _array(attributes["value"]) if "value" in attributes else np.zeros(1, np.float32)
    if np.prod(shape, dtype=np.float64) > _LARGEST:
        raise _NotViewed
    return np.full(shape.tolist(), value.item(), value.dtype)


# Functions: attributes, values -> the buffer of the result, and what computes it


def _integers(function: np.ufunc) -> Callable[..., tuple[Any, Callable[[], Any]]]:
    """A function of NumPy that is exact on integers and on truth values."""

    def made(_: Attributes, *inputs: Any) -> tuple[Any, Callable[[], Any]]:
        if any(one.dtype.kind not in "iub" or one.dtype != inputs[0].dtype for one in inputs):
            raise _NotViewed
        if np.prod(np.broadcast_shapes(*(one.shape for one in inputs)), dtype=np.float64) > _LARGEST:
            raise _NotViewed
        result = np.asarray(function(*inputs))
        return result, partial(function, *inputs, out=result)

    return made


def _cast(attributes: Attributes, data: Any) -> tuple[Any, Callable[[], Any]]:
    """Between integers, and truth values."""
    dtype = _dtype(attributes["to"])
    if data.dtype.kind not in "iub" or dtype.kind not in "iub" or data.size > _LARGEST:
        raise _NotViewed
    result = data.astype(dtype, order="C")
    return result, partial(np.copyto, result, data, casting="unsafe")


def _concat(attributes: Attributes, *inputs: Any) -> tuple[Any, Callable[[], Any]]:
    if any(one.dtype != inputs[0].dtype for one in inputs) or sum(one.size for one in inputs) > _LARGEST:
        raise _NotViewed
    axis = attributes["axis"]
    result = np.concatenate(inputs, axis)
    return result, partial(np.concatenate, inputs, axis, result)


_FUNCTIONS: dict[str, Callable[..., tuple[Any, Callable[[], Any]]]] = {
    "Add": _integers(np.add),
    "And": _integers(np.logical_and),
    "Cast": _cast,
    "Concat": _concat,
    "Equal": _integers(np.equal),
    "Greater": _integers(np.greater),
    "GreaterOrEqual": _integers(np.greater_equal),
    "Less": _integers(np.less),
    "LessOrEqual": _integers(np.less_equal),
    "Mul": _integers(np.multiply),
    "Not": _integers(np.logical_not),
    "Or": _integers(np.logical_or),
    "Sub": _integers(np.subtract),
}
