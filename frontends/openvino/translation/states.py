"""ReadValue and Assign: a variable has a value before and one after, in each scope that reads or assigns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrnnx.errors import FormatError, UnsupportedError

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
        value = ctx[0]  # what it begins with
        if ctx.layer.outputs[0].precision is not None and ctx.dtype(0) != ctx.output_dtype():
            raise FormatError(f"{ctx.label}: it begins with a value of {ctx.dtype(0)}; expected {ctx.output_dtype()}")
    elif identifier in scope.flags:
        if not ctx.has(0):
            raise UnsupportedError(
                f"{ctx.label}: another ReadValue of its variable has an input; expected one here, too"
            )
        branches = {"then_branch": value, "else_branch": ctx[0]}
        return ctx.nodes("If", scope.flags[identifier], outputs=1, **{k: _same(ctx, v) for k, v in branches.items()})
    return [ctx.node("Identity", value)]


def _same(ctx: LayerContext, value: str) -> GraphProto:
    """A body that gives a value of the graph around it."""
    graph = ctx.graph.body(ctx.layer.name)
    (name,) = graph.node("Identity", [value], ctx.layer.name)
    return graph.proto((), [output_info(graph, Output(ctx.layer, 0), name)])


def _assign(scope: Scope, ctx: LayerContext) -> list[str]:
    identifier, (value,) = _identifier(ctx), ctx.exactly(1)
    scope.assigned[identifier] = value
    scope.assigned_flags.pop(identifier, None)
    return [ctx.node("Identity", value)]


STATES: dict[str, tuple[int, InScope]] = {"readvalue": (3, _read_value), "assign": (3, _assign)}


def _identifier(ctx: LayerContext) -> str:
    ctx.ignore("variable_id")
    identifier = ctx.layer.data.get("variable_id", "")
    if not identifier:
        raise UnsupportedError(f"{not_translated(ctx.layer)}: it has no variable_id")
    return identifier
