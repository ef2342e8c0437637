"""Translation of the layers of a net, or of one of its bodies, to nodes of one ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError
from pyrnnx.operator.op import CELLS

from ..ir.layer import NetLayer, Output
from ..ir.net_graph import NetGraph
from ..ir.variables import Variable, variable_ids, variables
from ..layers import BoundLayer, IRLayer
from .context import translate_layer
from .graph import Graph
from .operations.recurrent import DOMAIN, weight_inputs

if TYPE_CHECKING:
    from .constants import ConstantValues

Prepared = Callable[[NetLayer], BoundLayer | IRLayer]
_ENDS = ("Const", "Parameter", "Result")
_NAMED = frozenset({*CELLS, "If", "Loop"})  # the nodes, among several, that get the name of the layer


class Scope:
    """A net or a body in translation.

    `outputs` are the names of the model's outputs. `prepared` returns the layer that runs a recurrent layer; without
    it, recurrent layers become operators of ONNX. `states` and `assigned` are the names of variables' values by id,
    before and after the scope; those before only if they are known.
    """

    def __init__(
        self,
        constants: ConstantValues,
        graph: Graph,
        outputs: Mapping[Output, str] = MappingProxyType({}),
        prepared: Prepared | None = None,
    ) -> None:
        self.net, self.constants, self.graph = constants.net, constants, graph
        self.layers: NetGraph = self.net
        self.run_by: dict[str, BoundLayer | IRLayer] = {}
        self.names: dict[Output, str] = {}
        self.states: dict[str, str] = {}
        self.assigned: dict[str, str] = {}
        self._outputs, self._prepared = outputs, prepared

    def inside(self, layers: NetGraph, name: str) -> Scope:
        """Return a scope for a body."""
        inner = copy(self)
        inner.layers, inner.graph, inner._outputs = layers, self.graph.body(name), {}
        inner.names, inner.states, inner.assigned = {}, {}, {}
        return inner

    @cached_property
    def variables(self) -> Mapping[str, Variable]:
        return {variable.id: variable for variable in variables(self.net)}

    def array(self, output: Output) -> AnyArray | None:
        """Return a value; None if it depends on the model's inputs."""
        return self.constants.value(output)

    def name(self, output: Output) -> str:
        """Return the name of a value."""
        if output not in self.names:
            array = self.array(output)
            if array is None:  # layers come in topological order: only an output that the operation lacks is unknown
                raise FormatError(
                    f"{output.layer.label}: output port {output.port.id} is connected, but the operation lacks it"
                )
            if output.layer.type == "Const":
                output.layer.const_data.element_type.computed_dtype(output.layer.label)
            self.names[output] = self.graph.constant(array, output.layer.name)
        return self.names[output]

    def with_names(self, names: Mapping[Output, str]) -> Scope:
        """Return the scope with other names for values."""
        inner = copy(self)
        inner.names = {**self.names, **names}
        return inner

    def is_used(self, layer: NetLayer, k: int) -> bool:
        """Return whether anything reads the k-th output of a layer."""
        output = Output(layer, k)
        return k < len(layer.outputs) and (output in self._outputs or bool(self.net.consumers(output)))

    def runner(self, layer: NetLayer) -> BoundLayer | IRLayer | None:
        """Return the layer that runs a recurrent layer; None if ONNX's operator does."""
        return None if self._prepared is None or self.net.declared(layer) is None else self._prepared(layer)

    def current(self, identifier: str) -> str:
        """Return the name of a variable's current value."""
        return self.assigned[identifier] if identifier in self.assigned else self.states[identifier]

    def translate(self, ends: Iterable[NetLayer]) -> None:
        """Translate the layers that `ends` and variables need."""
        needed = self._needed([*ends, *filter(_holds_variable, self.layers.layers)])
        for layer in self.layers.order:
            if layer in needed:
                self._layer(layer)

    def _needed(self, ends: Iterable[NetLayer]) -> set[NetLayer]:
        """Return the layers that `ends` depend on, except the layers of constant weights."""
        needed: set[NetLayer] = set()
        queue = list(ends)
        while queue:
            layer = queue.pop()
            if layer in needed or layer.type in ("Const", "Parameter"):
                continue
            needed.add(layer)
            declared = self.net.declared(layer)
            skipped = () if declared is None or layer in self.net.looped else weight_inputs(declared)
            queue += [
                source.layer
                for k, source in enumerate(layer.sources)
                if k not in skipped or source.layer not in self.constants.layers
            ]
        return needed

    def _layer(self, layer: NetLayer) -> None:
        if layer.type in _ENDS:
            return
        outputs = [Output(layer, k) for k in range(len(layer.outputs))]
        since = len(self.graph.nodes)
        names = translate_layer(layer, self)
        self._name_node(layer, since)
        added = {name for node in self.graph.nodes[since:] for name in node.output}
        renamed: dict[str, str] = {}  # two outputs of one value have the name of the first
        for output, name in zip(outputs, names, strict=False):
            if name in added and name not in renamed:
                renamed[name] = self._wanted(output)
                self.graph.rename(name, renamed[name], since)
            if name:
                self.names[output] = renamed.get(name, name)  # an input or a constant has its own name

    def _name_node(self, layer: NetLayer, since: int) -> None:
        """Name the node that is recurrent or has bodies, else the last node, after the layer."""
        nodes = self.graph.nodes[since:]
        main = (k for k, node in enumerate(nodes) if node.op_type in _NAMED or node.domain)
        index = since + next(main, len(nodes) - 1)
        if nodes and layer.name:
            self.graph.name_node(index, layer.name)
        runner = self.runner(layer) if nodes and self.graph.nodes[index].domain == DOMAIN else None
        if runner is not None:
            self.run_by[self.graph.nodes[index].name] = runner

    def _wanted(self, output: Output) -> str:
        if output in self._outputs:
            return self._outputs[output]
        if output.port.names:
            return self.graph.value_name(output.port.names[0])
        several = len(output.layer.outputs) > 1
        return self.graph.value_name(f"{output.layer.name}.{output.index}" if several else output.layer.name)


def _holds_variable(layer: NetLayer) -> bool:
    return bool(variable_ids([layer])) or any(variable_ids(body.everything) for body in layer.bodies.values())
