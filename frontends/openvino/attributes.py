"""Attributes of recurrent operations: read from `<data>`, converted to a `RecurrentOp`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrnnx._internal import scalars
from pyrnnx.errors import ArgumentError, FormatError, UnsupportedError, shown
from pyrnnx.operator.op import CELLS, Activation, Direction, RecurrentOp, activation_function

from .ir.numbers import boolean, integer, number
from .schemas import NEUTRAL, Operation


def read_attributes(label: str, operation: Operation, data: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes in `<data>`, and a message for each that has no effect."""
    if "hidden_size" not in data:
        raise FormatError(f"{label}: hidden_size is missing; the layer needs <data hidden_size=.../>")
    attributes, unknown = {}, []
    for name, text in data.items():
        if name in operation.attributes:
            attributes[name] = _value(label, name, text)
        elif name in _TYPES and (name not in NEUTRAL or _value(label, name, text) != NEUTRAL[name]):
            raise UnsupportedError(f"{label}: attribute {shown(name)} does not belong to {operation.versioned_name}")
        else:
            unknown.append(
                f"{label}: attribute {shown(name)} is unknown and has no effect; {operation.versioned_name} has "
                f"{', '.join(operation.attributes)}"
            )
    return attributes, unknown


def _value(label: str, name: str, text: str) -> Any:
    expected, convert = _TYPES[name]
    try:
        return convert(text.strip())
    except ValueError:
        raise FormatError(f"{label}: {name} is {shown(text)}; expected {expected}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(number(item.strip()) for item in text.split(",")) if text else ()


_TYPES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "hidden_size": ("a positive integer", integer),
    "direction": ("a string", str),
    "activations": ("names separated by commas", _names),
    "activations_alpha": ("numbers separated by commas", _numbers),
    "activations_beta": ("numbers separated by commas", _numbers),
    "clip": ("a number", number),
    "linear_before_reset": ("true or false", boolean),
    "input_forget": ("true or false", boolean),
    "weights_format": ("a string", str.lower),
}


def build_op(operation: Operation, label: str, hidden_size: int, attributes: Mapping[str, Any]) -> RecurrentOp:
    """Build the operator from its attributes; absent ones have the specification's defaults."""
    weights_format = attributes.get("weights_format", "fico")
    if weights_format != "fico":
        raise UnsupportedError(
            f"{label}: weights_format is {shown(weights_format)}; expected 'fico', the specification's order of gates"
        )
    direction = attributes.get("direction", "forward")
    direction = Direction.named(label, direction.lower() if isinstance(direction, str) else direction)
    functions = _activations(label, operation.cell, direction.num_directions, attributes)
    return RecurrentOp(
        operation.cell,
        hidden_size,
        direction,
        (functions,) * direction.num_directions,
        _clip(label, attributes.get("clip")),
        linear_before_reset=attributes.get("linear_before_reset", False),
        input_forget=attributes.get("input_forget", False),
        label=label,
    )


def _clip(label: str, clip: Any) -> float | None:
    """Return the bound; None, 0 and infinity mean no clipping."""
    if clip is None:
        return None
    value = scalars.as_number(clip)
    if value is None or math.isnan(value) or value < 0:
        raise ArgumentError(f"{label}: clip is {shown(clip)}; expected a positive number, or 0 or infinity for none")
    return None if value == 0 or math.isinf(value) else value


def _activations(label: str, cell: str, num_directions: int, attributes: Mapping[str, Any]) -> tuple[Activation, ...]:
    """Return the functions that both directions share; alpha and beta belong to the function at the same index.

    OpenVINO writes the list twice for a bidirectional operation converted from ONNX with explicit activations.
    """
    defaults = CELLS[cell].activations
    count = len(defaults)
    names = _list(label, attributes, "activations", str) or defaults
    if len(names) not in (count, num_directions * count):
        raise ArgumentError(f"{label}: activations has {len(names)} names, {shown(list(names))}; expected {count}")
    parameters = {p: _list(label, attributes, f"activations_{p}", float) for p in ("alpha", "beta")}
    for parameter, values in parameters.items():
        if len(values) > len(names):
            raise ArgumentError(
                f"{label}: activations_{parameter} has {len(values)} values; expected at most {len(names)}"
            )
    functions = tuple(_activation(label, name, index, parameters) for index, name in enumerate(names))
    if functions[count:] not in ((), functions[:count]):
        text = ", ".join(map(str, functions))
        raise ArgumentError(f"{label}: activations differ by direction, {text}; expected {count}, for both directions")
    return functions[:count]


def _activation(label: str, name: str, index: int, parameters: Mapping[str, Sequence[float]]) -> Activation:
    try:
        row = activation_function(name)
        values = {key: items[index] for key, items in parameters.items() if index < len(items)}
        return Activation(row.name, **{key: value for key, value in values.items() if getattr(row, key) is not None})
    except ArgumentError as error:
        raise ArgumentError(f"{label}: {error}") from None


def _list(label: str, attributes: Mapping[str, Any], name: str, kind: type[str] | type[float]) -> tuple[Any, ...]:
    values = attributes.get(name)
    if values is None:
        return ()
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) != 1:
        raise ArgumentError(f"{label}: {name} is {shown(values)}; expected a list")
    result: list[Any] = []
    for value in values:
        item = (str(value) if isinstance(value, str) else None) if kind is str else scalars.as_number(value)
        if item is None:
            raise ArgumentError(
                f"{label}: {name} contains {shown(value)}; expected {'names' if kind is str else 'numbers'}"
            )
        result.append(item)
    return tuple(result)
