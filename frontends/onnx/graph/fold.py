"""What of a model depends on constants only: computed once, by onnx's ReferenceEvaluator, and made initializers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.conventions import AnyArray
from pyrnnx.errors import FormatError, shortened, shown

from ..file import import_onnx, inlined, opsets_of
from ..runtime.evaluator import mended_ops
from ..schemas import INPUTS
from .sizes import expected_bytes, is_foldable
from .unfolded import stand_ins
from .walk import local_names, needed_names, sorted_nodes, subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

# Another result at every run; and the recurrent ones, which onnx's own evaluator computes without most attributes.
_NEVER = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
_NEVER |= {"RandomUniformLike", *INPUTS}
_LABEL = "fold_constants"
# What the results of folding may take: so much for any model, and so many times what its own constants take.
_FREE_BYTES, _TIMES = 2**24, 64


def constant_values(model: ModelProto, names: Iterable[str]) -> dict[str, AnyArray]:
    """Values of those of the names at the top level that depend on constants only.

    Parameters
    ----------
    model : onnx.ModelProto
    names : iterable of str
        Initializers and outputs of nodes. Only what they depend on is computed.

    Returns
    -------
    dict
        {name: array}; a name that depends on an input, or on an operator that is never folded, is absent. An
        initializer that is an input too is a default that a caller may replace: no constant.
    """
    wanted = list(names)
    model = inlined(model, _LABEL)
    scope = Scope(model.graph, opsets_of(model, _LABEL), wanted=_ancestors(model.graph, wanted))
    values = ((name, scope.value(name)) for name in wanted)
    return {name: value for name, value in values if value is not None}


def fold_constants(model: ModelProto, *, largest: int | None = None) -> ModelProto:
    """A new model in which the results of nodes with only constant inputs are initializers.

    Local functions are inlined, dead nodes and initializers dropped. Nodes with bodies (If, Loop, Scan), and random,
    recurrent, unknown and failing ones stay, and so do those that Python's loops compute; those in bodies are folded
    like those outside. A node stays, too, where its results, told by their shapes, would make all the results take
    more than 16 MiB and 64 times what the model's own constants take.

    Parameters
    ----------
    model : onnx.ModelProto
    largest : int, optional
        A node stays if its result has more elements than that and takes more bytes than the constants that it was
        computed from. What depends on it is folded nevertheless. Default: everything is folded.
    """
    source = inlined(model, _LABEL)
    scope = Scope(source.graph, opsets_of(source, _LABEL), largest=largest)
    return with_graph(source, scope.rebuilt()[0])


def with_graph(model: ModelProto, graph: GraphProto) -> ModelProto:
    """The model with another graph, and without functions."""
    result = type(model)()
    for field, value in model.ListFields():
        if field.name in ("graph", "functions"):
            continue
        if isinstance(value, (int, str)):
            setattr(result, field.name, value)
        else:
            getattr(result, field.name).extend(value)
    result.graph.CopyFrom(graph)
    return result


def _ancestors(graph: GraphProto, names: Iterable[str]) -> set[str]:
    """The names, and every name that their values depend on."""
    producers = {output: node for node in graph.node for output in node.output}
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            if name in producers:
                left.extend(needed_names(producers[name]))
    return found


@dataclass
class Budget:
    """The bytes that folding may still make."""

    left: int = _FREE_BYTES

    def add(self, constants: Iterable[Any]) -> None:
        """The constants of a graph allow as much again."""
        self.left += _TIMES * sum(one.ByteSize() for one in constants)

    def allows(self, node: NodeProto, inputs: Sequence[AnyArray | None]) -> bool:
        """Whether the results of a node fit: known from the inputs, before they are computed."""
        expected = expected_bytes(node, inputs)
        return expected is not None and expected <= self.left


class Scope:
    """One graph, in the graphs around it: which of its values are constant.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
        Sorted.
    bodies : dict
        The scopes of the subgraphs of ``nodes[k]``, by k.
    names : dict
        New names of nodes, by k; for the graph that `rebuilt` makes.
    unused : dict
        Positions of inputs that nodes do not need, by k; likewise.
    """

    def __init__(
        self,
        graph: GraphProto,
        opsets: Mapping[str, int],
        outer: Scope | None = None,
        *,
        label: str = _LABEL,
        constant_inputs: bool = False,
        wanted: set[str] | None = None,
        largest: int | None = None,
    ) -> None:
        self.graph, self.opsets, self.outer = graph, opsets, outer
        self._budget: Budget = Budget() if outer is None else outer._budget
        self._budget.add(graph.initializer)
        self._label, self._largest = label, largest
        self.nodes: list[NodeProto] = sorted_nodes(graph, label)
        self.bodies: dict[int, list[Scope]] = {}
        self.names: dict[int, str] = {}
        self.unused: dict[int, tuple[int, ...]] = {}
        self._local = local_names(graph)
        inputs = set() if constant_inputs else {one.name for one in graph.input}
        # A tensor until its array is asked for: most weights are only passed on.
        self._constants: dict[str, Any] = {one.name: one for one in graph.initializer if one.name not in inputs}
        self._given = set(self._constants)
        self._folded: set[int] = set()
        self._cost: dict[str, int] = {}
        # Of what depends on constants only, but is too large: arrays without memory, and the bytes of nodes.
        self._stand_ins: dict[str, AnyArray] = {}
        self._unfolded: dict[int, int] = {}
        for index, node in enumerate(self.nodes):
            if wanted is None or not wanted.isdisjoint(node.output):
                self._visit(index, node)

    def owner(self, name: str) -> Scope | None:
        """The scope that has the name as a constant; None where it is none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._constants:
                return scope
            if name in scope._local:
                return None
            scope = scope.outer
        return None

    def value(self, name: str) -> AnyArray | None:
        """The constant that a node of this graph gets for an input of that name; None where it is none."""
        owner = self.owner(name)
        if owner is None:
            return None
        value = owner._constants[name]
        if not isinstance(value, np.ndarray):
            try:
                value = import_onnx().numpy_helper.to_array(value)
            except Exception as error:  # of several types, by what is wrong
                raise FormatError(
                    f"{self._label}: the tensor {shown(name)} cannot be read ({shortened(str(error))})"
                ) from error
            value.flags.writeable = False
            owner._constants[name] = value
        array: AnyArray = value
        return array

    def _is_constant(self, node: NodeProto) -> bool:
        if node.op_type in _NEVER or not is_foldable(node):
            return False
        return not any(name and self.owner(name) is None and name not in self._stand_ins for name in node.input)

    def _visit(self, index: int, node: NodeProto) -> None:
        bodies = [
            Scope(body, self.opsets, self, label=self._label, largest=self._largest) for _, body in subgraphs(node)
        ]
        if bodies:
            self.bodies[index] = bodies
            return
        if not self._is_constant(node):
            return
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            self._constants[node.output[0]] = node.attribute[0].t
            self._budget.add([node.attribute[0].t])
            self._folded.add(index)
            return
        inputs = {name: self.value(name) for name in node.input if name}
        if not self._stand_ins.keys().isdisjoint(inputs) or not self._budget.allows(
            node, list(map(inputs.get, node.input))
        ):
            given = [self._stand_ins.get(name, inputs.get(name)) for name in node.input]
            found, self._unfolded[index] = stand_ins(node, given, self.opsets)
            self._stand_ins |= found
            return
        results = _evaluate(node, inputs, self.opsets)
        if results is None:
            return
        self._budget.left -= sum(one.nbytes for one in results.values())
        self._constants |= results
        if self._largest is not None:
            cost = sum(self._bytes(name) for name in inputs)
            if any(a.size > self._largest and a.nbytes > cost for a in results.values()):
                self._cost |= dict.fromkeys(results, cost)
                return
        self._folded.add(index)

    def _bytes(self, name: str) -> int:
        """Bytes of a constant in the new model: of what it is computed from, where its node stays."""
        owner, value = self.owner(name), self.value(name)
        if owner is None or value is None:
            return 0
        return owner._cost.get(name, value.nbytes)

    def rebuilt(self, keep: Iterable[str] = ()) -> tuple[GraphProto, set[str]]:
        """A new graph with what its outputs, and the names to keep, need; and what it takes from the graphs around."""
        onnx = import_onnx()
        live = {one.name for one in self.graph.output} | set(keep)
        nodes = []
        for index in reversed(range(len(self.nodes))):
            node = self.nodes[index]
            if index in self._folded or live.isdisjoint(name for name in node.output if name):
                continue
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            if index in self.names:
                copy.name = self.names[index]
            for position in self.unused.get(index, ()):
                copy.input[position] = ""
            for (_, target), body in zip(subgraphs(copy), self.bodies.get(index, ()), strict=True):
                graph, outside = body.rebuilt()
                target.CopyFrom(graph)
                live |= outside
            live.update(node.input)
            nodes.append(copy)
        live.discard("")
        return self._assembled(nodes[::-1], live), live - self._local

    def unfolded(self, graph: GraphProto) -> list[tuple[NodeProto, int]]:
        """Nodes of a graph that `rebuilt` made whose results are too large to be folded, with their bytes."""
        kept = {node.output[0] for node in graph.node if node.output}
        nodes = [(self.nodes[index], size) for index, size in self._unfolded.items()]
        return [(node, size) for node, size in nodes if size and node.output[0] in kept]

    def _assembled(self, nodes: list[NodeProto], live: set[str]) -> GraphProto:
        onnx, old = import_onnx(), self.graph
        new: GraphProto = onnx.GraphProto(name=old.name)
        if old.doc_string:
            new.doc_string = old.doc_string
        new.input.extend(old.input)
        new.output.extend(old.output)
        new.node.extend(nodes)
        inputs = {one.name for one in old.input}
        new.initializer.extend(one for one in old.initializer if one.name in live or one.name in inputs)
        new.sparse_initializer.extend(one for one in old.sparse_initializer if one.values.name in live)
        computed = {name for node in nodes for name in node.output}
        for name, value in self._constants.items():
            if name in live and name not in computed and name not in self._given:
                if isinstance(value, np.ndarray):
                    new.initializer.append(onnx.numpy_helper.from_array(value, name))
                else:
                    new.initializer.add().CopyFrom(value)
                    new.initializer[-1].name = name
        new.value_info.extend(one for one in old.value_info if one.name in live and one.name in self._local)
        new.quantization_annotation.extend(one for one in old.quantization_annotation if one.tensor_name in live)
        if hasattr(old, "metadata_props"):
            new.metadata_props.extend(old.metadata_props)
        return new


def _evaluate(
    node: NodeProto, inputs: Mapping[str, AnyArray | None], opsets: Mapping[str, int]
) -> dict[str, AnyArray] | None:
    """Outputs of one node by name; None where the evaluator does not have them as arrays."""
    onnx = import_onnx()
    from onnx.reference import ReferenceEvaluator

    outputs = [name for name in node.output if name]
    graph = onnx.GraphProto(name="node")
    graph.node.append(node)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in inputs)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(graph, opsets=dict(opsets), new_ops=list(mended_ops(opsets.get("", 0))))
            results = evaluator.run(outputs, dict(inputs))
    except Exception:  # whatever is wrong will be raised, with the operator's name, when the model is called
        return None
    if not all(isinstance(one, np.ndarray) for one in results):
        return None
    return dict(zip(outputs, results, strict=True))
