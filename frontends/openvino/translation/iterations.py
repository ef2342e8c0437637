"""The iterations of a loop: what its body takes, hands on and gives, in the order of a Scan or Loop of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyrnnx.dtypes import named_dtype
from pyrnnx.errors import FormatError, UnsupportedError

from ..ir.layer import NetLayer, Output
from ..ir.port_maps import Body, Mapped, Slices
from ..ir.variables import Variable, variable_ids
from .context import BEGIN, END, LayerContext
from .dimensions import output_info, variable_info
from .graph import Graph
from .scope import Scope

if TYPE_CHECKING:
    from onnx import ValueInfoProto


class Sliced(NamedTuple):
    """An input whose parts a body takes.

    Attributes
    ----------
    name : str
        With an axis for the parts before that of the slices; without it, where `is_narrow`.
    parts : int or None
        How many, where it is known.
    """

    mapped: Mapped
    name: str
    parts: int | None
    is_narrow: bool

    @property
    def slices(self) -> Slices:
        assert self.mapped.slices is not None
        return self.mapped.slices


def sliced_input(ctx: LayerContext, one: Mapped) -> Sliced:
    """A sliced input, cut to the range of its slices, with an axis for them where they have more than one element."""
    assert one.slices is not None
    axis, first, last, part, _ = one.slices
    name, shape = ctx[one.place], ctx.shape(one.place)
    if shape is not None:
        ctx.axis(axis, len(shape), f"the axis of {one.layer.label}")
    size = None if shape is None else shape[axis]
    if not one.slices.are_whole:
        if size is None:
            raise UnsupportedError(
                f"{ctx.label}: {one.layer.label} takes slices from {first} to {last} of an axis whose size is not known"
            )
        low, high = (k + size if k < 0 else k for k in (first, last))
        if not 0 <= low <= high < size:
            raise FormatError(f"{ctx.label}: {one.layer.label} takes slices from {first} to {last} of {size}")
        name, size = ctx.slice(name, low, high + 1, axis), high - low + 1
    if size is not None and size % part:
        raise FormatError(f"{ctx.label}: {one.layer.label} takes slices of {part}, of {size} elements")
    if part == 1:
        return Sliced(one, name, size, True)
    dims = ctx.node("Shape", name)
    count = ctx.node("Div", ctx.slice(dims, axis, axis + 1, 0), ctx.constant([part]))
    dims = ctx.concat([ctx.slice(dims, 0, axis, 0), count, ctx.constant([part]), ctx.slice(dims, axis + 1, END, 0)])
    return Sliced(one, ctx.node("Reshape", name, dims, allowzero=1), None if size is None else size // part, False)


class Iterations:
    """A loop in translation: the inputs and outputs of its body, in ONNX's order."""

    def __init__(self, scope: Scope, ctx: LayerContext, body: Body) -> None:
        self.ctx, self.body, self._scope = ctx, body, scope
        self.inner = body_scope(scope, ctx, body, f"{ctx.layer.name}/body")
        self.carried = [one for one in body.inputs if one.layer in body.back_edges]
        self.variables, self.doubtful = body_variables(scope, body)
        self._behind = len(self.carried) + len(self.variables) + len(self.doubtful)
        # Outputs that are carried values at the end; else what each iteration gives.
        fed = {body.back_edges[one.layer].sources[0]: k for k, one in enumerate(self.carried)}
        self.final = {one.place: fed.get(one.layer.sources[0]) for one in body.outputs if one.slices is None}
        self.stacked = [one for one in body.outputs if self.final.get(one.place) is None]

    @property
    def _graph(self) -> Graph:
        return self.inner.graph

    def _input(self, parameter: NetLayer) -> ValueInfoProto:
        output = Output(parameter, 0)
        name = self.inner.values.names[output] = self._graph.value_name(parameter.name)
        return output_info(self._graph, output, name)

    def _carried(self) -> list[ValueInfoProto]:
        """The inputs that are carried on: those with back edges, and variables."""
        infos = [self._input(one.layer) for one in self.carried]
        for one in self.variables:
            self.inner.states[one.id] = self._graph.value_name(one.id)
            infos.append(variable_info(self._graph, one, self.inner.states[one.id]))
        for one in self.doubtful:
            self.inner.flags[one.id] = self._graph.value_name(f"{one.id}_known")
            infos.append(_flag_info(self._graph, self.inner.flags[one.id]))
        return infos

    def _first(self) -> list[str]:
        """What these begin with."""
        values = [self.ctx[one.place] for one in self.carried]
        values += [_current(self._scope, one) for one in self.variables]
        return values + [_current_flag(self._scope, one) for one in self.doubtful]

    def _outputs(self) -> list[ValueInfoProto]:
        """What is carried on, and what is stacked, after the layers of the body."""
        ends = [self.body.back_edges[one.layer] for one in self.carried] + [one.layer for one in self.stacked]
        self.inner.translate([*ends, *([] if self.body.condition is None else [self.body.condition])])
        results = [body_result(self.inner, one) for one in ends]
        results[len(self.carried) : len(self.carried)] = variables_after(self.inner, self.variables, self.doubtful)
        return results

    def by_scan(self, sliced: Sequence[Sliced]) -> list[str]:
        ctx = self.ctx
        infos = self._carried() + [self._input(one.mapped.layer) for one in sliced]
        outputs = self._outputs()
        scanned = [ctx.unsqueeze(one.name, [one.slices.axis + 1]) if one.is_narrow else one.name for one in sliced]
        first = self._first()
        parts = [one.slices or Slices(0, 0, -1, 1, False) for one in self.stacked]
        results = ctx.nodes(
            "Scan",
            *first,
            *scanned,
            outputs=len(outputs),
            body=self._graph.proto(infos, outputs),
            num_scan_inputs=len(sliced),
            scan_input_axes=[one.slices.axis for one in sliced],
            scan_input_directions=[int(one.slices.is_reversed) for one in sliced],
            scan_output_axes=[one.axis for one in parts] or None,
            scan_output_directions=[int(one.is_reversed) for one in parts] or None,
        )
        return self._by_place(results)

    def by_loop(self, sliced: Sequence[Sliced], trips: str, condition: str) -> list[str]:
        ctx, graph, tensor = self.ctx, self._graph, self.ctx.graph.onnx.TensorProto
        make_info = graph.onnx.helper.make_tensor_value_info
        step, going_on = graph.value_name("iteration"), graph.value_name("condition")
        infos = [make_info(step, tensor.INT64, []), make_info(going_on, tensor.BOOL, [])]
        infos += self._carried()
        self._count(step)
        for given in sliced:
            self._take(given, step)
        outputs = self._outputs()
        outputs.insert(0, make_info(self._condition(going_on), tensor.BOOL, []))
        first = self._first()
        body = graph.proto(infos, outputs)
        results = ctx.nodes("Loop", trips, condition, *first, outputs=len(outputs) - 1, body=body)
        for k, one in enumerate(self.stacked, self._behind):
            if one.slices is not None:
                results[k] = self._moved(results[k], one, one.slices)
        return self._by_place(results)

    def _count(self, step: str) -> None:
        """The number of the iteration, for the Parameter that it is."""
        parameter = self.body.iteration
        if parameter is not None:
            output = Output(parameter, 0)
            info = output_info(self._graph, output, "")
            name, shape = step, output.port.shape
            if info.type.tensor_type.elem_type not in (0, int(self._graph.onnx.TensorProto.INT64)):
                (name,) = self._graph.node("Cast", [name], parameter.name, to=info.type.tensor_type.elem_type)
            if shape:
                (name,) = self._graph.node("Reshape", [name, self._graph.constant([1] * len(shape))], parameter.name)
            self.inner.values.names[output] = name

    def _take(self, one: Sliced, step: str) -> None:
        """The part of an input that belongs to the iteration; there is an error where there is none."""
        graph, layer, slices = self._graph, one.mapped.layer, one.slices
        index = step
        if slices.is_reversed:
            (index,) = graph.node("Sub", [graph.constant(np.int64(-1)), step], layer.name)
        if one.is_narrow:
            (index,) = graph.node("Reshape", [index, graph.constant([1])], layer.name)
        (name,) = graph.node("Gather", [one.name, index], layer.name, axis=slices.axis)
        self.inner.values.names[Output(layer, 0)] = name

    def _condition(self, going_on: str) -> str:
        """Whether there is another iteration, without axes."""
        name = going_on
        if self.body.condition is not None:
            name = self.inner.values.name(self.body.condition.sources[0])
        shape = self._graph.constant(np.zeros(0, np.int64))
        return self._graph.node("Reshape", [name, shape], f"{self.ctx.layer.name}/condition")[0]

    def _moved(self, name: str, one: Mapped, slices: Slices) -> str:
        """What is stacked along a new first axis, with that axis where a Scan would have it."""
        ctx, shape = self.ctx, one.layer.sources[0].port.shape or self.ctx.layer.outputs[one.place].shape
        if slices.is_reversed:
            name = ctx.slice(name, -1, BEGIN, 0, -1)
        if slices.axis == 0:
            return name
        if shape is None:
            raise UnsupportedError(f"{self.body.label}: the rank of {one.layer.label} is not known; expected it to be")
        ctx.axis(slices.axis, len(shape), f"the axis of {one.layer.label}")
        order = list(range(1, len(shape) + 1))
        return ctx.transpose(name, [*order[: slices.axis], 0, *order[slices.axis :]])

    def _by_place(self, results: Sequence[str]) -> list[str]:
        """The names of the layer's outputs."""
        ctx, found = self.ctx, [""] * len(self.ctx.layer.outputs)
        for place, k in self.final.items():
            if k is not None:
                found[place] = results[k]
        assign(self._scope, self.variables, self.doubtful, results[len(self.carried) : self._behind])
        for name, one in zip(results[self._behind :], self.stacked, strict=True):
            if one.slices is None:  # the last of them
                found[one.place] = ctx.node("Gather", name, ctx.constant(-1), axis=0)
                continue
            shape = one.layer.sources[0].port.shape
            part = one.slices.part_size
            if shape is not None and (one.slices.axis >= len(shape) or shape[one.slices.axis] not in (part, None)):
                raise FormatError(
                    f"{self.body.label}: {one.layer.label} has shape {shape}; expected {part} at axis {one.slices.axis}"
                )
            found[one.place] = _joined(ctx, name, one.slices)
        return found


