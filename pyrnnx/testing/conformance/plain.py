"""Cases as JSON values, and in one line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from pyrnnx.testing.cases import Case

_ALWAYS = ("name", "operator", "T", "N", "I", "H", "opset", "dtype")


def case_to_dict(case: Case) -> dict[str, Any]:
    """Return name, operator, sizes, opset, dtype and all other fields that are set."""
    defaults = {field.name: field.default for field in dataclasses.fields(case)}
    values = {name: getattr(case, name) for name in defaults}
    changed = {name: value for name, value in values.items() if name in _ALWAYS or value != defaults[name]}
    return {name: _plain(value) for name, value in changed.items() if value != {}}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def describe(case: Case) -> str:
    """Describe a case in one line, such as "LSTM, opset 22, T=4 N=3 I=3 H=5, clip=0.25, with B"."""
    sizes = " ".join(f"{name}={getattr(case, name)}" for name in "TNIH")
    parts = [case.operator, *([f"opset {case.opset}"] if case.family == "ONNX" else []), sizes]
    parts += [case.dtype] if case.dtype != "float32" else []
    parts += [f"{name}={_short(value)}" for name, value in case.attributes.items()]
    parts += [f"with {', '.join(case.inputs)}"] if case.inputs else []
    parts += [f"sequence_lens={list(case.lens)}"] if case.lens is not None else []
    parts += [f"X scaled by {case.scale:g}"] if case.scale != 1.0 else []
    parts += [f"NaN in X: {case.nan}"] if case.nan else []
    return ", ".join(parts)


def _short(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, (list, tuple)) else str(value)
