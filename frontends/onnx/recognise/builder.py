"""New nodes and constants of a graph, and the values that they replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ..graph.walk import fresh_name
from ..onnx_package import import_onnx
from .cells import ORDER, Cell, functions_of
from .forms import Ref, View
from .scope import Scope
from .values import value_shape

_AXES_AS_INPUT = 13  # opset of Squeeze and Unsqueeze
_SLICE_INPUTS = 10
_RANGE = 11


class Builder:
    """Nodes, constants and renamed outputs of one graph, before they are added to it.

    `replaced` are the new names of outputs that `nodes` compute now, `layers` where each recurrent node comes from.
    """

    def __init__(self, scope: Scope, taken: set[str]) -> None:
        self.scope, self._taken = scope, taken
        self.nodes: list[Any] = []
        self.constants: dict[str, AnyArray] = {}
        self.replaced: dict[str, str] = {}
        self.layers: dict[str, str] = {}
        self._made: dict[Ref, str] = {}
        self._integers: dict[tuple[Any, ...], str] = {}

    def fresh(self, wanted: str) -> str:
        return fresh_name(wanted, self._taken)

    def node(self, operator: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node of one output; return the output's name."""
        output = output or self.fresh(f"{inputs[0]}/{operator.lower()}")
        self.nodes.append(import_onnx().helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, wanted: str, array: AnyArray) -> str:
        name = self.fresh(wanted)
        self.constants[name] = np.array(array, order="C")
        return name

    def integers(self, *numbers: int, scalar: bool = False) -> str:
        key = (*numbers, scalar)
        if key not in self._integers:
            array = np.array(numbers[0] if scalar else numbers, np.int64)
            self._integers[key] = self.constant("index", array)
        return self._integers[key]

    def axes(self, operator: str, name: str, axes: Sequence[int], output: str = "") -> str:
        """Add a Squeeze or Unsqueeze."""
        if self.scope.opset >= _AXES_AS_INPUT:
            return self.node(operator, [name, self.integers(*axes)], output)
        return self.node(operator, [name], output, axes=list(axes))

    def slice(self, name: str, axis: int, start: int, stop: int) -> str:
        if self.scope.opset < _SLICE_INPUTS:
            return self.node("Slice", [name], axes=[axis], starts=[start], ends=[stop])
        return self.node("Slice", [name, *(self.integers(k) for k in (start, stop, axis))])

    def ranked(self, name: str, rank: int, new_rank: int, place: int = 0, output: str = "") -> str:
        """Add or remove axes of one element at a place."""
        axes = range(place, place + abs(new_rank - rank))
        if axes:
            return self.axes("Squeeze" if new_rank < rank else "Unsqueeze", name, axes, output)
        return self.node("Identity", [name], output) if output else name

    def reversed(self, name: str, axis: int = 0) -> str:
        """Add a Slice that reverses an axis."""
        return self.node("Slice", [name, *(self.integers(k) for k in (-1, -(2**31), axis, -1))])

    @property
    def can_slice_at_run_time(self) -> bool:
        return self.scope.opset >= _SLICE_INPUTS

    @property
    def has_range(self) -> bool:
        return self.scope.opset >= _RANGE

    def gather(self, name: str, index: int, axis: int = 0, output: str = "") -> str:
        return self.node("Gather", [name, self.integers(index, scalar=True)], output, axis=axis)

    def transpose(self, name: str, perm: Sequence[int], output: str = "") -> str:
        if tuple(perm) == tuple(range(len(perm))) and not output:
            return name
        return self.node("Transpose", [name], output, perm=list(perm))

    def materialized(self, ref: Ref) -> str:
        """Return the name of columns and views of a value."""
        if ref not in self._made:
            name = self.viewed(ref.name, ref.views)
            shape = value_shape(self.scope, ref.name)
            if shape is None or (ref.start, ref.stop) != (0, shape[-1]):
                name = self.slice(name, -1, ref.start, ref.stop)
            self._made[ref] = name
        return self._made[ref]

    def viewed(self, name: str, views: Sequence[View]) -> str:
        for view in views:
            if view[0] == "transpose":
                name = self.transpose(name, view[1])
            elif view[0] == "flip":
                name = self.reversed(name, view[1])
            elif view[0] == "select":
                name = self.gather(name, view[2], view[1])
            else:
                name = self.axes(view[0].capitalize(), name, [view[1]])
        return name

    def redirect(self, name: str) -> str:
        """Let new nodes compute a value of the graph; its old node gets another output name."""
        self.replaced[name] = self.fresh(f"{name}/unused")
        return name

    def layer(
        self, cell: Cell, x: str, states: Sequence[str], name: str, origin: str, direction: str, lengths: str = ""
    ) -> tuple[str, ...]:
        """Add the recurrent node of a cell over X [T, N, I]; return the names of Y, Y_h and, for an LSTM, Y_c.

        Initial states [1, N, H] are empty names for zeros; `origin` says where the node comes from.
        """
        name = self.fresh(name)
        weights = [self.constant(f"{name}/{key}", array) for key, array in weights_of(cell).items()]
        inputs = [x, *weights, lengths, *states]
        while inputs and not inputs[-1]:
            inputs.pop()
        outputs = [self.fresh(f"{name}/{key}") for key in ("Y", "Y_h", "Y_c")[: 3 if cell.operator == "LSTM" else 2]]
        attributes: dict[str, Any] = {"hidden_size": cell.hidden_size, **_activations(cell)}
        if direction != "forward":
            attributes["direction"] = direction
        if cell.operator == "GRU":
            attributes["linear_before_reset"] = int(cell.linear_before_reset)
        self.nodes.append(import_onnx().helper.make_node(cell.operator, inputs, outputs, name=name, **attributes))
        self.layers[name] = origin
        return tuple(outputs)


_PARAMETERS = {
    "HardSigmoid": ("alpha", "beta"),
    "Affine": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Elu": ("alpha",),
}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def _activations(cell: Cell) -> dict[str, Any]:
    functions = functions_of(cell)
    names = [name for name, _ in functions]
    attributes: dict[str, Any] = {} if names == _DEFAULTS[cell.operator] else {"activations": names}
    for key in ("alpha", "beta"):
        values = [
            value
            for name, parameters in functions
            for parameter, value in zip(_PARAMETERS.get(name, ()), parameters, strict=True)
            if parameter == key
        ]
        if values:
            attributes[f"activation_{key}"] = values
    return attributes


def weights_of(cell: Cell) -> dict[str, AnyArray]:
    """Return W, R and B of a cell in the arrangement of ONNX."""
    gates = [cell.gates[name] for name in ORDER[cell.operator]]
    size, dtype = cell.hidden_size, next(W for gate in gates for W in gate.W.values()).dtype
    widths = {ref: ref.width for ref in cell.xs}
    W = [
        np.concatenate([gate.W[ref].T if ref in gate.W else np.zeros((size, widths[ref]), dtype) for ref in cell.xs], 1)
        for gate in gates
    ]
    R = [np.zeros((size, size), dtype) if gate.R is None else gate.R.T for gate in gates]
    zeros = np.zeros(size, dtype)
    after = [cell.reset_bias if name == "h" and cell.reset_bias is not None else zeros for name in ORDER[cell.operator]]
    B = np.concatenate([*(gate.b for gate in gates), *after])
    return {"W": np.concatenate(W)[None], "R": np.concatenate(R)[None], "B": B[None].astype(dtype)}
