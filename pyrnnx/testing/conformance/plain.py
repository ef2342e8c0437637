"""Cases as data that JSON can hold, and in one line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from pyrnnx.testing.cases import Case

_ALWAYS = ("name", "operator", "T", "N", "I", "H", "opset", "dtype")


def case_to_dict(case: Case) -> dict[str, Any]:
    """What a case is: its name, operator, sizes, opset and dtype, and of all else what is given."""
    defaults = {one.name: one.default for one in dataclasses.fields(case)}
    given = {name: getattr(case, name) for name in defaults}
    kept = {name: value for name, value in given.items() if name in _ALWAYS or value != defaults[name]}
    return {name: _plain(value) for name, value in kept.items() if value != {}}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def describe(case: Case) -> str:
    """A case in one line: "LSTM, opset 22, T=4 N=3 I=3 H=5, clip=0.25, with B, sequence_lens=[4, 0, 2]"."""
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
