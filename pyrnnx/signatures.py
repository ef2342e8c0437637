"""Functions that have many named arguments, spelt out in their signatures."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from pyrnnx.errors import UnsupportedError, shown

Function = TypeVar("Function", bound=Callable[..., Any])


def known_arguments(label: str) -> Callable[[Function], Function]:
    """A decorator: a named argument that the function does not have is an `UnsupportedError`, no TypeError.

    `label` is how the error names the function. The signature stays the function's own.
    """

    def decorated(function: Function) -> Function:
        known = frozenset(signature(function).parameters)

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if not known.issuperset(named):
                unknown = next(name for name in named if name not in known)
                allowed = ", ".join(signature(function).parameters)
                raise UnsupportedError(f"{label}: argument {shown(unknown)} is unknown; expected one of {allowed}")
            return function(*arguments, **named)

        return cast(Function, call)

    return decorated
