"""Translation of what changes its scope: TensorIterator, Loop and If, and variables.

A TensorIterator runs once for each slice of its inputs, a Loop until it ends; the body gathers the slice of X of the
current iteration. A variable has a value before each scope and one after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pyrnnx.errors import FormatError, UnsupportedError, shown
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL

from ...onnx.onnx_package import import_onnx
from ..ir.layer import NetLayer, Output
from ..ir.port_maps import Body, Mapped, Slices, read_body
from ..ir.variables import Variable, variable_ids
from ..looped_cells import LoopedCell
from .context import BEGIN, END, LayerContext, translates
from .graph import SMALL, output_info, variable_info
from .operations.recurrent import DOMAIN, arranged, operator, selected
from .scope import Scope

if TYPE_CHECKING:
    from onnx import ValueInfoProto


@translates("TensorIterator")
def _tensor_iterator(ctx: LayerContext) -> list[str]:
    looped = ctx.scope.net.looped.get(ctx.layer)
    if looped is not None:
        return _sequence(ctx, looped)
    body = read_body(ctx.layer)
    if all(mapped.slices is None for mapped in body.inputs):
        raise UnsupportedError(f"{body.label}: the number of iterations is unknown; expected a sliced input")
    return _Iterations(ctx, body).run(_slice_count(ctx, body), "")


def _slice_count(ctx: LayerContext, body: Body) -> str:
    """Return the size of the first sliced input; "" if there is none. Sizes that are known must be equal."""
    axes = {mapped.place: mapped.slices.axis for mapped in body.inputs if mapped.slices is not None}
    shapes = ((ctx.shape(k) or (), axis) for k, axis in axes.items())
    counts = {size for shape, axis in shapes for size in shape[axis : axis + 1] if size is not None}
    if len(counts) > 1:
        raise FormatError(f"{body.label}: its sliced inputs have {sorted(counts)} slices; expected the same number")
    return next((ctx.reshape(ctx.dimension(ctx[k], axis), []) for k, axis in axes.items()), "")


def _sequence(ctx: LayerContext, loop: LoopedCell) -> list[str]:
    """Translate the loop to OpenVINO's operation or to ONNX's operator; return the names of the loop's outputs."""
    layer, keep_operation = loop.layer, ctx.scope.runner(ctx.layer) is not None
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
        values = operator(ctx, layer, layer.check_weights(loop.arrays(ctx.scope.array)), {}, names)
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
    body = read_body(ctx.layer)
    limit, first = ctx.element(0, "the number of iterations"), ctx.element(1, "the first condition")
    again = True if body.condition is None else ctx.scope.array(body.condition.sources[0])
    if limit is None:
        trips = ctx.scalar_int64(0)
        trips = ctx.node("Where", ctx.node("Less", trips, ctx.constant(0)), ctx.constant(END), trips)
    elif limit.dtype.kind not in "iu":
        raise FormatError(f"{ctx.label}: the number of iterations has dtype {limit.dtype}; expected an integer")
    else:
        trips = ctx.constant(int(limit)) if limit >= 0 else _slice_count(ctx, body)
    if not trips and (first is None or bool(first)) and again is not None and np.all(again):
        raise UnsupportedError(f"{ctx.label}: it never ends: it has no number of iterations, and its condition is true")
    return _Iterations(ctx, body).run(trips, _condition(ctx, 1))


@translates("If", since=8)
def _if(ctx: LayerContext) -> list[str]:
    scope = ctx.scope
    bodies = {tag: read_body(ctx.layer, f"{tag}_body") for tag in ("then", "else")}
    variables = _variables(scope, *bodies.values())
    places = sorted(set.intersection(*({mapped.place for mapped in body.outputs} for body in bodies.values())))
    graphs = {}
    for tag, body in bodies.items():
        if body.back_edges or any(mapped.slices is not None for mapped in (*body.inputs, *body.outputs)):
            raise FormatError(f"{body.label}: it has back edges or slices; expected neither in an If")
        inner = _inside(ctx, body, f"{ctx.layer.name}/{tag}")
        by_place = {mapped.place: mapped.layer for mapped in body.outputs}
        results = [by_place[place] for place in places]
        inner.states |= {variable.id: scope.current(variable.id) for variable in variables}
        inner.translate(results)
        outputs = [_result(inner, layer) for layer in results] + _variables_after(inner, variables)
        graphs[f"{tag}_branch"] = inner.graph.proto((), outputs)
    count = len(places) + len(variables)
    values = ctx.nodes("If", _condition(ctx, 0), outputs=count, **graphs) if count else []
    names = dict(zip(places, values, strict=False))
    _assign_all(scope, variables, values[len(places) :])
    return [names.get(place, "") for place in range(len(ctx.layer.outputs))]


