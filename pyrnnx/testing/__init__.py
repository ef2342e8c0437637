"""Conformance kit for recurrent operators: oracle, cases, runtimes, judgement, and `assert_same` for tests.

Names are imported on first access: the oracle and the cases need only NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyrnnx import reference
    from pyrnnx.testing import cases, conformance, runtimes
    from pyrnnx.testing.cases import CASES, Case, random_cases
    from pyrnnx.testing.same import assert_same

__all__ = [
    # the float64 oracle
    "reference",
    # cases, what runs them, and what they are judged by
    "CASES",
    "Case",
    "cases",
    "random_cases",
    "runtimes",
    "conformance",
    # for tests of one's own
    "assert_same",
]
_HOMES = {"CASES": "cases", "Case": "cases", "random_cases": "cases", "assert_same": "same"}  # others are modules


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module("pyrnnx.reference" if name == "reference" else f"{__name__}.{_HOMES.get(name, name)}")
    value = getattr(module, name) if name in _HOMES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
