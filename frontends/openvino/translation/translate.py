"""A whole IR as an ONNX model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrnnx.errors import PyrnnxError, UnsupportedError, shortened, shown
from pyrnnx.op import CELLS

from ..schemas import explain, first_opset
from .call import Values
from .constants import Constants, translate_layer
from .dimensions import input_info, output_info, with_output_dimensions
from .graph import LARGEST_MODEL, SMALL, Graph, guarded, merge_equal_initializers
from .operations.recurrent import weight_inputs
from .registry import translator

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..ir.constants import Weights
    from ..ir.net import Net, NetLayer, Output
    from ..model import Model


_EXPECTED = "layers whose attributes, ports and constants agree with each other"


class Translated(NamedTuple):
    """A model, nothing of it folded, and the names there of outputs of layers."""

    model: ModelProto
    values: Mapping[Output, str]


def export(model: Model) -> ModelProto:
    """What `pyrnnx.frontends.openvino.to_onnx` returns of a model."""
    from ...onnx.graph.fold import fold_constants

    inputs, outputs = ([info.name for info in infos] for infos in (model.inputs, model.outputs))
    translated = translate(model.net, model.weights, inputs, outputs).model
    with guarded(shortened(model.label), _EXPECTED):
        result = fold_constants(translated, largest=SMALL)  # beyond that only what becomes no larger
        if result.ByteSize() > LARGEST_MODEL:
            raise UnsupportedError(
                f"{shortened(model.label)}: the ONNX model would exceed {LARGEST_MODEL} bytes (2 GB)"
            )
        return with_output_dimensions(merge_equal_initializers(result))


def translate(
    net: Net, weights: Weights, input_names: Sequence[str], output_names: Sequence[str], *, everything: bool = False
) -> Translated:
    """The model with these names of its inputs and outputs, in the order of Parameter and Result layers.

    Parameters
    ----------
    everything : bool
        Also the layers that no output depends on, as far as they can be translated.

    Raises
    ------
    PyrnnxError
        As of `to_onnx`.
    """
    with guarded(f"IR {shown(net.name)}", _EXPECTED):
        return _Translation(net, weights, input_names, output_names).run(everything)


class _Translation:
    def __init__(self, net: Net, weights: Weights, input_names: Sequence[str], output_names: Sequence[str]) -> None:
        self.net, self.input_names, self.output_names = net, input_names, output_names
        self.graph = Graph(net.name or "model", {*input_names, *output_names})
        self.constants = Constants(net, weights)
        self.values = Values(self.graph, self.constants.value)
        self.outputs: dict[Output, str] = {}  # what is an output, and its name; of several only the first
        for result, name in zip(net.results, output_names, strict=True):
            self.outputs.setdefault(result.sources[0], name)

    def run(self, everything: bool) -> Translated:
        from ..ir.net import Output

        infos = []
        for layer, name in zip(self.net.parameters, self.input_names, strict=True):
            self.values.names[Output(layer, 0)] = name
            infos.append(input_info(self.graph, layer, name))
        needed = self._needed()
        for layer in self.net.order:
            if layer in needed:
                self._layer(layer)
            elif everything:
                self._layer_if_possible(layer)
        results = [self._result(layer, name) for layer, name in zip(self.net.results, self.output_names, strict=True)]
        return Translated(self.graph.model(infos, results), self.values.names)

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
        """Neither a layer that is not translated nor any behind it."""
        since = len(self.graph.nodes)
        known = (one in self.values.names or one.layer in self.constants.layers for one in layer.sources)
        if all(known) and translator(layer) is not None:
            try:
                self._layer(layer)
            except PyrnnxError:
                del self.graph.nodes[since:]

    def _layer(self, layer: NetLayer) -> None:
        from ..ir.net import Output

        if layer.type in ("Const", "Parameter", "Result"):
            return
        outputs = [Output(layer, k) for k in range(len(layer.outputs))]
        if layer in self.constants.layers and all(_is_small(output) for output in outputs):
            return  # computed, and made an initializer, where a node takes it
        since = len(self.graph.nodes)
        function = translator(layer)
        if function is None:
            raise UnsupportedError(not_translated(layer))
        names = translate_layer(layer, self.values, lambda k: self._used(outputs[k:]), self.net.recurrent.get(layer))
        self._name_node(layer, since)
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

    def _used(self, outputs: Sequence[Output]) -> bool:
        """Whether anything takes the first of them, if there is one."""
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
    """What is said of a layer that has no translator."""
    version = f" of {shortened(layer.version)}" if layer.version else ""
    reason = explain(layer.type)
    first = first_opset(layer.type)
    if first is not None:
        reason = f"expected opset{first} or later"
    elif reason is None:
        reason = "this operation is not translated; its layer must be replaced, or the model run with OpenVINO"
    return f"{layer.label}: {shortened(layer.type)}{version} cannot be run or exported to ONNX: {reason}"


def _is_small(output: Output) -> bool:
    shape = output.port.shape
    sizes = [size for size in shape or () if size is not None]
    return shape is not None and len(sizes) == len(shape) and math.prod(sizes) <= SMALL
