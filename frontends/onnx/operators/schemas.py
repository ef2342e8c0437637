"""Tables of RNN, GRU and LSTM in each opset: inputs, outputs, attributes and dtypes; and ops of their attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any

from pyrnnx._internal.scalars import as_integer, as_number, integer
from pyrnnx.errors import ArgumentError, UnsupportedError, shortened, shown, warn
from pyrnnx.operator.op import CELLS, Activation, CellName, Direction, RecurrentOp, activation_function

_LONGEST = 1_000  # values of a list; six are the most that have an effect


def _string(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str.__str__(value) if isinstance(value, str) else None  # str() of an Enum is its name


def _list(item: Callable[[Any], Any], value: Any) -> list[Any] | None:
    if isinstance(value, (str, bytes, Mapping)):
        return None
    try:
        items = [item(element) for element in islice(value, _LONGEST + 1)]
    except (TypeError, NotImplementedError):  # a number, an array without axes; a memoryview with several
        return None
    return None if len(items) > _LONGEST or any(element is None for element in items) else items


def _numbers(value: Any) -> list[float] | None:
    return _list(as_number, value)


def _strings(value: Any) -> list[str] | None:
    return _list(_string, value)


class AttributeType(Enum):
    """A type of attributes, by its name in onnx: words for errors, and a reader that returns None for other types."""

    FLOAT = ("a number", as_number)
    INT = ("an integer", as_integer)
    STRING = ("a string", _string)
    FLOATS = ("a list of numbers, at most 1000", _numbers)
    STRINGS = ("a list of strings, at most 1000", _strings)

    def __init__(self, words: str, read: Callable[[Any], Any]) -> None:
        self.words, self.read = words, read


@dataclass(frozen=True)
class Attribute:
    """Attribute in an opset.

    Attributes
    ----------
    name : str
    type : AttributeType
    default : int, str, tuple of str, or None
        None if the schema has none.
    allowed : tuple of int, optional
        Default: every value of the type that `RecurrentOp` accepts.
    """

    name: str
    type: AttributeType
    default: Any = None
    allowed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schema:
    """Definition of an operator in an opset.

    Attributes
    ----------
    operator : str
        A name of `OPERATORS`.
    since_version : int
        The opset that introduced this definition.
    declared : tuple of Attribute
    attributes : tuple of str
        Their names.
    dtypes : tuple of str
        Dtypes that the type constraint T allows.
    inputs, outputs : tuple of str
        Names in order.
    """

    operator: str
    since_version: int
    declared: tuple[Attribute, ...]
    dtypes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.operator}-{self.since_version}"

    @property
    def cell(self) -> CellName:
        """Cell of the operator: "RNN", "GRU" or "LSTM"."""
        return OPERATORS[self.operator].cell

    @property
    def inputs(self) -> tuple[str, ...]:
        return OPERATORS[self.operator].inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        return OPERATORS[self.operator].outputs

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.declared)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """Defaults of all attributes; None means no default."""
        return {attribute.name: attribute.default for attribute in self.declared}

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute of that name, or None."""
        return next((attribute for attribute in self.declared if attribute.name == name), None)


WEIGHTS = ("W", "R", "B", "P")
_SCALES = ("W_scale", "W_zero_point", "R_scale", "R_zero_point")


@dataclass(frozen=True)
class Operator:
    """Properties that all versions of an operator share."""

    name: str
    cell: CellName
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scales: tuple[str, ...] = ()  # required inputs for W and R in 8 bits
    domain: str = ""

    @cached_property
    def weights(self) -> tuple[str, ...]:
        """Inputs that belong to the layer."""
        return tuple(name for name in self.inputs if name in (*WEIGHTS, *self.scales))


