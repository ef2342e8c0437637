"""A TensorIterator whose body is one recurrent cell over a slice: the sequence that it is.

X -> slices -> Squeeze -> cell -> Unsqueeze -> Y     becomes     X -> sequence -> Y
                            ^ |                                               \\-> the last states
                            +-+ back edges: h, and c
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError, UnsupportedError
from pyrnnx.op import Direction

from .ir.layer import NetLayer, Output
from .ir.port_maps import Body, Mapped, Slices, read_body
from .layer_reader import recurrent_layer
from .layers import BoundLayer, IRLayer, Port
from .schemas import OPERATIONS, WEIGHTS, Operation, find_operation

_STATES = {"initial_h": "Y_h", "initial_c": "Y_c"}
_RESHAPING = ("squeeze", "unsqueeze", "reshape")
# Operations between constants and weights: each can be computed beforehand.
_OF_WEIGHTS = (*_RESHAPING, "concat", "convert", "multiply", "subtract", "transpose")


@dataclass(frozen=True, eq=False)
class LoopedCell:
    """What `looped_cell` finds.

    Attributes
    ----------
    layer : IRLayer
        The sequence.
    X : int
        Which input of the loop it is.
    axes : str
        Of X: "NTI" or "TNI".
    states : mapping
        By the argument, initial_h or initial_c, which input of the loop it is: [N, H].
    weights : mapping
        By the argument, the value in the body that it is, without the axis of directions.
    outputs : mapping
        Of the loop, by their places: Y_h, Y_c or Y, and its axes: "NH", "NTH" or "TNH".
    """

    layer: IRLayer
    X: int
    axes: str
    states: Mapping[str, int]
    weights: Mapping[str, Output]
    outputs: Mapping[int, tuple[str, str]]

    def bound(self, value: Callable[[Output], Any]) -> BoundLayer:
        """The layer with its weights."""
        weights: dict[str, Any] = {**self.arrays(value)}
        return self.layer.bind(**weights)

    def arrays(self, value: Callable[[Output], Any]) -> dict[str, AnyArray]:
        """The weights with an axis of directions; `value` gives that of a constant.

        Raises
        ------
        UnsupportedError
            One that cannot be computed.
        """
        found = {}
        for argument, source in self.weights.items():
            array = value(source)
            if array is None:
                raise UnsupportedError(f"{self.layer.label}: {argument} cannot be computed by {source.layer.label}")
            found[argument] = array[np.newaxis]
        return found


def looped_cell(layer: NetLayer) -> tuple[LoopedCell, list[str]] | None:
    """What a layer is, and what to warn of, if it is such a loop; else None, of one that is broken, too."""
    if layer.type.lower() != "tensoriterator" or not layer.bodies:
        return None
    cells = [one for one in layer.bodies["body"].layers if _cell_of(one) is not None]
    if len(cells) != 1:
        return None
    try:
        body, (cell, unknown) = read_body(layer), recurrent_layer(_operation(cells[0]), cells[0])
    except PyrnnxError:
        return None
    found = _Match(layer, body, cells[0], cell).found()
    return None if found is None else (found, unknown)


def _cell_of(layer: NetLayer) -> Operation | None:
    found = find_operation(layer.type, layer.opset)
    return found if found is not None and found.type.endswith("Cell") else None


def _operation(layer: NetLayer) -> Operation:
    found = _cell_of(layer)
    assert found is not None
    return found


@dataclass(frozen=True, eq=False)
class _Match:
    loop: NetLayer
    body: Body
    node: NetLayer
    cell: IRLayer

    def found(self) -> LoopedCell | None:
        sources = dict(zip(self.cell.arguments, self.node.sources, strict=True))
        states = {name: one for name, one in sources.items() if name in _STATES}
        weights = {name: one for name, one in sources.items() if name in WEIGHTS}
        X, inputs = self._sliced(sources["X"]), self._states(states)
        if X is None or X.slices is None or inputs is None or not all(map(self._is_constant, weights.values())):
            return None
        outputs = {one.place: self._output(one, X.slices) for one in self.body.outputs}
        known = {place: one for place, one in outputs.items() if one is not None}
        if len(known) != len(self.loop.outputs):
            return None
        axes = "TNI" if X.slices.axis == 0 else "NTI"
        layer = self._sequence(X, axes, Direction("reverse" if X.slices.is_reversed else "forward"))
        return LoopedCell(layer, X.place, axes, inputs, weights, known)

    def _sliced(self, source: Output) -> Mapped | None:
        """The input whose slices, [N, 1, I] or [1, N, I], are the cell's X, [N, I]."""
        if source.layer.type.lower() not in _RESHAPING:
            return None
        wide = source.layer.sources[0]
        mapped = next((one for one in self.body.inputs if one.layer is wide.layer), None)
        slices = None if mapped is None else mapped.slices
        if mapped is None or slices is None or slices.part_size != 1 or slices.axis > 1 or not slices.are_whole:
            return None
        outer = self.loop.sources[mapped.place].port.shape
        same = _is_row(wide.port.shape, source.port.shape, slices.axis)
        return mapped if same and outer is not None and len(outer) == 3 else None

    def _states(self, sources: Mapping[str, Output]) -> dict[str, int] | None:
        """The inputs that are the states, each fed back from the cell."""
        found = {}
        for name, source in sources.items():
            mapped = next((one for one in self.body.inputs if one.layer is source.layer), None)
            back = self.body.back_edges.get(source.layer)
            if mapped is None or back is None or self._argument(back.sources[0]) != _STATES[name]:
                return None
            found[name] = mapped.place
        return found if len(self.body.back_edges) == len(found) else None

    def _argument(self, source: Output) -> str | None:
        """Which output of the cell it is."""
        return self.cell.operation.outputs[source.index] if source.layer is self.node else None

    def _output(self, mapped: Mapped, X: Slices) -> tuple[str, str] | None:
        source = mapped.layer.sources[0]
        slices = mapped.slices
        if slices is None:
            argument = self._argument(source)
            return None if argument is None else (argument, "NH")
        if source.layer.type.lower() not in _RESHAPING or (slices.is_reversed, slices.part_size) != (X.is_reversed, 1):
            return None
        narrow = source.layer.sources[0]
        if self._argument(narrow) != "Y_h" or slices.axis > 1:
            return None
        same = _is_row(source.port.shape, narrow.port.shape, slices.axis)
        return ("Y", "TNH" if slices.axis == 0 else "NTH") if same else None

    def _is_constant(self, output: Output) -> bool:
        """Whether a value depends on nothing but constants, of the body or around the loop."""
        outer = {one.layer: self.loop.sources[one.place] for one in self.body.invariant}
        left, seen = [output], set[NetLayer]()
        while left:
            one = left.pop()
            layer = outer.get(one.layer, one).layer
            if layer.type == "Const" or layer in seen:
                continue
            if layer.type.lower() not in _OF_WEIGHTS:
                return False
            seen.add(layer)
            left += layer.sources
        return True

    def _sequence(self, X: Mapped, axes: str, direction: Direction) -> IRLayer:
        """The layer that the loop is, with ports as its cell declares them."""
        cell, kind = self.cell, self.cell.operation.type.replace("Cell", "Sequence")
        same = f"{kind}-{cell.operation.first_opset}"
        operation = OPERATIONS[same] if same in OPERATIONS else _newest(kind)
        outer = self.loop.sources[X.place].port.shape
        assert outer is not None
        sizes = dict(zip(axes, outer, strict=True))
        ports = dict(zip(cell.arguments, cell.inputs, strict=True))
        ports |= dict(zip(cell.operation.outputs, cell.outputs, strict=True))
        N, I = ports["X"].shape
        N = sizes["N"] if N is None else N
        rows: dict[str, tuple[tuple[int | None, ...], str | None]] = {
            "X": ((N, sizes["T"], I), ports["X"].precision),
            "sequence_lens": ((N,), None),
            "Y": ((N, 1, sizes["T"], cell.op.hidden_size), ports["Y_h"].precision),
        }
        for name, port in ports.items():
            if name in WEIGHTS:
                rows[name] = (1, *port.shape), port.precision
            elif name != "X":
                rows[name] = (port.shape[0], 1, port.shape[1]), port.precision
        made = []
        for names in (operation.inputs, operation.outputs):
            given = [name for name in names if name in rows]
            own = [operation.convention.name_of(name) for name in given]
            made.append(tuple(Port(k, own[k], *rows[name]) for k, name in enumerate(given)))
        op = replace(cell.op, direction=direction)
        return IRLayer(op, operation, self.loop.name, self.loop.id, *made)


def _newest(kind: str) -> Operation:
    found = find_operation(kind)
    assert found is not None
    return found


def _is_row(wide: tuple[int | None, ...] | None, narrow: tuple[int | None, ...] | None, axis: int) -> bool:
    """Whether [N, 1, I] or [1, N, I], with the 1 at that axis, and [N, I] are the same numbers, by their shapes."""
    if wide is None or narrow is None or (len(wide), len(narrow)) != (3, 2):
        return False
    return wide[axis] == 1 and wide[2] is not None and wide[2] == narrow[1]
