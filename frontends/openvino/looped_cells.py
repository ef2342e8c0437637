r"""Matcher of TensorIterators whose body is one recurrent cell over slices, which makes them sequences.

X -> slices -> Squeeze -> cell -> Unsqueeze -> Y     becomes     X -> sequence -> Y
                            ^ |                                               \-> the last states
                            +-+ back edges: h, and c
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyrnnx.errors import PyrnnxError, UnsupportedError
from pyrnnx.operator.op import Direction

from .ir.layer import NetLayer, Output
from .ir.port_maps import Body, Mapped, Slices, read_body
from .layer_reader import recurrent_layer
from .layers import BoundLayer, IRLayer, declare
from .schemas import OPERATIONS, WEIGHTS, Operation, find_operation

_STATES = {"initial_h": "Y_h", "initial_c": "Y_c"}
_RESHAPING = ("squeeze", "unsqueeze", "reshape")
# Operations between constants and weights.
_OF_WEIGHTS = (*_RESHAPING, "concat", "convert", "multiply", "subtract", "transpose")


@dataclass(frozen=True, eq=False)
class LoopedCell:
    """A loop that is a sequence."""

    layer: IRLayer  # the sequence
    X: int  # index of the loop's input X
    axes: str  # of X: "NTI" or "TNI"
    states: Mapping[str, int]  # indices of the loop's inputs initial_h and initial_c, each [N, H]
    weights: Mapping[str, Output]  # values in the body by argument, without the axis of directions
    outputs: Mapping[int, tuple[str, str]]  # Y_h, Y_c or Y, and its axes "NH", "NTH" or "TNH", by the loop's output

    def bound(self, value: Callable[[Output], Any], weight_dtype: str | None) -> BoundLayer:
        """Return the layer with its weights; `value` returns the array of a constant."""
        return self.layer.bind(**self.arrays(value), weight_dtype=weight_dtype)

    def arrays(self, value: Callable[[Output], Any]) -> dict[str, Any]:
        """Return the weights with an axis of directions; `value` returns the array of a constant."""
        arrays = {}
        for argument, source in self.weights.items():
            array = value(source)
            if array is None:
                raise UnsupportedError(f"{self.layer.label}: {argument} cannot be computed by {source.layer.label}")
            arrays[argument] = array[np.newaxis]
        return arrays


def looped_cell(layer: NetLayer) -> LoopedCell | None:
    """Return the sequence that a loop is; None for any other layer and for a broken loop."""
    if layer.type.lower() != "tensoriterator" or not layer.bodies:
        return None
    cells = [(node, operation) for node in layer.bodies["body"].layers if (operation := _cell_operation(node))]
    if len(cells) != 1:
        return None
    ((node, operation),) = cells
    try:
        return _Match(layer, read_body(layer), node, recurrent_layer(operation, node)).sequence()
    except PyrnnxError:
        return None


def _cell_operation(layer: NetLayer) -> Operation | None:
    operation = find_operation(layer.type, layer.opset)
    return operation if operation is not None and operation.type.endswith("Cell") else None


@dataclass(frozen=True, eq=False)
class _Match:
    loop: NetLayer
    body: Body
    node: NetLayer
    cell: IRLayer

    def sequence(self) -> LoopedCell | None:
        """Return the sequence; None if the loop is not one."""
        sources = dict(zip(self.cell.arguments, self.node.sources, strict=True))
        weights = {name: source for name, source in sources.items() if name in WEIGHTS}
        X, states = self._input(_before(sources["X"])), self._states(sources)
        outer = None if X is None else self.loop.sources[X.place].port.shape
        if X is None or X.slices is None or outer is None or len(outer) != 3 or states is None:
            return None
        axes = _axes(X.slices, _before(sources["X"]), sources["X"])
        outputs = {mapped.place: self._output(mapped, X.slices) for mapped in self.body.outputs}
        known = {place: output for place, output in outputs.items() if output is not None}
        if axes is None or len(known) != len(self.loop.outputs) or not all(map(self._is_constant, weights.values())):
            return None
        direction = Direction("reverse" if X.slices.is_reversed else "forward")
        layer = self._layer(dict(zip(f"{axes}I", outer, strict=True)), direction)
        return LoopedCell(layer, X.place, f"{axes}I", states, weights, known)

    def _input(self, source: Output | None) -> Mapped | None:
        return next((mapped for mapped in self.body.inputs if source and mapped.layer is source.layer), None)

    def _states(self, sources: Mapping[str, Output]) -> dict[str, int] | None:
        """Return the indices of the inputs that are states; None unless the cell feeds each of them back."""
        places = {}
        for name, output in _STATES.items():
            mapped = self._input(sources.get(name))
            back = None if mapped is None else self.body.back_edges.get(mapped.layer)
            if mapped is not None and back is not None and self._argument(back.sources[0]) == output:
                places[name] = mapped.place
        return places if len(places) == len(self.body.back_edges) == len(_STATES.keys() & sources.keys()) else None

    def _argument(self, source: Output | None) -> str | None:
        """Return which output of the cell a value is."""
        return self.cell.operation.outputs[source.index] if source and source.layer is self.node else None

    def _output(self, mapped: Mapped, X: Slices) -> tuple[str, str] | None:
        """Return which output of the sequence a result is, with its axes."""
        source, slices = mapped.layer.sources[0], mapped.slices
        if slices is None:
            argument = self._argument(source)
            return None if argument is None else (argument, "NH")
        axes = _axes(slices, source, _before(source))
        if axes is None or slices.is_reversed != X.is_reversed or self._argument(_before(source)) != "Y_h":
            return None
        return "Y", f"{axes}H"

    def _is_constant(self, output: Output) -> bool:
        """Return whether a value depends only on constants of the body or around the loop."""
        outer = {mapped.layer: self.loop.sources[mapped.place] for mapped in self.body.invariant}
        queue, seen = [output], set[NetLayer]()
        while queue:
            value = queue.pop()
            layer = outer.get(value.layer, value).layer
            if layer.type == "Const" or layer in seen:
                continue
            if layer.type.lower() not in _OF_WEIGHTS:
                return False
            seen.add(layer)
            queue += layer.sources
        return True

    def _layer(self, sizes: Mapping[str, int | None], direction: Direction) -> IRLayer:
        """Return the sequence, with the sizes and types that its cell and X declare."""
        cell, kind = self.cell, self.cell.operation.type.replace("Cell", "Sequence")
        operation = OPERATIONS.get(f"{kind}-{cell.operation.first_opset}") or find_operation(kind)
        assert operation is not None  # each cell has a sequence
        row = declare(
            replace(cell.op, direction=direction),
            operation,
            [name for name in operation.inputs if name in ("sequence_lens", *cell.arguments)],
            {**sizes, **cell.sizes},
            dtype=cell.dtype,
            lengths=None,
            name=self.loop.name,
            identifier=self.loop.id,
        )
        return replace(row, warnings=cell.warnings)


def _before(value: Output) -> Output | None:
    """Return what a reshaping operation reads; None for any other operation."""
    return value.layer.sources[0] if value.layer.type.lower() in _RESHAPING else None


def _axes(slices: Slices, wide: Output | None, narrow: Output | None) -> str | None:
    """Return "TN" or "NT" if slices along T are `wide`, and `narrow` is [N, ...] without T; else None."""
    outer, inner = (None if value is None else value.port.shape for value in (wide, narrow))
    if outer is None or inner is None or (len(outer), len(inner)) != (3, 2) or slices.axis > 1:
        return None
    matches = outer[slices.axis] == 1 and inner[1] is not None and outer[2] == inner[1]
    return ("TN", "NT")[slices.axis] if matches else None
