"""Recurrent layers that a random graph spells out, in steps, a Loop or a Scan; every second one is altered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from fuzz.graph import Graph, Value, number_of
from fuzz.graph_nodes import is_sequence
from fuzz.sizes import Shape, size
from onnx import helper

from pyrnnx.reference import GATES

FUNCTIONS = ("Sigmoid", "Tanh", "HardSigmoid", "Softsign", "Relu")
ALTERATIONS = (
    *("clip", "function", "scale", "weights", "state", "update", "inner", "mask", "bias", "peephole", "order"),
    *("reset", "row", "product"),
)


@dataclass
class Cell:
    """A cell while it is drawn; `altered` is what makes it another one, or only looks so."""

    graph: Graph
    kind: str
    features: int
    H: int
    altered: str
    inner: str = ""

    def __post_init__(self) -> None:
        graph, gates = self.graph, GATES[self.kind]
        self.W = graph.weights((self.features, gates * self.H))
        self.R = graph.weights((self.H, gates * self.H))
        self.b, self.c = (graph.weights((gates * self.H,)) for _ in range(2))
        self.other = graph.weights((self.H, self.H))
        self.functions = {name: "Tanh" if name in "nh" else "Sigmoid" for name in "ifogzrnh"}
        self.functions["g"] = "Tanh"
        if altered_function := self.altered == "function":
            self.functions[graph.rng.choice("ifogzrnh")] = graph.rng.choice(FUNCTIONS)
        self.is_before = graph.rng.random() < 0.5
        self._is_plain = not altered_function and graph.rng.random() < 0.7

    @property
    def states(self) -> int:
        return 2 if self.kind == "LSTM" else 1

    def step(self, graph: Graph, x: str, states: list[str], number: int = 0) -> list[str]:
        """Add a step to a graph or body; return the new states."""
        W = graph.weights((self.features, GATES[self.kind] * self.H)) if self._is("weights", number) else self.W
        projected = graph.add("Add", [graph.add("MatMul", [x, W]), self.b])
        recurrent = graph.add("MatMul", [states[-1] if self.altered == "state" else states[0], self.R])
        if self.altered != "bias":
            recurrent = graph.add("Add", [recurrent, self.c])
        if self.kind == "GRU":
            new = [self._gru(graph, projected, recurrent, states[0])]
        else:
            argument = graph.add("Add", self._turned([projected, recurrent]))
            if self.altered == "clip":
                limits = [graph.constant(np.array(limit, np.float32)) for limit in (-0.4, 0.4)]
                argument = graph.add("Clip", [argument, *limits])
            new = [self._f(graph, "h", argument)] if self.kind == "RNN" else self._lstm(graph, argument, states)
        if self.altered == "mask":
            condition = graph.add("Greater", [x, graph.constant(np.array(0, np.float32))])
            axes = graph.integers(-1)
            first = graph.add("Slice", [condition, graph.integers(0), graph.integers(1), axes])
            new = [graph.add("Where", [first, a, b]) for a, b in zip(new, states, strict=True)]
        if self._is("product", number):
            new[0] = graph.add("MatMul", [new[0], self.other])
        return new

    def _is(self, altered: str, number: int) -> bool:
        return self.altered == altered and number == 1

    def _turned(self, names: list[str]) -> list[str]:
        return names[::-1] if self.graph.rng.random() < 0.5 else names

    def _f(self, graph: Graph, gate: str, argument: str) -> str:
        if self.altered == "scale" and gate in "ozh":
            argument = graph.add("Mul", [argument, graph.constant(np.array(0.5, np.float32))])
        self.inner = graph.add(self.functions[gate], [argument])
        return self.inner

    def _parts(self, graph: Graph, name: str) -> list[str]:
        count = GATES[self.kind]
        if self._is_plain:
            names = [graph.name() for _ in range(count)]
            sizes = graph.integers(*[self.H] * count)
            graph.nodes.append(helper.make_node("Split", [name, sizes], names, axis=-1))
            return names
        bounds = [graph.integers(k * self.H) for k in range(count + 1)]
        return [graph.add("Slice", [name, bounds[k], bounds[k + 1], graph.integers(1)]) for k in range(count)]

    def _lstm(self, graph: Graph, argument: str, states: list[str]) -> list[str]:
        parts, c = self._parts(graph, argument), states[1]
        if self.altered == "order":
            self.graph.rng.shuffle(parts)
        if self.altered == "peephole":
            parts[0] = graph.add("Add", [parts[0], graph.add("Mul", [c, graph.weights((self.H,))])])
        i, f, g, o = (self._f(graph, gate, part) for gate, part in zip("ifgo", parts, strict=True))
        kept = graph.add("Mul", self._turned([f, states[0] if self.altered == "row" else c]))
        after = graph.add("Add", self._turned([kept, graph.add("Mul", self._turned([i, g]))]))
        shown = c if self.altered == "reset" else after
        return [graph.add("Mul", self._turned([o, graph.add("Tanh", [shown])])), after]

    def _gru(self, graph: Graph, projected: str, recurrent: str, h: str) -> str:
        x_parts, h_parts = self._parts(graph, projected), self._parts(graph, recurrent)
        z, r = (self._f(graph, "zr"[k], graph.add("Add", [x_parts[k], h_parts[k]])) for k in range(2))
        if self.altered == "reset":
            r = z
        inner = h_parts[2]
        if self.is_before:
            inner = graph.add("MatMul", [graph.add("Mul", [r, h]), self.other])
        else:
            inner = graph.add("Mul", self._turned([r, inner]))
        n = self._f(graph, "n", graph.add("Add", self._turned([x_parts[2], inner])))
        if self.altered == "update":
            h, n = n, h
        if graph.rng.random() < 0.5:
            return graph.add("Add", [n, graph.add("Mul", [z, graph.add("Sub", [h, n])])])
        rest = graph.add("Sub", [graph.constant(np.array(1, np.float32)), z])
        return graph.add("Add", self._turned([graph.add("Mul", [z, h]), graph.add("Mul", [rest, n])]))


def hidden(graph: Graph) -> list[Value]:
    """Spell a recurrent layer out; its states, and Y or an inner value."""
    rng, x = graph.rng, graph.pick(is_sequence)
    altered = rng.choice(ALTERATIONS) if rng.random() < 0.5 else ""
    cell = Cell(graph, rng.choice(tuple(GATES)), number_of(x.shape[2]), rng.randint(1, 5), altered)
    state = (x.shape[1], size(cell.H))
    states = [_initial(graph, x, cell, state) for _ in range(cell.states)]
    return rng.choice((_steps, _scan, _loop))(graph, x, cell, states, state)


def _initial(graph: Graph, x: Value, cell: Cell, state: Shape) -> str:
    """Return a state of zeros, or one that depends on x."""
    if graph.rng.random() < 0.5:
        rows = graph.add("Slice", [graph.add("Shape", [x.name]), graph.integers(1), graph.integers(2)])
        return graph.add("ConstantOfShape", [graph.add("Concat", [rows, graph.integers(cell.H)], axis=0)])
    first = graph.add("Gather", [x.name, graph.constant(np.array(0))], axis=0)
    return graph.add("Tanh", [graph.add("MatMul", [first, graph.weights((cell.features, cell.H))])])


def _steps(graph: Graph, x: Value, cell: Cell, states: list[str], state: Shape) -> list[Value]:
    rows = []
    for number in range(graph.rng.randint(2, 4)):
        place = graph.constant(np.array(graph.rng.choice((0, 0, -1))))
        states = cell.step(graph, graph.add("Gather", [x.name, place], axis=0), states, number)
        rows.append(graph.add("Unsqueeze", [states[0], graph.integers(0)]))
    made = [Value(graph.add("Concat", rows, axis=0), (size(len(rows)), *state))]
    if cell.altered == "inner":
        made.append(Value(cell.inner, state))
    return [*made, *(Value(name, state) for name in states)]


def _info(name: str, rank: int | None, kind: int = onnx.TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, None if rank is None else [None] * rank)


def _scan(graph: Graph, x: Value, cell: Cell, states: list[str], state: Shape) -> list[Value]:
    inner = graph.body()
    names = [graph.name() for _ in states]
    row = graph.name()
    new = cell.step(inner, row, names)
    seen = cell.inner if cell.altered == "inner" else new[0]
    outputs = [inner.add("Identity", [name]) for name in [*new, seen]]
    infos = [_info(name, 2) for name in [*names, row]]
    body = helper.make_graph(inner.nodes, f"body {graph.name()}", infos, [_info(name, 2) for name in outputs])
    results = [graph.name() for _ in outputs]
    scan = helper.make_node("Scan", [*states, x.name], results, body=body, num_scan_inputs=1)
    for what in ("input", "output"):
        scan.attribute.append(helper.make_attribute(f"scan_{what}_directions", [graph.rng.randint(0, 1)]))
    graph.nodes.append(scan)
    shapes = [*[state] * len(states), (x.shape[0], *state)]
    return [Value(name, shape) for name, shape in zip(results, shapes, strict=True)]


def _loop(graph: Graph, x: Value, cell: Cell, states: list[str], state: Shape) -> list[Value]:
    inner = graph.body()
    names, (count, condition, proceed) = [graph.name() for _ in states], (graph.name() for _ in range(3))
    new = cell.step(inner, inner.add("Gather", [x.name, count], axis=0), names)
    inner.nodes.append(helper.make_node("Identity", [condition], [proceed]))
    seen = cell.inner if cell.altered == "inner" else new[0]
    outputs = [inner.add("Identity", [name]) for name in [*new, seen]]
    kinds = (onnx.TensorProto.INT64, onnx.TensorProto.BOOL)
    infos = [_info(count, 0, kinds[0]), _info(condition, 0, kinds[1]), *(_info(name, None) for name in names)]
    results = [_info(proceed, None, kinds[1]), *(_info(name, None) for name in outputs)]
    body = helper.make_graph(inner.nodes, f"body {graph.name()}", infos, results)
    trips = graph.constant(np.array(1))
    rows = size(1)
    if graph.rng.random() < 0.8:
        trips = graph.add("Gather", [graph.add("Shape", [x.name]), graph.constant(np.array(0))], axis=0)
        rows = x.shape[0]
    made = [graph.name() for _ in outputs]
    graph.nodes.append(helper.make_node("Loop", [trips, "", *states], made, body=body))
    shapes = [*[state] * len(states), (rows, *state)]
    return [Value(name, shape) for name, shape in zip(made, shapes, strict=True)]
