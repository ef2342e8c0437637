"""The workload: one recurrent operator, its seeded weights and inputs, and its ONNX model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyrnnx.layers.layer import Layer
from pyrnnx.operator.op import CellName, Direction, RecurrentOp

Array = NDArray[Any]

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
WEIGHTS = ("W", "R", "B")
OPSET = 14


@dataclass(frozen=True)
class Case:
    """Recurrent operator with its sizes: sequence length, batch size, input size and hidden size."""

    cell: CellName
    T: int
    N: int
    I: int
    H: int
    directions: int = 1  # or 2: bidirectional
    dtype: str = "float32"
    linear_before_reset: int = 0  # attribute of a GRU
    ragged: bool = False  # rows have different lengths, uniform in 1..T; else there are no lengths
    states: bool = True  # there are initial states, as for the continuation of a sequence; else they are zero

    @property
    def kind(self) -> str:
        """Name of the cell in tables."""
        return f"GRU lbr={self.linear_before_reset}" if self.cell == "GRU" else self.cell

    @property
    def shape(self) -> str:
        return f"{self.T},{self.N},{self.I},{self.H}"

    @property
    def lengths(self) -> Array | None:
        """Length of each row, the longest T; None if rows are not ragged."""
        if not self.ragged:
            return None
        lengths: Array = np.random.default_rng(1).integers(1, self.T, self.N, endpoint=True, dtype=np.int32)
        lengths[self.N // 2] = self.T
        return lengths

    @property
    def output_shapes(self) -> dict[str, tuple[int, ...]]:
        state = (self.directions, self.N, self.H)
        shapes = {"Y": (self.T, self.directions, self.N, self.H), "Y_h": state}
        return shapes | {"Y_c": state} if self.cell == "LSTM" else shapes


def make_arrays(case: Case) -> dict[str, Array]:
    """Return weights and inputs by their ONNX names, with the same values for every dtype."""
    rng = np.random.default_rng(0)
    D, H, GH = case.directions, case.H, GATES[case.cell] * case.H

    def uniform(*shape: int) -> Array:
        values: Array = rng.uniform(-1, 1, shape) * H**-0.5
        return values.astype(np.float32)

    arrays = {"W": uniform(D, GH, case.I), "R": uniform(D, GH, H), "B": uniform(D, 2 * GH)}
    states = ("initial_h", "initial_c") if case.cell == "LSTM" else ("initial_h",)
    for name in states if case.states else ():
        arrays[name] = rng.uniform(-1, 1, (D, case.N, H)).astype(np.float32)
    arrays["X"] = rng.standard_normal((case.T, case.N, case.I), np.float32)
    arrays = {name: array.astype(case.dtype, copy=False) for name, array in arrays.items()}
    if case.lengths is not None:
        arrays["sequence_lens"] = case.lengths
    return arrays


def make_layer(case: Case, arrays: dict[str, Array]) -> Layer:
    direction = Direction.BIDIRECTIONAL if case.directions == 2 else Direction.FORWARD
    reset = case.cell == "GRU" and bool(case.linear_before_reset)
    op = RecurrentOp(case.cell, case.H, direction, linear_before_reset=reset)
    return Layer(op, *(arrays[name] for name in WEIGHTS))


def make_model(case: Case, arrays: dict[str, Array]) -> bytes:
    """Return an ONNX model of one node; weights are initializers, the rest are inputs."""
    from pyrnnx.frontends.onnx import write_model

    inputs = [name for name in arrays if name not in ("X", *WEIGHTS)]
    return bytes(write_model(make_layer(case, arrays), inputs=inputs, opset=OPSET).SerializeToString())
