"""Results of a call, in memory that only the caller owns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pyrnnx.errors import shown

from .memory import grown


def own_results(results: Mapping[str, Any], inputs: Iterable[Any]) -> dict[str, Any]:
    """Return the results, copied if they share memory with an input, a constant or each other.

    onnx's evaluator returns views, and an output may be an input. Constants are recognized by being read-only.
    """
    owners: set[int] = set()
    for value in inputs:
        for array in value if isinstance(value, list) else (value,):
            if isinstance(array, np.ndarray):
                owners.add(_owner(array))
    return {name: _own(name, value, owners) for name, value in results.items()}


def _own(name: str, value: Any, owners: set[int]) -> Any:
    if isinstance(value, list):
        return [_own(name, element, owners) for element in value]
    if not isinstance(value, np.ndarray):
        return value
    owner = _owner(value)
    if owner in owners or not value.flags.writeable:
        grown(f"a copy for the output {shown(name)}", value)
        return value.copy()
    owners.add(owner)
    return value


def _owner(array: Any) -> int:
    """Return the identity of the array that owns the memory: the last array among the bases."""
    owner, base = array, array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)
    return id(owner)
