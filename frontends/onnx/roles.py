"""Roles of the integer inputs of a graph, by the nodes that take them: lengths, indices, numbers to compare with."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.models.roles import Role, merged

from .graph.constants import array_of, shape_of
from .graph.walk import Graph, Node, sorted_nodes

_MOST_READ = 4096  # elements of a constant whose values are read
_MOST_VALUES = 8  # numbers with which an input is compared, and beyond which they are rows
_LENGTHS_AT = {
    **dict.fromkeys(("RNN", "GRU", "LSTM", "DynamicQuantizeLSTM"), 4),
    "Recurrent": 1,
    "ReverseSequence": 1,
}
# OpenVINO's sequences in a translated net: without weights, in the order of a call; else in their own.
_LENGTHS_OF_SEQUENCES = {"RNNSequence": 2, "GRUSequence": 2, "LSTMSequence": 3}
_MOST_OF_CALL = 4
_COMPARED = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
# Operators whose outputs have numbers of their inputs, and those that compute with them.
_RESHAPING = {"Unsqueeze", "Squeeze", "Reshape", "Expand", "Flatten", "Tile", "Transpose"}
_PASSING = {"Cast", "Identity", "Slice", "Concat", "Where", "Clip", "Split", *_RESHAPING}
_COMPUTING = {"Add", "Sub", "Mul", "Div", "Mod", "Abs", "Min", "Max", "Ceil", "Floor", "Neg", "Gather"}
_ELEMENTWISE = {"Cast", "Identity", "Add", "Sub", "Mul", "Div"}
_MOVING = {"Transpose", "Slice", "Squeeze", "Unsqueeze"}
_MOST_ROWS = 2**20  # that are counted of a table whose shape is not known


class _Value(NamedTuple):
    exact: frozenset[str] = frozenset()  # inputs of the graph whose numbers it has
    computed: frozenset[str] = frozenset()  # inputs of the graph from whose numbers it is computed
    is_range: bool = False  # whether it counts 0, 1, 2, ...
    shape: tuple[int, ...] | None = None  # of a constant
    array: AnyArray | None = None  # numbers of a small constant
    most: int | None = None  # bound of the rows of a value that is computed from constants alone


_UNKNOWN = _Value()
_Scope = MutableMapping[str, _Value]


def input_roles(graph: Graph, label: str) -> dict[str, Role]:
    """Return the roles of the inputs of a graph that some node shows; `label` is the model's in errors."""
    shown: dict[str, list[Role]] = {}
    scope: _Scope = {value.name: _Value(exact=frozenset({value.name})) for value in graph.input}
    for name, role in _shown(graph, scope, label):
        shown.setdefault(name, []).append(role)
    return {name: merged(roles) for name, roles in shown.items()}


def _shown(graph: Graph, scope: _Scope, label: str) -> Iterator[tuple[str, Role]]:
    for tensor in graph.initializer:
        if tensor.name not in scope or not scope[tensor.name].exact:
            scope[tensor.name] = _constant(graph.arrays.get(tensor.name, tensor), label)
    for node in sorted_nodes(graph, label):
        inputs = [scope.get(name, _UNKNOWN) for name in node.input] or [_UNKNOWN]
        yield from _of_node(node, inputs)
        for _, body in node.bodies:
            inner: _Scope = ChainMap({}, scope)
            skipped = len(inputs) - len(body.input)  # the first version of Scan has lengths first
            for value, own in zip(body.input, inputs[max(skipped, 0) :], strict=False):
                inner[value.name] = own
            if node.op_type == "Loop" and body.input:
                inner[body.input[0].name] = _Value(is_range=True)
            yield from _shown(body, inner, label)
        result = _result(node, inputs, label)
        scope.update((name, result) for name in node.output if name)


def _constant(tensor: Any, label: str) -> _Value:
    shape = shape_of(tensor)
    if math.prod(shape) > _MOST_READ:
        return _Value(shape=shape, most=max(shape))
    array, most = array_of(tensor, label), max(shape, default=1)
    if array.dtype.kind not in "iuf":
        return _Value(shape=shape, most=most)
    counts = array.size > 1 and np.array_equal(array.ravel(), np.arange(array.size))
    return _Value(is_range=counts, shape=shape, array=array, most=most)


