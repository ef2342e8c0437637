"""A whole IR as an ONNX model: one that is exported, or one that is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrnnx.errors import PyrnnxError, UnsupportedError, shortened, shown
from pyrnnx.op import CELLS

from ..ir.layer import NetLayer, Output
from ..layers import BoundLayer, IRLayer
from ..schemas import explain
from .constants import ConstantValues, translate_layer
from .context import ValueNames
from .dimensions import input_info, output_info, with_output_dimensions
from .graph import LARGEST_MODEL, SMALL, Graph, guarded, merge_equal_initializers
from .onnx_frontend import Model, fold_constants, runnable
from .operations import TRANSLATORS, translator
from .operations.recurrent import as_it_is, weight_inputs

if TYPE_CHECKING:
    from onnx import ModelProto

Prepared = Callable[[NetLayer], BoundLayer | IRLayer]
_EXPECTED = "layers whose attributes, ports and constants agree with each other"


class Names(NamedTuple):
    """Names of the inputs and outputs of a model, in the order of the Parameter and Result layers."""

    inputs: Sequence[str]
    outputs: Sequence[str]


def export(constants: ConstantValues, names: Names, label: str) -> ModelProto:
    """What `pyrnnx.frontends.openvino.to_onnx` returns of a net with its weights; `label`: how errors name it."""
    net = constants.net
    with guarded(f"IR {shown(net.name)}", _EXPECTED):
        translated = _Translation(constants, names, None).run()
    with guarded(label, _EXPECTED):
        result = fold_constants(translated, largest=SMALL)  # a larger constant only where that takes no more bytes
        if result.ByteSize() > LARGEST_MODEL:
            raise UnsupportedError(f"{label}: the ONNX model would exceed {LARGEST_MODEL} bytes (2 GB)")
        return with_output_dimensions(merge_equal_initializers(result))


class Program(NamedTuple):
    """A net as it is run: translated, but for its recurrent layers, which run as they are.

    Attributes
    ----------
    model : pyrnnx.frontends.onnx.Model
    values : mapping of Output to str
        What the values of layers are called here.
    layers : mapping
        What runs recurrent layers, by the names of their nodes.
    """

    model: Model
    values: Mapping[Output, str]
    layers: Mapping[str, BoundLayer | IRLayer]


def program(
    constants: ConstantValues,
    names: Names,
    label: str,
    prepared: Prepared,
    *,
    everything: bool = False,
    runtime: str | None = None,
) -> Program:
    """A net, ready to be run.

    Parameters
    ----------
    constants : ConstantValues
        Of the net.
    names : Names
    label : str
        How errors name the model.
    prepared : callable
        From a recurrent layer to what runs it.
    everything : bool
        Also the layers that no output depends on, as far as they can be translated.
    runtime : str, optional
        As of `read_model`.

    Raises
    ------
    PyrnnxError
        As of `to_onnx`.
    """
    with guarded(f"IR {shown(constants.net.name)}", _EXPECTED):
        translation = _Translation(constants, names, prepared)
        model = translation.run(everything)
    run_by = translation.run_by
    return Program(runnable(model, label, run_by, runtime), translation.values.names, run_by)


class _Translation:
    """Of one net; `prepared`: what runs each recurrent layer, None where they become operators of ONNX.

    Attributes
    ----------
    values : ValueNames
        The names of the outputs of layers, as far as they have been translated.
    run_by : dict
        By the name of its node, what runs a recurrent layer.
    """

    def __init__(self, constants: ConstantValues, names: Names, prepared: Prepared | None) -> None:
        self.net, self.constants, self.names, self.prepared = constants.net, constants, names, prepared
        self.graph = Graph(self.net.name or "model", {*names.inputs, *names.outputs})
        self.values = ValueNames(self.graph, constants.value)
        self.run_by: dict[str, BoundLayer | IRLayer] = {}
        self.outputs: dict[Output, str] = {}  # names of the model's outputs; of two of one value the first
        for result, name in zip(self.net.results, names.outputs, strict=True):
            self.outputs.setdefault(result.sources[0], name)

    def run(self, everything: bool = False) -> ModelProto:
        """The model, nothing of it folded."""
        infos = []
        for layer, name in zip(self.net.parameters, self.names.inputs, strict=True):
            self.values.names[Output(layer, 0)] = name
            infos.append(input_info(self.graph, layer, name))
        needed = self._needed()
        for layer in self.net.order:
            if layer in needed:
                self._layer(layer)
            elif everything:
                self._layer_if_possible(layer)
        results = [self._result(layer, name) for layer, name in zip(self.net.results, self.names.outputs, strict=True)]
        return self.graph.model(infos, results)

    def _needed(self) -> set[NetLayer]:
        """What the outputs depend on, but constant weights of recurrent layers, which are read where they are used."""
        found: set[NetLayer] = set()
        left = [result.sources[0].layer for result in self.net.results]
        while left:
            layer = left.pop()
            if layer in found or layer.type in ("Const", "Parameter"):
                continue
            found.add(layer)
            skipped = weight_inputs(self.net.recurrent[layer]) if layer in self.net.recurrent else ()
            left += [
                source.layer
                for k, source in enumerate(layer.sources)
                if k not in skipped or source.layer not in self.constants.layers
            ]
        return found

    def _layer_if_possible(self, layer: NetLayer) -> None:
        """Translate a layer, unless it or one before it has no translation."""
        since = len(self.graph.nodes)
        known = (one in self.values.names or one.layer in self.constants.layers for one in layer.sources)
        if all(known) and translator(layer) is not None:
            try:
                self._layer(layer)
            except PyrnnxError:
                del self.graph.nodes[since:]

    def _layer(self, layer: NetLayer) -> None:
        if layer.type in ("Const", "Parameter", "Result"):
            return
        outputs = [Output(layer, k) for k in range(len(layer.outputs))]
        if layer in self.constants.layers and all(_is_small(output) for output in outputs):
            return  # its value becomes an initializer, where a node takes it
        since = len(self.graph.nodes)
        recurrent = self.net.recurrent.get(layer)
        run_by = self.prepared(layer) if recurrent is not None and self.prepared is not None else None
        function = as_it_is(run_by) if run_by is not None else translator(layer)
        if function is None:
            raise UnsupportedError(not_translated(layer))
        names = translate_layer(layer, function, self.values, lambda k: self._is_used(outputs[k:]), recurrent)
        self._name_node(layer, since)
        if run_by is not None:
            self.run_by[self.graph.nodes[since].name] = run_by
        made = {name for node in self.graph.nodes[since:] for name in node.output}
        for output, name in zip(outputs, names, strict=False):
            if name not in made:  # an input or a constant, passed on
                self.values.names[output] = name
                continue
            made.discard(name)  # two outputs of one value: the name of the first
            self.values.names[output] = self._wanted(output)
            self.graph.rename(name, self.values.names[output], since)

    def _name_node(self, layer: NetLayer, since: int) -> None:
        """The layer's name is that of its recurrent node, else of the last of its nodes."""
        nodes = self.graph.nodes[since:]
        if nodes and layer.name:
            own = (k for k, node in enumerate(nodes) if node.op_type in CELLS)
            self.graph.name_node(since + next(own, len(nodes) - 1), layer.name)

    def _is_used(self, outputs: Sequence[Output]) -> bool:
        """Whether the first of the outputs, if there is one, leads anywhere."""
        return any(output in self.outputs or self.net.consumers(output) for output in outputs[:1])

    def _wanted(self, output: Output) -> str:
        if output in self.outputs:
            return self.outputs[output]
        if output.port.names:
            return self.graph.value_name(output.port.names[0])
        several = len(output.layer.outputs) > 1
        return self.graph.value_name(f"{output.layer.name}.{output.index}" if several else output.layer.name)

    def _result(self, layer: NetLayer, name: str) -> Any:
        source = layer.sources[0]
        value = self.values.name(source)
        if value != name:
            (identity,) = self.graph.node("Identity", [value], layer.name or name)
            self.graph.rename(identity, name, len(self.graph.nodes) - 1)
        return output_info(self.graph, source, name)


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


def _is_small(output: Output) -> bool:
    shape = output.port.shape
    sizes = [size for size in shape or () if size is not None]
    return shape is not None and len(sizes) == len(shape) and math.prod(sizes) <= SMALL
