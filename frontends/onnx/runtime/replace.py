"""Pass that fits a graph into one session: nodes that ONNX Runtime cannot run become custom operators.

    LSTM, GRU, RNN, ...                  ->  pyrnnx::Recurrent   a prepared layer
    excluded or unknown nodes            ->  pyrnnx::Python      a Python function, by onnx's evaluator or ours

in the graph and in the bodies of If, Loop and Scan. Declared shapes are dropped: they may be wrong, and some of them
crash ONNX Runtime.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import shortened
from pyrnnx.layers import custom_operators
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import CALL_ARGUMENTS, OUTPUTS

from ..graph.signatures import declare
from ..graph.walk import first_output, local_names, needed_names, node_label, subgraphs
from ..messages import copied
from ..nodes import is_recurrent
from ..onnx_package import import_onnx
from ..schemas import OPERATORS
from ..stream_layer import StreamLayer
from . import session
from .convolutions import multiply_windows
from .excluded import EXCLUDED, reason_against
from .functions import Function, called, evaluated, layer_run, narrowed, unbound
from .guards import FIRST_INPUTS, guard_operators, guard_scans
from .plan import EVALUATOR, PYRNNX, Row
from .recurrent import LayerCall, is_cell
from .settings import Settings
from .types import Contents, Scope, Tensors, Types, element_types

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

# ONNX Runtime's memory for strings has no bound, and it takes no arrays of ml_dtypes.
_FOREIGN = ("STRING", "BFLOAT16", "FLOAT8", "FLOAT4", "FLOAT6", "UINT4", "INT4", "UINT2", "INT2")

# Operators that may be replaced or have bodies; most nodes are of other operators.
_EXCLUDED = {"Scan", *(operator for operator, _, _ in EXCLUDED)}
_SPECIAL = {"If", "Loop", "SequenceMap", *OPERATORS, *_EXCLUDED}
_DOMAINS = {"", "com.microsoft"}  # their operators return no foreign type for plain inputs
Constants = Callable[[], Tensors]  # visible in a graph
# Bodies around a node, innermost first: name of the body, and function that returns the label of its node.
Around = tuple[tuple[str, Callable[[], str]], ...]
_PLAIN = re.compile(r"[\w./:-]+")  # names that can be parsed from ONNX Runtime's messages
_OTHER = re.compile(r"[^\w./:-]+")
FLOAT16 = custom_operators.ELEMENT_TYPES["float16"]


class NotReplaceable(Exception):  # noqa: N818  # never reaches a caller
    """Raised if a node must become a Python function, but its values are not tensors of known types."""


@dataclass
class Replaced:
    """Graph for one session, in which custom operators replace nodes, and what the session needs besides.

    Attributes
    ----------
    model : onnx.ModelProto
        A model that contains only the graph: no opsets, functions or metadata. Its node names are unique.
    owners : list
        Layers and functions behind the custom operators, which must live as long as a session of the graph.
    rows : list of tuple
        Rows of the plan for the replaced nodes.
    nodes : dict
        All nodes by name, each with its scope, including nodes in bodies.
    has_functions : bool
        Whether nodes were replaced by Python functions.
    constants : mapping
        Constants of the graph: onnx.TensorProto or array by name.
    """

    model: ModelProto
    owners: list[Any] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    nodes: dict[str, tuple[NodeProto, Scope]] = field(default_factory=dict)
    has_functions: bool = False
    constants: Tensors = field(default_factory=dict)


def replaced(
    settings: Settings,
    graph: GraphProto,
    contents: Contents,
    scope: Scope,
    tensors: Tensors,
    excluded: Mapping[bytes, str],
    threads: int,
) -> Replaced:
    """Return a graph for one session, in which custom operators replace nodes.

    Parameters
    ----------
    settings : Settings
    graph : onnx.GraphProto
        Folded, sorted, without functions. It is not changed.
    contents : Contents
        Contents of the graph.
    scope : Scope
        Types of the graph.
    tensors : mapping
        The graph's constants: onnx.TensorProto or array by name.
    excluded : mapping
        Reasons why ONNX Runtime cannot run nodes, by `kind_of` the node.
    threads : int
        Threads of the session that a recurrent node may use.

    Raises
    ------
    NotReplaceable
    UnsupportedError
        ONNX Runtime must run a node, but cannot; or neither ONNX Runtime, onnx nor pyrnnx runs an operator.
    """
    result = Replaced(import_onnx().ModelProto(graph=graph))
    _Pass(settings, contents, excluded, threads, result).graph(result.model.graph, scope, lambda: tensors, ())
    if "Scan" in contents.operators:
        guard_scans(result.model.graph, graph, result.nodes, tensors)
    if not contents.operators.isdisjoint(FIRST_INPUTS):
        guard_operators(result.model.graph, result.nodes)
    result.constants = multiply_windows(result.model.graph, graph, tensors)
    return result


class _Pass:
    def __init__(
        self,
        settings: Settings,
        contents: Contents,
        excluded: Mapping[bytes, str],
        threads: int,
        result: Replaced,
    ) -> None:
        self._settings, self._excluded, self._threads, self._result = settings, excluded, threads, result
        self._element_names = {number: name for name, number in import_onnx().TensorProto.DataType.items()}
        # Only nodes of other domains return a foreign type if the graph has none.
        is_plain = not any(map(self._foreign, contents.elements)) and contents.domains <= _DOMAINS
        self._has_foreign = not is_plain
        self._last = session.last_opset() if self._is_newer_opset() else 0
        self._is_watched = bool(excluded or self._has_foreign or self._last)

    def graph(
        self, graph: GraphProto, scope: Scope, tensors: Constants, around: Around, *, is_loop: bool = False
    ) -> None:
        """Replace the nodes of a graph and of its bodies in place."""
        graph.ClearField("value_info")
        # A Loop needs the shapes of iteration and condition, and of results without iterations.
        for value in graph.input[2:] if is_loop else (*graph.input, *graph.output):
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        nodes = self._result.nodes
        for place, node in enumerate(graph.node[:]):
            old = node.name
            name = old if old and old not in nodes and _PLAIN.fullmatch(old) else self._new_name(node)
            nodes[name] = node, scope
            is_special = self._is_watched or node.op_type in _SPECIAL or node.domain
            if is_special or "" in node.input[:] or "" in node.output[:]:  # a slice is faster
                self._replace(node, place, graph, scope, tensors, around)
            if name != old:
                node.name = name

    def _replace(
        self, node: NodeProto, place: int, graph: GraphProto, scope: Scope, tensors: Constants, around: Around
    ) -> None:
        if self._settings.is_ours(node):
            self._replace_recurrent(node, graph, scope, node_label(node) + _where(around))
        elif why := self._reason(node, scope, tensors):
            label = node_label(node)
            self._settings.check_allowed(f"{label} cannot be run by it: {why}")
            self._replace_by_evaluator(node, graph, scope, tensors)
            self._result.rows.append((EVALUATOR, label + _where(around), shortened(why)))
        else:
            bodies = list(subgraphs(node))
            while not bodies and node.input and not node.input[-1]:
                del node.input[-1]  # ONNX Runtime crashes the process on a LayerNormalization whose bias has no name
            for name, body in bodies:
                inside = cache(partial(_visible, tensors, body))
                inner: Around = ((name, partial(node_label, node)), *around)
                self.graph(body, scope.body(place, name), inside, inner, is_loop=node.op_type == "Loop")

    def _new_name(self, node: NodeProto) -> str:
        """Return a unique name, by which ONNX Runtime's messages and profiles identify the node."""
        taken = self._result.nodes
        names = [_OTHER.sub("_", name) for name in (node.name, first_output(node), "node") if name]
        numbered = (f"{names[0]}_{number}" for number in count())
        return next(name for name in chain(names[:-1], numbered) if name not in taken)

    def _reason(self, node: NodeProto, scope: Scope, tensors: Constants) -> str:
        """Return why ONNX Runtime cannot run a node, apart from its bodies; empty if it can."""
        may_be_excluded = node.op_type in _EXCLUDED or "" in node.input or "" in node.output
        why = reason_against(node, tensors()) if may_be_excluded else ""
        if not why and self._excluded:
            why = self._excluded.get(kind_of(node, scope.types), "")
        if why:
            return why
        if self._is_newer(node):
            return f"ONNX Runtime supports operators up to opset {session.last_opset()}"
        for name in (*node.input, *node.output) if self._has_foreign else ():
            for element in element_types(scope.types[name]) if name in scope.types else ():
                if foreign := self._foreign(element):
                    return f"its values are {foreign}"
        return ""

    def _foreign(self, element: int) -> str:
        """Return the name of an element type that ONNX Runtime must not get; empty for others."""
        name = self._element_names.get(element, f"type {element}")
        return name.lower() if element not in self._element_names or name.startswith(_FOREIGN) else ""

    def _is_newer_opset(self) -> bool:
        version = self._settings.opsets.get("", 0)
        return version != session.runnable_opset(version)

    def _is_newer(self, node: NodeProto) -> bool:
        """Return whether the operator changed after ONNX Runtime's last opset."""
        if not self._last or node.domain:
            return False
        try:
            schema = import_onnx().defs.get_schema(node.op_type, self._settings.opsets.get("", 0))
        except Exception:  # no such operator: its runner raises
            return True
        return bool(schema.since_version > self._last)

    def _replace_recurrent(self, node: NodeProto, graph: GraphProto, scope: Scope, label: str) -> None:
        settings, call = self._settings, self._settings.calls.get(node.name)
        if is_recurrent(node):
            layer = settings.layers.get(node.name)
            arguments = dict(zip(OPERATORS[node.op_type].inputs, node.input, strict=False))
            outputs = dict(zip(OUTPUTS, node.output, strict=False))
        else:
            layer = getattr(call, "layer", None)
            arguments = dict(zip(CALL_ARGUMENTS, node.input, strict=False))
            outputs = dict(
                zip(OUTPUTS[1:] if layer is not None and is_cell(layer) else OUTPUTS, node.output, strict=False)
            )
        if not isinstance(layer, (Layer, StreamLayer)) or type(call) not in (LayerCall, type(None)):
            function = unbound(settings, copied(node)) if call is None else called(copied(node), call)
            self._replace_by_function(node, graph, [name for name in node.input if name], scope, function)
            self._result.rows.append((PYRNNX, label, "its weights are computed; each call builds a layer"))
            return
        inputs = [arguments.get(argument, "") for argument in CALL_ARGUMENTS]
        results = [outputs.get(name, "") for name in OUTPUTS[: 3 if layer.op.has_cell_state else 2]]
        self._result.rows.append((PYRNNX, label, ""))
        attributes = {"threads": self._threads}
        if isinstance(layer, StreamLayer) and not (layer.starts and inputs[1]):
            attributes |= {"keeps_states": 1, "optional_states": int(bool(layer.starts))}
            layer = layer.layer
        if isinstance(layer, StreamLayer) or type(layer).run is not Layer.run:
            function, present = layer_run(layer, inputs, results), [name for name in inputs if name]
            self._replace_by_function(node, graph, present, scope, function, results)
            return
        handle = custom_operators.recurrent_handle(layer)
        attributes["handle"] = int(handle)
        custom_operators.rewrite_node(node, custom_operators.RECURRENT, attributes, inputs, results)
        self._result.owners.append(handle)

    def _replace_by_evaluator(self, node: NodeProto, graph: GraphProto, scope: Scope, tensors: Constants) -> None:
        needed = sorted(needed_names(node))
        visible = tensors()
        constants = {name: visible[name] for name in needed if name in visible}
        inputs = [name for name in needed if name not in constants]
        function = evaluated(self._settings, copied(node), inputs, scope.types, constants)
        self._replace_by_function(node, graph, inputs, scope, function)

    def _replace_by_function(
        self,
        node: NodeProto,
        graph: GraphProto,
        inputs: list[str],
        scope: Scope,
        function: Function,
        outputs: Sequence[str] | None = None,
    ) -> None:
        types = scope.types
        present = [name for name in (node.output if outputs is None else outputs) if name]
        elements = {name: _element_of(node, name, types) for name in present}
        for name in inputs:
            if name in types and types[name].WhichOneof("value") != "tensor_type":
                raise NotReplaceable(f"{node_label(node)}: its input {name} is not a tensor")
        # The session cannot infer types behind a custom operator.
        for name, element in elements.items():
            declare(graph.value_info, name, element)
        halves = [FLOAT16 in element_types(types[name]) if name in types else False for name in inputs]
        handle = custom_operators.python_handle(narrowed(function, halves) if any(halves) else function)
        self._result.owners.append(handle)
        self._result.has_functions = True
        custom_operators.rewrite_node(node, custom_operators.PYTHON, {"handle": int(handle)}, inputs, present)


