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

from pyrnnx._internal.dtypes import AnyArray
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
    """A loop that is a sequence.

    Attributes
    ----------
    layer : IRLayer
        The sequence.
    X : int
        Index of the loop's input X.
    axes : str
        Axes of X: "NTI" or "TNI".
    states : mapping
        Indices of the loop's inputs initial_h and initial_c, each [N, H].
    weights : mapping
        Values in the body by argument, without the axis of directions.
    outputs : mapping
        By index of the loop's output: Y_h, Y_c or Y, and its axes "NH", "NTH" or "TNH".
    """

    layer: IRLayer
    X: int
    axes: str
    states: Mapping[str, int]
    weights: Mapping[str, Output]
    outputs: Mapping[int, tuple[str, str]]

    def bound(self, value: Callable[[Output], Any], weight_dtype: str | None) -> BoundLayer:
        """Return the layer with its weights; `value` returns the array of a constant."""
        weights: dict[str, Any] = {**self.arrays(value)}
        return self.layer.bind(**weights, weight_dtype=weight_dtype)

    def arrays(self, value: Callable[[Output], Any]) -> dict[str, AnyArray]:
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
        states = {name: source for name, source in sources.items() if name in _STATES}
        weights = {name: source for name, source in sources.items() if name in WEIGHTS}
        X, inputs = self._sliced(sources["X"]), self._states(states)
        if X is None or X.slices is None or inputs is None or not all(map(self._is_constant, weights.values())):
            return None
        outputs = {mapped.place: self._output(mapped, X.slices) for mapped in self.body.outputs}
        known = {place: output for place, output in outputs.items() if output is not None}
        if len(known) != len(self.loop.outputs):
            return None
        axes = "TNI" if X.slices.axis == 0 else "NTI"
        layer = self._layer(X, axes, Direction("reverse" if X.slices.is_reversed else "forward"))
        return LoopedCell(layer, X.place, axes, inputs, weights, known)

    def _sliced(self, source: Output) -> Mapped | None:
        """Return the input whose slices, [N, 1, I] or [1, N, I], are the cell's X, [N, I]."""
        if source.layer.type.lower() not in _RESHAPING:
            return None
        wide = source.layer.sources[0]
        mapped = next((mapped for mapped in self.body.inputs if mapped.layer is wide.layer), None)
        slices = None if mapped is None else mapped.slices
        if mapped is None or slices is None or slices.axis > 1:
            return None
        outer = self.loop.sources[mapped.place].port.shape
        same = _is_row(wide.port.shape, source.port.shape, slices.axis)
        return mapped if same and outer is not None and len(outer) == 3 else None

    def _states(self, sources: Mapping[str, Output]) -> dict[str, int] | None:
        """Return the indices of the inputs that are states; None unless the cell feeds each of them back."""
        places = {}
        for name, source in sources.items():
            mapped = next((mapped for mapped in self.body.inputs if mapped.layer is source.layer), None)
            back = self.body.back_edges.get(source.layer)
            if mapped is None or back is None or self._argument(back.sources[0]) != _STATES[name]:
                return None
            places[name] = mapped.place
        return places if len(self.body.back_edges) == len(places) else None

    def _argument(self, source: Output) -> str | None:
        """Return which output of the cell a value is."""
        return self.cell.operation.outputs[source.index] if source.layer is self.node else None

    def _output(self, mapped: Mapped, X: Slices) -> tuple[str, str] | None:
        source = mapped.layer.sources[0]
        slices = mapped.slices
        if slices is None:
            argument = self._argument(source)
            return None if argument is None else (argument, "NH")
        if source.layer.type.lower() not in _RESHAPING or slices.is_reversed != X.is_reversed:
            return None
        narrow = source.layer.sources[0]
        if self._argument(narrow) != "Y_h" or slices.axis > 1:
            return None
        same = _is_row(source.port.shape, narrow.port.shape, slices.axis)
        return ("Y", "TNH" if slices.axis == 0 else "NTH") if same else None

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

    def _layer(self, X: Mapped, axes: str, direction: Direction) -> IRLayer:
        """Return the sequence, with the sizes and types that its cell and X declare."""
        cell, kind = self.cell, self.cell.operation.type.replace("Cell", "Sequence")
        operation = OPERATIONS.get(f"{kind}-{cell.operation.first_opset}") or find_operation(kind)
        assert operation is not None  # each cell has a sequence
        outer = self.loop.sources[X.place].port.shape
        assert outer is not None
        own = {axis: size for axis, size in zip("NI", cell.inputs[0].shape, strict=True) if size is not None}
        row = declare(
            replace(cell.op, direction=direction),
            operation,
            [name for name in operation.inputs if name in ("sequence_lens", *cell.arguments)],
            {**dict(zip(axes, outer, strict=True)), **own},
            dtype=cell.dtype,
            lengths=None,
            name=self.loop.name,
            identifier=self.loop.id,
        )
        return replace(row, warnings=cell.warnings)


def _is_row(wide: tuple[int | None, ...] | None, narrow: tuple[int | None, ...] | None, axis: int) -> bool:
    """Return whether shape `narrow` is [N, I] and `wide` is the same with a 1 inserted at `axis`."""
    if wide is None or narrow is None or (len(wide), len(narrow)) != (3, 2):
        return False
    return wide[axis] == 1 and wide[2] is not None and wide[2] == narrow[1]
