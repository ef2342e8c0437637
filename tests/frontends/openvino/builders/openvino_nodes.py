"""Random ONNX nodes that IR can express, with their arrays in IR's arrangement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx import CANONICAL, Layer, RecurrentOp, reference
from pyrnnx.frontends.onnx import from_node
from pyrnnx.frontends.onnx.operators.layers import NodeLayer
from pyrnnx.operator.op import CellName
from pyrnnx.testing.cases import OPTIONAL, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.onnx_models import make_node

IR_NAMES = {"X": "X", "initial_h": "H", "initial_c": "C", "sequence_lens": "sequence_lengths"}
IR_OUTPUTS = {"RNN": ("Y", "Ho"), "GRU": ("Y", "Ho"), "LSTM": ("Y", "Ho", "Co")}


@dataclass(frozen=True)
class Drawn:
    """A node: those of its inputs in `constants`, and its weights, are constants of the model that it is in."""

    case: Case
    arrays: Mapping[str, Array]
    constants: frozenset[str]

    @property
    def given(self) -> dict[str, Array]:
        """Inputs of every call, by the operator's names."""
        return {name: self.arrays[name] for name in IR_NAMES if name in self.arrays and name not in self.constants}

    def layer(self) -> NodeLayer:
        weights = {name: self.arrays[name] for name in self.arrays if name not in IR_NAMES or name in self.constants}
        node = make_node(self.case, self.arrays)
        node.name = self.case.name
        return from_node(node, weights, self.case.opset)

    def ir_inputs(self) -> dict[str, Array]:
        """`given`, named and arranged for IR: batch first."""
        axes = (0, 1, 2) if self.case.layout else (1, 0, 2)
        return {
            IR_NAMES[name]: array if name == "sequence_lens" else np.ascontiguousarray(array.transpose(axes))
            for name, array in self.given.items()
        }

    def as_onnx(self, outputs: Sequence[Array] | Mapping[str, Any]) -> tuple[Array, ...]:
        """Y, Ho[, Co] of IR as the node gives them."""
        if isinstance(outputs, Mapping):
            outputs = [outputs[name] for name in IR_OUTPUTS[self.case.operator]]
        Y, *states = outputs
        if self.case.layout:
            return (Y.transpose(0, 2, 1, 3), *states)
        return (Y.transpose(2, 1, 0, 3), *(state.transpose(1, 0, 2) for state in states))

    def expected(self) -> tuple[Array, ...]:
        """By the oracle, in float64."""
        return expected_outputs(self.case, self.arrays)


def drawn_case(case: Case, *constants: str) -> Drawn:
    return Drawn(case, make_arrays(case), frozenset(constants))


def draw(seed: int, *, dtype: str = "float32", functions: Sequence[str] = ("Relu", "Sigmoid", "Tanh")) -> Drawn:
    """Every attribute and optional input there or not; the same functions in both directions, no peepholes."""
    rng = np.random.default_rng(seed)

    def coin() -> bool:
        return bool(rng.integers(2))

    operator = ("RNN", "GRU", "LSTM")[seed % 3]
    direction = ("forward", "reverse", "bidirectional")[seed // 3 % 3]
    attributes: dict[str, Any] = {"direction": direction, "layout": int(rng.integers(2))}
    if coin():
        one = [str(name) for name in rng.choice(list(functions), len(reference.DEFAULT_ACTIVATIONS[operator]))]
        attributes["activations"] = one * (2 if direction == "bidirectional" else 1)
    if coin():
        attributes["clip"] = float(rng.choice([0.125, 0.5, 2.0]))
    if operator == "GRU":
        attributes["linear_before_reset"] = int(rng.integers(2))
    T, N, I, H = (int(rng.integers(low, high)) for low, high in ((2, 8), (1, 6), (1, 10), (1, 20)))
    case = Case(
        name=f"{operator}-{seed}",
        operator=operator,
        attributes=attributes,
        inputs=tuple(name for name in OPTIONAL[operator] if name != "P" and coin()),
        lens=tuple(int(k) for k in rng.integers(0, T + 1, N)) if coin() else None,
        T=T,
        N=N,
        I=I,
        H=H,
        dtype=dtype,
    )
    arrays = make_arrays(case)
    constants = frozenset(name for name in IR_NAMES if name in arrays and name != "X" and rng.integers(3) == 0)
    return Drawn(case, arrays, constants)


def make_layer(operator: CellName = "GRU", name: str | None = "a layer", **changes: Any) -> Layer:
    """A layer of the core, by default arranged canonically; `changes`: its weights, its operator's attributes."""
    case = Case("made", operator, {}, ("B",))
    arrays = make_arrays(case)
    weights = {key: changes.pop(key, arrays[key]) for key in ("W", "R", "B")}
    P, convention = changes.pop("P", None), changes.pop("convention", CANONICAL)
    return Layer(RecurrentOp(operator, case.H, **changes), **weights, P=P, convention=convention, name=name)