_RNN_INPUTS, _RNN_OUTPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h"), ("Y", "Y_h")
_LSTM_INPUTS, _LSTM_OUTPUTS = (*_RNN_INPUTS, "initial_c", "P"), ("Y", "Y_h", "Y_c")
_OPERATORS = (
    Operator("RNN", "RNN", _RNN_INPUTS, _RNN_OUTPUTS),
    Operator("GRU", "GRU", _RNN_INPUTS, _RNN_OUTPUTS),
    Operator("LSTM", "LSTM", _LSTM_INPUTS, _LSTM_OUTPUTS),
    Operator("DynamicQuantizeLSTM", "LSTM", (*_LSTM_INPUTS, *_SCALES), _LSTM_OUTPUTS, _SCALES, "com.microsoft"),
)
OPERATORS: Mapping[str, Operator] = MappingProxyType({operator.name: operator for operator in _OPERATORS})

DEFAULT_OPSET = 22  # default of functions and nodes
NEWEST_OPSET = 28  # its RNN, GRU and LSTM equal those of opset 22
_FLOATS = ("float32", "float64", "float16")
_ALL_FLOATS = (*_FLOATS, "bfloat16")


def _flag(name: str) -> Attribute:
    return Attribute(name, AttributeType.INT, 0, allowed=(0, 1))


def _common(direction: str = "forward", activations: tuple[str, ...] | None = None) -> tuple[Attribute, ...]:
    """Return the attributes of every operator in every opset."""
    return (
        Attribute("activation_alpha", AttributeType.FLOATS),
        Attribute("activation_beta", AttributeType.FLOATS),
        Attribute("activations", AttributeType.STRINGS, activations),
        Attribute("clip", AttributeType.FLOAT),
        Attribute("direction", AttributeType.STRING, direction),
        Attribute("hidden_size", AttributeType.INT),
    )


_LAYOUT, _OUTPUT_SEQUENCE = _flag("layout"), _flag("output_sequence")
_LINEAR_BEFORE_RESET, _INPUT_FORGET = _flag("linear_before_reset"), _flag("input_forget")
_RNN = _common(activations=("Tanh", "Tanh"))  # for two directions
_GRU_1 = _common(direction="foward")  # typo of ONNX in opset 1
_GRU = (*_common(), _LINEAR_BEFORE_RESET)
_LSTM = (*_common(), _INPUT_FORGET)

# Every version of the operators: first opset, attributes, dtypes of T.
_SCHEMAS = (
    Schema("RNN", 1, (*_RNN, _OUTPUT_SEQUENCE), _FLOATS),
    Schema("RNN", 7, _RNN, _FLOATS),
    Schema("RNN", 14, (*_RNN, _LAYOUT), _FLOATS),
    Schema("RNN", 22, (*_RNN, _LAYOUT), _ALL_FLOATS),
    Schema("GRU", 1, (*_GRU_1, _OUTPUT_SEQUENCE), _FLOATS),
    Schema("GRU", 3, (*_GRU, _OUTPUT_SEQUENCE), _FLOATS),
    Schema("GRU", 7, _GRU, _FLOATS),
    Schema("GRU", 14, (*_GRU, _LAYOUT), _FLOATS),
    Schema("GRU", 22, (*_GRU, _LAYOUT), _ALL_FLOATS),
    Schema("LSTM", 1, (*_LSTM, _OUTPUT_SEQUENCE), _FLOATS),
    Schema("LSTM", 7, _LSTM, _FLOATS),
    Schema("LSTM", 14, (*_LSTM, _LAYOUT), _FLOATS),
    Schema("LSTM", 22, (*_LSTM, _LAYOUT), _ALL_FLOATS),
)
SCHEMAS: Mapping[str, Mapping[int, Schema]] = MappingProxyType(
    {
        operator: MappingProxyType({row.since_version: row for row in _SCHEMAS if row.operator == operator})
        for operator in ("RNN", "GRU", "LSTM")
    }
)
QUANTIZED_LSTM = Schema("DynamicQuantizeLSTM", 1, _LSTM, ("float32",))


def schema(operator: str, opset: Any) -> Schema:
    """Return the newest definition that is not above an opset.

    Raises
    ------
    ArgumentError
        The opset is not a positive integer.
    UnsupportedError
        The opset is newer than these tables and the installed onnx package, if any.
    """
    version = integer(operator, "opset", opset, 1, expected="a positive integer")
    if version > NEWEST_OPSET and version > (newest := max(NEWEST_OPSET, _installed_opset())):
        raise UnsupportedError(f"{operator}: opset is {shown(version)}; expected at most {newest}, the newest known")
    return _newest(operator, version)


