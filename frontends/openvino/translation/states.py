"""Translation of ReadValue and Assign: in each scope, a variable has a value before and one after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrnnx.errors import FormatError, UnsupportedError

from ..ir.element_types import by_precision
from ..ir.layer import Output
from .context import LayerContext
from .dimensions import output_info
from .scope import InScope, Scope, not_translated

if TYPE_CHECKING:
    from onnx import GraphProto

__all__ = ["STATES"]


def _read_value(scope: Scope, ctx: LayerContext) -> list[str]:
    identifier = _identifier(ctx)
    ctx.ignore("variable_type", "variable_shape")  # `variables` has read them
    if len(ctx) > 1:
        raise FormatError(f"{ctx.label}: the layer has {len(ctx)} inputs; expected at most 1")
    value = scope.states.get(identifier)
    if value is None:
        value = ctx[0]  # the first value
        expected = _declared(ctx)
        if expected not in (None, ctx.dtype(0)):
            raise FormatError(f"{ctx.label}: its first value has dtype {ctx.dtype(0)}; expected {expected}")
    elif identifier in scope.flags:
        if not ctx.has(0):
            raise UnsupportedError(
                f"{ctx.label}: it has no input, but another ReadValue of its variable has one; expected one here, too"
            )
        branches = {"then_branch": value, "else_branch": ctx[0]}
        return ctx.nodes("If", scope.flags[identifier], outputs=1, **{k: _same(ctx, v) for k, v in branches.items()})
    return [ctx.node("Identity", value)]


def _declared(ctx: LayerContext) -> str | None:
    """Return the dtype of the output port; None if it is dynamic."""
    precision = ctx.layer.outputs[0].precision
    return None if precision is None else by_precision(ctx.label, precision).computed


def _same(ctx: LayerContext, value: str) -> GraphProto:
    """Return a body that outputs a value of the outer graph."""
    graph = ctx.graph.body(ctx.layer.name)
    (name,) = graph.node("Identity", [value], ctx.layer.name)
    return graph.proto((), [output_info(graph, Output(ctx.layer, 0), name)])


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
