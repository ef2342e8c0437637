"""Random graphs of recurrent nodes among operators that move values; the same graph for the same seed.

Unlike `random_graphs`, values have any rank and any symbolic shape, so that recurrent nodes meet strided values.
ONNX Runtime is the witness, and what it does wrong is not drawn: NaN, empty axes, clip, layout 1, float64.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from fuzz import graph_nodes as nodes
from fuzz.graph import MOST_AXES, UNARY, Graph, NoValue, Value, number_of
from fuzz.graph_hidden import hidden
from fuzz.graph_nodes import bounded, is_sequence
from fuzz.sizes import N, Shape, Size, T, size
from onnx import helper, numpy_helper

from pyrnnx.reference import GATES
from pyrnnx.testing.numbers import Array

OPSETS = (13, 14, 17, 21, 22)
LARGEST = 600  # elements of a value for LARGEST_SIZES
LARGEST_SIZES = (5, 3)


def ending(graph: Graph, x: Value, features: int) -> Value:
    """Draw some nodes, and end with a value of the shape of x: of a sequence, with so many features."""
    for _ in range(graph.rng.randint(0, 2)):
        draw(graph)
    seen = [value for value in graph.values if value.shape == x.shape]
    y = graph.rng.choice([x, *seen])
    if not is_sequence(x):
        return Value(graph.add(graph.rng.choice(UNARY), [y.name]), x.shape)
    if graph.rng.random() < 0.5:
        return Value(graph.add("MatMul", [y.name, graph.weights((number_of(x.shape[2]), features))]), x.shape)
    around, graph.values = graph.values, [y]
    Y = nodes.recurrent(graph, features, graph.rng.choice(("forward", "reverse")))[0]
    graph.values = around
    return Value(graph.add("Squeeze", [Y.name, graph.integers(1)]), x.shape)


def _body(graph: Graph, inputs: list[Any], outputs: list[Any]) -> onnx.GraphProto:
    return helper.make_graph(graph.nodes, f"body {graph.name()}", inputs, outputs)


def _info(name: str, kind: int = onnx.TensorProto.FLOAT, rank: int | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, None if rank is None else [None] * rank)


def choice(graph: Graph) -> list[Value]:
    """An If, by an input or by a shape; its branches capture values."""
    x = graph.pick()
    features, branches = graph.rng.randint(1, 5), []
    for _ in range(2):
        inner = graph.body()
        result = ending(inner, x, features)
        branches.append(_body(inner, [], [_info(result.name)]))
    if graph.rng.random() < 0.5 or not x.shape:
        condition = graph.input("flag", "bool")
    else:
        length = graph.add("Gather", [graph.add("Shape", [x.name]), graph.constant(np.array(0))])
        condition = graph.add("Greater", [length, graph.constant(np.array(3))])
    shape = (*x.shape[:2], size(features)) if is_sequence(x) else x.shape
    return [Value(graph.add("If", [condition], then_branch=branches[0], else_branch=branches[1]), shape)]


def loop(graph: Graph) -> list[Value]:
    """A Loop that carries a value: a constant number of times, with stacked results, or as an input says."""
    x = graph.pick(lambda value: len(value.shape) < MOST_AXES)
    count, condition, carried, proceed = (graph.name() for _ in range(4))
    inner = graph.body(Value(carried, x.shape))
    after = ending(inner, Value(carried, x.shape), x.shape[2].number or 1 if is_sequence(x) else 1)
    result = bounded(inner, inner.add("Add", [carried, after.name]), x.shape)
    inner.nodes.append(helper.make_node("Identity", [condition], [proceed]))
    kinds = (onnx.TensorProto.INT64, onnx.TensorProto.BOOL)
    inputs = [_info(count, kinds[0], 0), _info(condition, kinds[1], 0), _info(carried)]
    outputs = [_info(proceed, kinds[1]), _info(result.name)]
    final, stacked = graph.name(), graph.name()
    made = [Value(final, x.shape)]
    if graph.rng.random() < 0.5:
        trips = graph.input("trips", "trips")
    else:
        number = graph.rng.randint(1, 3)
        trips = graph.constant(np.array(number))
        copy = inner.add("Identity", [result.name])
        outputs.append(_info(copy))
        made.append(Value(stacked, (size(number), *x.shape)))
    names = [value.name for value in made]
    graph.nodes.append(helper.make_node("Loop", [trips, "", x.name], names, body=_body(inner, inputs, outputs)))
    return made


def scan(graph: Graph) -> list[Value]:
    """A Scan along the first axis, forward or backward; its state begins with the first place."""
    x = graph.pick(lambda value: len(value.shape) > 1)
    first = graph.add("Gather", [x.name, graph.constant(np.array(0))], axis=0)
    state, step = (Value(graph.name(), x.shape[1:]) for _ in range(2))
    inner = graph.body(state, step)
    after = ending(inner, step, step.shape[2].number or 1 if is_sequence(step) else 1)
    result = bounded(inner, inner.add("Add", [state.name, after.name]), step.shape)
    copy = inner.add("Neg", [result.name])
    rank = len(step.shape)  # ONNX Runtime asks for it
    outputs = [_info(name, rank=rank) for name in (result.name, copy)]
    body = _body(inner, [_info(state.name), _info(step.name)], outputs)
    made = [Value(graph.name(), step.shape), Value(graph.name(), x.shape)]
    names = [value.name for value in made]
    node = helper.make_node(
        "Scan", [first, x.name], names, body=body, num_scan_inputs=1, scan_input_directions=[graph.rng.randint(0, 1)]
    )
    graph.nodes.append(node)
    return made


# Each draws a node or a few, and returns the new values.
Draw = Callable[[Graph], list[Value]]
# By how often it is drawn, beside the others.
KINDS: dict[Draw, int] = {
    nodes.unary: 2,
    nodes.binary: 2,
    nodes.matmul: 2,
    nodes.transpose: 5,
    nodes.slice_: 4,
    nodes.reshape: 5,
    nodes.reshape_back: 1,
    nodes.flatten: 3,
    nodes.squeeze: 3,
    nodes.unsqueeze: 2,
    nodes.concat: 3,
    nodes.split: 2,
    nodes.expand: 2,
    nodes.gather: 3,
    nodes.quantize: 2,
    nodes.recurrent: 8,
    hidden: 3,
    choice: 1,
    loop: 1,
    scan: 1,
}
WITH_BODIES = (choice, hidden, loop, scan)


def draw(graph: Graph) -> None:
    """Draw a node, or a few that belong together, whose values are not too large."""
    kinds = {kind: weight for kind, weight in KINDS.items() if graph.depth < 2 or kind not in WITH_BODIES}
    while True:
        (kind,) = graph.rng.choices(list(kinds), list(kinds.values()))
        count, constants, inputs = len(graph.nodes), dict(graph.constants), dict(graph.inputs)
        try:
            made = kind(graph)
            if any(math.prod(one.at(*LARGEST_SIZES) for one in value.shape) > LARGEST for value in made):
                raise NoValue
        except NoValue:
            del graph.nodes[count:]
            for shared, before in ((graph.constants, constants), (graph.inputs, inputs)):
                shared.clear()
                shared.update(before)  # type: ignore[arg-type]
            continue
        graph.values += made
        return


@dataclass(frozen=True)
class Drawn:
    """A model, and what makes inputs for it."""

    proto: onnx.ModelProto
    inputs: Mapping[str, tuple[str, Shape]]
    calls: tuple[tuple[int, int], ...]  # T and N of each call

    def arrays(self, number: int) -> dict[str, Array]:
        """Return the inputs of a call; those of the fourth are zeros, and those of the last are the first's."""
        rng = np.random.default_rng(number % (len(self.calls) - 1))
        lengths, zeros = self.calls[number], number == 3
        arrays: dict[str, Array] = {}
        for name, (kind, axes) in self.inputs.items():
            shape = tuple(axis.at(*lengths) for axis in axes)
            if kind == "float":
                array = rng.uniform(-1, 1, shape).astype(np.float32)
            elif kind == "lengths":
                array = rng.integers(0, lengths[0] + 1, shape).astype(np.int32)
            elif kind == "trips":
                array = np.array(rng.integers(4))
            else:
                array = np.array(bool(rng.integers(2)))
            arrays[name] = np.zeros_like(array) if zeros else array
        return arrays


