"""ONNX attributes to a `RecurrentOp`: checked against the opset's schema, defaults filled in, nothing ignored."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyrnnx.errors import ArgumentError, PyrnnxWarning, UnsupportedError, shortened, shown
from pyrnnx.op import CELLS, Activation, Direction, RecurrentOp, activation_function
from pyrnnx.scalars import as_integer, as_number

from .schemas import SCHEMAS, Schema

# The default that the text of GRU-1 prints; later opsets spell it right.
_GRU_1_DIRECTION = "foward"


def _string(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value) if isinstance(value, str) else None


_LONGEST = 1_000  # values of a list; six are the most that have an effect


def _sequence(item: Callable[[Any], Any]) -> Callable[[Any], list[Any] | None]:
    def convert(value: Any) -> list[Any] | None:
        if isinstance(value, (str, bytes, Mapping)):
            return None
        try:
            items = [item(one) for one in islice(value, _LONGEST + 1)]
        except (TypeError, NotImplementedError):  # a number, an array without axes; a memoryview with several
            return None
        return None if len(items) > _LONGEST or any(one is None for one in items) else items

    return convert


@dataclass(frozen=True)
class AttributeType:
    """A type that attributes have: its words in a message, what reads a value, its number in onnx.AttributeProto."""

    words: str
    read: Callable[[Any], Any]
    number: int


_FLOAT = AttributeType("a number", as_number, 1)
_INT = AttributeType("an integer", as_integer, 2)
_STRING = AttributeType("a string", _string, 3)
_FLOATS = AttributeType("a list of numbers, at most 1000", _sequence(as_number), 6)
_STRINGS = AttributeType("a list of strings, at most 1000", _sequence(_string), 8)
TYPES: Mapping[str, AttributeType] = {
    "activation_alpha": _FLOATS,
    "activation_beta": _FLOATS,
    "activations": _STRINGS,
    "clip": _FLOAT,
    "direction": _STRING,
    "hidden_size": _INT,
    "input_forget": _INT,
    "layout": _INT,
    "linear_before_reset": _INT,
    "output_sequence": _INT,
}


def read_attributes(schema: Schema, label: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that are given (not None), each of its type.

    Raises
    ------
    UnsupportedError
        An attribute that the opset's operator does not have.
    ArgumentError
        A value of another type.
    """
    read = {}
    for name, value in given.items():
        if name not in schema.attributes:
            raise UnsupportedError(f"{label}: {_unknown(schema, name)}")
        if value is None:
            continue
        read[name] = TYPES[name].read(value)
        if read[name] is None:
            raise ArgumentError(f"{label}: {name} is {shown(value)}; expected {TYPES[name].words}")
    return read


def _unknown(schema: Schema, name: str) -> str:
    versions = [version for version, other in SCHEMAS[schema.operator].items() if name in other.attributes]
    allowed = f"{schema} has the attributes {', '.join(schema.attributes)}"
    if versions:
        opsets = ", ".join(map(str, versions))
        return f"attribute {shown(name)} does not exist in {schema}, only at opset {opsets}; {allowed}"
    return f"attribute {shown(name)} is unknown; {allowed}"


def build_op(schema: Schema, label: str, attributes: Mapping[str, Any], hidden_size: int) -> RecurrentOp:
    """The operator that read attributes describe; `hidden_size` is what R tells.

    Raises
    ------
    ArgumentError
        A value out of its range, or hidden_size against R.
    """
    direction = attributes.get("direction", Direction.FORWARD)
    if direction == _GRU_1_DIRECTION and (schema.operator, schema.since_version) == ("GRU", 1):
        direction = Direction.FORWARD
    direction = Direction.named(label, direction)
    return RecurrentOp(
        schema.operator,
        attributes.get("hidden_size", hidden_size),
        direction,
        _activations(schema, label, attributes, direction.num_directions),
        attributes.get("clip"),
        linear_before_reset=flag(label, "linear_before_reset", attributes),
        input_forget=flag(label, "input_forget", attributes),
        label=label,
    )


def flag(label: str, name: str, attributes: Mapping[str, Any]) -> bool:
    """An integer attribute that is 0 (its default) or 1."""
    value = attributes.get(name, 0)
    if value not in (0, 1):
        raise ArgumentError(f"{label}: {name} is {shown(value)}; expected 0 or 1")
    return bool(value)


def _activations(
    schema: Schema, label: str, attributes: Mapping[str, Any], num_directions: int
) -> tuple[tuple[Activation, ...], ...]:
    """The functions of each direction; alpha and beta go, in order, to the functions that take them."""
    defaults = CELLS[schema.operator].activations
    names: Sequence[str] = attributes.get("activations", defaults * num_directions)
    expected = len(defaults) * num_directions
    if schema.operator == "RNN" and num_directions == 1 and [name.lower() for name in names] == ["tanh", "tanh"]:
        names = names[:1]  # the schema's default, written for two directions
    if len(names) != expected:
        raise ArgumentError(
            f"{label}: activations has {len(names)} names, {shown(list(names))}; expected {expected}: "
            f"{len(defaults)} for each of num_directions={num_directions}"
        )
    left = {name: list(attributes.get(f"activation_{name}", ())) for name in ("alpha", "beta")}
    functions = [_activation(label, name, left) for name in names]
    for parameter, values in left.items():
        if values:
            warnings.warn(
                f"{label}: activation_{parameter} has {len(values)} values more than its activations "
                f"{shortened(', '.join(names))} take; {shown(values)} have no effect",
                PyrnnxWarning,
                stacklevel=2,
            )
    per_direction = len(defaults)
    return tuple(tuple(functions[k : k + per_direction]) for k in range(0, expected, per_direction))


def _activation(label: str, name: str, left: Mapping[str, list[float]]) -> Activation:
    """The function of that name with its share of the parameters that are left."""
    try:
        row = activation_function(name)
        taken = {p: left[p].pop(0) if left[p] else None for p in left if getattr(row, p) is not None}
        return Activation(row.name, **taken)
    except ArgumentError as error:
        raise ArgumentError(f"{label}: activations: {error}") from None
