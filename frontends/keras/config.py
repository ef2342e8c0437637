"""Configurations of Keras' recurrent layers, as `get_config` gives them and .keras files hold them: plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyrnnx.errors import FormatError, UnsupportedError, shown
from pyrnnx.op import Activation, Direction
from pyrnnx.scalars import as_integer

from .activations import activation

CELLS = {"SimpleRNN": "RNN", "GRU": "GRU", "LSTM": "LSTM"}  # Keras' name of a layer, of which a cell is "...Cell"
RECURRENT = (*CELLS, "RNN", "Bidirectional")
_OF_OUTPUTS = ("return_sequences", "return_state", "stateful", "unroll", "zero_output_for_mask")
DEPTH = 100  # configurations in each other; Keras itself makes a handful


@dataclass(frozen=True)
class CellConfig:
    """One cell in one direction.

    Attributes
    ----------
    operator : str
        "RNN", "GRU" or "LSTM".
    units : int
    activations : tuple of Activation
        In ONNX's order: f of an RNN; f, g of a GRU; f, g, h of an LSTM.
    use_bias : bool
    reset_after : bool
        Of a GRU; of others False.
    path : str
        Where Keras keeps its weights, below its layer: "cell", "forward_layer/cell".
    """

    operator: str
    units: int
    activations: tuple[Activation, ...]
    use_bias: bool
    reset_after: bool
    path: str


@dataclass(frozen=True)
class LayerConfig:
    """A recurrent layer of Keras: `layers` after each other, each with a cell for every direction."""

    direction: Direction
    layers: tuple[tuple[CellConfig, ...], ...]

    @property
    def cells(self) -> list[CellConfig]:
        """In the order of the layer's weights."""
        return [cell for layer in self.layers for cell in layer]


def cell_activations(operator: str, own: Activation, recurrent: Activation) -> tuple[Activation, ...]:
    """Keras' two activations in the order of ONNX's."""
    return {"RNN": (own,), "GRU": (recurrent, own), "LSTM": (recurrent, own, own)}[operator]


def read_config(label: str, class_name: str, config: Any) -> LayerConfig:
    """What a layer of a class of `RECURRENT` computes.

    Raises
    ------
    FormatError
        A configuration that is none.
    UnsupportedError
        What no RNN, GRU or LSTM of ONNX computes.
    """
    config = _mapping(label, "config", config)
    if class_name == "Bidirectional":
        return _bidirectional(label, config)
    return _sequence(label, class_name, config, "")


def _sequence(label: str, class_name: str, config: Mapping[str, Any], path: str) -> LayerConfig:
    """keras.layers.SimpleRNN, GRU, LSTM, or RNN of cells."""
    backwards = _flag(label, config, "go_backwards", False)
    for name in _OF_OUTPUTS:
        _flag(label, config, name, False)
    if backwards and not path and _flag(label, config, "return_sequences", False):
        raise UnsupportedError(
            f"{label}: go_backwards=True with return_sequences=True gives the last time step first, and Y of a Stack "
            "the first; expected return_sequences=False, or from_weights(..., direction='reverse'), with its Y"
        )
    if class_name in CELLS:
        cells = [_cell(label, class_name, config, f"{path}cell")]
    elif class_name == "RNN":
        cells = _cells(label, _mapping(label, "cell", config.get("cell")), f"{path}cell")
    else:
        raise UnsupportedError(f"{label}: is a {shown(class_name)}; expected one of {', '.join(RECURRENT)}")
    direction = Direction.REVERSE if backwards else Direction.FORWARD
    return LayerConfig(direction, tuple((cell,) for cell in cells))


def _cells(label: str, serialized: Mapping[str, Any], path: str) -> list[CellConfig]:
    """Of keras.layers.RNN: one cell, or several as StackedRNNCells."""
    class_name, config = _object(label, serialized)
    if class_name != "StackedRNNCells":
        return [_cell(label, _cell_name(label, class_name), config, path)]
    given = config.get("cells")
    if not isinstance(given, list) or not given:
        raise FormatError(f"{label}: cells is {shown(given)}; expected a list of cells")
    found, names = [], UniqueNames()
    for one in given:
        class_name, config = _object(label, _mapping(label, "a cell", one))
        own = f"{path}/cells/{names.of(class_name)}"
        found.append(_cell(label, _cell_name(label, class_name), config, own))
    return found


def _cell_name(label: str, class_name: str) -> str:
    name = class_name.removesuffix("Cell")
    if name not in CELLS or name == class_name:
        allowed = ", ".join(f"{one}Cell" for one in CELLS)
        raise UnsupportedError(f"{label}: has a cell {shown(class_name)}; expected one of {allowed}")
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
            f"{label}: merge_mode is {shown(merge_mode)}; expected 'concat', or None: Y of a Stack has both directions "
            "side by side"
        )
    sides = []
    for argument, path in (("layer", "forward_layer/"), ("backward_layer", "backward_layer/")):
        class_name, own = _object(label, _mapping(label, argument, config.get(argument)))
        side = _sequence(label, class_name, own, path)
        if len(side.layers) != 1:
            raise UnsupportedError(f"{label}: {argument} has {len(side.layers)} cells; expected one")
        if side.direction != (Direction.REVERSE if argument == "backward_layer" else Direction.FORWARD):
            raise UnsupportedError(f"{label}: {argument} has go_backwards={side.direction is Direction.REVERSE}")
        sides.append(side.cells[0])
    for aspect in ("operator", "units", "reset_after"):
        first, second = (getattr(side, aspect) for side in sides)
        if first != second:
            raise UnsupportedError(
                f"{label}: {aspect} is {shown(first)} forward and {shown(second)} backward; expected the same"
            )
    return LayerConfig(Direction.BIDIRECTIONAL, (tuple(sides),))


def _object(label: str, serialized: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The class and the configuration of what Keras has serialized."""
    class_name = serialized.get("class_name")
    if not isinstance(class_name, str):
        raise FormatError(f"{label}: class_name is {shown(class_name)}; expected a string")
    if not is_layer_of_keras(serialized):
        own = ", ".join(f"{key} {shown(serialized.get(key))}" for key in ("module", "registered_name"))
        raise UnsupportedError(f"{label}: has {shown(class_name)} of {own}; expected classes of keras.layers")
    return class_name, _mapping(label, f"config of {shown(class_name)}", serialized.get("config"))


def is_layer_of_keras(serialized: Mapping[str, Any]) -> bool:
    """Whether what is serialized is a class of Keras' own: others may be registered, by any name."""
    module, registered = serialized.get("module", "keras.layers"), serialized.get("registered_name")
    of_keras = isinstance(module, str) and f"{module}.".startswith(("keras.layers.", "keras.src.layers."))
    return of_keras and registered in (None, serialized.get("class_name"))


def is_of_keras(module: Any) -> bool:
    """Whether a module is one of the package keras."""
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
    """Names that Keras gives to what lies side by side in its files of weights: "lstm", "lstm_1", ..."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, class_name: str) -> str:
        name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", class_name))
        name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
        self._used[name] = count = self._used.get(name, -1) + 1
        return f"{name}_{count}" if count else name