@cache
def _newest(operator: str, version: int) -> Schema:
    return SCHEMAS[operator][max(first for first in SCHEMAS[operator] if first <= version)]


@cache
def _installed_opset() -> int:
    try:
        import onnx
    except ImportError:
        return 0
    return int(onnx.defs.onnx_opset_version())


def read_attributes(definition: Schema, label: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check attributes that are not None against a schema; return them with the defaults of the others."""
    read = dict(definition.defaults)
    for name, value in given.items():
        if value is not None:
            read[name] = _read(definition, label, name, value)
    return read


def _read(definition: Schema, label: str, name: str, given: Any) -> Any:
    attribute = find_attribute(definition, label, name)
    value = attribute.type.read(given)
    if value is None:
        raise ArgumentError(f"{label}: {name} is {shown(given)}; expected {attribute.type.words}")
    if attribute.allowed and value not in attribute.allowed:
        raise ArgumentError(f"{label}: {name} is {shown(value)}; expected {' or '.join(map(str, attribute.allowed))}")
    return value


def find_attribute(definition: Schema, label: str, name: str) -> Attribute:
    """Return the attribute of that name; raise an UnsupportedError if the opset's operator does not have it."""
    attribute = definition.attribute(name)
    if attribute is not None:
        return attribute
    versions = [version for version, other in SCHEMAS.get(definition.operator, {}).items() if name in other.attributes]
    allowed = f"{definition} has the attributes {', '.join(definition.attributes)}"
    if versions:
        others = ", ".join(f"{definition.operator}-{version}" for version in versions)
        raise UnsupportedError(
            f"{label}: attribute {shown(name)} does not exist in {definition}, only in {others}; {allowed}"
        )
    raise UnsupportedError(f"{label}: attribute {shown(name)} is unknown; {allowed}")


def build_op(definition: Schema, label: str, attributes: Mapping[str, Any], hidden_size: int) -> RecurrentOp:
    """Return the op that checked attributes describe; `hidden_size` is the default of theirs."""
    given = attributes["direction"]
    # The default in every schema, however ONNX spells it.
    direction = Direction.FORWARD if given == definition.defaults["direction"] else Direction.named(label, given)
    return RecurrentOp(
        definition.cell,
        hidden_size if attributes["hidden_size"] is None else attributes["hidden_size"],
        direction,
        _activations(definition, label, attributes, direction.num_directions),
        attributes["clip"],
        linear_before_reset=bool(attributes.get("linear_before_reset")),
        input_forget=bool(attributes.get("input_forget")),
        label=label,
    )


def op_attributes(op: RecurrentOp) -> dict[str, Any]:
    """Return the attributes of a node that are not defaults, and hidden_size."""
    attributes: dict[str, Any] = {"hidden_size": op.hidden_size}
    if op.direction is not Direction.FORWARD:
        attributes["direction"] = op.direction.value
    functions = [function for direction in op.activations for function in direction]
    names = [function.name for function in functions]
    if names != [*CELLS[op.cell].activations] * op.num_directions:
        attributes["activations"] = names
    for parameter in ("alpha", "beta"):
        values = [getattr(function, parameter) for function in functions if getattr(function, parameter) is not None]
        if values:
            attributes[f"activation_{parameter}"] = values
    if op.clip is not None:
        attributes["clip"] = op.clip
    return attributes | {name: 1 for name in ("linear_before_reset", "input_forget") if getattr(op, name)}


def _activations(
    definition: Schema, label: str, attributes: Mapping[str, Any], num_directions: int
) -> tuple[tuple[Activation, ...], ...]:
    """Return the functions of each direction, which take alpha and beta in order; () stands for the defaults."""
    left = {name: list(attributes[f"activation_{name}"] or ()) for name in ("alpha", "beta")}
    default: Sequence[str] | None = definition.defaults["activations"]
    names: Sequence[str] | None = attributes["activations"]
    if names is default and not left["alpha"] and not left["beta"]:
        return ()
    defaults = CELLS[definition.cell].activations
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
