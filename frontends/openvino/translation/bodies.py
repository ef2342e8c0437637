"""TensorIterator, Loop and If: as Scan, Loop and If of ONNX.

A TensorIterator runs once for each slice of its inputs. So does a Scan, for each step along an axis:

    X [N, T, I], slices of part_size p along axis 1   ->   X [N, T/p, p, I], scanned along axis 1
    Y [N, T/p, p, H], scanned along axis 1            ->   Y [N, T, H]

A Loop has a number of iterations and a condition instead, and takes the part of X that belongs to the iteration by its
number.
"""

from __future__ import annotations

import numpy as np

from pyrnnx.errors import FormatError, UnsupportedError

from ..ir.port_maps import Body, read_body
from .attributes import LARGEST
from .context import END, LayerContext
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
        return sequence(ctx, looped, scope.whole.constants, as_it_is=scope.whole.prepared is not None)
    body = _body(ctx, "body")
    if body.iteration is not None or body.condition is not None:
        raise FormatError(f"{body.label}: the port map has a purpose, which only that of a Loop may have")
    sliced = [sliced_input(ctx, one) for one in body.inputs if one.slices is not None]
    if not sliced:
        return Iterations(scope, ctx, body).by_loop([], ctx.constant(_count_of_outputs(ctx, body)), "")
    counts = {one.parts for one in sliced} - {None}
    if len(counts) > 1:
        raise FormatError(
            f"{body.label}: its sliced inputs have {sorted(filter(None, counts))} slices; expected the same"
        )
    return Iterations(scope, ctx, body).by_scan(sliced)


def _loop(scope: Scope, ctx: LayerContext) -> list[str]:
    body = _body(ctx, "body")
    sliced = [sliced_input(ctx, one) for one in body.inputs if one.slices is not None]
    limit, first = ctx.element(0, "the number of iterations"), ctx.element(1, "the first condition")
    condition = ctx.reshape(ctx[1], []) if first is None else ctx.constant(bool(first), "bool")
    going_on = True if body.condition is None else scope.whole.constants.value(body.condition.sources[0])
    endless = (first is None or bool(first)) and going_on is not None and bool(np.all(going_on))
    if limit is None:
        trips = ctx.scalar_int64(0)
        trips = ctx.node("Where", ctx.node("Less", trips, ctx.constant(0)), ctx.constant(END), trips)
    elif limit.dtype.kind not in "iu":
        raise FormatError(f"{ctx.label}: the number of iterations is of {limit.dtype}; expected integers")
    elif limit >= 0:
        if endless and limit > LARGEST:
            raise UnsupportedError(f"{ctx.label}: {limit} iterations; expected at most {LARGEST}, or a condition")
        trips = ctx.constant(int(limit))
    elif sliced:
        one = sliced[0]
        trips = ctx.reshape(ctx.dimension(one.name, one.slices.axis), [])
    elif endless:
        raise UnsupportedError(f"{ctx.label}: it never ends: it has no number of iterations, and its condition is true")
    else:
        trips = ""
    if limit is not None and endless:
        for one in sliced:
            if one.parts is not None and one.parts < limit:
                raise FormatError(
                    f"{body.label}: {one.mapped.layer.label} has {one.parts} slices for {limit} iterations"
                )
    return Iterations(scope, ctx, body).by_loop(sliced, trips, condition)


def _if(scope: Scope, ctx: LayerContext) -> list[str]:
    bodies = {tag: _body(ctx, f"{tag}_body") for tag in ("then", "else")}
    variables, doubtful = body_variables(scope, *bodies.values())
    places = sorted(set.intersection(*({one.place for one in body.outputs} for body in bodies.values())))
    graphs = {}
    for tag, body in bodies.items():
        if body.back_edges or body.iteration is not None or body.condition is not None:
            raise FormatError(f"{body.label}: it has back edges or a purpose; expected neither of a choice")
        if any(one.slices is not None for one in (*body.inputs, *body.outputs)):
            raise FormatError(f"{body.label}: its port map has slices; expected none of a choice")
        inner = body_scope(scope, ctx, body, f"{ctx.layer.name}/{tag}")
        by_place = {one.place: one.layer for one in body.outputs}
        results = [by_place[place] for place in places]
        enter(scope, inner, variables, doubtful)
        inner.translate(results)
        outputs = [body_result(inner, one) for one in results] + variables_after(inner, variables, doubtful)
        graphs[f"{tag}_branch"] = inner.graph.proto((), outputs)
    condition = ctx.element(0, "the condition")
    given = ctx.reshape(ctx[0], []) if condition is None else ctx.constant(bool(condition), "bool")
    count = len(places) + len(variables) + len(doubtful)
    made = ctx.nodes("If", given, outputs=count, **graphs) if count else []
    names = dict(zip(places, made, strict=False))
    assign(scope, variables, doubtful, made[len(places) :])
    return [names.get(place, "") for place in range(len(ctx.layer.outputs))]


BODIES: dict[str, tuple[int, InScope]] = {"tensoriterator": (1, _tensor_iterator), "loop": (5, _loop), "if": (8, _if)}


def _body(ctx: LayerContext, tag: str) -> Body:
    if not ctx.layer.bodies:
        raise UnsupportedError(not_translated(ctx.layer))
    return read_body(ctx.layer, tag)


def _count_of_outputs(ctx: LayerContext, body: Body) -> int:
    """The number of iterations of a TensorIterator that has no sliced inputs."""
    for one in body.outputs:
        shape = ctx.layer.outputs[one.place].shape
        if one.slices is not None and shape is not None and one.slices.axis < len(shape):
            size = shape[one.slices.axis]
            if size is not None and size % one.slices.part_size == 0:
                return size // one.slices.part_size
    raise UnsupportedError(f"{body.label}: neither a sliced input nor the shape of an output tells how often it runs")
