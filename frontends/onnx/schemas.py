"""What each opset's RNN, GRU and LSTM has, as a table: inputs, outputs, attributes and dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from pyrnnx.errors import UnsupportedError, shown
from pyrnnx.scalars import integer

from .attribute_types import AttributeType


@dataclass(frozen=True)
class Attribute:
    """An attribute as an opset defines it.

    Attributes
    ----------
    name : str
    type : AttributeType
    default : int, str, tuple of str, or None
        None where the schema has none.
    allowed : tuple of int, optional
        Default: every value of the type, or what `RecurrentOp` checks.
    """

    name: str
    type: AttributeType
    default: Any = None
    allowed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schema:
    """One operator as one opset defines it.

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
        What the type constraint T allows.
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
    def cell(self) -> str:
        """Whose equations it computes: "RNN", "GRU" or "LSTM"."""
        return OPERATORS[self.operator].cell

    @property
    def inputs(self) -> tuple[str, ...]:
        return OPERATORS[self.operator].inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        return OPERATORS[self.operator].outputs

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.declared)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The default of every attribute, None where there is none."""
        return {one.name: one.default for one in self.declared}

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of that name."""
        return next((one for one in self.declared if one.name == name), None)


WEIGHTS = ("W", "R", "B", "P")
_SCALES = ("W_scale", "W_zero_point", "R_scale", "R_zero_point")


@dataclass(frozen=True)
class Operator:
    """What all versions of an operator share.

    Attributes
    ----------
    name, domain : str
    cell : str
        Whose equations it computes: "RNN", "GRU" or "LSTM".
    inputs, outputs : tuple of str
        Names in order.
    scales : tuple of str
        The inputs, all required, that belong to W and R in 8 bits.
    """

    name: str
    cell: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scales: tuple[str, ...] = ()
    domain: str = ""

    @property
    def weights(self) -> tuple[str, ...]:
        """The inputs that a layer is made of."""
        return tuple(name for name in self.inputs if name in (*WEIGHTS, *self.scales))


_RNN_INPUTS, _RNN_OUTPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h"), ("Y", "Y_h")
_LSTM_INPUTS, _LSTM_OUTPUTS = (*_RNN_INPUTS, "initial_c", "P"), ("Y", "Y_h", "Y_c")
_OPERATORS = (
    Operator("RNN", "RNN", _RNN_INPUTS, _RNN_OUTPUTS),
    Operator("GRU", "GRU", _RNN_INPUTS, _RNN_OUTPUTS),
    Operator("LSTM", "LSTM", _LSTM_INPUTS, _LSTM_OUTPUTS),
    Operator("DynamicQuantizeLSTM", "LSTM", (*_LSTM_INPUTS, *_SCALES), _LSTM_OUTPUTS, _SCALES, "com.microsoft"),
)
OPERATORS: Mapping[str, Operator] = MappingProxyType({one.name: one for one in _OPERATORS})

DEFAULT_OPSET = 22  # of functions and nodes, unless told otherwise
NEWEST_OPSET = 28  # whose RNN, GRU and LSTM are still those of opset 22
_FLOATS = ("float32", "float64", "float16")
_ALL_FLOATS = (*_FLOATS, "bfloat16")


def _flag(name: str) -> Attribute:
    return Attribute(name, AttributeType.INT, 0, allowed=(0, 1))


def _common(direction: str = "forward", activations: tuple[str, ...] | None = None) -> tuple[Attribute, ...]:
    """The attributes of every operator in every opset."""
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
_GRU_1 = _common(direction="foward")  # so its text has it; later ones spell it right
_GRU = (*_common(), _LINEAR_BEFORE_RESET)
_LSTM = (*_common(), _INPUT_FORGET)

# Every version of the operators: since which opset, its attributes, what T allows.
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
        operator: MappingProxyType({one.since_version: one for one in _SCHEMAS if one.operator == operator})
        for operator in ("RNN", "GRU", "LSTM")
    }
)
QUANTIZED_LSTM = Schema("DynamicQuantizeLSTM", 1, _LSTM, ("float32",))


def schema(operator: str, opset: Any) -> Schema:
    """The definition that an opset uses: the newest one that is not above it.

    Raises
    ------
    ArgumentError
        An opset that is not a positive integer.
    UnsupportedError
        An opset that is newer than the tables here, and than the onnx package if it is installed: what its operators
        are is not known.
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
