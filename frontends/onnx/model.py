"""Whole ONNX models: run by onnx's ReferenceEvaluator, with the recurrent operators of this package."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx import model as core
from pyrnnx.errors import ArgumentError, FormatError, shown
from pyrnnx.layer import Layer
from pyrnnx.tensor_info import TensorInfo

from .file import (
    check_model,
    import_onnx,
    inlined,
    load_proto,
    opsets_of,
    serialized,
    source_label,
)
from .graph.fold import Scope, with_graph
from .graph.walk import all_nodes, first_output, subgraphs
from .layers import UnboundNode, unbound_node
from .quantized import unbound_quantized_node
from .runtime.evaluator import Evaluator
from .runtime.recurrent import OPERATORS, is_recurrent

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

    from .file import Source

_STRING = 8  # onnx.TensorProto.STRING


class Model(core.Model):
    """An ONNX model, ready to be called from any number of threads.

    Parameters
    ----------
    proto : onnx.ModelProto
        As `load_proto` gives it; not to be changed afterwards.
    label : str
        How errors name the model.
    operators : sequence of type
        Operators of other domains, as onnx's ReferenceEvaluator takes them.

    Attributes
    ----------
    proto : onnx.ModelProto
        As given.
    inputs, outputs : tuple of TensorInfo
        Inputs that are initializers too have that value as their default.

    Raises
    ------
    PyrnnxError
        Names or opsets that do not fit together; functions that cannot be inlined.
    """

    def __init__(self, proto: ModelProto, label: str = "ONNX model", operators: Sequence[type[Any]] = ()) -> None:
        if not isinstance(proto, import_onnx().ModelProto):
            raise ArgumentError(f"{label}: proto is {type(proto).__name__}; expected an onnx.ModelProto")
        self.proto, self.label, self._operators = proto, label, operators
        check_model(proto, label)
        self._source = inlined(proto, label)
        self._opsets = opsets_of(self._source, label)
        graph = self._source.graph
        self._defaults = frozenset(one.name for one in graph.initializer) & {one.name for one in graph.input}
        self.inputs = tuple(_tensor_info(label, one, self._defaults) for one in graph.input)
        self.outputs = tuple(_tensor_info(label, one) for one in graph.output)
        self._lock = threading.RLock()
        self._scopes: dict[bool, Scope] = {}
        self._layers: Mapping[str, Any] | None = None
        self._evaluators: dict[tuple[bool, frozenset[str]], Evaluator] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """By its source: what is prepared is made anew, where and when it is needed."""
        return _restored, (serialized(self.proto, self.label), self.label)

    @property
    def layers(self) -> Mapping[str, Layer | UnboundNode]:
        """Recurrent nodes in the model's order, those in the bodies of If, Loop and Scan and in functions included.

        A `NodeLayer` where W, R, B and P are constants; an `UnboundNode` where one of them is computed at run time, or
        is an input without a default. The key is the node's name if no other node of the model has it, else the first
        output of the node after, for each node that it is in the body of, that one's first output and the attribute
        that is the body: "h", "y/then_branch/h"; and "#2" and so on where that is the name of another node. Functions
        are inlined, so that each of their calls has layers of its own.

        Raises
        ------
        PyrnnxError
            Attributes or weights that the operator does not allow.
        """
        with self._lock:
            if self._layers is None:
                scope = self._scope(defaults=True)
                self._layers = MappingProxyType(
                    {key: self._layer(inner, index) for key, (inner, index) in _recurrent_nodes(scope).items()}
                )
            return self._layers

    def _layer(self, scope: Scope, index: int) -> Layer | UnboundNode:
        node = type(scope.nodes[index])()
        node.CopyFrom(scope.nodes[index])
        node.name = scope.names[index]
        domain, inputs, weights, make = OPERATORS[node.op_type]
        named = {name: source for name, source in zip(inputs, node.input, strict=False) if source}
        values = {source: scope.value(source) for name, source in named.items() if name != "X"}
        constants = {source: value for source, value in values.items() if value is not None}
        opset = self._opsets.get(domain, 1)
        if all(named[name] in constants for name in weights if name in named):
            # The layer has them: the evaluator need not hold them too.
            scope.unused[index] = tuple(inputs.index(name) for name in weights if name in named)
            return make(node, constants, opset)
        bound = {name: constants[s] for name, s in named.items() if name not in weights and s in constants}
        return unbound_quantized_node(node, bound) if domain else unbound_node(node, bound, opset)

    def _scope(self, *, defaults: bool) -> Scope:
        """The graph folded; with the defaults of inputs as constants, or as inputs."""
        if defaults not in self._scopes:
            self._scopes[defaults] = scope = Scope(
                self._source.graph, self._opsets, label=self.label, constant_inputs=defaults
            )
            for key, (inner, index) in _recurrent_nodes(scope).items():
                inner.names[index] = key
        return self._scopes[defaults]

    def _evaluator(self, defaults: bool, outputs: frozenset[str]) -> Evaluator:
        """What runs the model; `outputs` are wanted beside the model's own."""
        with self._lock:
            found = self._evaluators.get((defaults, outputs))
            if found is None:
                # Weights that a caller replaces are no layer's: such calls go the way of computed weights.
                layers = self.layers if defaults else None
                scope = self._scope(defaults=defaults)
                graph, _ = scope.rebuilt(outputs)
                found = Evaluator(
                    with_graph(self._source, graph), self.label, layers, scope.unfolded(graph), self._operators
                )
                self._evaluators[defaults, outputs] = found
            return found

    def prepare(self) -> None:
        """Fold constants, prepare the weights and look up all operators now; else the first call does.

        Raises
        ------
        PyrnnxError
            An operator that is not known.
        """
        self._evaluator(defaults=True, outputs=frozenset())

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        defaults = self._defaults.isdisjoint(inputs)
        evaluator = self._evaluator(defaults, frozenset())
        if not evaluator.names.issuperset(outputs):
            known = {name for node in self._source.graph.node for name in node.output}
            known |= {one.name for one in self._source.graph.initializer}
            for name in outputs:
                if name not in known and name not in evaluator.names:
                    raise ArgumentError(
                        f"{self.label}: outputs has {shown(name)}, which is no value at the model's top level"
                    )
            evaluator = self._evaluator(defaults, frozenset(outputs) - evaluator.names)
        return evaluator.run(inputs, outputs)