def drawn_model(seed: int | str) -> Drawn:
    """Return a random model with T and N open, or fixed."""
    rng = random.Random(f"graphs {seed}")
    own = {"x": ("float", (T, N, size(3))), "z": ("float", (N, T, size(4)))}
    values = [Value(name, shape, True) for name, (_, shape) in own.items()]
    graph = Graph(rng, rng.choice(OPSETS), values, inputs=dict(own))
    while len(graph.nodes) < 6 or rng.random() < 0.85 or not any(node.op_type in GATES for node in graph.nodes):
        draw(graph)
    made = [value.name for value in graph.values if value.name not in own]
    wanted = sorted({made[-1], *rng.sample(made, min(3, len(made)))})
    base, other = (rng.randint(2, 4), rng.randint(1, 3)), (rng.randint(1, 5), rng.randint(1, 3))
    is_open = rng.random() < 0.8, rng.random() < 0.8
    other = tuple(b if free else a for a, b, free in zip(base, other, is_open, strict=True))  # type: ignore[assignment]
    dims: dict[Size, Any] = {
        one: name if free else n for one, name, n, free in zip((T, N), "TN", base, is_open, strict=True)
    }
    kinds = {"float": onnx.TensorProto.FLOAT, "lengths": onnx.TensorProto.INT32, "trips": onnx.TensorProto.INT64}
    infos = [
        helper.make_tensor_value_info(
            name, kinds.get(kind, onnx.TensorProto.BOOL), [dims.get(axis, axis.number) for axis in shape]
        )
        for name, (kind, shape) in graph.inputs.items()
    ]
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in wanted]
    constants = [numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    proto = helper.make_model(
        helper.make_graph(graph.nodes, f"graph {seed}", infos, outputs, constants),
        opset_imports=[helper.make_opsetid("", graph.opset)],
        ir_version=8,
    )
    return Drawn(proto, graph.inputs, (base, base, base, base, base, other, base))
