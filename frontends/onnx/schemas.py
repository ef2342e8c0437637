"""What each opset's RNN, GRU and LSTM has, as a table: attributes, inputs and dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from pyrnnx.errors import UnsupportedError, shown
from pyrnnx.scalars import integer

RNN_INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h")
LSTM_INPUTS = (*RNN_INPUTS, "initial_c", "P")
INPUTS: Mapping[str, tuple[str, ...]] = {"RNN": RNN_INPUTS, "GRU": RNN_INPUTS, "LSTM": LSTM_INPUTS}
OUTPUTS: Mapping[str, tuple[str, ...]] = {"RNN": ("Y", "Y_h"), "GRU": ("Y", "Y_h"), "LSTM": ("Y", "Y_h", "Y_c")}


@dataclass(frozen=True)
class Schema:
    """One operator as one opset defines it.

    Attributes
    ----------
    operator : str
        "RNN", "GRU" or "LSTM".
    since_version : int
        The opset that introduced this definition.
    attributes : tuple of str
    dtypes : tuple of str
        What the type constraint T allows.
    """

    operator: str
    since_version: int
    attributes: tuple[str, ...]
    dtypes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.operator}-{self.since_version}"

    @property
    def inputs(self) -> tuple[str, ...]:
        return INPUTS[self.operator]

    @property
    def outputs(self) -> tuple[str, ...]:
        return OUTPUTS[self.operator]


NEWEST_OPSET = 28  # whose RNN, GRU and LSTM are still those of opset 22
_COMMON = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size")
_FLOATS = ("float32", "float64", "float16")
_ALL_FLOATS = (*_FLOATS, "bfloat16")


def _versions(operator: str, *rows: tuple[int, tuple[str, ...], tuple[str, ...]]) -> Mapping[int, Schema]:
    return MappingProxyType(
        {version: Schema(operator, version, (*_COMMON, *extra), dtypes) for version, extra, dtypes in rows}
    )


SCHEMAS: Mapping[str, Mapping[int, Schema]] = MappingProxyType(
    {
        "RNN": _versions(
            "RNN",
            (1, ("output_sequence",), _FLOATS),
            (7, (), _FLOATS),
            (14, ("layout",), _FLOATS),
            (22, ("layout",), _ALL_FLOATS),
        ),
        "GRU": _versions(
            "GRU",
            (1, ("output_sequence",), _FLOATS),
            (3, ("linear_before_reset", "output_sequence"), _FLOATS),
            (7, ("linear_before_reset",), _FLOATS),
            (14, ("linear_before_reset", "layout"), _FLOATS),
            (22, ("linear_before_reset", "layout"), _ALL_FLOATS),
        ),
        "LSTM": _versions(
            "LSTM",
            (1, ("input_forget", "output_sequence"), _FLOATS),
            (7, ("input_forget",), _FLOATS),
            (14, ("input_forget", "layout"), _FLOATS),
            (22, ("input_forget", "layout"), _ALL_FLOATS),
        ),
    }
)


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
    return SCHEMAS[operator][max(first for first in SCHEMAS[operator] if first <= version)]


@cache
def _installed_opset() -> int:
    try:
        import onnx
    except ImportError:
        return 0
    return int(onnx.defs.onnx_opset_version())