def body_scope(scope: Scope, ctx: LayerContext, body: Body, name: str) -> Scope:
    """The scope of a body, in which the inputs that are the same in every iteration are known."""
    inner = scope.inside(body.graph, name)
    for one in body.invariant:
        inner.values.names[Output(one.layer, 0)] = ctx[one.place]
    return inner


def body_result(inner: Scope, layer: NetLayer) -> ValueInfoProto:
    """What a Result has, as an output of the body."""
    source = layer.sources[0]
    name = inner.graph.node("Identity", [inner.values.name(source)], layer.name)[0]
    return output_info(inner.graph, source, name)


def body_variables(scope: Scope, *bodies: Body) -> tuple[list[Variable], list[Variable]]:
    """What bodies, or those in them, read or assign; and which of it may have no value yet."""
    ids = variable_ids(layer for body in bodies for layer in body.graph.everything)
    found = [scope.whole.variables[one] for one in ids]
    known = scope.states.keys() | scope.assigned.keys()
    return found, [one for one in found if one.id not in known or scope.current_flag(one.id) is not None]


def variables_after(inner: Scope, variables: Sequence[Variable], doubtful: Sequence[Variable]) -> list[ValueInfoProto]:
    """What they have when a body ends, and whether they have it, as outputs of the body."""
    graph, infos = inner.graph, []
    for one in variables:
        (name,) = graph.node("Identity", [inner.current(one.id)], one.id)
        infos.append(variable_info(graph, one, name))
    for one in doubtful:
        flag = inner.current_flag(one.id) or graph.constant(np.array(True))
        infos.append(_flag_info(graph, graph.node("Identity", [flag], one.id)[0]))
    return infos


