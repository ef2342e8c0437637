"""Conversion of ONNX attributes to a `RecurrentOp`, checked against the opset's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown, warn
from pyrnnx.operator.op import CELLS, Activation, Direction, RecurrentOp, activation_function

from .schemas import SCHEMAS, Attribute, Schema


def read_attributes(schema: Schema, label: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check attributes that are not None against a schema; return them with the defaults of the others.

    Raises
    ------
    UnsupportedError
        An attribute that the opset's operator does not have.
    ArgumentError
        A value of another type, or another than the few that the schema allows.
    """
    read = dict(schema.defaults)
    for name, value in given.items():
        if value is not None:
            read[name] = _read(schema, label, name, value)
    return read


def _read(schema: Schema, label: str, name: str, given: Any) -> Any:
    attribute = find_attribute(schema, label, name)
    value = attribute.type.read(given)
    if value is None:
        raise ArgumentError(f"{label}: {name} is {shown(given)}; expected {attribute.type.words}")
    if attribute.allowed and value not in attribute.allowed:
        raise ArgumentError(f"{label}: {name} is {shown(value)}; expected {' or '.join(map(str, attribute.allowed))}")
    return value


def find_attribute(schema: Schema, label: str, name: str) -> Attribute:
    """Return the attribute of that name; raise an UnsupportedError if the opset's operator does not have it."""
    attribute = schema.attribute(name)
    if attribute is not None:
        return attribute
    versions = [version for version, other in SCHEMAS.get(schema.operator, {}).items() if name in other.attributes]
    allowed = f"{schema} has the attributes {', '.join(schema.attributes)}"
    if versions:
        others = ", ".join(f"{schema.operator}-{version}" for version in versions)
        raise UnsupportedError(
            f"{label}: attribute {shown(name)} does not exist in {schema}, only in {others}; {allowed}"
        )
    raise UnsupportedError(f"{label}: attribute {shown(name)} is unknown; {allowed}")


def build_op(schema: Schema, label: str, attributes: Mapping[str, Any], hidden_size: int) -> RecurrentOp:
    """Return the op that checked attributes describe; `hidden_size` is the default of theirs."""
    given = attributes["direction"]
    # The default in every schema, however ONNX spells it.
    direction = Direction.FORWARD if given == schema.defaults["direction"] else Direction.named(label, given)
    return RecurrentOp(
        schema.cell,
        hidden_size if attributes["hidden_size"] is None else attributes["hidden_size"],
        direction,
        _activations(schema, label, attributes, direction.num_directions),
        attributes["clip"],
        linear_before_reset=bool(attributes.get("linear_before_reset")),
        input_forget=bool(attributes.get("input_forget")),
        label=label,
    )


def _activations(
    schema: Schema, label: str, attributes: Mapping[str, Any], num_directions: int
) -> tuple[tuple[Activation, ...], ...]:
    """Return the functions of each direction, which take alpha and beta in order; () stands for the defaults."""
    left = {name: list(attributes[f"activation_{name}"] or ()) for name in ("alpha", "beta")}
    default: Sequence[str] | None = schema.defaults["activations"]
    names: Sequence[str] | None = attributes["activations"]
    if names is default and not left["alpha"] and not left["beta"]:
        return ()
    defaults = CELLS[schema.cell].activations
    expected = len(defaults) * num_directions
    if names is None:
        names = defaults * num_directions
    elif default is not None and [name.lower() for name in names] == [name.lower() for name in default]:
        names = names[:expected]  # schemas list the default for two directions
    if len(names) != expected:
        raise ArgumentError(
            f"{label}: activations has {len(names)} names, {shown(list(names))}; expected {expected}"
            + (f", {len(defaults)} for each direction" if num_directions > 1 else "")
        )
    functions = [_activation(label, name, left) for name in names]
    for parameter, values in left.items():
        if values:
            warn(
                f"{label}: activation_{parameter} has {len(values)} values more than its activations "
                f"{shortened(', '.join(names))} take; {shown(values)} have no effect"
            )
    per_direction = len(defaults)
    return tuple(tuple(functions[k : k + per_direction]) for k in range(0, expected, per_direction))


def _activation(label: str, name: str, left: Mapping[str, list[float]]) -> Activation:
    """Return the function of that name, with its parameters removed from those left."""
    try:
        row = activation_function(name)
        taken = {p: left[p].pop(0) if left[p] else None for p in left if getattr(row, p) is not None}
        return Activation(row.name, **taken)
    except ArgumentError as error:
        raise ArgumentError(f"{label}: activations: {error}") from None
