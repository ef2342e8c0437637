"""The layers of a net, or of one of its bodies, as nodes of one ONNX graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened
from pyrnnx.op import CELLS

from ..ir.layer import NetLayer, Output
from ..ir.net_graph import NetGraph
from ..ir.variables import Variable, variable_ids
from ..layers import BoundLayer, IRLayer
from ..net import Net
from ..schemas import explain
from .constants import ConstantValues, translate_layer
from .context import LayerContext, ValueNames
from .graph import SMALL, Graph, guarded
from .onnx_frontend import DOMAIN
from .operations import TRANSLATORS, translator
from .operations.recurrent import as_it_is, weight_inputs

if TYPE_CHECKING:
    from onnx import NodeProto

Prepared = Callable[[NetLayer], BoundLayer | IRLayer]
# What makes the nodes of a layer that has bodies, or is a state, in the scope that it is in: names of its outputs, ""
# of those that it gives no value to.
InScope = Callable[["Scope", LayerContext], Sequence[str]]
_NO_NAMES: Mapping[Output, str] = MappingProxyType({})
_ENDS = ("Const", "Parameter", "Result")
_NAMED = frozenset({*CELLS, "If", "Loop", "Scan"})  # nodes that bear the names of their layers, among several


@dataclass(frozen=True, eq=False)
class Whole:
    """What the scopes of one translation share.

    Attributes
    ----------
    net : Net
    constants : ConstantValues
    in_scope : mapping
        Layers that only a scope can translate, by their types in lower case and the first opset that has them.
    prepared : callable or None
        From a recurrent layer to what runs it; None where they become operators of ONNX.
    variables : mapping of Variable
        By their ids.
    run_by : dict
        By the name of its node, what runs a recurrent layer.
    """

    net: Net
    constants: ConstantValues
    in_scope: Mapping[str, tuple[int, InScope]]
    prepared: Prepared | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict)
    run_by: dict[str, BoundLayer | IRLayer] = field(default_factory=dict)


class Scope:
    """A net or a body in translation.

    Attributes
    ----------
    whole : Whole
    layers : NetGraph
    graph : Graph
        Where the nodes go.
    values : ValueNames
        The names of the outputs of layers, as far as they have been translated.
    states, assigned : dict
        By the ids of variables, the values that they have before, where these are given, and after.
    flags, assigned_flags : dict
        Of those that may have no value yet, whether they have one, likewise: a body computes the first one.
    """

    def __init__(self, whole: Whole, layers: NetGraph, graph: Graph, outputs: Mapping[Output, str] = _NO_NAMES) -> None:
        self.whole, self.layers, self.graph = whole, layers, graph
        self.values = ValueNames(graph, whole.constants.value)
        self.states: dict[str, str] = {}
        self.assigned: dict[str, str] = {}
        self.flags: dict[str, str] = {}
        self.assigned_flags: dict[str, str] = {}
        self._outputs = outputs  # names that outputs of layers have for certain

    def inside(self, layers: NetGraph, name: str) -> Scope:
        """A scope for a body."""
        return Scope(self.whole, layers, self.graph.body(name))

    def current(self, identifier: str) -> str:
        """The value that a variable has by now, which is given or assigned."""
        return self.assigned[identifier] if identifier in self.assigned else self.states[identifier]

    def current_flag(self, identifier: str) -> str | None:
        """Whether it has one; None where it is certain."""
        return (self.assigned_flags if identifier in self.assigned else self.flags).get(identifier)

    def translate(self, ends: Iterable[NetLayer], *, everything: bool = False) -> None:
        """The layers that these and the variables depend on, and all others as far as they can be, if asked for."""
        needed = self._needed([*ends, *filter(_holds_variable, self.layers.layers)])
        for layer in self.layers.order:
            if layer in needed:
                self._layer(layer)
            elif everything:
                self._layer_if_possible(layer)

    def _needed(self, ends: Iterable[NetLayer]) -> set[NetLayer]:
        """What they depend on, but constant weights of recurrent layers, which are read where they are used."""
        found: set[NetLayer] = set()
        left = list(ends)
        while left:
            layer = left.pop()
            if layer in found or layer.type in ("Const", "Parameter"):
                continue
            found.add(layer)
            declared = self.whole.net.declared(layer)
            skipped = () if declared is None or layer in self.whole.net.looped else weight_inputs(declared)
            left += [
                source.layer
                for k, source in enumerate(layer.sources)
                if k not in skipped or source.layer not in self.whole.constants.layers
            ]
        return found

    def _layer_if_possible(self, layer: NetLayer) -> None:
        """Translate a layer, unless it or one before it has no translation."""
        since = len(self.graph.nodes)
        known = (one in self.values.names or one.layer in self.whole.constants.layers for one in layer.sources)
        if all(known) and translator(layer) is not None:
            try:
                self._layer(layer)
            except PyrnnxError:
                del self.graph.nodes[since:]

    def _layer(self, layer: NetLayer) -> None:
        if layer.type in _ENDS:
            return
        outputs = [Output(layer, k) for k in range(len(layer.outputs))]
        if layer in self.whole.constants.layers and all(_is_small(output) for output in outputs):
            return  # its value becomes an initializer, where a node takes it
        since = len(self.graph.nodes)
        names = self._translated(layer, lambda k: self._is_used(outputs[k:]))
        self._name_node(layer, since)
        made = {name for node in self.graph.nodes[since:] for name in node.output}
        renamed: dict[str, str] = {}  # two outputs of one value: the name of the first
        for output, name in zip(outputs, names, strict=False):
            if name in made and name not in renamed:
                renamed[name] = self._wanted(output)
                self.graph.rename(name, renamed[name], since)
            if name:
                self.values.names[output] = renamed.get(name, name)  # else an input or a constant, passed on

    def _translated(self, layer: NetLayer, used: Callable[[int], bool]) -> Sequence[str]:
        whole, since = self.whole, len(self.graph.nodes)
        declared = whole.net.declared(layer)
        run_by = whole.prepared(layer) if declared is not None and whole.prepared is not None else None
        first, in_scope = whole.in_scope.get(layer.type.lower(), (0, None))
        if in_scope is not None and layer.opset >= first:
            ctx = LayerContext(layer, self.values, used, declared)
            with guarded(layer.label, f"attributes and inputs as {shortened(layer.type)} has them"):
                names = in_scope(self, ctx)
                ctx.check_attributes()
            for k, name in enumerate(names):
                if not name and used(k):
                    raise FormatError(f"{layer.label}: output {k} is used; its bodies give it no value")
        else:
            function = as_it_is(run_by) if run_by is not None else translator(layer)
            if function is None:
                raise UnsupportedError(not_translated(layer))
            names = translate_layer(layer, function, self.values, used, declared)
        if run_by is not None:
            (node,) = self._own(self.graph.nodes[since:])
            whole.run_by[node.name] = run_by
        return names

    def _own(self, nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
        return (node for node in nodes if node.domain == DOMAIN)

    def _name_node(self, layer: NetLayer, since: int) -> None:
        """The layer's name is that of the node that is recurrent or has bodies, else of the last of its nodes."""
        nodes = self.graph.nodes[since:]
        if not nodes or not layer.name:
            return
        own = (k for k, node in enumerate(nodes) if node.op_type in _NAMED or node.domain)
        place = since + next(own, len(nodes) - 1)
        before = self.graph.nodes[place].name
        self.graph.name_node(place, layer.name)
        if before in self.whole.run_by:
            self.whole.run_by[self.graph.nodes[place].name] = self.whole.run_by.pop(before)

    def _is_used(self, outputs: Sequence[Output]) -> bool:
        """Whether the first of the outputs, if there is one, leads anywhere."""
        return any(output in self._outputs or self.layers.consumers(output) for output in outputs[:1])

    def _wanted(self, output: Output) -> str:
        if output in self._outputs:
            return self._outputs[output]
        if output.port.names:
            return self.graph.value_name(output.port.names[0])
        several = len(output.layer.outputs) > 1
        return self.graph.value_name(f"{output.layer.name}.{output.index}" if several else output.layer.name)


def not_translated(layer: NetLayer) -> str:
    """The message about a layer that has no translator."""
    version = f" of {shortened(layer.version)}" if layer.version else ""
    reason = explain(layer.type)
    first = min(TRANSLATORS.get(layer.type.lower(), ()), default=None)
    if first is not None:
        reason = f"expected opset{first} or later"
    elif reason is None:
        reason = "this operation is not translated; its layer must be replaced, or the model run with OpenVINO"
    return f"{layer.label}: {shortened(layer.type)}{version} cannot be run or exported to ONNX: {reason}"


def _holds_variable(layer: NetLayer) -> bool:
    return bool(variable_ids([layer])) or any(variable_ids(body.everything) for body in layer.bodies.values())


def _is_small(output: Output) -> bool:
    shape = output.port.shape
    sizes = [size for size in shape or () if size is not None]
    return shape is not None and len(sizes) == len(shape) and math.prod(sizes) <= SMALL