def _condition(ctx: LayerContext, k: int) -> str:
    condition = ctx.element(k, "the condition")
    return ctx.reshape(ctx[k], []) if condition is None else ctx.constant(bool(condition), "bool")


class _Iterations:
    """A TensorIterator or Loop as a Loop of ONNX.

    ONNX's Loop has the number of the iteration and a condition as first inputs of its body, then the carried values:
    those with back edges, and variables. The body's outputs are a condition, the carried values, and values that are
    stacked along a new first axis.
    """

    def __init__(self, ctx: LayerContext, body: Body) -> None:
        self.ctx, self.body = ctx, body
        self.inner = _inside(ctx, body, f"{ctx.layer.name}/body")
        self._graph = self.inner.graph
        self.carried = [mapped for mapped in body.inputs if mapped.layer in body.back_edges]
        self.variables = _variables(ctx.scope, body)
        # Outputs are final carried values, or stacked values of all iterations.
        fed = {body.back_edges[mapped.layer].sources[0]: k for k, mapped in enumerate(self.carried)}
        self.final = {out.place: fed.get(out.layer.sources[0]) for out in body.outputs if out.slices is None}
        self.stacked = [out for out in body.outputs if self.final.get(out.place) is None]

    def run(self, trips: str, condition: str) -> list[str]:
        """Add the Loop; return the names of the layer's outputs."""
        ctx, graph, inner, tensor = self.ctx, self._graph, self.inner, import_onnx().TensorProto
        make_info = import_onnx().helper.make_tensor_value_info
        step, again = graph.value_name("iteration"), graph.value_name("condition")
        infos = [make_info(step, tensor.INT64, []), make_info(again, tensor.BOOL, [])]
        first = [ctx[mapped.place] for mapped in self.carried]
        for mapped in self.carried:
            output = Output(mapped.layer, 0)
            name = inner.names[output] = graph.value_name(mapped.layer.name)
            infos.append(output_info(output, name))
        for variable in self.variables:
            name = inner.states[variable.id] = graph.value_name(variable.id)
            infos.append(variable_info(variable, name))
            first.append(ctx.scope.current(variable.id))
        self._count(step)
        for mapped in self.body.inputs:
            if mapped.slices is not None:
                self._gather(mapped, mapped.slices, step)
        ends = [self.body.back_edges[mapped.layer] for mapped in self.carried]
        stacked = [out.layer for out in self.stacked]
        inner.translate([*ends, *stacked, *([] if self.body.condition is None else [self.body.condition])])
        outputs = [make_info(self._condition(again), tensor.BOOL, []), *(_result(inner, layer) for layer in ends)]
        outputs += _variables_after(inner, self.variables)
        outputs += [_result(inner, layer) for layer in stacked]
        body = graph.proto(infos, outputs)
        return self._by_place(ctx.nodes("Loop", trips, condition, *first, outputs=len(outputs) - 1, body=body))

    def _count(self, step: str) -> None:
        """Set the Parameter that is the number of the iteration."""
        parameter = self.body.iteration
        if parameter is not None:
            output = Output(parameter, 0)
            element, shape = output_info(output, "").type.tensor_type.elem_type, output.port.shape
            if element not in (0, import_onnx().TensorProto.INT64):
                (step,) = self._graph.node("Cast", [step], parameter.name, to=element)
            if shape:
                (step,) = self._graph.node("Reshape", [step, self._graph.constant([1] * len(shape))], parameter.name)
            self.inner.names[output] = step

    def _gather(self, mapped: Mapped, slices: Slices, step: str) -> None:
        """Gather the iteration's part of an input; the run fails if there is none."""
        graph, name = self._graph, mapped.layer.name
        if slices.is_reversed:
            (step,) = graph.node("Sub", [graph.constant(np.int64(-1)), step], name)
        (index,) = graph.node("Reshape", [step, graph.constant([1])], name)
        (part,) = graph.node("Gather", [self.ctx[mapped.place], index], name, axis=slices.axis)
        self.inner.names[Output(mapped.layer, 0)] = part

    def _condition(self, again: str) -> str:
        """Return the condition for another iteration, a scalar; `again` if the body has none."""
        name = again
        if self.body.condition is not None:
            name = self.inner.name(self.body.condition.sources[0])
        shape = self._graph.constant(np.zeros(0, np.int64))
        return self._graph.node("Reshape", [name, shape], f"{self.ctx.layer.name}/condition")[0]

    def _by_place(self, results: Sequence[str]) -> list[str]:
        """Map the node's outputs to the layer's; return their names."""
        ctx, names = self.ctx, [""] * len(self.ctx.layer.outputs)
        count = len(self.carried) + len(self.variables)
        for place, k in self.final.items():
            if k is not None:
                names[place] = results[k]
        _assign_all(ctx.scope, self.variables, results[len(self.carried) : count])
        for name, mapped in zip(results[count:], self.stacked, strict=True):
            if mapped.slices is None:  # the value of the last iteration
                names[mapped.place] = ctx.node("Gather", name, ctx.constant(-1), axis=0)
            else:
                names[mapped.place] = self._joined(name, mapped, mapped.slices)
        return names

    def _joined(self, name: str, mapped: Mapped, slices: Slices) -> str:
        """Move the first axis, along which results are stacked, in place of their axis of size 1."""
        ctx, label = self.ctx, mapped.layer.label
        if slices.is_reversed:
            name = ctx.slice(name, -1, BEGIN, 0, -1)
        if slices.axis:
            shape = mapped.layer.sources[0].port.shape or ctx.layer.outputs[mapped.place].shape
            if shape is None:
                raise UnsupportedError(
                    f"{self.body.label}: the rank of {label} is unknown; the translation to ONNX needs it"
                )
            order = list(range(1, len(shape) + 1))
            name = ctx.transpose(name, [*order[: slices.axis], 0, *order[slices.axis :]])
        return ctx.squeeze(name, [slices.axis + 1])


