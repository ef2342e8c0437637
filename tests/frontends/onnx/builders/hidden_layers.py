"""Graphs that compute recurrent layers with other operators: steps in a row, in a Loop and in a Scan.

A twist changes a graph so that it is no layer any more, or only in another way.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from whole_models import check_calls, onnxruntime_witness

from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import Array

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
T, N, I, H = 4, 2, 3, 5
TOLERANCE = 1e-6  # sums of fewer than ten products, in another order, through nine steps


@dataclass
class Nodes:
    """Nodes of a graph or body; bodies share the constants and the counter."""

    constants: dict[str, Array] = field(default_factory=dict)
    counter: list[int] = field(default_factory=lambda: [0])
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def body(self) -> Nodes:
        return Nodes(self.constants, self.counter)

    def name(self) -> str:
        self.counter[0] += 1
        return f"v{self.counter[0]}"

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = self.name()
        self.constants[name] = np.asarray(value, dtype)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if outputs == 1 else names


@dataclass(frozen=True)
class Weights:
    """Names of W [I, GH], R [H, GH] and two biases [GH]."""

    W: str
    R: str
    b: str
    c: str
    R_new: str


def weights(g: Nodes, kind: str, seed: int = 0, width: int = I) -> Weights:
    rng, size = np.random.default_rng(seed), GATES[kind] * H
    arrays = [rng.uniform(-0.6, 0.6, shape) for shape in ((width, size), (H, size), (size,), (size,), (H, H))]
    return Weights(*(g.constant(array) for array in arrays))


def step(g: Nodes, kind: str, x: str, states: list[str], w: Weights, twist: str = "") -> list[str]:
    """Add one step of a cell; return the new states."""
    h = states[0]
    projected = g.add("Add", g.add("MatMul", x, w.W), w.b)
    recurrent = g.add("MatMul", h, w.R)
    if twist != "bias missing":
        recurrent = g.add("Add", recurrent, w.c)
    if kind == "GRU":
        return _gru(g, projected, recurrent, h, w, twist)
    argument = g.add("Add", projected, recurrent)
    if twist == "clip":
        argument = g.add("Clip", argument, g.constant(-0.5), g.constant(0.5))
    if kind == "RNN":
        return [g.add("Relu" if twist == "relu" else "Tanh", argument)]
    return _lstm(g, argument, states, twist)


def _lstm(g: Nodes, argument: str, states: list[str], twist: str) -> list[str]:
    c = states[1]
    parts = g.add("Split", argument, g.integers(H, H, H, H), outputs=4, axis=-1)
    if twist == "order of gates":
        parts = parts[::-1]
    if twist == "wrong slice":
        parts[0] = g.add("Slice", argument, g.integers(1), g.integers(H + 1), g.integers(1))
    if twist == "peepholes":
        parts[0] = g.add("Add", parts[0], g.add("Mul", c, g.constant(np.linspace(0.1, 0.5, H))))
    i, f, o = (g.add("Sigmoid", part) for part in (parts[0], parts[1], parts[3]))
    if twist == "hard gate":
        f = g.add("HardSigmoid", parts[1])
    new = g.add("Relu" if twist == "relu" else "Tanh", parts[2])
    kept = g.add("Mul", f, states[0] if twist == "other state" else c)
    after = g.add("Add", kept, g.add("Mul", i, new))
    if twist == "clipped state":
        after = g.add("Clip", after, g.constant(-0.2), g.constant(0.2))
    shown = c if twist == "old cell state" else after
    hidden = g.add("Mul", o, g.add("Tanh", shown))
    if twist == "no output function":
        hidden = g.add("Mul", o, after)
    return [hidden, after]


def _gru(g: Nodes, projected: str, recurrent: str, h: str, w: Weights, twist: str) -> list[str]:
    x_parts = g.add("Split", projected, g.integers(H, H, H), outputs=3, axis=1)
    h_parts = g.add("Split", recurrent, g.integers(H, H, H), outputs=3, axis=1)
    parameters: dict[str, Any] = {"beta": 0.4} if twist == "hard update reversed" else {}
    gate = "HardSigmoid" if parameters else "Sigmoid"
    z, r = (g.add(gate, g.add("Add", x_parts[k], h_parts[k]), **parameters) for k in range(2))
    if twist == "update gate without X":
        z = g.add("Sigmoid", h_parts[0])
    if twist == "reset before":
        inner = g.add("MatMul", g.add("Mul", r, h), w.R_new)
    elif twist == "update gate resets":
        inner = g.add("Mul", z, h_parts[2])
        r = z
    else:
        inner = g.add("Mul", r, h_parts[2])
    new = g.add("Tanh", g.add("Add", x_parts[2], inner))
    if twist == "as difference":
        return [g.add("Add", g.add("Mul", z, g.add("Sub", h, new)), new)]
    if twist in ("update reversed", "hard update reversed"):
        h, new = new, h
    if twist == "nothing kept":
        return [g.add("Mul", g.add("Sub", g.constant(1.0), z), new)]
    kept = g.add("Mul", z, h)
    return [g.add("Add", kept, g.add("Mul", g.add("Sub", g.constant(1.0), z), new))]


def state_names(kind: str) -> list[str]:
    return ["h0", "c0"] if kind == "LSTM" else ["h0"]


def model(
    g: Nodes, outputs: list[str], kind: str, opset: int, shapes: dict[str, list[Any]] | None = None
) -> onnx.ModelProto:
    inputs: dict[str, list[Any]] = {"X": [T, "N", I], **{name: ["N", H] for name in state_names(kind)}}
    inputs |= shapes or {}
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(array, name) for name, array in g.constants.items()]
    graph = helper.make_graph(g.nodes, "hidden", infos, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def unrolled(kind: str, twist: str = "", opset: int = 17) -> onnx.ModelProto:
    """Return a model with T steps in a row."""
    g = Nodes()
    w, other = weights(g, kind), weights(g, kind, 1)
    states, history = state_names(kind), []
    order = range(T)[::-1] if twist == "reverse" else range(T)
    x_t = "X"
    if twist == "hoisted":
        projected = g.add("Add", g.add("MatMul", "X", w.W), w.b)
    for t in order:
        x_t = states[0] if twist == "fed back" and t else g.add("Gather", "X", g.constant(t, np.int64), axis=0)
        if twist == "fed back" and t:
            x_t = g.add("Slice", x_t, g.integers(0), g.integers(I), g.integers(1))
        if twist == "hoisted":
            states = _hoisted_step(g, kind, g.add("Gather", projected, g.constant(t, np.int64), axis=0), states, w)
        else:
            changed = {"other weights": other, "other W": replace(w, W=other.W)} if t == 2 else {}
            states = step(g, kind, x_t, states, changed.get(twist, w), twist)
        history.append(states)
    shown = [one[0] for one in (history[::-1] if twist == "reverse" else history)]
    Y = g.add("Concat", *(g.add("Unsqueeze", name, g.integers(0)) for name in shown), axis=0)
    outputs = [Y, *states]
    if twist == "all cell states":
        outputs.append(history[1][1])
    if twist == "gate used":
        gate = next(node for node in g.nodes if node.op_type == "Sigmoid")
        outputs.append(gate.output[0])
    shapes = {"h0": [1, H], "c0": [1, H]} if twist == "one row of states" else {}
    return model(g, outputs, kind, opset, {name: shapes[name] for name in shapes if name in state_names(kind)})


def _hoisted_step(g: Nodes, kind: str, projected: str, states: list[str], w: Weights) -> list[str]:
    recurrent = g.add("Add", g.add("MatMul", states[0], w.R), w.c)
    if kind == "GRU":
        return _gru(g, projected, recurrent, states[0], w, "")
    argument = g.add("Add", projected, recurrent)
    return [g.add("Tanh", argument)] if kind == "RNN" else _lstm(g, argument, states, "")


def stacked(kind: str, opset: int = 17) -> onnx.ModelProto:
    """Return a model with two unrolled layers, whose steps alternate."""
    g = Nodes()
    w, above = weights(g, kind), weights(g, kind, 1, H)
    lower, upper = state_names(kind), state_names(kind)
    rows = []
    for t in range(T):
        lower = step(g, kind, g.add("Gather", "X", g.constant(t, np.int64), axis=0), lower, w)
        upper = step(g, kind, lower[0], upper, above)
        rows.append(g.add("Unsqueeze", upper[0], g.integers(1)))
    return model(g, [g.add("Concat", *rows, axis=1), *lower, *upper], kind, opset)


def _value(name: str, shape: list[Any] | None = None, element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def scan(kind: str, twist: str = "", opset: int = 17) -> onnx.ModelProto:
    """Return a model with a Scan; "reverse" runs from the end, "two layers" has two cells in the body."""
    g = Nodes()
    w, above = weights(g, kind), weights(g, kind, 1, H)
    body, names = g.body(), state_names(kind)
    inner = [f"{name}_in" for name in names]
    new = step(body, kind, "x_t", inner, w, twist)
    initial = [*names]
    if twist == "two layers":
        more = [f"{name}_above" for name in names]
        inner, new, initial = inner + more, new + step(body, kind, new[0], more, above), initial * 2
    seen = new[-1 if kind != "LSTM" else -2] if twist == "two layers" else new[0]
    if twist == "output of a gate":
        seen = next(node for node in body.nodes if node.op_type in ("Sigmoid", "Tanh")).output[0]
    if twist == "states changed":
        new = [body.add("Mul", name, body.constant(0.5)) for name in new]
    results = [body.add("Identity", name) for name in [*new, seen]]
    graph = helper.make_graph(
        body.nodes, "body", [*(_value(name) for name in inner), _value("x_t")], [_value(name) for name in results]
    )
    directions: dict[str, Any] = {}
    if twist in ("reverse", "reversed input"):
        directions["scan_input_directions"] = [1]
    if twist == "reverse":
        directions["scan_output_directions"] = [1]
    outputs = g.add("Scan", *initial, "X", outputs=len(results), body=graph, num_scan_inputs=1, **directions)
    return model(g, outputs, kind, opset, {"X": ["T", "N", I]})


def loop(kind: str, twist: str = "", opset: int = 17) -> onnx.ModelProto:
    """Return a model with a Loop over Gather; "condition" may end it early."""
    g = Nodes()
    w = weights(g, kind)
    body, names = g.body(), state_names(kind)
    inner = [f"{name}_in" for name in names]
    place = body.add("Sub", body.constant(T - 1, np.int64), "i") if twist == "from the end" else "i"
    x_t = body.add("Gather", "X", place, axis=0)
    new = step(body, kind, x_t, inner, w, twist)
    again = body.add("Identity", "again_in")
    if twist == "condition":
        again = body.add("Less", body.add("ReduceSum", new[0], keepdims=0), body.constant(1.0))
    graph = helper.make_graph(
        body.nodes,
        "body",
        [_value("i", [], TensorProto.INT64), _value("again_in", [], TensorProto.BOOL), *map(_value, inner)],
        [_value(again, [], TensorProto.BOOL), *map(_value, [*new, body.add("Identity", new[0])])],
    )
    trips = g.constant(T - 1 if twist == "fewer" else T, np.int64)
    if twist == "open":
        trips = g.add("Squeeze", g.add("Slice", g.add("Shape", "X"), g.integers(0), g.integers(1)))
    outputs = g.add("Loop", trips, g.constant(True, np.bool_), *names, outputs=len(names) + 1, body=graph)
    return model(g, outputs, kind, opset, {"X": ["T" if twist == "open" else T, "N", I]})


def inputs_of(proto: onnx.ModelProto, rows: int = N, steps: int = 6) -> dict[str, Any]:
    """Return arrays of the sizes that a model declares."""
    rng, sizes = np.random.default_rng(rows), {"N": rows, "T": steps, "B": rows + 1}
    shapes = {
        value.name: [dim.dim_value or sizes[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        for value in proto.graph.input
    }
    inputs = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    inputs["X"][:, 1::2] *= inputs["X"][:, 1::2, :1] > 0  # rows of zeros, which a mask leaves out
    return inputs


def check(proto: onnx.ModelProto, *calls: dict[str, Any]) -> Any:
    """Compare calls with ONNX Runtime, and return the model."""
    model = read_model(proto)
    check_calls(model, onnxruntime_witness(proto), *(calls or [inputs_of(proto)]), atol=TOLERANCE)
    return model
