"""Translation of ReadValue and Assign: in each scope, a variable has a value before and one after."""

from __future__ import annotations

from pyrnnx.errors import FormatError, UnsupportedError

from ..ir.element_types import by_precision
from .context import LayerContext
from .scope import InScope, Scope, not_translated

__all__ = ["STATES"]


def _read_value(scope: Scope, ctx: LayerContext) -> list[str]:
    identifier = _identifier(ctx)
    ctx.ignore("variable_type", "variable_shape")  # `variables` has read them
    if len(ctx) > 1:
        raise FormatError(f"{ctx.label}: the layer has {len(ctx)} inputs; expected at most 1")
    if ctx.has(0):
        expected = _declared(ctx)
        if expected not in (None, ctx.dtype(0)):
            raise FormatError(f"{ctx.label}: its first value has dtype {ctx.dtype(0)}; expected {expected}")
    return [ctx.node("Identity", scope.states[identifier] if identifier in scope.states else ctx[0])]


def _declared(ctx: LayerContext) -> str | None:
    """Return the dtype of the output port; None if it is dynamic."""
    precision = ctx.layer.outputs[0].precision
    return None if precision is None else by_precision(ctx.label, precision).computed


def _assign(scope: Scope, ctx: LayerContext) -> list[str]:
    identifier, (value,) = _identifier(ctx), ctx.exactly(1)
    scope.assigned[identifier] = value
    return [ctx.node("Identity", value)]


STATES: dict[str, tuple[int, InScope]] = {"readvalue": (3, _read_value), "assign": (3, _assign)}


def _identifier(ctx: LayerContext) -> str:
    ctx.ignore("variable_id")
    identifier = ctx.layer.data.get("variable_id", "")
    if not identifier:
        raise UnsupportedError(f"{not_translated(ctx.layer)}: it has no variable_id")
    return identifier