def _inside(ctx: LayerContext, body: Body, name: str) -> Scope:
    """Return the scope of a body, with the names of inputs that are the same in every iteration."""
    inner = ctx.scope.inside(body.graph, name)
    for mapped in body.invariant:
        inner.names[Output(mapped.layer, 0)] = ctx[mapped.place]
    return inner


def _result(inner: Scope, layer: NetLayer) -> ValueInfoProto:
    """Add a Result as an output of the body."""
    source = layer.sources[0]
    return output_info(source, inner.graph.node("Identity", [inner.name(source)], layer.name)[0])


# Variables


@translates("ReadValue", since=3)
def _read_value(ctx: LayerContext) -> str:
    states, identifier = ctx.scope.states, ctx.text("variable_id")
    ctx.ignore("variable_type", "variable_shape")  # `variables` has read them
    return ctx.node("Identity", states[identifier] if identifier in states else ctx[0])


@translates("Assign", since=3)
def _assign(ctx: LayerContext) -> str:
    ctx.scope.assigned[ctx.text("variable_id")] = ctx[0]
    return ctx.node("Identity", ctx[0])


def _variables(scope: Scope, *bodies: Body) -> list[Variable]:
    """Return the variables that bodies, nested ones too, read or assign."""
    ids = variable_ids(layer for body in bodies for layer in body.graph.everything)
    variables = [scope.variables[identifier] for identifier in ids]
    for variable in variables:
        if variable.id not in scope.states and variable.id not in scope.assigned:
            raise UnsupportedError(
                f"{variable.reads[0].label}: variable {shown(variable.id)} is read in a body, and its first value "
                "depends on inputs; expected a constant first value, or a value in the model's `state`"
            )
    return variables


def _variables_after(inner: Scope, variables: Sequence[Variable]) -> list[ValueInfoProto]:
    """Add the final values of variables as outputs of the body."""
    names = [inner.graph.node("Identity", [inner.current(variable.id)], variable.id)[0] for variable in variables]
    return [variable_info(variable, name) for variable, name in zip(variables, names, strict=True)]


def _assign_all(scope: Scope, variables: Sequence[Variable], names: Sequence[str]) -> None:
    """Assign the node's outputs that `_variables_after` added in the body to the variables."""
    scope.assigned |= {variable.id: name for variable, name in zip(variables, names, strict=True)}
