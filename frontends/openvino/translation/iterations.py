"""Iterations of a loop: inputs and outputs of its body, in the order of ONNX's Scan and Loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyrnnx.errors import FormatError, UnsupportedError, shown

from ..ir.layer import NetLayer, Output
from ..ir.port_maps import Body, Mapped, Slices
from ..ir.variables import Variable, variable_ids
from .context import BEGIN, LayerContext
from .dimensions import output_info, variable_info
from .graph import Graph
from .scope import Scope

if TYPE_CHECKING:
    from onnx import ValueInfoProto


class Sliced(NamedTuple):
    """An input of which each iteration reads one element along an axis.

    Attributes
    ----------
    mapped : Mapped
    name : str
        The whole value.
    size : int or None
        Its size along the axis, if that is known.
    """

    mapped: Mapped
    name: str
    size: int | None

    @property
    def slices(self) -> Slices:
        assert self.mapped.slices is not None
        return self.mapped.slices


def sliced_input(ctx: LayerContext, mapped: Mapped) -> Sliced:
    """Return a sliced input with its size, as far as it is known."""
    assert mapped.slices is not None
    shape = ctx.shape(mapped.place)
    if shape is not None:
        ctx.axis(mapped.slices.axis, len(shape), f"the axis of {mapped.layer.label}")
    return Sliced(mapped, ctx[mapped.place], None if shape is None else shape[mapped.slices.axis])


class Iterations:
    """A loop in translation: the inputs and outputs of its body, in ONNX's order."""

    def __init__(self, scope: Scope, ctx: LayerContext, body: Body) -> None:
        self.ctx, self.body, self._scope = ctx, body, scope
        self.inner = body_scope(scope, ctx, body, f"{ctx.layer.name}/body")
        self.carried = [mapped for mapped in body.inputs if mapped.layer in body.back_edges]
        self.variables = body_variables(scope, body)
        self._num_carried = len(self.carried) + len(self.variables)
        # Outputs are final carried values, or stacked values of all iterations.
        fed = {body.back_edges[mapped.layer].sources[0]: k for k, mapped in enumerate(self.carried)}
        self.final = {out.place: fed.get(out.layer.sources[0]) for out in body.outputs if out.slices is None}
        self.stacked = [out for out in body.outputs if self.final.get(out.place) is None]

    @property
    def _graph(self) -> Graph:
        return self.inner.graph

    def _input(self, parameter: NetLayer) -> ValueInfoProto:
        output = Output(parameter, 0)
        name = self.inner.names[output] = self._graph.value_name(parameter.name)
        return output_info(output, name)

    def _carried(self) -> list[ValueInfoProto]:
        """Add the body's carried inputs: those with back edges, and variables."""
        infos = [self._input(mapped.layer) for mapped in self.carried]
        for variable in self.variables:
            name = self.inner.states[variable.id] = self._graph.value_name(variable.id)
            infos.append(variable_info(variable, name))
        return infos

    def _first(self) -> list[str]:
        """Return the first values of carried inputs."""
        values = [self.ctx[mapped.place] for mapped in self.carried]
        return values + [self._scope.current(variable.id) for variable in self.variables]

    def _outputs(self) -> list[ValueInfoProto]:
        """Translate the body; return its outputs, carried and stacked."""
        ends = [self.body.back_edges[mapped.layer] for mapped in self.carried] + [out.layer for out in self.stacked]
        self.inner.translate([*ends, *([] if self.body.condition is None else [self.body.condition])])
        results = [body_result(self.inner, layer) for layer in ends]
        results[len(self.carried) : len(self.carried)] = variables_after(self.inner, self.variables)
        return results

    def by_scan(self, sliced: Sequence[Sliced]) -> list[str]:
        """Translate the loop to a Scan; return the names of the layer's outputs."""
        ctx = self.ctx
        infos = self._carried() + [self._input(item.mapped.layer) for item in sliced]
        outputs = self._outputs()
        scanned = [self._first_axis(item) for item in sliced]
        results = ctx.nodes(
            "Scan",
            *self._first(),
            *scanned,
            outputs=len(outputs),
            body=self._graph.proto(infos, outputs),
            num_scan_inputs=len(sliced),
            scan_input_directions=[int(item.slices.is_reversed) for item in sliced],
        )
        return self._by_place(results)

    def _first_axis(self, item: Sliced) -> str:
        """Move the sliced axis to the front: if Scan does so, ONNX Runtime ends the process at an empty value."""
        ctx, axis = self.ctx, item.slices.axis
        name = ctx.unsqueeze(item.name, [axis + 1])
        if axis == 0:
            return name
        others = [k for k in range(ctx.rank(item.mapped.place) + 1) if k != axis]
        return ctx.transpose(name, [axis, *others])

    def by_loop(self, sliced: Sequence[Sliced], trips: str, condition: str) -> list[str]:
        """Translate the loop to a Loop; return the names of the layer's outputs."""
        ctx, graph, tensor = self.ctx, self._graph, self.ctx.graph.onnx.TensorProto
        make_info = graph.onnx.helper.make_tensor_value_info
        step, again = graph.value_name("iteration"), graph.value_name("condition")
        infos = [make_info(step, tensor.INT64, []), make_info(again, tensor.BOOL, [])]
        infos += self._carried()
        self._count(step)
        for item in sliced:
            self._gather(item, step)
        outputs = self._outputs()
        outputs.insert(0, make_info(self._condition(again), tensor.BOOL, []))
        first = self._first()
        body = graph.proto(infos, outputs)
        results = ctx.nodes("Loop", trips, condition, *first, outputs=len(outputs) - 1, body=body)
        return self._by_place(results)

    def _count(self, step: str) -> None:
        """Set the Parameter that is the number of the iteration."""
        parameter = self.body.iteration
        if parameter is not None:
            output = Output(parameter, 0)
            info = output_info(output, "")
            name, shape = step, output.port.shape
            if info.type.tensor_type.elem_type not in (0, int(self._graph.onnx.TensorProto.INT64)):
                (name,) = self._graph.node("Cast", [name], parameter.name, to=info.type.tensor_type.elem_type)
            if shape:
                (name,) = self._graph.node("Reshape", [name, self._graph.constant([1] * len(shape))], parameter.name)
            self.inner.names[output] = name

    def _gather(self, item: Sliced, step: str) -> None:
        """Gather the iteration's part of an input; the run fails if there is none."""
        graph, layer, slices = self._graph, item.mapped.layer, item.slices
        index = step
        if slices.is_reversed:
            (index,) = graph.node("Sub", [graph.constant(np.int64(-1)), step], layer.name)
        (index,) = graph.node("Reshape", [index, graph.constant([1])], layer.name)
        (name,) = graph.node("Gather", [item.name, index], layer.name, axis=slices.axis)
        self.inner.names[Output(layer, 0)] = name

    def _condition(self, again: str) -> str:
        """Return the condition for another iteration, a scalar; `again` if the body has none."""
        name = again
        if self.body.condition is not None:
            name = self.inner.name(self.body.condition.sources[0])
        shape = self._graph.constant(np.zeros(0, np.int64))
        return self._graph.node("Reshape", [name, shape], f"{self.ctx.layer.name}/condition")[0]

    def _moved(self, name: str, mapped: Mapped, slices: Slices) -> str:
        """Move the first axis, along which results are stacked, to its place in the layer's output."""
        ctx, shape = self.ctx, mapped.layer.sources[0].port.shape or self.ctx.layer.outputs[mapped.place].shape
        if slices.is_reversed:
            name = ctx.slice(name, -1, BEGIN, 0, -1)
        if slices.axis == 0:
            return name
        if shape is None:
            raise UnsupportedError(
                f"{self.body.label}: the rank of {mapped.layer.label} is unknown; the translation to ONNX needs it"
            )
        ctx.axis(slices.axis, len(shape), f"the axis of {mapped.layer.label}")
        order = list(range(1, len(shape) + 1))
        return ctx.transpose(name, [*order[: slices.axis], 0, *order[slices.axis :]])

    def _by_place(self, results: Sequence[str]) -> list[str]:
        """Map the node's outputs to the layer's; return their names."""
        ctx, names = self.ctx, [""] * len(self.ctx.layer.outputs)
        for place, k in self.final.items():
            if k is not None:
                names[place] = results[k]
        assign(self._scope, self.variables, results[len(self.carried) : self._num_carried])
        for name, mapped in zip(results[self._num_carried :], self.stacked, strict=True):
            slices, shape = mapped.slices, mapped.layer.sources[0].port.shape
            if slices is None:  # the value of the last iteration
                names[mapped.place] = ctx.node("Gather", name, ctx.constant(-1), axis=0)
                continue
            if shape is not None and (slices.axis >= len(shape) or shape[slices.axis] not in (1, None)):
                raise FormatError(
                    f"{self.body.label}: {mapped.layer.label} has shape {shape}; expected 1 at axis {slices.axis}"
                )
            names[mapped.place] = ctx.squeeze(self._moved(name, mapped, slices), [slices.axis + 1])
        return names


def body_scope(scope: Scope, ctx: LayerContext, body: Body, name: str) -> Scope:
    """Return the scope of a body, with the names of inputs that are the same in every iteration."""
    inner = scope.inside(body.graph, name)
    for mapped in body.invariant:
        inner.names[Output(mapped.layer, 0)] = ctx[mapped.place]
    return inner


def body_result(inner: Scope, layer: NetLayer) -> ValueInfoProto:
    """Add a Result as an output of the body."""
    source = layer.sources[0]
    name = inner.graph.node("Identity", [inner.name(source)], layer.name)[0]
    return output_info(source, name)


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
    infos = []
    for variable in variables:
        (name,) = inner.graph.node("Identity", [inner.current(variable.id)], variable.id)
        infos.append(variable_info(variable, name))
    return infos


def assign(scope: Scope, variables: Sequence[Variable], names: Sequence[str]) -> None:
    """Assign the node's outputs that `variables_after` added in the body to the variables."""
    scope.assigned |= {variable.id: name for variable, name in zip(variables, names, strict=True)}


def enter(scope: Scope, inner: Scope, variables: Sequence[Variable]) -> None:
    """Pass the current values of variables to a body that runs once."""
    inner.states |= {variable.id: scope.current(variable.id) for variable in variables}