def assign(scope: Scope, variables: Sequence[Variable], doubtful: Sequence[Variable], names: Sequence[str]) -> None:
    """Let variables have what `variables_after` gave."""
    scope.assigned |= {one.id: name for one, name in zip(variables, names, strict=False)}
    scope.assigned_flags |= {one.id: name for one, name in zip(doubtful, names[len(variables) :], strict=True)}


def _current(scope: Scope, variable: Variable) -> str:
    """The value of a variable, or one that is never read where it has none."""
    if variable.id in scope.states or variable.id in scope.assigned:
        return scope.current(variable.id)
    sizes = [size if isinstance(size, int) else 0 for size in variable.shape or ()]
    shape = scope.graph.constant(np.array(sizes, np.int64))
    zero = scope.graph.onnx.numpy_helper.from_array(np.zeros(1, named_dtype(str(variable.dtype))))
    return scope.graph.node("ConstantOfShape", [shape], variable.id, value=zero)[0]


def _current_flag(scope: Scope, variable: Variable) -> str:
    return scope.current_flag(variable.id) or scope.graph.constant(np.array(False))


def enter(scope: Scope, inner: Scope, variables: Sequence[Variable], doubtful: Sequence[Variable]) -> None:
    """Let a body that runs once read what variables have."""
    inner.states |= {one.id: _current(scope, one) for one in variables}
    inner.flags |= {one.id: _current_flag(scope, one) for one in doubtful}


def _flag_info(graph: Graph, name: str) -> ValueInfoProto:
    info: ValueInfoProto = graph.onnx.helper.make_tensor_value_info(name, graph.onnx.TensorProto.BOOL, [])
    return info


def _joined(ctx: LayerContext, name: str, slices: Slices) -> str:
    """The axis of the slices and that of the parts before it as one."""
    axis = slices.axis
    if slices.part_size == 1:
        return ctx.squeeze(name, [axis + 1])
    dims = ctx.node("Shape", name)
    size = ctx.node("Mul", *(ctx.slice(dims, k, k + 1, 0) for k in (axis, axis + 1)))
    dims = ctx.concat([ctx.slice(dims, 0, axis, 0), size, ctx.slice(dims, axis + 2, END, 0)])
    return ctx.node("Reshape", name, dims, allowzero=1)
