"""Translation of TensorIterator, Loop and If to Scan, Loop and If of ONNX.

A TensorIterator runs once for each slice of its inputs, a Scan once for each step along an axis:

    X [N, T, I], slices of part_size p along axis 1   ->   X [N, T/p, p, I], scanned along axis 1
    Y [N, T/p, p, H], scanned along axis 1            ->   Y [N, T, H]

A Loop has a number of iterations and a condition instead; its body gathers the slice of X of the current iteration.
"""

from __future__ import annotations

import numpy as np

from pyrnnx.errors import FormatError, UnsupportedError

from ..ir.port_maps import Body, read_body
from .attributes import LARGEST
from .context import LayerContext
from .inputs import END
from .iterations import (
    Iterations,
    assign,
    body_result,
    body_scope,
    body_variables,
    enter,
    sliced_input,
    variables_after,
)
from .looped import sequence
from .scope import InScope, Scope, not_translated

__all__ = ["BODIES"]


def _tensor_iterator(scope: Scope, ctx: LayerContext) -> list[str]:
    looped = scope.whole.net.looped.get(ctx.layer)
    if looped is not None:
        return sequence(ctx, looped, scope.whole.constants, keep_operation=scope.whole.prepared is not None)
    body = _body(ctx, "body")
    if body.iteration is not None or body.condition is not None:
        raise FormatError(f"{body.label}: the port map has a purpose; only the port map of a Loop may have one")
    sliced = [sliced_input(ctx, mapped) for mapped in body.inputs if mapped.slices is not None]
    if not sliced:
        return Iterations(scope, ctx, body).by_loop([], ctx.constant(_iterations_of_outputs(ctx, body)), "")
    counts = {item.parts for item in sliced} - {None}
    if len(counts) > 1:
        raise FormatError(
            f"{body.label}: its sliced inputs have {sorted(filter(None, counts))} slices; expected the same number in "
            "each"
        )
    return Iterations(scope, ctx, body).by_scan(sliced)


def _loop(scope: Scope, ctx: LayerContext) -> list[str]:
    body = _body(ctx, "body")
    sliced = [sliced_input(ctx, mapped) for mapped in body.inputs if mapped.slices is not None]
    limit, first = ctx.element(0, "the number of iterations"), ctx.element(1, "the first condition")
    condition = ctx.reshape(ctx[1], []) if first is None else ctx.constant(bool(first), "bool")
    again = True if body.condition is None else scope.whole.constants.value(body.condition.sources[0])
    endless = (first is None or bool(first)) and again is not None and bool(np.all(again))
    if limit is None:
        trips = ctx.scalar_int64(0)
        trips = ctx.node("Where", ctx.node("Less", trips, ctx.constant(0)), ctx.constant(END), trips)
    elif limit.dtype.kind not in "iu":
        raise FormatError(f"{ctx.label}: the number of iterations has dtype {limit.dtype}; expected an integer")
    elif limit >= 0:
        if endless and limit > LARGEST:
            raise UnsupportedError(f"{ctx.label}: {limit} iterations; expected at most {LARGEST}, or a condition")
        trips = ctx.constant(int(limit))
    elif sliced:
        trips = ctx.reshape(ctx.dimension(sliced[0].name, sliced[0].slices.axis), [])
    elif endless:
        raise UnsupportedError(f"{ctx.label}: it never ends: it has no number of iterations, and its condition is true")
    else:
        trips = ""
    if limit is not None and endless:
        for item in sliced:
            if item.parts is not None and item.parts < limit:
                raise FormatError(
                    f"{body.label}: {item.mapped.layer.label} has {item.parts} slices for {limit} iterations"
                )
    return Iterations(scope, ctx, body).by_loop(sliced, trips, condition)


def _if(scope: Scope, ctx: LayerContext) -> list[str]:
    bodies = {tag: _body(ctx, f"{tag}_body") for tag in ("then", "else")}
    variables, maybe_unset = body_variables(scope, *bodies.values())
    places = sorted(set.intersection(*({mapped.place for mapped in body.outputs} for body in bodies.values())))
    graphs = {}
    for tag, body in bodies.items():
        if body.back_edges or body.iteration is not None or body.condition is not None:
            raise FormatError(f"{body.label}: it has back edges or a purpose; expected neither in an If")
        if any(mapped.slices is not None for mapped in (*body.inputs, *body.outputs)):
            raise FormatError(f"{body.label}: its port map has slices; expected none in an If")
        inner = body_scope(scope, ctx, body, f"{ctx.layer.name}/{tag}")
        by_place = {mapped.place: mapped.layer for mapped in body.outputs}
        results = [by_place[place] for place in places]
        enter(scope, inner, variables, maybe_unset)
        inner.translate(results)
        outputs = [body_result(inner, layer) for layer in results] + variables_after(inner, variables, maybe_unset)
        graphs[f"{tag}_branch"] = inner.graph.proto((), outputs)
    condition = ctx.element(0, "the condition")
    value = ctx.reshape(ctx[0], []) if condition is None else ctx.constant(bool(condition), "bool")
    count = len(places) + len(variables) + len(maybe_unset)
    values = ctx.nodes("If", value, outputs=count, **graphs) if count else []
    names = dict(zip(places, values, strict=False))
    assign(scope, variables, maybe_unset, values[len(places) :])
    return [names.get(place, "") for place in range(len(ctx.layer.outputs))]


BODIES: dict[str, tuple[int, InScope]] = {"tensoriterator": (1, _tensor_iterator), "loop": (5, _loop), "if": (8, _if)}


def _body(ctx: LayerContext, tag: str) -> Body:
    if not ctx.layer.bodies:
        raise UnsupportedError(not_translated(ctx.layer))
    return read_body(ctx.layer, tag)


def _iterations_of_outputs(ctx: LayerContext, body: Body) -> int:
    """Return the number of iterations of a TensorIterator without sliced inputs."""
    for mapped in body.outputs:
        shape, slices = ctx.layer.outputs[mapped.place].shape, mapped.slices
        if slices is not None and shape is not None and slices.axis < len(shape):
            size = shape[slices.axis]
            if size is not None and size % slices.part_size == 0:
                return size // slices.part_size
    raise UnsupportedError(
        f"{body.label}: the number of iterations is unknown; expected a sliced input, or an output with a known shape"
    )
