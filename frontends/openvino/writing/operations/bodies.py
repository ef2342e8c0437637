"""Operators with bodies: If and Loop as If and Loop of OpenVINO, Scan as TensorIterator.

A body reads values of the graph around it by their names. In IR each becomes an input of the layer, and a Parameter
of the body. A carried value has a shape that holds in every iteration: sizes that change are dynamic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import shown
from pyrnnx.operator.tensor_info import TensorInfo

from ....onnx.graph.walk import needed_names
from ...ir.element_types import BY_PRECISION
from ...ir.writer import Shape, Value, port_map
from ..context import NodeContext, writes
from ..net import Net
from ..source import Source
from ..views import Sequential, View, plain

if TYPE_CHECKING:
    from onnx import GraphProto

_ENDLESS = 2**31 - 1  # iterations: exporters write more for "until the condition is false"

Entry = tuple[str, dict[str, int | str]]


@writes("If")
def _if(ctx: NodeContext) -> list[View]:
    """Write If; its branches have the same outputs."""
    branches: dict[str, Net] = {}
    results: dict[str, list[Value]] = {}
    for tag in ("then", "else"):
        graph = ctx.attribute(f"{tag}_branch")
        net = branches[tag] = ctx.net.body(ctx.net.source.body(graph, {}))
        net.write_nodes()
        results[tag] = [net.in_order(net.view(info.name), info.name) for info in graph.output]
    captured = list(dict.fromkeys(value for net in branches.values() for value in net.captured))
    inputs = [ctx.scalar(0), *captured]
    ports = {value: place for place, value in enumerate(captured, start=1)}
    outputs = [_either(ctx, *pair) for pair in zip(*results.values(), strict=True)]
    parts = []
    for tag, net in branches.items():
        entries = _invariant(net, ports)
        for place, (info, value) in enumerate(zip(net.source.graph.output, results[tag], strict=True)):
            number = net.ir.result(info.name, value)
            entries.append(("output", {"external_port_id": len(inputs) + place, "internal_layer_id": number}))
        parts += [port_map(f"{tag}_port_map", entries), net.ir.section(f"{tag}_body")]
    return [plain(value) for value in ctx.layers("If", 8, inputs, outputs, bodies=parts)]


def _either(ctx: NodeContext, a: Value, b: Value) -> tuple[str, Shape]:
    """Return the precision and shape of an output of both branches."""
    if a.precision != b.precision or len(a.shape) != len(b.shape):
        shapes = " and ".join(f"{value.precision} of {len(value.shape)} axes" for value in (a, b))
        ctx.refuse(
            f"an output that is {shapes}, by the condition,", "the same type and number of axes in both branches"
        )
    return a.precision, tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True))


def _invariant(net: Net, ports: Mapping[Value, int]) -> list[Entry]:
    """Return the entries of captured values, which have these ports, in a port map."""
    return [
        ("input", {"external_port_id": ports[value], "internal_layer_id": parameter.layer})
        for value, parameter in net.captured.items()
    ]


class _Iterated:
    """A Loop or TensorIterator under construction.

    `control` are the first inputs of the layer, which its body does not read.
    """

    def __init__(self, ctx: NodeContext, graph: GraphProto, control: Sequence[Value]) -> None:
        self.ctx, self.graph = ctx, graph
        self.inputs, self.outputs = list(control), list[tuple[str, Shape]]()
        self.entries: list[Entry] = []
        self.edges: list[Entry] = []

    def begin(self, places: Mapping[str, int], types: Mapping[str, TensorInfo], ends: Sequence[str]) -> Net:
        """Begin the body; its carried inputs begin as inputs of the node, and `ends` are their next values.

        Those that no iteration changes become constants, or values that the body captures.
        """
        same = _aliases(self.graph)
        carried = self._carried = {name: self.ctx.view(place) for name, place in places.items()}
        self._ends = dict(zip(carried, ends, strict=True))
        self._changing = {name: carried[name] for name, end in self._ends.items() if same(end) != name}
        fixed = {name: view for name, view in carried.items() if name not in self._changing}
        arrays = {name: self.ctx.constant(places[name]) for name in fixed}
        constants = {name: array for name, array in arrays.items() if array is not None}
        types = {**types, **{name: _info(name, view) for name, view in fixed.items() if name not in constants}}
        self.net = self.ctx.net.body(self._source(types, constants))
        for name, view in fixed.items():
            if name not in constants:
                self.net.capture(name, view)
        self._parameters = {}
        for name, view in self._changing.items():
            self._parameters[name] = parameter = self.net.parameter(name)
            ids: dict[str, int | str] = {"external_port_id": len(self.inputs), "internal_layer_id": parameter.layer}
            self.entries.append(("input", ids))
            self.inputs.append(self.ctx.in_order(view))
        return self.net

    def _source(self, types: Mapping[str, TensorInfo], constants: Mapping[str, AnyArray]) -> Source:
        """Return the source of the body, with carried shapes that hold in every iteration."""
        infos = {name: _info(name, view) for name, view in self._changing.items()}
        while True:
            source = self.ctx.net.source.body(self.graph, {**types, **infos}, constants)
            after = {name: self._next(source, info) for name, info in infos.items()}
            if after == infos:
                return source
            infos = after

    def _next(self, source: Source, info: TensorInfo) -> TensorInfo:
        """Return the type of a carried value with the sizes that are the same after an iteration."""
        end, shape = self._ends[info.name], info.shape or ()
        array, result = source.constant(end), source.types.get(end)
        sizes = result.shape if array is None and result is not None else None if array is None else array.shape
        if sizes is None:
            sizes = (None,) * len(shape)
        if len(sizes) != len(shape):
            self.ctx.refuse(f"{shown(info.name)}, whose number of axes changes between iterations,", "the same in each")
        return replace(info, shape=tuple(x if x == y else None for x, y in zip(shape, sizes, strict=True)))

    def end_carried(self) -> None:
        """Add the next values of the carried inputs, and their last values as outputs of the layer."""
        for name, parameter in self._parameters.items():
            end = self._ends[name]
            value = self.net.in_order(self.net.view(end), end)
            if value.precision != parameter.precision:
                self.ctx.refuse(f"{shown(end)} of type {value.precision}", parameter.precision)
            number = self._output(end, value, (value.precision, parameter.shape))
            self.edges.append(("edge", {"from-layer": number, "to-layer": parameter.layer}))

    def stack(self, name: str, axis: int, backward: bool, count: int | None) -> None:
        """Add a value whose slices of all iterations are joined along a new axis."""
        value = self.net.in_order(self.net.view(name), name)
        axis = self.ctx.axis(axis, len(value.shape) + 1)
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        place = self.net.ir.constant(f"{name}/axis", np.array([axis], np.int64))
        (row,) = self.net.ir.layer(f"{name}/row", "Unsqueeze", 1, {}, [value, place], [(value.precision, shape)])
        output = (value.precision, (*value.shape[:axis], count, *value.shape[axis:]))
        self._output(name, row, output, **_slices(axis, backward))

    def _output(self, name: str, value: Value, output: tuple[str, Shape], **slices: int) -> int:
        number = self.net.ir.result(name, value)
        self.entries.append(("output", {"internal_layer_id": number, **slices}))
        self.outputs.append(output)
        return number

    def end(self, kind: str, opset: int) -> list[View]:
        """Add the layer; return its outputs."""
        self.entries += _invariant(self.net, {v: k for k, v in enumerate(self.net.captured, start=len(self.inputs))})
        self.inputs += self.net.captured
        outputs = [entry for entry in self.entries if entry[0] == "output" and "purpose" not in entry[1]]
        for place, (_, entry) in enumerate(outputs):
            entry["external_port_id"] = len(self.inputs) + place
        sections = [port_map("port_map", self.entries), port_map("back_edges", self.edges), self.net.ir.section("body")]
        values = iter(self.ctx.layers(kind, opset, self.inputs, self.outputs, bodies=sections))
        last = [plain(next(values)) if name in self._changing else view for name, view in self._carried.items()]
        return [*last, *map(plain, values)]


def _info(name: str, view: View) -> TensorInfo:
    return TensorInfo(name, BY_PRECISION[view.precision].dtype, view.shape)


def _aliases(graph: GraphProto) -> Callable[[str], str]:
    """Return a function from the name of a value to the name of which it is an Identity."""
    sources = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity" and not node.domain}

    def source(name: str) -> str:
        while name in sources:
            name = sources[name]
        return name

    return source


def _slices(axis: int, backward: bool) -> dict[str, int]:
    start, end, stride = (-1, 0, -1) if backward else (0, -1, 1)
    return {"axis": axis, "start": start, "end": end, "stride": stride, "part_size": 1}


@writes("Loop")
def _loop(ctx: NodeContext) -> Sequence[View | Sequential]:
    """Write Loop; the condition of the body counts in every form, as in ONNX Runtime."""
    graph, lists = _stacking(ctx, ctx.attribute("body"))
    trips, count = _trips(ctx)
    first = ctx.scalar(1) if ctx.has(1) else ctx.const("condition", True, "BOOL")
    loop = _Iterated(ctx, graph, [trips, first])
    step, again, *names = (info.name for info in graph.input)
    condition, *ends = (info.name for info in graph.output)
    places = [place for place in range(2, len(ctx.node.input)) if place not in lists]
    types = {step: TensorInfo(step, "int64", ()), again: TensorInfo(again, "bool", ())}
    net = loop.begin(dict(zip(names, places, strict=True)), types, ends[: len(names)])
    number = net.parameter(step).layer
    loop.entries.append(
        ("input", {"external_port_id": -1, "internal_layer_id": number, "purpose": "current_iteration"})
    )
    net.bind(again, plain(net.ir.constant(again, np.array(True))))  # else there is no iteration
    net.write_nodes()
    number = net.ir.result(condition, net.in_order(net.view(condition), condition))
    purpose: dict[str, int | str] = {"external_port_id": -1, "purpose": "execution_condition"}
    loop.entries.append(("output", {**purpose, "internal_layer_id": number}))
    loop.end_carried()
    is_counted = _begins(ctx) and net.source.constant(condition) is not None
    for name in ends[len(names) :]:
        loop.stack(name, 0, False, count if is_counted else None)
    views: list[View | Sequential] = [*loop.end("Loop", 5)]
    stacked = [Sequential([], view, 0, False) for view in views[len(views) - len(lists) :]]  # type: ignore[arg-type]
    del views[len(views) - len(lists) :]
    for place, row in zip(lists, stacked, strict=True):
        views.insert(place - 2, row)
    return views


def _stacking(ctx: NodeContext, graph: GraphProto) -> tuple[GraphProto, list[int]]:
    """Return the body with stacked rows instead of lists to which each iteration appends; and the lists' positions."""
    lists = [place for place in range(2, len(ctx.node.input)) if ctx.net.is_sequence(ctx.node.input[place])]
    if not lists:
        return graph, lists
    body = type(graph).FromString(graph.SerializeToString())
    ends = []
    for place in lists:
        name, end = body.input[place].name, body.output[place - 1].name
        readers = [node for node in body.node if name in needed_names(node)]
        appends = len(readers) == 1 and readers[0].op_type == "SequenceInsert" and len(readers[0].input) == 2
        if ctx.sequence(place) != Sequential([]) or not appends or _aliases(body)(end) != readers[0].output[0]:
            ctx.refuse(
                f"the sequence {shown(name)}", "a list, empty at first, to which each iteration appends a tensor"
            )
        readers[0].op_type = "Identity"
        del readers[0].input[0]
        ends.append(body.output[place - 1])
    body.output.extend(ends)
    for place in reversed(lists):
        del body.input[place], body.output[place - 1]
    return body, lists


