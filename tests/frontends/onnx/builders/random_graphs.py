"""Random graphs with recurrent nodes among others, for differential tests; the same for the same seed.

All values are [T, N, F] of some F, T and N open; nothing grows beyond some units.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hidden_layers import H, Nodes, step, weights
from onnx import helper, numpy_helper

from pyrnnx.reference import GATES
from pyrnnx.testing.cases import draw
from pyrnnx.testing.numbers import Array

node = helper.make_node
FLOATS = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}
# Opsets in which RNN, GRU, LSTM or the operators around them changed.
OPSETS = (6, 7, 9, 11, 13, 14, 17, 21, 22)
UNARY = ("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Identity")
UNARY_OF_FLOAT32 = (*UNARY, "Softsign", "Softplus")  # ONNX Runtime has no float64 for the last ones
ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", "LeakyRelu", "HardSigmoid", "Elu")


# Changes of a layer that is spelled out: some make another layer of it, some none.
TWISTS = (
    *("", "", "", "bias missing", "clip", "relu", "order of gates", "wrong slice", "peepholes", "hard gate"),
    *("other state", "clipped state", "old cell state", "no output function", "hard update reversed", "as difference"),
    *("update gate without X", "reset before", "update gate resets", "update reversed", "nothing kept"),
)
FIRST_OPSET_OF_HIDDEN = 13  # in which axes became inputs


@dataclass
class Value:
    name: str
    size: int  # F


@dataclass
class Graph(Nodes):
    """A graph while it is drawn: the main one, or a body, which shares names and constants with it.

    Attributes
    ----------
    inputs : dict
        States and lengths that recurrent nodes take, as graph inputs: {name: axes, a string of "D", "N" and sizes}.
    """

    rng: random.Random = field(default_factory=random.Random)
    dtype: str = "float32"
    opset: int = 17
    depth: int = 0
    inputs: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def drawn(self, kind: str, shape: tuple[int, ...]) -> str:
        generator = np.random.default_rng(self.rng.randrange(2**32))
        return self.constant(draw(generator, kind, shape), self.dtype)

    def value(self, operator: str, inputs: list[str], size: int, **attributes: Any) -> Value:
        return Value(self.add(operator, *inputs, **attributes), size)

    def body(self) -> Graph:
        return Graph(self.constants, self.counter, [], self.rng, self.dtype, self.opset, self.depth + 1, self.inputs)


def unary(graph: Graph, values: list[Value]) -> Value:
    x = graph.rng.choice(values)
    return graph.value(graph.rng.choice(UNARY if graph.dtype == "float64" else UNARY_OF_FLOAT32), [x.name], x.size)


def binary(graph: Graph, values: list[Value]) -> Value:
    x = graph.rng.choice(values)
    others = [one.name for one in values if one.size == x.size] + [graph.drawn("X", (1, 1, x.size))] * 2
    if graph.opset < 7:  # broadcasting had an attribute
        others = [one.name for one in values if one.size == x.size]
    mixed = graph.value(graph.rng.choice(("Add", "Sub", "Mul")), [x.name, graph.rng.choice(others)], x.size)
    return graph.value("Tanh", [mixed.name], x.size)


def matmul(graph: Graph, values: list[Value]) -> Value:
    x, size = graph.rng.choice(values), graph.rng.randint(1, 6)
    return graph.value("MatMul", [x.name, graph.drawn("W", (x.size, size))], size)


def concat(graph: Graph, values: list[Value]) -> Value:
    parts = [graph.rng.choice(values) for _ in range(graph.rng.randint(1, 3))]
    return graph.value("Concat", [one.name for one in parts], sum(one.size for one in parts), axis=2)


def reshaped(graph: Graph, values: list[Value]) -> Value:
    """[T, N, F] -> [N, F, T] -> [N * F, T] -> [N, F, T] -> [T, N, F]."""
    x = graph.rng.choice(values)
    turned = graph.value("Transpose", [x.name], x.size, perm=[1, 2, 0])
    shape = graph.value("Shape", [turned.name], 3)
    rows = graph.value("Flatten", [turned.name], 0, axis=2)
    operator = graph.rng.choice(("Neg", "Abs"))
    back = graph.value("Reshape", [graph.value(operator, [rows.name], 0).name, shape.name], x.size)
    return graph.value("Transpose", [back.name], x.size, perm=[2, 0, 1])


def recurrent(graph: Graph, values: list[Value]) -> Value:
    """A recurrent node of any operator, with some of its optional inputs and attributes; Y as [T, N, D * H]."""
    rng, operator, x = graph.rng, graph.rng.choice(tuple(GATES)), graph.rng.choice(values)
    H, direction = rng.randint(1, 6), rng.choice(("forward", "reverse", "bidirectional"))
    D, layout = 2 if direction == "bidirectional" else 1, rng.randint(0, 1) if graph.opset >= 14 else 0
    G = GATES[operator]
    source = graph.value("Transpose", [x.name], x.size, perm=[1, 0, 2]).name if layout else x.name
    inputs = [source, graph.drawn("W", (D, G * H, x.size)), graph.drawn("R", (D, G * H, H))]
    inputs.append(graph.drawn("B", (D, 2 * G * H)) if rng.random() < 0.7 else "")
    states = ("N", D, H) if layout else (D, "N", H)
    inputs.append("lens" if rng.random() < 0.4 else "")
    for _ in range(2 if operator == "LSTM" else 1):
        inputs.append(graph.name() if rng.random() < 0.5 else "")
        if inputs[-1]:
            graph.inputs[inputs[-1]] = states
    if operator == "LSTM" and rng.random() < 0.3:
        inputs.append(graph.drawn("P", (D, 3 * H)))
    if "lens" in inputs:
        graph.inputs["lens"] = ("N",)
    attributes: dict[str, Any] = {"hidden_size": H, "direction": direction}
    attributes |= {"layout": 1} if layout else {}
    attributes |= {"clip": 0.75} if rng.random() < 0.2 else {}
    attributes |= {"linear_before_reset": 1} if operator == "GRU" and rng.random() < 0.5 else {}
    if rng.random() < 0.3:
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[operator]
        attributes["activations"] = [rng.choice(ACTIVATIONS) for _ in range(count * D)]
    if graph.opset < 7:
        attributes["output_sequence"] = 1
    Y = graph.name()
    graph.nodes.append(node(operator, inputs, [Y], name=f"{operator} {Y}", **attributes))
    if not layout:  # [T, D, N, H] -> [T, N, D, H]
        Y = graph.value("Transpose", [Y], H, perm=[0, 2, 1, 3]).name
    rows = graph.value("Reshape", [Y, graph.integers(0, 0, D * H)], D * H)
    bounded = graph.value("Tanh", [rows.name], D * H)
    return graph.value("Transpose", [bounded.name], D * H, perm=[1, 0, 2]) if layout else bounded


def hidden(graph: Graph, values: list[Value]) -> Value:
    """A layer that is spelled out in two to four steps, twisted or not; all its last states added to a product of X."""
    rng, x = graph.rng, graph.rng.choice(values)
    if graph.opset < FIRST_OPSET_OF_HIDDEN or graph.dtype != "float32":
        return recurrent(graph, values)
    g, kind, twist = graph, rng.choice(tuple(GATES)), rng.choice(TWISTS)
    w = weights(g, kind, rng.randrange(2**32), x.size)
    first = g.add("Gather", x.name, g.constant(0, np.int64), axis=0)
    states = [g.add("Tanh", g.add("MatMul", first, graph.drawn("W", (x.size, H))))] * (2 if kind == "LSTM" else 1)
    rows = []
    for _ in range(rng.randint(2, 4)):
        place = rng.choice((0, 0, -1))
        if rng.random() < 0.5:
            x_t = g.add("Gather", x.name, g.constant(place, np.int64), axis=0)
        else:
            row = g.add("Slice", x.name, g.integers(place), g.integers(place + 1 or 2**31), g.integers(0))
            x_t = g.add("Squeeze", row, g.integers(0))
        states = step(g, kind, x_t, states, w, twist)
        rows.append(g.add("Unsqueeze", states[0], g.integers(0)))
    Y = g.add("Gather", g.add("Concat", *rows, axis=0), g.integers(rng.randrange(len(rows))), axis=0)
    mixed = g.add("Add", Y, g.add("MatMul", x.name, graph.drawn("W", (x.size, H))))
    for state in states:
        mixed = g.add("Add", mixed, g.add("Unsqueeze", state, g.integers(0)))
    return graph.value("Tanh", [mixed], H)


def choice(graph: Graph, values: list[Value]) -> Value:
    """An If; its branches end in as many features."""
    size, branches = graph.rng.randint(1, 6), []
    for _ in range(2):
        inner = graph.body()
        seen = list(values)
        for _ in range(graph.rng.randint(1, 3)):
            seen.append(drawn_node(inner, seen))
        result = inner.value("MatMul", [seen[-1].name, inner.drawn("W", (seen[-1].size, size))], size)
        outputs = [helper.make_tensor_value_info(result.name, FLOATS[graph.dtype], None)]
        branches.append(helper.make_graph(inner.nodes, "branch", [], outputs))
    graph.inputs.setdefault("flag", ())
    return graph.value("If", ["flag"], size, then_branch=branches[0], else_branch=branches[1])


KINDS = {unary: 3, binary: 3, matmul: 2, concat: 2, reshaped: 2, recurrent: 4, hidden: 1, choice: 1}


def drawn_node(graph: Graph, values: list[Value]) -> Value:
    kinds = {kind: weight for kind, weight in KINDS.items() if kind is not choice or graph.depth < 2}
    (kind,) = graph.rng.choices(list(kinds), list(kinds.values()))
    return kind(graph, values)


@dataclass(frozen=True)
class Drawn:
    """A model, and what makes inputs for it."""

    proto: onnx.ModelProto
    inputs: dict[str, tuple[Any, ...]]
    dtype: str
    opset: int

    def arrays(self, seed: int, T: int, N: int) -> dict[str, Array]:
        rng = np.random.default_rng(seed)
        found: dict[str, Array] = {}
        for name, axes in self.inputs.items():
            shape = tuple({"T": T, "N": N}.get(axis, axis) for axis in axes)
            if name == "flag":
                found[name] = np.array(bool(rng.integers(2)))
            elif name == "lens":
                found[name] = rng.integers(0, T + 1, shape).astype(np.int32)
            else:
                found[name] = draw(rng, "X", shape).astype(self.dtype)
        return found


def drawn_model(seed: int) -> Drawn:
    rng = random.Random(seed)
    dtype = rng.choices(list(FLOATS), [4, 1])[0]
    graph = Graph(rng=rng, dtype=dtype, opset=rng.choice(OPSETS))
    values = [Value("x", 3), Value("z", 5)]
    while len(values) < 6 or rng.random() < 0.75 or not any(one.op_type in GATES for one in graph.nodes):
        values.append(drawn_node(graph, values))
    wanted = {values[-1].name, *rng.sample([one.name for one in values[2:]], 2)}
    inputs = {"x": ("T", "N", 3), "z": ("T", "N", 5), **graph.inputs}
    kinds = {"flag": onnx.TensorProto.BOOL, "lens": onnx.TensorProto.INT32}
    declared = [
        helper.make_tensor_value_info(name, kinds.get(name, FLOATS[dtype]), [None] * len(axes))
        for name, axes in inputs.items()
    ]
    outputs = [helper.make_tensor_value_info(name, FLOATS[dtype], None) for name in sorted(wanted)]
    constants = [numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    proto = helper.make_model(
        helper.make_graph(graph.nodes, f"random {seed}", declared, outputs, constants),
        opset_imports=[helper.make_opsetid("", graph.opset)],
        ir_version=8,
    )
    return Drawn(proto, inputs, dtype, graph.opset)
