"""Whole ONNX models.

file (bytes to a message) -> graph.check, graph.inline, graph.dense (a sound graph without functions and sparse tensors)
-> graph.fold (its constants known) -> recurrent_graph (its recurrent nodes as layers) -> runtime.plan (these layers,
and segments between them)
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx import config
from pyrnnx import model as core
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.feedback import candidates_of
from pyrnnx.model_layers import Layers
from pyrnnx.model_stream import Carrier
from pyrnnx.tensor_info import TensorInfo

from .carried import Carried, carried
from .file import load_proto, serialized, source_label
from .graph.check import check_model
from .graph.constants import array_of
from .graph.dense import densified
from .graph.fold import fold
from .graph.inline import inlined
from .graph.rebuild import with_graph
from .graph.walk import needed_names
from .onnx_package import import_onnx
from .recurrent_graph import RecurrentGraph, recurrent_graph
from .runtime.choice import Settings
from .runtime.evaluator import evaluate_node
from .runtime.plan import Plan, plan
from .runtime.recurrent import LayerCall
from .runtime.session import is_installed
from .value_info import tensor_info, value_info

if TYPE_CHECKING:
    from onnx import ModelProto

    from .file import Source
    from .graph.constants import Tensor


_MAIN: tuple[bool, frozenset[str]] = (True, frozenset())  # of the plans, that for the model's outputs alone


class Model(core.Model):
    """An ONNX model, ready to be called from any number of threads.

    Parameters
    ----------
    proto : onnx.ModelProto
        As `load_proto` gives it; not to be changed afterwards.
    label : str
        How errors name the model.
    runtime : str, optional
        As of `read_model`.
    calls : mapping, optional
        What runs nodes of domains that no runtime knows, by the names of the nodes.

    Attributes
    ----------
    proto : onnx.ModelProto
        As given.
    inputs, outputs : tuple of TensorInfo
        Inputs that are initializers too have that value as their default.

    Raises
    ------
    PyrnnxError
        Names or opsets that do not fit together; functions that cannot be inlined; sparse tensors that are broken, or
        beyond the memory limit, for they are made dense.
    """

    def __init__(
        self,
        proto: ModelProto,
        label: str = "ONNX model",
        *,
        runtime: str | None = None,
        calls: Mapping[str, LayerCall] = MappingProxyType({}),
    ) -> None:
        if not isinstance(proto, import_onnx().ModelProto):
            raise ArgumentError(f"{label}: proto is {type(proto).__name__}; expected an onnx.ModelProto")
        self.proto, self.label, self._calls = proto, label, calls
        self.runtime = config.choose_runtime(label, runtime)
        source, self._opsets = inlined(proto, check_model(proto, label), label)
        self._source = densified(source, label)
        graph = self._source.graph
        self._defaults = frozenset(one.name for one in graph.initializer) & {one.name for one in graph.input}
        self.inputs = tuple(tensor_info(label, one, optional=one.name in self._defaults) for one in graph.input)
        self.outputs = tuple(tensor_info(label, one) for one in graph.output)
        self._input_names = [info.name for info in self.inputs]
        self._output_names = frozenset(info.name for info in self.outputs)
        self._lock = threading.RLock()
        self._graphs: dict[bool, RecurrentGraph] = {}
        self._layers: Layers | None = None
        self._plans: dict[tuple[bool, frozenset[str]], Plan] = {}
        self._carriers: dict[tuple[frozenset[str], bool | frozenset[str]], Carrier] = {}
        self._carried: Mapping[str, Carried] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """By its source: what is prepared is made anew, where and when it is needed."""
        return _restored, (serialized(self.proto, self.label), self.label, self.runtime)

    @property
    def layers(self) -> Layers:
        """Recurrent nodes in the model's order, those in the bodies of If, Loop and Scan and in functions included.

        A `NodeLayer` where W, R, B and P are constants; an `UnboundNode` where one of them is computed at run time, or
        is an input without a default. The key is the node's name if no other node of the model has it, else the first
        output of the node after, for each node that it is in the body of, that one's first output and the attribute
        that is the body: "h", "y/then_branch/h"; and "#2" and so on where that is the name of another node. Functions
        are inlined, so that each of their calls has layers of its own. ``layers[0]`` is the first.

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
        """The graph folded; with the defaults of inputs as constants, or as inputs."""
        if defaults not in self._graphs:
            codes = self.runtime != "reference" and is_installed()
            folded = fold(self._source.graph, self._opsets, evaluate_node, self.label, defaults=defaults, codes=codes)
            self._graphs[defaults] = recurrent_graph(folded)
        return self._graphs[defaults]

    def folded(self) -> tuple[ModelProto, Mapping[str, Tensor]]:
        """The model without functions, its constants folded, defaults of inputs too; and its initializers by name.

        In the model these have only names and types. Its recurrent nodes have the names of `layers`, and none of the
        weights that a prepared layer has.

        Raises
        ------
        PyrnnxError
            As of `layers`.
        """
        found = recurrent_graph(fold(self._source.graph, self._opsets, evaluate_node, self.label, defaults=True))
        graph, _ = found.rebuilt((), self.layers)
        return with_graph(self._source, graph), found.tensors(graph)

    @property
    def plan(self) -> Plan:
        """Who runs what, and why: printed as a table.

        Raises
        ------
        PyrnnxError
            An operator that is not known.
        """
        return self._plan(defaults=True)

    def _plan(self, defaults: bool, more: frozenset[str] = frozenset()) -> Plan:
        """What runs the model, and gives the values of more names than its outputs'."""
        found = self._plans.get((defaults, more))
        if found is not None:
            return found
        with self._lock:
            if (defaults, more) not in self._plans:
                self._plans[defaults, more] = self._new_plan(defaults, more)
            return self._plans[defaults, more]

    def _new_plan(self, defaults: bool, more: frozenset[str]) -> Plan:
        graph = self._source.graph
        known = {name for node in graph.node for name in node.output}
        known |= {one.name for one in (*graph.initializer, *graph.input)}
        for name in sorted(more - known):
            raise ArgumentError(f"{self.label}: outputs has {shown(name)}, which is no value at the model's top level")
        # A default that a caller replaces may be a weight: without the defaults, layers are made in the call.
        layers = self.layers if defaults else {}
        found, calls = self._recurrent_graph(defaults=defaults), self._calls
        carried = {name: one for name, one in self._carried.items() if defaults or one.states}
        if carried:
            found.check_weights(self.label, [name for name, one in carried.items() if one.states])
            layers = {**layers, **{name: one.layer for name, one in carried.items()}}
            calls = {**calls, **{name: LayerCall(one.layer) for name, one in carried.items() if name in calls}}
        graph, large = found.rebuilt(more, layers, {name: one.edit for name, one in carried.items()})
        graph.input.extend(value_info(info) for one in carried.values() for info in one.infos)
        settings = Settings(self.label, self._opsets, layers, self.runtime, calls)
        wanted = dict.fromkeys([info.name for info in self.outputs] + sorted(more))
        tensors = found.tensors(graph)
        made = plan(settings, self._source, graph, tensors, list(wanted), large, replaceable=not defaults)
        self._graphs.pop(defaults, None)  # it holds arrays of weights that layers and sessions have now
        return made

    def prepare(self) -> None:
        """Fold constants, prepare the weights and look up all operators now; else the first call does.

        Raises
        ------
        PyrnnxError
            An operator that is not known.
        """
        self._plan(defaults=True)

    def run_again(self, arrays: tuple[Any, ...]) -> dict[str, Any] | None:
        """The outputs, if arrays of the same dtypes and shapes have been checked and run before; else None.

        Parameters
        ----------
        arrays : tuple
            The positional arguments of a call: arrays in order, or one dict.
        """
        found = self._plans.get(_MAIN)
        if found is None:
            return None
        if len(arrays) == 1 and type(arrays[0]) is dict:
            return found.call_again(arrays[0])
        if len(arrays) > len(self._input_names):
            return None
        return found.call_again(dict(zip(self._input_names, arrays, strict=False)))

    def run_checked(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Values by name; the inputs are as a call checks them."""
        defaults = self._defaults.isdisjoint(inputs)
        values = self._plan(defaults, frozenset(outputs) - self._output_names).call(inputs)
        return {name: values[name] for name in outputs}

    _again, _run = run_again, run_checked

    def _run_once(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        defaults = self._defaults.isdisjoint(inputs)
        with self._lock:
            made = self._new_plan(defaults, frozenset(outputs) - self._output_names)
        values = made.call(inputs)
        return {name: values[name] for name in outputs}

    def _computed_values(self) -> tuple[Mapping[str, str], frozenset[str]]:
        graph = self._source.graph
        known = {one.name for one in graph.input}
        for node in graph.node:
            if not known.isdisjoint(needed_names(node)):
                known.update(name for name in node.output if name)
        return {name: name for node in graph.node for name in node.output if name in known}, frozenset()

    def _layer_values(self) -> Mapping[str, Mapping[str, core.LayerValue]]:
        layers = self.layers
        with self._lock:
            found = self._recurrent_graph(defaults=True).values(layers)
            if _MAIN in self._plans:  # as `_new_plan` leaves it
                self._graphs.pop(True)
        return found

    def _carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        with self._lock:
            if (fed, layers) not in self._carriers:
                self._carriers[fed, layers] = self._new_carrier(fed, layers)
            return self._carriers[fed, layers]

    def _new_carrier(self, fed: frozenset[str], layers: bool | frozenset[str]) -> Carrier:
        starts = {one.name: array_of(one, self.label) for one in self._source.graph.initializer if one.name in fed}
        starts = {name: value for name, value in starts.items() if name in self._defaults}
        if starts:
            model = Model(self._without(starts), self.label, runtime=self.runtime, calls=self._calls)
            return model._new_carrier(fed, layers)._replace(starts=starts)
        found = carried(
            *(self._recurrent_graph(defaults=True), self.layers, self._calls, fed, layers),
            lambda names: candidates_of([info for info in self.inputs if info.name in names], self.outputs),
        )
        states = {output: name for one in found.values() for output, name in one.states.items()}
        return Carrier(_Carrying(self, found), states) if found else Carrier(self)

    def _without(self, initializers: Collection[str]) -> ModelProto:
        """The model, inlined, without the defaults of inputs that every push will give."""
        proto = type(self._source)()
        proto.CopyFrom(self._source)
        for index in reversed(range(len(proto.graph.initializer))):
            if proto.graph.initializer[index].name in initializers:
                del proto.graph.initializer[index]
        return proto


class _Carrying(Model):
    """A model with inputs and outputs for the states of layers; it shares all but its plans with that model."""

    def __init__(self, model: Model, found: Mapping[str, Carried]) -> None:
        vars(self).update(vars(model))
        self._carried, self._plans = found, {}
        self.inputs += tuple(info for one in found.values() for info in one.infos)
        names = [name for one in found.values() for name in one.states if name not in model._output_names]
        self.outputs += tuple(TensorInfo(name) for name in names)
        self._input_names = [info.name for info in self.inputs]
        self._output_names = frozenset(info.name for info in self.outputs)


def _restored(contents: bytes, label: str, runtime: str) -> Model:
    return Model(load_proto(contents), label, runtime=runtime)


def read_model(source: Source, *, runtime: str | None = None) -> Model:
    """A whole ONNX model.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        A str is a path. External data is looked for beside a path; a ModelProto is copied.
    runtime : str, optional
        What runs the nodes around recurrent ones: "onnxruntime"; "reference", onnx's reference evaluator, many times
        slower; or "auto", ONNX Runtime, and the reference evaluator for what it does not run, with a warning. Default:
        the environment variable PYRNNX_RUNTIME, else "auto".

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
    return Model(load_proto(source), source_label(source), runtime=runtime)