def _result(node: Node, inputs: list[_Value], label: str) -> _Value:
    """Return what is known of the outputs of a node."""
    if node.op_type == "Constant":
        tensors = [attribute.t for attribute in node.attribute if attribute.name == "value"]
        numbers = [attribute.i for attribute in node.attribute if attribute.name == "value_int"]
        return _constant(tensors[0] if tensors else np.array(numbers[0]), label) if tensors or numbers else _UNKNOWN
    if node.op_type in ("Range", "CumSum"):
        numbers = [value.array.item() for value in inputs if value.array is not None and value.array.size == 1]
        if node.op_type == "Range" and len(numbers) == len(inputs) and abs(numbers[1]) <= _MOST_READ:
            return _constant(np.arange(*numbers), label)
        return _Value(is_range=True, most=_most(node, inputs))
    if node.op_type == "DequantizeLinear":
        return _Value(shape=inputs[0].shape, most=inputs[0].most)
    passing, computing = node.op_type in _PASSING, node.op_type in _COMPUTING
    if not (passing or computing):
        return _Value(most=_most(node, inputs))
    inputs = inputs[:1] if node.op_type == "Gather" else inputs  # its rows, not which of them
    exact: frozenset[str] = frozenset().union(*(value.exact for value in inputs))
    computed: frozenset[str] = frozenset().union(*(value.computed for value in inputs))
    same = inputs[0] if node.op_type in ("Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape") else _UNKNOWN
    return _Value(
        exact if passing else frozenset(),
        computed if passing else exact | computed,
        any(value.is_range for value in inputs),
        _shape(node, inputs),
        same.array,
        _most(node, inputs),
    )


def _shape(node: Node, inputs: list[_Value]) -> tuple[int, ...] | None:
    """Return the shape of a constant that is computed from others element by element."""
    shapes = [value.shape for value in inputs if value.shape is not None]
    if node.op_type not in _ELEMENTWISE or len(shapes) < len(inputs):
        return None
    with suppress(ValueError):
        return np.broadcast_shapes(*shapes)
    return None


def _most(node: Node, inputs: list[_Value]) -> int | None:
    """Return a bound of the rows of a value that is computed from constants alone."""
    known = [value.most for value in inputs if value.most is not None]
    if not known or len(known) < len(inputs) or node.bodies:
        return None
    if node.op_type in _ELEMENTWISE or node.op_type in _MOVING:
        return max(known)
    return min(sum(known) if node.op_type == "Concat" else math.prod(known) * _MOST_READ, _MOST_ROWS)


def _of_node(node: Node, inputs: list[_Value]) -> Iterator[tuple[str, Role]]:
    """Yield the roles that a node shows of the inputs of the graph."""
    place = _LENGTHS_AT.get(node.op_type)
    if node.op_type in _LENGTHS_OF_SEQUENCES:
        place = 1 if len(inputs) <= _MOST_OF_CALL else _LENGTHS_OF_SEQUENCES[node.op_type]
    if place is not None and place < len(inputs):
        yield from ((name, Role(is_length=True)) for name in inputs[place].exact | inputs[place].computed)
    if node.op_type in _COMPARED:
        for value, other in (inputs, inputs[::-1]):
            yield from ((name, _compared(node.op_type, other)) for name in value.exact | value.computed)
    for indices, rows in _indices(node, inputs):
        yield from ((name, Role(rows=rows)) for name in indices.exact)
        yield from ((name, Role(reach=rows)) for name in indices.computed)


def _compared(operator: str, other: _Value) -> Role:
    """Return the role of a number that is compared with another value."""
    rows = None if other.array is None else other.array.size
    if other.is_range or (other.array is None and operator != "Equal"):
        return Role(is_length=operator != "Equal", rows=rows if operator == "Equal" else None)
    if other.array is None:
        return Role()
    numbers = np.unique(other.array)
    near = {int(number) + step for number in numbers[:_MOST_VALUES] if np.isfinite(number) for step in (-1, 0, 1)}
    return Role(values=tuple(near))


def _indices(node: Node, inputs: list[_Value]) -> Iterator[tuple[_Value, int]]:
    """Yield values that select rows of a constant, and the number of these rows."""
    if len(inputs) < 2:
        return
    if node.op_type in ("Gather", "GatherElements", "GatherND"):
        shape = inputs[0].shape or ()
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        if node.op_type == "GatherND":
            shape = (max(shape[:-1] or shape, default=0),) if shape else ()
        if -len(shape) <= axis < len(shape):
            yield inputs[1], shape[axis]
        elif inputs[0].most is not None:
            yield inputs[1], inputs[0].most
    depth = inputs[1].array
    if node.op_type == "OneHot" and depth is not None and depth.size == 1:
        yield inputs[0], int(depth.ravel()[0])
