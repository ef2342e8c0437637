"""Table of element types: their names in `<data element_type>` and `<port precision>`, and NumPy's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, INTEGERS, named_dtype
from pyrnnx._internal.extras import needs
from pyrnnx.errors import FormatError, UnsupportedError, shown


@dataclass(frozen=True)
class ElementType:
    """A row of the table of element types."""

    name: str  # in ``<data element_type="f32"/>``
    precision: str  # in ``<port precision="FP32"/>``
    dtype: str | None  # NumPy name of the dtype of values; None if they are not read
    bits: int | None  # of one element in the .bin; None if the layout is not known

    @property
    def packed(self) -> bool:
        """True if several elements share a byte; reading unpacks them."""
        return self.bits is not None and self.bits < 8

    @property
    def stored_only(self) -> bool:
        """True if only constants may have this type, and nothing is computed in it."""
        return self.dtype is not None and self.dtype not in (*FLOAT_TYPES, *INTEGERS, "bool")

    @property
    def computed(self) -> str | None:
        """The dtype of computed values; None if nothing is computed in this type."""
        return None if self.stored_only else self.dtype

    def numpy_dtype(self, label: str) -> np.dtype[Any]:
        if self.dtype is None:
            readable = ", ".join(row.name for row in ELEMENT_TYPES.values() if row.dtype is not None)
            raise UnsupportedError(f"{label}: values of element type {self.name!r} are not read; expected {readable}")
        try:
            return named_dtype(self.dtype)
        except ImportError:
            raise UnsupportedError(needs(f"{label}: element type {self.name!r}", "ml_dtypes", "onnx")) from None

    def computed_dtype(self, label: str) -> np.dtype[Any]:
        dtype = self.numpy_dtype(label)
        if self.stored_only:
            raise UnsupportedError(
                f"{label}: element type {self.name!r} is supported in constants only; expected a Convert directly "
                "after each, and another type here"
            )
        return dtype


_ROWS = (
    ElementType("f32", "FP32", "float32", 32),
    ElementType("f16", "FP16", "float16", 16),
    ElementType("bf16", "BF16", "bfloat16", 16),
    ElementType("f64", "FP64", "float64", 64),
    ElementType("i8", "I8", "int8", 8),
    ElementType("i16", "I16", "int16", 16),
    ElementType("i32", "I32", "int32", 32),
    ElementType("i64", "I64", "int64", 64),
    ElementType("u8", "U8", "uint8", 8),
    ElementType("u16", "U16", "uint16", 16),
    ElementType("u32", "U32", "uint32", 32),
    ElementType("u64", "U64", "uint64", 64),
    ElementType("boolean", "BOOL", "bool", 8),
    ElementType("i4", "I4", "int8", 4),
    ElementType("u4", "U4", "uint8", 4),
    ElementType("u2", "U2", "uint8", 2),
    ElementType("u1", "BIN", "uint8", 1),
    ElementType("f8e4m3", "F8E4M3", "float8_e4m3fn", 8),
    ElementType("f8e5m2", "F8E5M2", "float8_e5m2", 8),
    ElementType("f8e8m0", "F8E8M0", "float8_e8m0fnu", 8),
    ElementType("f4e2m1", "F4E2M1", "float4_e2m1fn", 4),
    # Known but not read: models that contain them load, and their other layers run.
    ElementType("u3", "U3", None, None),
    ElementType("u6", "U6", None, None),
    ElementType("nf4", "NF4", None, None),
    ElementType("string", "STRING", None, None),
    ElementType("dynamic", "dynamic", None, None),
    ElementType("undefined", "UNSPECIFIED", None, None),
)
ELEMENT_TYPES: Mapping[str, ElementType] = MappingProxyType({row.name: row for row in _ROWS})
# Types of whole bytes: the .bin contains the bytes of such an array.
BY_DTYPE: Mapping[str, ElementType] = MappingProxyType(
    {row.dtype: row for row in _ROWS if row.dtype is not None and not row.packed}
)
FLOAT_PRECISIONS = tuple(row.precision for row in _ROWS if row.dtype in FLOAT_TYPES)
INTEGER_PRECISIONS = tuple(row.precision for row in _ROWS if row.dtype in INTEGERS and not row.packed)
BY_PRECISION: Mapping[str, ElementType] = MappingProxyType({row.precision: row for row in _ROWS})


def by_name(label: str, text: str) -> ElementType:
    row = ELEMENT_TYPES.get(text)
    if row is None:
        raise FormatError(f"{label}: element type {shown(text)} is unknown; expected one of {', '.join(ELEMENT_TYPES)}")
    return row


def by_precision(label: str, text: str) -> ElementType:
    row = BY_PRECISION.get(text)
    if row is None:
        raise FormatError(f"{label}: precision {shown(text)} is unknown; expected one of {', '.join(BY_PRECISION)}")
    return row