def _restored(contents: bytes, label: str) -> Model:
    return Model(load_proto(contents), label)


def _recurrent_nodes(scope: Scope) -> dict[str, tuple[Scope, int]]:
    """Every recurrent node of the graph and of its bodies, as scope and index there, by the key that `layers` has."""
    names = [node.name for node in all_nodes(scope.graph.node)]
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    found: dict[str, tuple[Scope, int]] = {}
    numbers: dict[str, int] = {}
    for inner, index, path in _walk(scope, ""):
        node = inner.nodes[index]
        key = node.name
        if not key or counts[key] > 1:
            stem = f"{path}{first_output(node) or node.op_type}"
            key = stem
            while key in counts or key in found:
                numbers[stem] = numbers.get(stem, 1) + 1
                key = f"{stem}#{numbers[stem]}"
        found[key] = (inner, index)
    return found


def _walk(scope: Scope, path: str) -> Iterator[tuple[Scope, int, str]]:
    for index, node in enumerate(scope.nodes):
        if is_recurrent(node):
            yield scope, index, path
        for (attribute, _), body in zip(subgraphs(node), scope.bodies.get(index, ()), strict=True):
            yield from _walk(body, f"{path}{first_output(node)}/{attribute}/")


def _tensor_info(label: str, info: ValueInfoProto, defaults: frozenset[str] = frozenset()) -> TensorInfo:
    onnx = import_onnx()
    tensor = info.type.tensor_type
    optional = info.name in defaults
    if not info.type.HasField("tensor_type") or tensor.elem_type == 0:
        return TensorInfo(info.name, optional=optional)
    dtype = "str"
    if tensor.elem_type != _STRING:
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
        except KeyError:
            raise FormatError(f"{label}: {shown(info.name)} has the unknown element type {tensor.elem_type}") from None
    shape = tuple(_dimension(one) for one in tensor.shape.dim) if tensor.HasField("shape") else None
    return TensorInfo(info.name, dtype, shape, optional=optional)


def _dimension(dimension: Any) -> int | str | None:
    if dimension.HasField("dim_value"):
        return dimension.dim_value if dimension.dim_value >= 0 else None
    return dimension.dim_param or None


def read_model(source: Source) -> Model:
    """A whole ONNX model.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        A str is a path. External data is looked for beside a path; a ModelProto is copied.

    Returns
    -------
    Model
        Called as ``model(*arrays)`` or ``model({name: array})``; its recurrent layers are in ``model.layers``.

    Raises
    ------
    PyrnnxError
        A file that cannot be read, is no ONNX model or is not sound. An operator that is not known is an error only
        when the model is called.
    """
    return Model(load_proto(source), source_label(source))
