"""Checks of the argument names of functions with many named arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from pyrnnx.errors import UnsupportedError, shown

Function = TypeVar("Function", bound=Callable[..., Any])


def known_arguments(label: str) -> Callable[[Function], Function]:
    """Return a decorator that raises `UnsupportedError`, not TypeError, for an unknown named argument.

    `label` names the function in the error. The decorated function keeps its signature.
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
