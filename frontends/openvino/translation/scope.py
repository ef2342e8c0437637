"""Translation of the layers of a net, or of one of its bodies, to nodes of one ONNX graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened
from pyrnnx.operator.op import CELLS

from ..ir.layer import NetLayer, Output
from ..ir.net_graph import NetGraph
from ..ir.variables import Variable, variable_ids
from ..layers import BoundLayer, IRLayer
from ..net import Net
from ..schemas import explain
from .constants import ConstantValues, translate_layer
from .context import LayerContext
from .graph import SMALL, Graph, guarded
from .inputs import ValueNames
from .operations import TRANSLATORS, translator
from .operations.recurrent import DOMAIN, as_operation, weight_inputs

Prepared = Callable[[NetLayer], BoundLayer | IRLayer]
# Translator of a layer that has bodies or a variable; it returns the names of outputs, "" for one without a value.
InScope = Callable[["Scope", LayerContext], Sequence[str]]
_NO_NAMES: Mapping[Output, str] = MappingProxyType({})
_ENDS = ("Const", "Parameter", "Result")
_NAMED = frozenset({*CELLS, "If", "Loop", "Scan"})  # the nodes, among several, that get the name of the layer


@dataclass(frozen=True, eq=False)
class Whole:
    """Data that the scopes of one translation share.

    Attributes
    ----------
    net : Net
    constants : ConstantValues
    in_scope : mapping
        First opset and translator of layers that only a scope can translate, by lower-case type.
    prepared : callable or None
        Function from a recurrent layer to the layer that runs it; None to translate it to an operator of ONNX.
    variables : mapping of Variable
        Variables by id.
    run_by : dict
        Layers that run recurrent nodes, by the nodes' names.
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
        Graph of the nodes.
    values : ValueNames
        Names of the values of translated layers.
    states, assigned : dict
        Names of variables' values by id, before and after the scope; those before only if they are known.
    """

    def __init__(self, whole: Whole, layers: NetGraph, graph: Graph, outputs: Mapping[Output, str] = _NO_NAMES) -> None:
        self.whole, self.layers, self.graph = whole, layers, graph
        self.values = ValueNames(graph, whole.constants.value)
        self.states: dict[str, str] = {}
        self.assigned: dict[str, str] = {}
        self._outputs = outputs  # values with fixed names: the model's outputs

    def inside(self, layers: NetGraph, name: str) -> Scope:
        """Return a scope for a body."""
        return Scope(self.whole, layers, self.graph.body(name))

    def current(self, identifier: str) -> str:
        """Return the name of a variable's current value."""
        return self.assigned[identifier] if identifier in self.assigned else self.states[identifier]

    def translate(self, ends: Iterable[NetLayer], *, everything: bool = False) -> None:
        """Translate the layers that `ends` and variables need; with `everything`, others too, but no constants."""
        needed = self._needed([*ends, *filter(_holds_variable, self.layers.layers)])
        for layer in self.layers.order:
            if layer in needed:
                self._layer(layer)
            elif everything and layer not in self.whole.constants.layers:
                self._layer_if_possible(layer)

    def _needed(self, ends: Iterable[NetLayer]) -> set[NetLayer]:
        """Return the layers that `ends` depend on, except the layers of constant weights."""
        needed: set[NetLayer] = set()
        queue = list(ends)
        while queue:
            layer = queue.pop()
            if layer in needed or layer.type in ("Const", "Parameter"):
                continue
            needed.add(layer)
            declared = self.whole.net.declared(layer)
            skipped = () if declared is None or layer in self.whole.net.looped else weight_inputs(declared)
            queue += [
                source.layer
                for k, source in enumerate(layer.sources)
                if k not in skipped or source.layer not in self.whole.constants.layers
            ]
        return needed

    def _layer_if_possible(self, layer: NetLayer) -> None:
        """Translate a layer unless this fails or an input has not been translated."""
        since = len(self.graph.nodes)
        known = (value in self.values.names or value.layer in self.whole.constants.layers for value in layer.sources)
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
            return  # its value becomes an initializer when a node reads it
        since = len(self.graph.nodes)
        names = self._translated(layer, lambda k: self._is_used(outputs[k:]))
        self._name_node(layer, since)
        added = {name for node in self.graph.nodes[since:] for name in node.output}
        renamed: dict[str, str] = {}  # two outputs of one value have the name of the first
        for output, name in zip(outputs, names, strict=False):
            if name in added and name not in renamed:
                renamed[name] = self._wanted(output)
                self.graph.rename(name, renamed[name], since)
            if name:
                self.values.names[output] = renamed.get(name, name)  # an input or a constant has its own name

    def _translated(self, layer: NetLayer, used: Callable[[int], bool]) -> Sequence[str]:
        whole, since = self.whole, len(self.graph.nodes)
        declared = whole.net.declared(layer)
        run_by = whole.prepared(layer) if declared is not None and whole.prepared is not None else None
        first, in_scope = whole.in_scope.get(layer.type.lower(), (0, None))
        if in_scope is not None and layer.opset >= first:
            ctx = LayerContext(layer, self.values, used, declared)
            with guarded(layer.label, f"attributes and inputs of {shortened(layer.type)}"):
                names = in_scope(self, ctx)
                ctx.check_attributes()
            for k, name in enumerate(names):
                if not name and used(k):
                    raise FormatError(f"{layer.label}: output {k} is used, but its bodies do not compute it")
        else:
            function = as_operation(run_by) if run_by is not None else translator(layer)
            if function is None:
                raise UnsupportedError(not_translated(layer))
            names = translate_layer(layer, function, self.values, used, declared)
        if run_by is not None:
            (node,) = (node for node in self.graph.nodes[since:] if node.domain == DOMAIN)
            whole.run_by[node.name] = run_by
        return names

    def _name_node(self, layer: NetLayer, since: int) -> None:
        """Name the node that is recurrent or has bodies, else the last node, after the layer."""
        nodes = self.graph.nodes[since:]
        if not nodes or not layer.name:
            return
        main = (k for k, node in enumerate(nodes) if node.op_type in _NAMED or node.domain)
        index = since + next(main, len(nodes) - 1)
        before = self.graph.nodes[index].name
        self.graph.name_node(index, layer.name)
        if before in self.whole.run_by:
            self.whole.run_by[self.graph.nodes[index].name] = self.whole.run_by.pop(before)

    def _is_used(self, outputs: Sequence[Output]) -> bool:
        """Return whether anything reads the first of the outputs, if there is one."""
        return any(output in self._outputs or self.layers.consumers(output) for output in outputs[:1])

    def _wanted(self, output: Output) -> str:
        if output in self._outputs:
            return self._outputs[output]
        if output.port.names:
            return self.graph.value_name(output.port.names[0])
        several = len(output.layer.outputs) > 1
        return self.graph.value_name(f"{output.layer.name}.{output.index}" if several else output.layer.name)


def not_translated(layer: NetLayer) -> str:
    """Return the message about a layer that has no translator."""
    version = f" of {shortened(layer.version)}" if layer.version else ""
    reason = explain(layer.type)
    first = min(TRANSLATORS.get(layer.type.lower(), ()), default=None)
    if first is not None:
        reason = f"expected opset{first} or later"
    elif reason is None:
        reason = "this operation is not translated; replace its layer, or run the model with OpenVINO"
    return f"{layer.label}: {shortened(layer.type)}{version} cannot be run or exported to ONNX: {reason}"


def _holds_variable(layer: NetLayer) -> bool:
    return bool(variable_ids([layer])) or any(variable_ids(body.everything) for body in layer.bodies.values())


def _is_small(output: Output) -> bool:
    shape = output.port.shape
    sizes = [size for size in shape or () if size is not None]
    return shape is not None and len(sizes) == len(shape) and math.prod(sizes) <= SMALL
