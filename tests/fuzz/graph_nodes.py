"""Ways to add nodes without bodies to a random graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz.graph import MOST_AXES, UNARY, Graph, NoValue, Value, number_of
from fuzz.sizes import N, Shape, Size, T, product, size
from onnx import helper

from pyrnnx.reference import GATES

LAST = 2**63 - 1  # the end of a Slice that takes all


def bounded(graph: Graph, name: str, shape: Shape) -> Value:
    return Value(graph.add("Tanh", [name]), shape)


def unary(graph: Graph) -> list[Value]:
    x, operator = graph.pick(), graph.rng.choice(UNARY)
    return [Value(graph.add(operator, [x.name]), x.shape, x.is_exact and operator in ("Neg", "Abs", "Identity"))]


def binary(graph: Graph) -> list[Value]:
    x = graph.pick()
    y = graph.pick(lambda value: value.shape == x.shape)
    return [bounded(graph, graph.add(graph.rng.choice(("Add", "Sub", "Mul")), [x.name, y.name]), x.shape)]


def matmul(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: len(value.shape) > 1 and value.shape[-1].number is not None)
    columns = graph.rng.randint(1, 5)
    result = graph.add("MatMul", [x.name, graph.weights((number_of(x.shape[-1]), columns))])
    return [Value(result, (*x.shape[:-1], size(columns)))]


def transpose(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: len(value.shape) > 1)
    perm = graph.rng.sample(range(len(x.shape)), len(x.shape))
    shape = tuple(x.shape[axis] for axis in perm)
    return [Value(graph.add("Transpose", [x.name], perm=perm), shape, x.is_exact)]


def slice_(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: bool(value.shape))
    axis = graph.rng.randrange(len(x.shape))
    start, end, step, count = graph.rng.choice(
        ((0, 1, 1, size(1)), (-1, LAST, 1, size(1)), (-1, -LAST, -1, x.shape[axis]))
    )
    number = x.shape[axis].number
    if number is not None and number > 1 and graph.rng.random() < 0.7:
        start, end, step = graph.rng.randrange(number - 1), LAST, graph.rng.randint(1, 2)
        count = size(len(range(start, number, step)))
    places = [graph.integers(place) for place in (start, end, axis, step)]
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return [Value(graph.add("Slice", [x.name, *places]), shape, x.is_exact)]


def reshape(graph: Graph) -> list[Value]:
    """Merge neighbouring axes, split one, or do both; the target is a constant or computed from the shape."""
    x = graph.pick(lambda value: bool(value.shape))
    rng, axes = graph.rng, list(x.shape)
    if len(axes) > 1 and rng.random() < 0.75:
        first = rng.randrange(len(axes) - 1)
        last = rng.randint(first + 2, len(axes))
        axes[first:last] = [product(axes[first:last])]
    if rng.random() < 0.5 and len(axes) < MOST_AXES:
        place = rng.randrange(len(axes))
        factors = [k for k in range(1, 7) if all(m % k == 0 for _, m in axes[place].terms)]
        factor = rng.choice(factors)
        rest = Size(frozenset((powers, m // factor) for powers, m in axes[place].terms))
        axes[place : place + 1] = [rest, size(factor)]
    open_axes = [k for k, one in enumerate(axes) if one.number is None]
    kept = {k for k in open_axes if k < len(x.shape) and axes[k] == x.shape[k]}
    if len(open_axes) - len(kept) > 1:
        raise NoValue
    target = [0 if k in kept else -1 if k in open_axes else number_of(one) for k, one in enumerate(axes)]
    if -1 not in target and rng.random() < 0.5:
        target[rng.randrange(len(target))] = -1
    return [Value(graph.add("Reshape", [x.name, graph.integers(*target)]), tuple(axes), x.is_exact)]


def reshape_back(graph: Graph) -> list[Value]:
    """Flatten, apply an operator, and take the shape of before, as computed by Shape."""
    x = graph.pick(lambda value: bool(value.shape))
    rows = graph.add("Flatten", [x.name], axis=graph.rng.randint(0, len(x.shape)))
    operator = graph.rng.choice(("Neg", "Identity"))
    turned = graph.add(operator, [rows])
    return [Value(graph.add("Reshape", [turned, graph.add("Shape", [x.name])]), x.shape, x.is_exact)]


def flatten(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: bool(value.shape))
    axis = graph.rng.randint(0, len(x.shape))
    return [
        Value(graph.add("Flatten", [x.name], axis=axis), (product(x.shape[:axis]), product(x.shape[axis:])), x.is_exact)
    ]


def squeeze(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: size(1) in value.shape)
    axis = graph.rng.choice([k for k, one in enumerate(x.shape) if one == size(1)])
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return [Value(graph.add("Squeeze", [x.name, graph.integers(axis)]), shape, x.is_exact)]


def unsqueeze(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: len(value.shape) < MOST_AXES)
    axis = graph.rng.randint(0, len(x.shape))
    shape = (*x.shape[:axis], size(1), *x.shape[axis:])
    return [Value(graph.add("Unsqueeze", [x.name, graph.integers(axis)]), shape, x.is_exact)]


def concat(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: bool(value.shape))
    axis = graph.rng.randrange(len(x.shape))

    def others(value: Value) -> Shape:
        return value.shape[:axis] + value.shape[axis + 1 :]

    def fits(value: Value) -> bool:
        return len(value.shape) == len(x.shape) and others(value) == others(x)

    parts = [x, *(graph.pick(fits) for _ in range(graph.rng.randint(0, 2)))]
    total = parts[0].shape[axis]
    for part in parts[1:]:
        total = total + part.shape[axis]
    shape = (*x.shape[:axis], total, *x.shape[axis + 1 :])
    result = graph.add("Concat", [part.name for part in parts], axis=axis - graph.rng.choice((0, len(x.shape))))
    return [Value(result, shape, all(part.is_exact for part in parts))]


def split(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: any((one.number or 0) > 1 for one in value.shape))
    axis = graph.rng.choice([k for k, one in enumerate(x.shape) if (one.number or 0) > 1])
    first = graph.rng.randrange(1, number_of(x.shape[axis]))
    sizes = (first, number_of(x.shape[axis]) - first)
    names = [graph.name() for _ in sizes]
    graph.nodes.append(helper.make_node("Split", [x.name, graph.integers(*sizes)], names, axis=axis))
    shapes = [(*x.shape[:axis], size(one), *x.shape[axis + 1 :]) for one in sizes]
    return [Value(name, shape, x.is_exact) for name, shape in zip(names, shapes, strict=True)]


def expand(graph: Graph) -> list[Value]:
    """Repeat an axis of one: a constant number of times, or as often as another value is long."""
    x = graph.pick(lambda value: size(1) in value.shape)
    axis = graph.rng.choice([k for k, one in enumerate(x.shape) if one == size(1)])
    after = [1] * (len(x.shape) - axis - 1)
    if graph.rng.random() < 0.5:
        count = size(graph.rng.randint(2, 4))
        target = graph.integers(number_of(count), *after)
    else:
        other = graph.pick(lambda value: bool(value.shape))
        place = graph.rng.randrange(len(other.shape))
        count, shape = other.shape[place], graph.add("Shape", [other.name])
        length = graph.add("Slice", [shape, graph.integers(place), graph.integers(place + 1)])
        target = graph.add("Concat", [length, graph.integers(*after)], axis=0) if after else length
    return [Value(graph.add("Expand", [x.name, target]), (*x.shape[:axis], count, *x.shape[axis + 1 :]), x.is_exact)]


def gather(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: bool(value.shape))
    axis = graph.rng.randrange(len(x.shape))
    last = (x.shape[axis].number or 1) - 1
    made: Shape = ()
    indices = np.array(graph.rng.choice((0, last, -1)), np.int64)
    if graph.rng.random() < 0.4:
        indices = np.array([graph.rng.randint(0, last) for _ in range(graph.rng.randint(1, 3))], np.int64)
        made = (size(len(indices)),)
    result = graph.add("Gather", [x.name, graph.constant(indices)], axis=axis)
    return [Value(result, (*x.shape[:axis], *made, *x.shape[axis + 1 :]), x.is_exact)]


def quantize(graph: Graph) -> list[Value]:
    x = graph.pick(lambda value: value.is_exact)
    scale, zero = graph.constant(np.array(1 / 64, np.float32)), graph.constant(np.array(128, np.uint8))
    codes = graph.add("QuantizeLinear", [x.name, scale, zero])
    return [Value(graph.add("DequantizeLinear", [codes, scale, zero]), x.shape, True)]


def is_sequence(value: Value) -> bool:
    return len(value.shape) == 3 and value.shape[2].number is not None


def recurrent(graph: Graph, hidden_size: int = 0, direction: str = "") -> list[Value]:
    """A recurrent node over any two axes and a constant one, with some of its inputs; Y and its last states."""
    rng = graph.rng
    x = graph.pick(is_sequence)
    operator, H = rng.choice(tuple(GATES)), hidden_size or rng.randint(1, 5)
    direction = direction or rng.choice(("forward", "reverse", "bidirectional"))
    D, rows = 2 if direction == "bidirectional" else 1, GATES[operator] * H
    names = [x.name, graph.weights((D, rows, number_of(x.shape[2]))), graph.weights((D, rows, H))]
    names.append(graph.weights((D, 2 * rows)) if rng.random() < 0.7 else "")
    names.append(graph.input("lengths", "lengths", (N,)) if x.shape[:2] == (T, N) and rng.random() < 0.5 else "")
    states = 2 if operator == "LSTM" else 1
    state = (size(D), x.shape[1], size(H))
    for _ in range(states):
        fitting = [value.name for value in graph.values if value.shape == state]
        if fitting and rng.random() < 0.7:
            names.append(rng.choice(fitting))
        elif state[1] == N and rng.random() < 0.4:
            names.append(graph.input(f"state{D}x{H}", "float", state))
        else:
            names.append("")
    attributes: dict[str, Any] = {"hidden_size": H, "direction": direction}
    if operator == "GRU":
        attributes["linear_before_reset"] = rng.randint(0, 1)
    shapes = [(x.shape[0], size(D), x.shape[1], size(H))] + [state] * states
    outputs = [graph.name() for _ in shapes]
    graph.nodes.append(helper.make_node(operator, names, outputs, name=f"{operator} {outputs[0]}", **attributes))
    made = [Value(name, shape) for name, shape in zip(outputs, shapes, strict=True)]
    if rng.random() < 0.6:  # as exporters do: directions beside each other
        joined = graph.add("Transpose", [outputs[0]], perm=[0, 2, 1, 3])
        joined = graph.add("Reshape", [joined, graph.integers(0, 0, -1)])
        made.append(Value(joined, (x.shape[0], x.shape[1], size(D * H))))
    return made