def _begins(ctx: NodeContext) -> bool:
    """Return whether a Loop is known to begin."""
    constant = ctx.constant(1)
    return not ctx.has(1) or (constant is not None and bool(constant.all()))


def _trips(ctx: NodeContext) -> tuple[Value, int | None]:
    """Return the number of iterations, in IR -1 for no limit, and the number itself if it is known."""
    constant = ctx.constant(0)
    if not ctx.has(0) or (constant is not None and constant.item() >= _ENDLESS):
        return ctx.const("trips", -1), None
    if constant is not None:
        count = max(int(constant.item()), 0)
        return ctx.const("trips", count), count
    value = ctx.scalar(0)
    inputs = [value, ctx.const("none", 0)]
    return ctx.layer("Maximum", 1, inputs, ("I64", ()), auto_broadcast="numpy"), None


@writes("Scan")
def _scan(ctx: NodeContext) -> list[View]:
    """Write Scan, since opset 9, as a TensorIterator."""
    if ctx.opset < 9:
        ctx.refuse("Scan before opset 9, which has a batch axis and lengths,", "opset 9 or later")
    loop = _Iterated(ctx, ctx.attribute("body"), [])
    names = [info.name for info in loop.graph.input]
    ends = [info.name for info in loop.graph.output]
    scanned = ctx.attribute("num_scan_inputs")
    states = len(names) - scanned
    stacked = len(ends) - states
    views = ctx.views()

    def listed(name: str, length: int) -> list[int]:
        return list(ctx.attribute(name) or [0] * length)

    axes = [
        ctx.axis(axis, view.rank) for axis, view in zip(listed("scan_input_axes", scanned), views[states:], strict=True)
    ]
    backward = listed("scan_input_directions", scanned)
    sizes = [view.shape[axis] for view, axis in zip(views[states:], axes, strict=True)]
    count = next((size for size in sizes if size is not None), None)
    types = {
        name: replace(_info(name, view), shape=_without(view.shape, axis))
        for name, view, axis in zip(names[states:], views[states:], axes, strict=True)
    }
    net = loop.begin({name: place for place, name in enumerate(names[:states])}, types, ends[:states])
    for name, view, axis, reverse in zip(names[states:], views[states:], axes, backward, strict=True):
        shape = (*view.shape[:axis], 1, *view.shape[axis + 1 :])
        parameter = net.ir.parameter(f"{name}/part", view.precision, shape)
        place = net.ir.constant(f"{name}/axis", np.array([axis], np.int64))
        output = (view.precision, _without(shape, axis))
        net.bind(name, plain(*net.ir.layer(f"{name}/slice", "Squeeze", 1, {}, [parameter, place], [output])))
        ids = {"external_port_id": len(loop.inputs), "internal_layer_id": parameter.layer}
        loop.entries.append(("input", {**ids, **_slices(axis, bool(reverse))}))
        loop.inputs.append(ctx.in_order(view))
    net.write_nodes()
    loop.end_carried()
    outputs = zip(listed("scan_output_axes", stacked), listed("scan_output_directions", stacked), strict=True)
    for name, (axis, reverse) in zip(ends[states:], outputs, strict=True):
        loop.stack(name, axis, bool(reverse), count)
    return loop.end("TensorIterator", 1)


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])