def _visible(tensors: Constants, body: GraphProto) -> Tensors:
    """Return the visible constants of a body, by name."""
    own = local_names(body)
    inside = {name: tensor for name, tensor in tensors().items() if name not in own}
    return inside | {tensor.name: tensor for tensor in body.initializer}


def _where(around: Around) -> str:
    return "".join(f", in {name} of {label()}" for name, label in around)


def kind_of(node: NodeProto, types: Types) -> bytes:
    """Return bytes that are equal for nodes with the same kernels: same operator, attributes and types."""
    if any(True for _ in subgraphs(node)):
        return repr((node.domain, node.op_type, list(node.output))).encode()  # its name differs between sessions
    copy = copied(node)
    for cleared in ("name", "doc_string", "input", "output"):
        copy.ClearField(cleared)
    elements = [sorted(element_types(types[name])) for name in node.input if name in types]
    return bytes(copy.SerializeToString()) + repr((elements, len(node.input), len(node.output))).encode()


def _element_of(node: NodeProto, name: str, types: Types) -> int:
    declared = types.get(name)
    elements = element_types(declared) if declared is not None else set()
    if declared is None or len(elements) != 1 or declared.WhichOneof("value") != "tensor_type":
        raise NotReplaceable(f"{node_label(node)}: the type of its output {name} is unknown")
    return next(iter(elements))
