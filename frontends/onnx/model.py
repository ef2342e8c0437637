"""ONNX models, run as a whole: one ONNX Runtime session of the model that the passes rewrite.

file (bytes to a message) -> passes.canonical -> passes.find_layers (layers) -> passes.rewritten (nodes) -> session
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, shortened, shown
from pyrnnx.layers.custom_operators import DOMAIN
from pyrnnx.models import model as core
from pyrnnx.models.layers import Layers
from pyrnnx.models.roles import Role
from pyrnnx.models.stream import Carrier
from pyrnnx.operator.tensor_info import TensorInfo

from .file import load_external, load_proto, serialized, source_folder, source_label, tensors_of
from .graph.constants import array_of, completed, without_large
from .graph.inference import tensor_info, value_info
from .graph.walk import Graph, subgraphs
from .messages import copied
from .onnx_package import import_onnx
from .operators.layers import NodeLayer, UnboundNode
from .passes import (
    DEFAULT_OPTIONS,
    FIRST_IR_WITH_DEFAULTS,
    Carried,
    LayerOptions,
    RecurrentModel,
    canonical,
    carried,
    find_layers,
    layer_options,
    rewritten,
    without_layers,
)
from .passes.inline import inline_functions
from .roles import input_roles
from .session import NotRunnable, Programs, check_options, new_session, plain_session, threads_of

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from .file import Source

ONNXRUNTIME, PYRNNX = "ONNX Runtime", "pyrnnx"
_COUNTED = {
    ONNXRUNTIME: ("session of ONNX Runtime", "sessions of ONNX Runtime"),
    PYRNNX: ("recurrent layer", "recurrent layers"),
}
Row = tuple[str, str, str]  # engine, part of the model, reason if it is not obvious


class Model(core.Model):
    """Thread-safe ONNX model.

    Parameters
    ----------
    proto : onnx.ModelProto
        Large values are taken out of it, and it must not change otherwise.
    label : str
        How errors name the model.
    session_options : onnxruntime.SessionOptions, optional
        As in `read_model`.
    options : LayerOptions, optional
    folder : Path, optional
        Folder of external data.
    arrays : mapping
        Values of initializers that `proto` lacks, by name.

    Attributes
    ----------
    inputs, outputs : tuple of TensorInfo
        Initializers that are also inputs are default values.

    Raises
    ------
    PyrnnxError
        Texts, tensors, opsets or names are inconsistent, and ONNX Runtime rejects the model, too.
    """

    _fixed = core.Model._fixed | {"session_options"}

    def __init__(
        self,
        proto: ModelProto,
        label: str = "ONNX model",
        *,
        session_options: Any = None,
        options: LayerOptions = DEFAULT_OPTIONS,
        folder: Path | None = None,
        arrays: Mapping[str, AnyArray] = MappingProxyType({}),
    ) -> None:
        if not isinstance(proto, import_onnx().ModelProto):
            raise ArgumentError(f"{label}: proto is {type(proto).__name__}; expected an onnx.ModelProto")
        if session_options is not None:
            check_options(label, session_options)
        self.label, self._options, self.session_options = label, options, session_options
        graph = Graph(proto.graph)
        load_external(import_onnx(), label, tensors_of(proto, graph), folder)
        self._proto, large = without_large(proto)
        self._arrays = {**arrays, **large}
        if self._proto is not proto:
            graph = Graph(self._proto.graph)
        self._source, self._graph, self._unreadable = self._checked(self._proto, graph)
        graph = self._graph
        graph.arrays = self._arrays
        self._defaults = frozenset(t.name for t in graph.initializer) & {value.name for value in graph.input}
        self.inputs = tuple(tensor_info(label, info, optional=info.name in self._defaults) for info in graph.input)
        self.outputs = tuple(tensor_info(label, info) for info in graph.output)
        self._lock = threading.RLock()
        self._programs = Programs(label, self.outputs, self._defaults, self._new_session)
        self._found: RecurrentModel | None = None
        self._carriers: dict[tuple[frozenset[str], bool | frozenset[str]], Carrier] = {}

    def _checked(self, proto: ModelProto, graph: Graph) -> tuple[ModelProto, Graph, str]:
        """Return the model as the passes want it, or unchanged, with the reason, if only ONNX Runtime can read it."""
        try:
            return *canonical(proto, graph, self.label), ""
        except FormatError as error:
            try:
                plain_session(completed(proto, self._arrays))
            except (NotRunnable, PyrnnxError):
                raise error from None
            return proto, graph, str(error)

    @property
    def proto(self) -> ModelProto:
        """Model as read; its large initializers are copied each time."""
        return completed(self._proto, self._arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the source; layers and sessions are prepared again when needed."""
        return _restored, (serialized(self.proto, self.label), self.label, self._options)

    @cached_property
    def layers(self) -> Layers[NodeLayer | UnboundNode]:
        """Recurrent nodes in the model's order, also in functions and in bodies of If, Loop and Scan.

        A node with constant W, R, B and P is a `NodeLayer`; a node with weights that are computed at run time, or are
        inputs without a default, is an `UnboundNode`. The key is the node's name if unique, else a path of first
        outputs and body attributes: "h", "y/then_branch/h", with "#2" and so on if the path is another node's name.
        Functions are inlined, so that each call has its own layers. ``layers[0]`` is the first. Layers that the graph
        spells out, in a loop or in equal steps, are among them; their `origin` says where.

        Raises
        ------
        PyrnnxError
            Attributes or weights that the operator does not allow.
        """
        layered = self._with_layers()
        return Layers(self.label, layered.layers, lambda layer: layer, layered.why_no_layers)

    def _with_layers(self) -> RecurrentModel:
        with self._lock:
            if self._found is None:
                self._found = self._find(True, frozenset())
            return self._found

    def _find(self, defaults: bool, more: frozenset[str]) -> RecurrentModel:
        """Return the model with its layers; `more` are outputs besides the model's own."""
        proto, graph = self._source, self._graph
        if not defaults:
            proto = copied(proto)
            proto.ir_version = max(proto.ir_version, FIRST_IR_WITH_DEFAULTS)
        if more:
            proto = copied(proto)
            proto.graph.output.extend(import_onnx().ValueInfoProto(name=name) for name in sorted(more))
        if proto is not self._source:
            graph = Graph(proto.graph)
        if self._unreadable:
            return without_layers(proto, self._arrays, self._unreadable)
        return find_layers(proto, graph, self.label, self._arrays, self._options, defaults=defaults)

    @property
    def plan(self) -> Plan:
        """Table of the engines that run the parts of the model.

        Raises
        ------
        PyrnnxError
            ONNX Runtime is not installed, or rejects the model.
        """
        self._session()
        result = rewritten(self._with_layers())
        rest = [node for node in result.proto.graph.node if node.domain != DOMAIN]
        rows = [(ONNXRUNTIME, shortened(counted(rest)), "")] if rest else []
        return Plan([*rows, *((PYRNNX, what, why) for what, why in result.rows)])

    def _new_session(
        self, defaults: bool, more: frozenset[str], carried: Mapping[str, Carried] = MappingProxyType({})
    ) -> Any:
        """Return a session that also returns `more`, and has states of layers as inputs and outputs.

        Unless `defaults` are constants, they are inputs.
        """
        states = {output for node in carried.values() for output in node.states}
        added = self._added(more - states)
        more = more - states - added
        layered = self._find(defaults, more) if more or not defaults else self._with_layers()
        result = rewritten(layered, carried=carried, threads=threads_of(self.session_options))
        graph = result.proto.graph
        graph.input.extend(value_info(info) for node in carried.values() for info in node.infos)
        known = {value.name for value in graph.output}
        graph.output.extend(import_onnx().ValueInfoProto(name=name) for name in sorted((states | added) - known))
        return new_session(result.proto, result.arrays, self.session_options, layered.contents)

    def _added(self, names: frozenset[str]) -> frozenset[str]:
        """Return the names that are only in the graph with hidden layers."""
        unknown = names - self._graph.local
        for name in sorted(unknown - self._with_layers().graph.local if unknown else ()):
            outputs = shortened(", ".join(shown(info.name) for info in self.outputs))
            raise ArgumentError(
                f"{self.label}: outputs has {shown(name)}, which is not a value at the model's top level; expected "
                f"outputs ({outputs}) or values inside the graph"
            )
        return unknown

    def _session(self) -> Any:
        return self._programs.session()

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        return self._programs.run(inputs, outputs)

    def _run_once(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        return self._programs.run(inputs, outputs, once=True)

    def _computed_values(self) -> tuple[Mapping[str, str], frozenset[str]]:
        graph = self._graph
        known = {value.name for value in graph.input}
        for node in graph.node:
            if not known.isdisjoint(node.needs):
                known.update(name for name in node.output if name)
        return {name: name for node in graph.node for name in node.output if name in known}, frozenset()

    def _layer_values(self) -> Mapping[str, Mapping[str, core.LayerValue]]:
        return self._with_layers().values()

    def _input_roles(self) -> Mapping[str, Role]:
        graph = self._graph
        with suppress(PyrnnxError):  # functions that cannot be inlined show no roles
            if self._source.functions:
                graph = Graph(inline_functions(self._source, self.label, every=True).graph)
                graph.arrays = self._arrays
        return input_roles(graph, self.label)

    def _carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        with self._lock:
            if (fed, layers) not in self._carriers:
                self._carriers[fed, layers] = self._new_carrier(fed, layers)
            return self._carriers[fed, layers]

    def _new_carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        starts = {
            tensor.name: array_of(self._arrays.get(tensor.name, tensor), self.label)
            for tensor in self._source.graph.initializer
            if tensor.name in fed & self._defaults
        }
        if starts:
            proto = copied(self._source)
            left = [tensor for tensor in proto.graph.initializer if tensor.name not in starts]
            del proto.graph.initializer[:]
            proto.graph.initializer.extend(left)
            arrays = {name: array for name, array in self._arrays.items() if name not in starts}
            options = {"session_options": self.session_options, "options": self._options}
            model = Model(proto, self.label, arrays=arrays, **options)
            return model._new_carrier(fed, layers)._replace(starts=starts)
        nodes = carried(self._with_layers(), fed, layers)
        states = {output: name for node in nodes.values() for output, name in node.states.items()}
        if not nodes:
            return Carrier(self)
        backward = [node.layer.label for node in nodes.values() if node.is_backward]
        return Carrier(_WithStates(self, nodes), states, backward=tuple(backward))


class _WithStates:
    """Model of a stream, with inputs and outputs for the states of layers."""

    def __init__(self, model: Model, carried: Mapping[str, Carried]) -> None:
        own = [info for node in carried.values() for info in node.infos]
        self._starts = {name: start for node in carried.values() for name, start in node.starts.items()}
        self.inputs = (*model.inputs, *own)
        known = {info.name for info in model.outputs}
        names = [name for node in carried.values() for name in node.states if name not in known]
        outputs = (*model.outputs, *map(TensorInfo, names))
        make = partial(model._new_session, carried=carried)
        self._programs = Programs(model.label, outputs, model._defaults, make)

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        if not self._starts.keys() <= inputs.keys():
            inputs = {**self._starts, **inputs}
        return self._programs.run(inputs, outputs)


def _restored(contents: bytes, label: str, options: LayerOptions) -> Model:
    return Model(load_proto(contents), label, options=options)


def read_model(
    source: Source, *, session_options: Any = None, weight_dtype: str | None = None, leave: Sequence[str] = ()
) -> Model:
    """Read an ONNX model.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        A str is a path. External data is read from the folder of a path; a ModelProto is copied.
    session_options : onnxruntime.SessionOptions, optional
        Options of the sessions that run the model. The operators of pyrnnx are registered in it. Default: the options
        of ONNX Runtime, with `pyrnnx.get_num_threads()` threads.
    weight_dtype, leave
        As of `pyrnnx.load`.

    Returns
    -------
    Model
        Called as ``model(*arrays)`` or ``model({name: array})``; its recurrent layers are in ``model.layers``.

    Raises
    ------
    PyrnnxError
        The file cannot be read, or is no valid ONNX model. What ONNX Runtime rejects raises when the model is called.
    """
    label = source_label(source)
    options = layer_options(label, weight_dtype, leave)
    proto = load_proto(source, external=False)
    return Model(proto, label, session_options=session_options, options=options, folder=source_folder(source))


class Plan:
    """Table of the engines that run the parts of a model, and why."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = list(rows)

    def rows(self) -> list[Row]:
        """Return (runner, what it runs, why) for each part."""
        return list(self._rows)

    def __repr__(self) -> str:
        counts = Counter(runner for runner, _, _ in self._rows)
        parts = [f"{count} {_COUNTED[runner][count != 1]}" for runner, count in counts.items()]
        return f"<Plan: {', '.join(parts) or 'nothing to run'}>"

    def __str__(self) -> str:
        widths = [max((len(row[column]) for row in self._rows), default=0) for column in range(2)]
        return "\n".join(f"{who:{widths[0]}}  {what:{widths[1]}}  {why}".rstrip() for who, what, why in self._rows)


def counted(nodes: Sequence[NodeProto]) -> str:
    """Return the operators of nodes by descending count, with bodies: "2 Conv, If (3 Add, Relu), Relu"."""
    counts = Counter(node.op_type for node in nodes)
    inside: dict[str, list[NodeProto]] = {}
    for node in nodes:
        inside.setdefault(node.op_type, []).extend(inner for _, body in subgraphs(node) for inner in body.node)
    parts = []
    for name, count in counts.most_common():
        bodies = f" ({counted(inside[name])})" if inside[name] else ""
        parts.append(f"{name if count == 1 else f'{count} {name}'}{bodies}")
    return ", ".join(parts)
