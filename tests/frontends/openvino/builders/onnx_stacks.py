"""ONNX graphs as PyTorch exports its stacks of recurrent layers, made without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
I, H, OUT, OPSET = 3, 5, 2, 20
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@dataclass
class Graph:
    """A graph, node by node; every method gives the name of its result."""

    opset: int = OPSET
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.rng.uniform(-0.5, 0.5, shape).astype(np.float32))

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=f"node{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def model(self, inputs: dict[str, tuple[int, Sequence[Any] | None]], outputs: Sequence[str]) -> onnx.ModelProto:
        """`inputs`: element types and shapes by names."""
        declared = [helper.make_tensor_value_info(name, *info) for name, info in inputs.items()]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "stack", declared, results, self.constants)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
        types = {one.name: one for one in inferred.graph.value_info} | {one.name: one for one in inferred.graph.input}
        for one in proto.graph.output:
            known = types.get(one.name)
            if known is not None:
                one.type.CopyFrom(known.type)
            elif not one.type.HasField("tensor_type"):
                one.type.tensor_type.elem_type = TensorProto.FLOAT
        return proto


@dataclass(frozen=True)
class Stack:
    """`head`: a name of `HEADS`; `states`: "", or what initial states are: "given", "zeros" by Expand, "constant"."""

    cell: str
    layers: int = 2
    both: bool = False
    batch_first: bool = False
    head: str = ""
    states: str = ""
    lengths: bool = False

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in vars(self).items() if value and name != "cell"]
        return "-".join([self.cell, *words])

    @property
    def directions(self) -> int:
        return 1 + self.both

    def arrays(self, T: int, N: int) -> dict[str, Array]:
        rng = np.random.default_rng(T)
        sizes = (N, T, I) if self.batch_first else (T, N, I)
        arrays = {"x": rng.uniform(-1, 1, sizes).astype(np.float32)}
        if self.states == "given":
            for name in ("h", "c")[: 1 + (self.cell == "LSTM")]:
                arrays[name] = rng.uniform(-1, 1, (self.layers * self.directions, N, H)).astype(np.float32)
        if self.lengths:
            arrays["lengths"] = rng.integers(1, T + 1, N, np.int32)
        return arrays

    def model(self, T: int | str = "T", N: int | str = "N") -> onnx.ModelProto:
        g, D = Graph(), self.directions
        sizes = (N, T, I) if self.batch_first else (T, N, I)
        inputs: dict[str, tuple[int, Sequence[Any] | None]] = {"x": (TensorProto.FLOAT, sizes)}
        names = ("h", "c")[: 1 + (self.cell == "LSTM")]
        if self.states == "given":
            inputs |= dict.fromkeys(names, (TensorProto.FLOAT, (self.layers * D, N, H)))
        if self.lengths:
            inputs["lengths"] = (TensorProto.INT32, (N,))
        rows = g.add("Transpose", "x", perm=[1, 0, 2]) if self.batch_first else "x"
        initial = {name: self._initial(g, name) for name in names if self.states}
        last: list[list[str]] = []
        for k in range(self.layers):
            states = [
                g.add("Slice", initial[name], *map(g.constant, ([k * D], [(k + 1) * D], [0], [1])))
                for name in names
                if self.states
            ]
            rows, *ends = self._layer(g, rows, I if k == 0 else D * H, states)
            last.append(ends)
        result = g.add("Transpose", rows, perm=[1, 0, 2]) if self.batch_first else rows
        result = HEADS[self.head](g, result, D * H)
        ends = [one[0] if self.layers == 1 else g.add("Concat", *one, axis=0) for one in zip(*last, strict=True)]
        return g.model(inputs, [result, *ends])

    def _initial(self, g: Graph, name: str) -> str:
        """Add zeros of the batch's size, as the exporters write them."""
        if self.states == "given":
            return name
        axis = 0 if self.batch_first else 1
        size = g.add("Unsqueeze", g.add("Gather", g.add("Shape", "x"), g.constant(axis), axis=0), g.constant([0]))
        shape = g.add("Concat", g.constant([self.layers * self.directions]), size, g.constant([H]), axis=0)
        if self.states == "zeros":
            return str(g.add("Expand", g.constant(np.float32(0.25)), shape))
        value = numpy_helper.from_array(np.array([-0.5], np.float32))
        return str(g.add("ConstantOfShape", shape, value=value))

    def _layer(self, g: Graph, rows: str, size: int, states: list[str]) -> list[str]:
        D, G = self.directions, GATES[self.cell]
        weights = [g.weights(D, G * H, size), g.weights(D, G * H, H), g.weights(D, 2 * G * H)]
        attributes = {"linear_before_reset": 1} if self.cell == "GRU" else {}
        direction = "bidirectional" if self.both else "forward"
        names = [rows, *weights, "lengths" if self.lengths else "", *states]
        count = 3 if self.cell == "LSTM" else 2
        Y, *ends = g.add(self.cell, *names, outputs=count, hidden_size=H, direction=direction, **attributes)
        if D == 1:
            return [g.add("Squeeze", Y, g.constant([1])), *ends]
        return [g.add("Reshape", g.add("Transpose", Y, perm=[0, 2, 1, 3]), g.constant([0, 0, -1])), *ends]


def _linear(g: Graph, rows: str, size: int) -> str:
    return str(g.add("Add", g.weights(OUT), g.add("MatMul", rows, g.weights(size, OUT))))


def _gemm(g: Graph, rows: str, size: int) -> str:
    """Add a Gemm of the last step, as in a classifier."""
    last = g.add("Gather", rows, g.constant(-1), axis=1)
    return str(g.add("Softmax", g.add("Gemm", last, g.weights(OUT, size), g.weights(OUT), transB=1), axis=-1))


def _norm(g: Graph, rows: str, size: int) -> str:
    rows = g.add("LayerNormalization", rows, g.weights(size), g.weights(size), axis=-1)
    return _linear(g, g.add("Relu", g.add("Dropout", rows)), size)


HEADS: dict[str, Callable[[Graph, str, int], str]] = {
    "": lambda g, rows, size: str(g.add("Identity", rows)),
    "linear": _linear,
    "activations": lambda g, rows, size: str(g.add("Sigmoid", g.add("Tanh", g.add("Relu", _linear(g, rows, size))))),
    "classifier": _gemm,
    "norm": _norm,
}
