"""ONNX models, run as a whole.

file (bytes to a message) -> graph.check, graph.inline, graph.dense (a valid graph without functions and sparse tensors)
-> graph.fold (constants) -> recognise (layers that the graph spells out) -> recurrent_graph (layers of recurrent nodes)
-> runtime.program (one ONNX Runtime session with these layers)
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.layers.custom_operators import DOMAIN
from pyrnnx.layers.layer import Layer
from pyrnnx.models import model as core
from pyrnnx.models.inputs import read_inputs
from pyrnnx.models.layers import Layers
from pyrnnx.models.roles import Role
from pyrnnx.models.state_pairs import candidates_of
from pyrnnx.models.stream import Carrier
from pyrnnx.operator.tensor_info import TensorInfo

from .carried import Carried, carried
from .external import load_external
from .file import serialized, source_folder, source_label
from .graph.check import sound_graph
from .graph.constants import array_of
from .graph.dense import densified
from .graph.fold import fold
from .graph.inline import inlined
from .graph.rebuild import with_graph
from .graph.specialize import specialized
from .graph.walk import Graph, all_graphs, local_names
from .large import completed, load_parts
from .layers import NodeLayer, UnboundNode
from .messages import copied
from .messages import tensors as all_tensors
from .onnx_package import import_onnx
from .programs import Programs
from .recognise import recognised
from .recurrent_graph import RecurrentGraph, recurrent_graph
from .recurrent_operators import check_handles
from .roles import input_roles
from .runtime.evaluator import evaluate_node
from .runtime.plan import Plan
from .runtime.program import Program
from .runtime.recurrent import LayerCall
from .runtime.session import is_installed
from .runtime.settings import Settings
from .stream_layer import StreamLayer
from .value_info import tensor_info, value_info

if TYPE_CHECKING:
    from onnx import ModelProto

    from .file import Source
    from .graph.constants import Tensor


class Model(core.Model):
    """Thread-safe ONNX model.

    Parameters
    ----------
    proto : onnx.ModelProto
        As `load_proto` returns it; must not change afterwards.
    label : str
        How errors name the model.
    runtime : str, optional
        As in `read_model`.
    calls : mapping, optional
        Runners of nodes of other domains, by node name.
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
        Names or opsets are inconsistent, a function cannot be inlined, or a sparse tensor is invalid or, made dense,
        exceeds the memory limit.
    """

    _fixed = core.Model._fixed | {"runtime"}

    def __init__(
        self,
        proto: ModelProto,
        label: str = "ONNX model",
        *,
        runtime: str | None = None,
        calls: Mapping[str, LayerCall] = MappingProxyType({}),
        folder: Path | None = None,
        arrays: Mapping[str, AnyArray] = MappingProxyType({}),
    ) -> None:
        if not isinstance(proto, import_onnx().ModelProto):
            raise ArgumentError(f"{label}: proto is {type(proto).__name__}; expected an onnx.ModelProto")
        self._proto, self._arrays, self.label, self._calls = proto, arrays, label, calls
        self.runtime = config.choose_runtime(label, runtime)
        graph = Graph(proto.graph)
        tensors = (tensor for inner in all_graphs(graph) for tensor in inner.tensors)
        load_external(import_onnx(), label, chain(tensors, *map(all_tensors, proto.functions)), folder)
        graph, opsets = sound_graph(proto, label, graph)
        source, self._opsets = inlined(proto, opsets, label, graph)
        if source is not proto:
            graph = Graph(source.graph)
        if DOMAIN in dict(graph.kinds):
            check_handles(graph.node, label)
        self._source = densified(source, label, graph)
        if self._source is not source:
            graph = Graph(self._source.graph)
        graph.arrays = arrays
        self._read = graph
        self._defaults = frozenset(t.name for t in graph.initializer) & {value.name for value in graph.input}
        self.inputs = tuple(tensor_info(label, info, optional=info.name in self._defaults) for info in graph.input)
        self.outputs = tuple(tensor_info(label, info) for info in graph.output)
        self._lock = threading.RLock()
        self._programs = Programs(self.outputs, self._defaults, self._new_program, self._lock)
        self._graphs: dict[bool, RecurrentGraph] = {}
        self._layers: Layers[NodeLayer | UnboundNode] | None = None
        self._carriers: dict[tuple[frozenset[str], bool | frozenset[str]], Carrier] = {}

    @property
    def proto(self) -> ModelProto:
        """Model as read; its large initializers are copied each time."""
        return completed(self._proto, self._arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the source; layers and programs are prepared again when needed."""
        return _restored, (serialized(self.proto, self.label), self.label, self.runtime)

    @property
    def layers(self) -> Layers[NodeLayer | UnboundNode]:
        """Recurrent nodes in the model's order, also in functions and in bodies of If, Loop and Scan.

        A node with constant W, R, B and P is a `NodeLayer`; a node with weights that are computed at run time, or are
        inputs without a default, is an `UnboundNode`. The key is the node's name if unique, else a path of first
        outputs and body attributes: "h", "y/then_branch/h", with "#2" and so on if the path is another node's name.
        Functions are inlined, so that each call has its own layers. ``layers[0]`` is the first.

        Raises
        ------
        PyrnnxError
            Attributes or weights that the operator does not allow.
        """
        with self._lock:
            if self._layers is None:
                graph = self._recurrent_graph(defaults=True)
                layers = graph.layers(self._opsets)
                self._layers = Layers(self.label, layers, lambda layer: layer, graph.why_no_layers)
            return self._layers

    def _recurrent_graph(self, *, defaults: bool) -> RecurrentGraph:
        """Return the folded graph, with the defaults of inputs as constants or as inputs."""
        if defaults not in self._graphs:
            codes = self.runtime != "reference" and is_installed()
            folded = fold(self._read, self._opsets, evaluate_node, self.label, defaults=defaults, codes=codes)
            self._graphs[defaults] = recurrent_graph(recognised(folded, self._opsets, evaluate_node))
        return self._graphs[defaults]

    def specialized(self, constants: Mapping[str, Any], sizes: Mapping[str, Sequence[int | None]]) -> Model:
        """Return the model for calls with the same values of some inputs, known sizes, and many rows.

        Parameters
        ----------
        constants : mapping
            Values of inputs in every call. The result does not have these inputs.
        sizes : mapping
            Sizes of inputs, None for an open one.

        Raises
        ------
        PyrnnxError
            A constant that is no input, or does not fit it; sizes that are not those of an input.
        """
        infos = [info for info in self.inputs if info.name in constants]
        checked = read_inputs(self.label, infos, (constants,))
        source = completed(self._source, self._arrays)
        proto = specialized(source, self.label, self._opsets, evaluate_node, checked, sizes)
        return Model(proto, self.label, runtime=self.runtime, calls=self._calls)

    def folded(self, carried: Mapping[str, Carried] = MappingProxyType({})) -> tuple[ModelProto, Mapping[str, Tensor]]:
        """Return the model without functions, with constants and defaults folded, and its initializers by name.

        In the model, initializers have only names and types. Recurrent nodes have the names of `layers`, without the
        weights of prepared layers. The states of `carried` layers are inputs and outputs of their nodes.

        Raises
        ------
        PyrnnxError
            As for `layers`.
        """
        folded = fold(self._read, self._opsets, evaluate_node, self.label, defaults=True)
        recurrent = recurrent_graph(recognised(folded, self._opsets, evaluate_node))
        outputs = {output for node in carried.values() for output in node.states}
        graph, _ = recurrent.rebuilt(outputs, self.layers, {name: node.edit for name, node in carried.items()})
        names = local_names(graph)
        graph.value_info.extend(value for value in self._source.graph.value_info if value.name in names)
        return with_graph(self._source, graph), recurrent.tensors(graph)

    @property
    def plan(self) -> Plan:
        """Table of the engines that run the parts of the model, and why.

        Raises
        ------
        PyrnnxError
            An operator is unknown.
        """
        return Plan(self._programs.program().rows())

    def _new_program(
        self,
        defaults: bool,
        more: frozenset[str],
        carried: Mapping[str, Carried] = MappingProxyType({}),
    ) -> Program:
        """Build a program of the model.

        Parameters
        ----------
        defaults : bool
            Whether the defaults of inputs are constants, or inputs.
        more : frozenset of str
            Values that it returns in addition to the model's outputs.
        carried : mapping
            Layers with states that are inputs and outputs, by name.
        """
        recurrent, calls = self._recurrent_graph(defaults=defaults), self._calls
        known = self._read.local | {output for node in carried.values() for output in node.states} | recurrent.added()
        for name in sorted(more - known):
            names = shortened(", ".join(shown(info.name) for info in self.outputs))
            raise ArgumentError(
                f"{self.label}: outputs has {shown(name)}, which is not a value at the model's top level; expected "
                f"outputs ({names}) or values inside the graph"
            )
        # A replaced default may be a weight: without defaults, each call builds the layers.
        layers: dict[str, Layer | UnboundNode | StreamLayer] = dict(self.layers) if defaults else {}
        carried = {name: node for name, node in carried.items() if defaults or node.states}
        if carried:
            recurrent.check_weights(self.label, [name for name, node in carried.items() if node.states])
            layers = {**layers, **{name: node.layer for name, node in carried.items()}}
            calls = {**calls, **{name: LayerCall(node.layer) for name, node in carried.items() if name in calls}}
        edits = {name: node.edit for name, node in carried.items()}
        graph, large = recurrent.rebuilt(more, layers, edits)
        states = [info for node in carried.values() for info in node.infos]
        graph.input.extend(map(value_info, states))
        settings = Settings(self.label, self._opsets, layers, self.runtime, calls)
        wanted = dict.fromkeys([info.name for info in self.outputs] + sorted(more))
        tensors = recurrent.tensors(graph)
        empty = frozenset(info.name for info in states)
        program = Program(
            settings, self._source, graph, tensors, list(wanted), large, replaceable=not defaults, may_be_empty=empty
        )
        self._graphs.pop(defaults, None)  # frees weights that layers and sessions own now
        return program

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        return self._programs.run(inputs, outputs)

    def _run_once(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        with self._lock:
            program = self._new_program(*self._programs.key(inputs, outputs))
        values = program.call(inputs)
        return {name: values[name] for name in outputs}

    def _computed_values(self) -> tuple[Mapping[str, str], frozenset[str]]:
        graph = self._read
        known = {value.name for value in graph.input}
        for node in graph.node:
            if not known.isdisjoint(node.needs):
                known.update(name for name in node.output if name)
        return {name: name for node in graph.node for name in node.output if name in known}, frozenset()

    def _layer_values(self) -> Mapping[str, Mapping[str, core.LayerValue]]:
        layers = self.layers
        with self._lock:
            values = self._recurrent_graph(defaults=True).values(layers)
            if self._programs:  # as `_new_program` leaves it
                self._graphs.pop(True)
        return values

    def _input_roles(self) -> Mapping[str, Role]:
        return input_roles(self._read, self.label)

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
            arrays = {name: array for name, array in self._arrays.items() if name not in starts}
            proto = self._without(starts)
            model = Model(proto, self.label, runtime=self.runtime, calls=self._calls, arrays=arrays)
            return model._new_carrier(fed, layers)._replace(starts=starts)
        nodes = carried(
            *(self._recurrent_graph(defaults=True), self.layers, self._calls, fed, layers),
            lambda names: candidates_of([info for info in self.inputs if info.name in names], self.outputs),
        )
        states = {output: name for node in nodes.values() for output, name in node.states.items()}
        if not nodes:
            return Carrier(self)
        backward = [node.layer.label for node in nodes.values() if node.is_backward]
        return Carrier(_WithStates(self, nodes), states, backward=tuple(backward))

    def _without(self, initializers: Collection[str]) -> ModelProto:
        """Return the inlined model without the defaults of inputs that every push supplies."""
        proto = copied(self._source)
        for index in reversed(range(len(proto.graph.initializer))):
            if proto.graph.initializer[index].name in initializers:
                del proto.graph.initializer[index]
        return proto


class _WithStates:
    """Model of a stream, with inputs and outputs for the states of layers."""

    def __init__(self, model: Model, carried: Mapping[str, Carried]) -> None:
        self._model, self._carried, self.label = model, carried, model.label
        own = [info for node in carried.values() for info in node.infos]
        self._starts = {name: start for node in carried.values() for name, start in node.starts.items()}
        self.inputs = (*model.inputs, *own)
        known = {info.name for info in model.outputs}
        names = [name for node in carried.values() for name in node.states if name not in known]
        self.outputs = (*model.outputs, *map(TensorInfo, names))
        build = partial(model._new_program, carried=carried)
        self._programs = Programs(model.outputs, model._defaults, build, model._lock)

    @property
    def layers(self) -> Layers[NodeLayer | UnboundNode]:
        return self._model.layers

    def folded(self) -> tuple[ModelProto, Mapping[str, Tensor]]:
        return self._model.folded(self._carried)

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        if not self._starts.keys() <= inputs.keys():
            inputs = {**self._starts, **inputs}
        return self._programs.run(inputs, outputs)


def _restored(contents: bytes, label: str, runtime: str) -> Model:
    proto, arrays = load_parts(contents)
    return Model(proto, label, runtime=runtime, arrays=arrays)


def read_model(source: Source, *, runtime: str | None = None) -> Model:
    """Read an ONNX model.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        A str is a path. External data is read from the folder of a path; a ModelProto is copied.
    runtime : str, optional
        Engine for non-recurrent nodes: "onnxruntime"; "reference", onnx's reference evaluator, many times slower; or
        "auto", ONNX Runtime, and with a warning the reference evaluator for nodes that it cannot run. Default:
        the environment variable PYRNNX_RUNTIME, else "auto".

    Returns
    -------
    Model
        Called as ``model(*arrays)`` or ``model({name: array})``; its recurrent layers are in ``model.layers``.

    Raises
    ------
    PyrnnxError
        The file cannot be read, or is not a valid ONNX model. Unknown operators raise only when the model is called.
    """
    proto, arrays = load_parts(source)
    return Model(proto, source_label(source), runtime=runtime, folder=source_folder(source), arrays=arrays)
