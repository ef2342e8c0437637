"""Configurations of Keras' recurrent layers, from `get_config` or .keras files, as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyrnnx._internal.scalars import as_integer
from pyrnnx.errors import FormatError, UnsupportedError, shown
from pyrnnx.operator.op import Activation, CellName, Direction

from .activations import activation

# By Keras' name of a layer; a cell is "...Cell".
CELLS: Mapping[str, CellName] = {"SimpleRNN": "RNN", "GRU": "GRU", "LSTM": "LSTM"}
RECURRENT = (*CELLS, "RNN", "Bidirectional")
DEPTH = 100  # limit of nested configurations


@dataclass(frozen=True)
class CellConfig:
    """The configuration of one cell in one direction."""

    operator: CellName
    units: int
    activations: tuple[Activation, ...]  # f of an RNN; f, g of a GRU; f, g, h of an LSTM
    use_bias: bool
    reset_after: bool  # of a GRU; False for others
    path: str  # of its weights in the group of its layer: "cell", "forward_layer/cell"


@dataclass(frozen=True)
class LayerConfig:
    """The configuration of a recurrent layer: stacked `layers`, each with a cell for every direction."""

    direction: Direction
    layers: tuple[tuple[CellConfig, ...], ...]

    @property
    def cells(self) -> list[CellConfig]:
        """All cells, in the order of the layer's weights."""
        return [cell for layer in self.layers for cell in layer]


def cell_activations(operator: CellName, own: Activation, recurrent: Activation) -> tuple[Activation, ...]:
    """Return Keras' two activations in ONNX's order."""
    return {"RNN": (own,), "GRU": (recurrent, own), "LSTM": (recurrent, own, own)}[operator]


def read_config(label: str, class_name: str, config: Any) -> LayerConfig:
    config = _mapping(label, "config", config)
    if class_name == "Bidirectional":
        return _bidirectional(label, config)
    return _sequence(label, class_name, config, "")


def _sequence(label: str, class_name: str, config: Mapping[str, Any], path: str) -> LayerConfig:
    backwards = _flag(label, config, "go_backwards", False)
    if backwards and not path and _flag(label, config, "return_sequences", False):
        raise UnsupportedError(
            f"{label}: go_backwards=True with return_sequences=True returns the last time step first, but a Stack "
            "returns Y in time order; expected return_sequences=False, or from_weights(..., direction='reverse')"
        )
    if class_name in CELLS:
        cells = [_cell(label, class_name, config, f"{path}cell")]
    elif class_name == "RNN":
        cells = _cells(label, _mapping(label, "cell", config.get("cell")), f"{path}cell")
    else:
        raise UnsupportedError(f"{label}: the class is {shown(class_name)}; expected one of {', '.join(RECURRENT)}")
    direction = Direction.REVERSE if backwards else Direction.FORWARD
    return LayerConfig(direction, tuple((cell,) for cell in cells))


def _cells(label: str, serialized: Mapping[str, Any], path: str) -> list[CellConfig]:
    class_name, config = _object(label, serialized)
    if class_name != "StackedRNNCells":
        return [_cell(label, _cell_name(label, class_name), config, path)]
    items = config.get("cells")
    if not isinstance(items, list) or not items:
        raise FormatError(f"{label}: cells is {shown(items)}; expected a list of cells")
    cells, names = [], UniqueNames()
    for item in items:
        class_name, config = _object(label, _mapping(label, "a cell", item))
        cell_path = f"{path}/cells/{names.of(class_name)}"
        cells.append(_cell(label, _cell_name(label, class_name), config, cell_path))
    return cells


def _cell_name(label: str, class_name: str) -> str:
    name = class_name.removesuffix("Cell")
    if name not in CELLS or name == class_name:
        allowed = ", ".join(f"{cell}Cell" for cell in CELLS)
        raise UnsupportedError(f"{label}: it has a cell {shown(class_name)}; expected one of {allowed}")
    return name


def _cell(label: str, name: str, config: Mapping[str, Any], path: str) -> CellConfig:
    operator, units = CELLS[name], as_integer(config.get("units"))
    if units is None or units < 1:
        raise FormatError(f"{label}: units is {shown(config.get('units'))}; expected a positive integer")
    own = activation(label, "activation", config.get("activation", "tanh"))
    recurrent = activation(label, "recurrent_activation", config.get("recurrent_activation", "sigmoid"))
    return CellConfig(
        operator,
        units,
        cell_activations(operator, own, recurrent),
        _flag(label, config, "use_bias", True),
        operator == "GRU" and _flag(label, config, "reset_after", True),
        path,
    )


def _bidirectional(label: str, config: Mapping[str, Any]) -> LayerConfig:
    merge_mode = config.get("merge_mode", "concat")
    if merge_mode not in ("concat", None):
        raise UnsupportedError(
            f"{label}: merge_mode is {shown(merge_mode)}; expected 'concat' or None, as Y of a Stack concatenates both "
            "directions"
        )
    sides = []
    for argument, path in (("layer", "forward_layer/"), ("backward_layer", "backward_layer/")):
        class_name, own = _object(label, _mapping(label, argument, config.get(argument)))
        side = _sequence(label, class_name, own, path)
        if len(side.layers) != 1:
            raise UnsupportedError(f"{label}: {argument} has {len(side.layers)} cells; expected one")
        if side.direction != (Direction.REVERSE if argument == "backward_layer" else Direction.FORWARD):
            backwards = side.direction is Direction.REVERSE
            raise UnsupportedError(f"{label}: {argument} has go_backwards={backwards}; expected {not backwards}")
        sides.append(side.cells[0])
    for aspect in ("operator", "units", "reset_after"):
        first, second = (getattr(side, aspect) for side in sides)
        if first != second:
            raise UnsupportedError(
                f"{label}: {aspect} is {shown(first)} forward and {shown(second)} backward; expected the same"
            )
    return LayerConfig(Direction.BIDIRECTIONAL, (tuple(sides),))


def _object(label: str, serialized: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the class and configuration of a serialized object."""
    class_name = serialized.get("class_name")
    if not isinstance(class_name, str):
        raise FormatError(f"{label}: class_name is {shown(class_name)}; expected a string")
    if not is_layer_of_keras(serialized):
        origin = ", ".join(f"{key} {shown(serialized.get(key))}" for key in ("module", "registered_name"))
        raise UnsupportedError(f"{label}: it has {shown(class_name)} of {origin}; expected classes of keras.layers")
    return class_name, _mapping(label, f"config of {shown(class_name)}", serialized.get("config"))


def is_layer_of_keras(serialized: Mapping[str, Any]) -> bool:
    """Return whether a serialized object is of a class of Keras: custom classes may have any name."""
    module, registered = serialized.get("module", "keras.layers"), serialized.get("registered_name")
    of_keras = isinstance(module, str) and f"{module}.".startswith(("keras.layers.", "keras.src.layers."))
    return of_keras and registered in (None, serialized.get("class_name"))


def is_of_keras(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "keras"


def _mapping(label: str, argument: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FormatError(f"{label}: {argument} is {shown(value)}; expected a mapping")
    return value


def _flag(label: str, config: Mapping[str, Any], name: str, default: bool) -> bool:
    value = config.get(name, default)
    if not isinstance(value, bool):
        raise FormatError(f"{label}: {name} is {shown(value)}; expected true or false")
    return value


class UniqueNames:
    """Names of sibling groups in Keras' files of weights: "lstm", "lstm_1", ..."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, class_name: str) -> str:
        name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", class_name))
        name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
        self._used[name] = count = self._used.get(name, -1) + 1
        return f"{name}_{count}" if count else name
