"""Translation of what needs its scope: TensorIterator, Loop and If, and variables.

A TensorIterator runs once for each slice of its inputs, a Loop until it ends; the body gathers the slice of X of the
current iteration. A variable has a value before each scope and one after it.
"""

from __future__ import annotations

import numpy as np

from pyrnnx.errors import FormatError, UnsupportedError
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL

from ..ir.element_types import by_precision
from ..ir.port_maps import Body, read_body
from ..looped_cells import LoopedCell
from .attributes import LARGEST
from .context import END, LayerContext, not_translated, translates
from .graph import SMALL
from .iterations import (
    Iterations,
    assign,
    body_result,
    body_scope,
    body_variables,
    sliced_inputs,
    variables_after,
)
from .operations.recurrent import DOMAIN, arranged, operator, selected
from .scope import Scope


def _scope(ctx: LayerContext) -> Scope:
    assert isinstance(ctx.values, Scope)  # constants depend on no bodies and variables
    return ctx.values


@translates("TensorIterator")
def _tensor_iterator(ctx: LayerContext) -> list[str]:
    looped = _scope(ctx).net.looped.get(ctx.layer)
    if looped is not None:
        return _sequence(ctx, looped)
    body = _body(ctx, "body")
    if body.iteration is not None or body.condition is not None:
        raise FormatError(f"{body.label}: the port map has a purpose; only the port map of a Loop may have one")
    sliced = sliced_inputs(ctx, body)
    if not sliced:
        raise UnsupportedError(f"{body.label}: the number of iterations is unknown; expected a sliced input")
    counts = {item.size for item in sliced} - {None}
    if len(counts) > 1:
        raise FormatError(
            f"{body.label}: its sliced inputs have {sorted(filter(None, counts))} slices; expected the same number in "
            "each"
        )
    trips = ctx.reshape(ctx.dimension(sliced[0].name, sliced[0].slices.axis), [])
    return Iterations(_scope(ctx), ctx, body).run(sliced, trips, "")


def _sequence(ctx: LayerContext, loop: LoopedCell) -> list[str]:
    """Translate the loop to OpenVINO's operation or to ONNX's operator; return the names of the loop's outputs."""
    layer, keep_operation = loop.layer, ctx.values.runner(ctx.layer) is not None
    convention = layer.convention if keep_operation else CANONICAL
    names = {"X": arranged(ctx, ctx[loop.X], loop.axes, convention.axes_of("X"))}
    for argument, place in loop.states.items():
        names[argument] = arranged(ctx, ctx[place], "NH", convention.axes_of(argument))
    if keep_operation:
        names["sequence_lens"] = _lengths(ctx, loop)
        inputs = [names.get(argument, "") for argument in CALL_ARGUMENTS]
        outputs = ctx.nodes(layer.type, *inputs, outputs=len(layer.operation.outputs), domain=DOMAIN)
        values = dict(zip(layer.operation.outputs, outputs, strict=True))
    else:
        values = operator(ctx, layer, layer.check_weights(loop.arrays(ctx.values.array)), {}, names)
    results = [""] * len(ctx.layer.outputs)
    for place, (argument, axes) in loop.outputs.items():
        results[place] = selected(ctx, values[argument], convention.axes_of(argument), axes)
    return results


def _lengths(ctx: LayerContext, loop: LoopedCell) -> str:
    """Return seq_length for every row, a required input of OpenVINO's sequences."""
    steps, rows = (loop.axes.index(axis) for axis in "TN")
    shape = ctx.shape(loop.X) or (None,) * 3
    length, count = shape[steps], shape[rows]
    if length is not None and count is not None and count <= SMALL:
        return ctx.constant([length] * count)
    X = ctx[loop.X]
    return ctx.node("Expand", ctx.dimension(X, steps), ctx.dimension(X, rows))


@translates("Loop", since=5)
def _loop(ctx: LayerContext) -> list[str]:
    body = _body(ctx, "body")
    sliced = sliced_inputs(ctx, body)
    limit, first = ctx.element(0, "the number of iterations"), ctx.element(1, "the first condition")
    condition = ctx.reshape(ctx[1], []) if first is None else ctx.constant(bool(first), "bool")
    again = True if body.condition is None else ctx.values.array(body.condition.sources[0])
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
            if item.size is not None and item.size < limit:
                raise FormatError(f"{body.label}: {item.layer.label} has {item.size} slices for {limit} iterations")
    return Iterations(_scope(ctx), ctx, body).run(sliced, trips, condition)


@translates("If", since=8)
def _if(ctx: LayerContext) -> list[str]:
    scope = _scope(ctx)
    bodies = {tag: _body(ctx, f"{tag}_body") for tag in ("then", "else")}
    variables = body_variables(scope, *bodies.values())
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
        inner.states |= {variable.id: scope.current(variable.id) for variable in variables}
        inner.translate(results)
        outputs = [body_result(inner, layer) for layer in results] + variables_after(inner, variables)
        graphs[f"{tag}_branch"] = inner.graph.proto((), outputs)
    condition = ctx.element(0, "the condition")
    value = ctx.reshape(ctx[0], []) if condition is None else ctx.constant(bool(condition), "bool")
    count = len(places) + len(variables)
    values = ctx.nodes("If", value, outputs=count, **graphs) if count else []
    names = dict(zip(places, values, strict=False))
    assign(scope, variables, values[len(places) :])
    return [names.get(place, "") for place in range(len(ctx.layer.outputs))]


def _body(ctx: LayerContext, tag: str) -> Body:
    if not ctx.layer.bodies:
        raise UnsupportedError(not_translated(ctx.layer))
    return read_body(ctx.layer, tag)


@translates("ReadValue", since=3)
def _read_value(ctx: LayerContext) -> str:
    scope = _scope(ctx)
    identifier = _identifier(ctx)
    ctx.ignore("variable_type", "variable_shape")  # `variables` has read them
    if len(ctx) > 1:
        raise FormatError(f"{ctx.label}: the layer has {len(ctx)} inputs; expected at most 1")
    if ctx.has(0):
        expected = _declared(ctx)
        if expected not in (None, ctx.dtype(0)):
            raise FormatError(f"{ctx.label}: its first value has dtype {ctx.dtype(0)}; expected {expected}")
    return ctx.node("Identity", scope.states[identifier] if identifier in scope.states else ctx[0])


def _declared(ctx: LayerContext) -> str | None:
    """Return the dtype of the output port; None if it is dynamic."""
    precision = ctx.layer.outputs[0].precision
    return None if precision is None else by_precision(ctx.label, precision).computed


@translates("Assign", since=3)
def _assign(ctx: LayerContext) -> str:
    scope = _scope(ctx)
    identifier, (value,) = _identifier(ctx), ctx.exactly(1)
    scope.assigned[identifier] = value
    return ctx.node("Identity", value)


def _identifier(ctx: LayerContext) -> str:
    ctx.ignore("variable_id")
    identifier = ctx.layer.data.get("variable_id", "")
    if not identifier:
        raise UnsupportedError(f"{not_translated(ctx.layer)}: it has no variable_id")
    return identifier
