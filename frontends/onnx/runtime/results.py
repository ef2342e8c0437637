"""The results of a call: arrays that nobody but the caller has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pyrnnx.errors import shown

from .memory import grown


def own_results(results: Mapping[str, Any], given: Iterable[Any]) -> dict[str, Any]:
    """The results, copied where they share memory with what was given, with a constant, or with each other.

    onnx's evaluator gives views wherever NumPy does, an output may be an input, and so may that of a branch.
    Constants, which no step can write to, are told by that.
    """
    owners: set[int] = set()
    for value in given:
        for array in value if isinstance(value, list) else (value,):
            if isinstance(array, np.ndarray):
                owners.add(_owner(array))
    return {name: _own(name, value, owners) for name, value in results.items()}


def _own(name: str, value: Any, owners: set[int]) -> Any:
    if isinstance(value, list):
        return [_own(name, one, owners) for one in value]
    if not isinstance(value, np.ndarray):
        return value
    owner = _owner(value)
    if owner in owners or not value.flags.writeable:
        grown(f"a copy for the output {shown(name)}", value)
        return value.copy()
    owners.add(owner)
    return value


def _owner(array: Any) -> int:
    """The identity of the array whose memory it is: what NumPy makes of another array knows that one."""
    owner, base = array, array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)
    return id(owner)
