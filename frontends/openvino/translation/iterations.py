"""Iterations of a TensorIterator or Loop as a Loop of ONNX, and variables in bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyrnnx.errors import FormatError, UnsupportedError, shown

from ...onnx.onnx_package import import_onnx
from ..ir.layer import NetLayer, Output
from ..ir.port_maps import Body, Mapped, Slices
from ..ir.variables import Variable, variable_ids
from .context import BEGIN, LayerContext
from .dimensions import output_info, variable_info
from .scope import Scope

if TYPE_CHECKING:
    from onnx import ValueInfoProto


class Sliced(NamedTuple):
    """An input of which each iteration reads one element along an axis.

    Attributes
    ----------
    layer : NetLayer
        The Parameter of the body.
    name : str
        The whole value.
    size : int or None
        Its size along the axis, if that is known.
    slices : Slices
    """

    layer: NetLayer
    name: str
    size: int | None
    slices: Slices


def sliced_inputs(ctx: LayerContext, body: Body) -> list[Sliced]:
    """Return the sliced inputs of a body."""
    sliced = []
    for mapped in body.inputs:
        if mapped.slices is not None:
            shape = ctx.shape(mapped.place)
            if shape is not None:
                ctx.axis(mapped.slices.axis, len(shape), f"the axis of {mapped.layer.label}")
            size = None if shape is None else shape[mapped.slices.axis]
            sliced.append(Sliced(mapped.layer, ctx[mapped.place], size, mapped.slices))
    return sliced


class Iterations:
    """A loop in translation.

    ONNX's Loop has the number of the iteration and a condition as first inputs of its body, then the carried values:
    those with back edges, and variables. The body's outputs are a condition, the carried values, and values that are
    stacked along a new first axis.
    """

    def __init__(self, scope: Scope, ctx: LayerContext, body: Body) -> None:
        self.ctx, self.body, self._scope = ctx, body, scope
        self.inner = body_scope(scope, ctx, body, f"{ctx.layer.name}/body")
        self._graph = self.inner.graph
        self.carried = [mapped for mapped in body.inputs if mapped.layer in body.back_edges]
        self.variables = body_variables(scope, body)
        # Outputs are final carried values, or stacked values of all iterations.
        fed = {body.back_edges[mapped.layer].sources[0]: k for k, mapped in enumerate(self.carried)}
        self.final = {out.place: fed.get(out.layer.sources[0]) for out in body.outputs if out.slices is None}
        self.stacked = [out for out in body.outputs if self.final.get(out.place) is None]

    def run(self, sliced: Sequence[Sliced], trips: str, condition: str) -> list[str]:
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
            first.append(self._scope.current(variable.id))
        self._count(step)
        for item in sliced:
            self._gather(item, step)
        ends = [self.body.back_edges[mapped.layer] for mapped in self.carried]
        stacked = [out.layer for out in self.stacked]
        inner.translate([*ends, *stacked, *([] if self.body.condition is None else [self.body.condition])])
        outputs = [make_info(self._condition(again), tensor.BOOL, []), *(body_result(inner, layer) for layer in ends)]
        outputs += variables_after(inner, self.variables)
        outputs += [body_result(inner, layer) for layer in stacked]
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

    def _gather(self, item: Sliced, step: str) -> None:
        """Gather the iteration's part of an input; the run fails if there is none."""
        graph, name = self._graph, item.layer.name
        if item.slices.is_reversed:
            (step,) = graph.node("Sub", [graph.constant(np.int64(-1)), step], name)
        (index,) = graph.node("Reshape", [step, graph.constant([1])], name)
        (self.inner.names[Output(item.layer, 0)],) = graph.node(
            "Gather", [item.name, index], name, axis=item.slices.axis
        )

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
        assign(self._scope, self.variables, results[len(self.carried) : count])
        for name, mapped in zip(results[count:], self.stacked, strict=True):
            if mapped.slices is None:  # the value of the last iteration
                names[mapped.place] = ctx.node("Gather", name, ctx.constant(-1), axis=0)
            else:
                names[mapped.place] = self._joined(name, mapped, mapped.slices)
        return names

    def _joined(self, name: str, mapped: Mapped, slices: Slices) -> str:
        """Move the first axis, along which results are stacked, in place of their axis of size 1."""
        ctx, label = self.ctx, mapped.layer.label
        own = mapped.layer.sources[0].port.shape
        shape = own or ctx.layer.outputs[mapped.place].shape
        if own is not None and (slices.axis >= len(own) or own[slices.axis] not in (1, None)):
            raise FormatError(f"{self.body.label}: {label} has shape {own}; expected 1 at axis {slices.axis}")
        if slices.is_reversed:
            name = ctx.slice(name, -1, BEGIN, 0, -1)
        if slices.axis:
            if shape is None:
                raise UnsupportedError(
                    f"{self.body.label}: the rank of {label} is unknown; the translation to ONNX needs it"
                )
            ctx.axis(slices.axis, len(shape), f"the axis of {label}")
            order = list(range(1, len(shape) + 1))
            name = ctx.transpose(name, [*order[: slices.axis], 0, *order[slices.axis :]])
        return ctx.squeeze(name, [slices.axis + 1])


def body_scope(scope: Scope, ctx: LayerContext, body: Body, name: str) -> Scope:
    """Return the scope of a body, with the names of inputs that are the same in every iteration."""
    inner = scope.inside(body.graph, name)
    for mapped in body.invariant:
        inner.names[Output(mapped.layer, 0)] = ctx[mapped.place]
    return inner


def body_result(inner: Scope, layer: NetLayer) -> ValueInfoProto:
    """Add a Result as an output of the body."""
    source = layer.sources[0]
    return output_info(source, inner.graph.node("Identity", [inner.name(source)], layer.name)[0])


def body_variables(scope: Scope, *bodies: Body) -> list[Variable]:
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


def variables_after(inner: Scope, variables: Sequence[Variable]) -> list[ValueInfoProto]:
    """Add the final values of variables as outputs of the body."""
    names = [inner.graph.node("Identity", [inner.current(variable.id)], variable.id)[0] for variable in variables]
    return [variable_info(variable, name) for variable, name in zip(variables, names, strict=True)]


def assign(scope: Scope, variables: Sequence[Variable], names: Sequence[str]) -> None:
    """Assign the node's outputs that `variables_after` added in the body to the variables."""
    scope.assigned |= {variable.id: name for variable, name in zip(variables, names, strict=True)}
