"""ONNX models to write: nodes, constants, layers, and types of values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, shortened
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.tensor_info import TensorInfo

from ...onnx.graph.constants import array_of
from ...onnx.graph.inference import tensor_info
from ...onnx.graph.walk import local_names, needed_names, protos
from ...onnx.model import Model, read_model
from ...onnx.onnx_package import import_onnx
from ...onnx.passes.recurrent import RecurrentModel
from .simplify import simplified

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


@dataclass(frozen=True, eq=False)
class Source:
    """A simplified model, or a body of one of its nodes.

    `inputs` are those that are no constants, `opsets` versions by domain. `layers` are those of recurrent nodes, by
    name: a Layer if the weights are constant. `types` and `tensors` are types and constants by name.
    """

    label: str
    graph: GraphProto
    inputs: tuple[str, ...]
    opsets: Mapping[str, int]
    layers: Mapping[str, Layer | Any]
    types: Mapping[str, TensorInfo]
    tensors: Mapping[str, Any]

    @property
    def opset(self) -> int:
        """Version of the default domain."""
        return self.opsets.get("", 1)

    def constant(self, name: str) -> AnyArray | None:
        """Return the array of a constant; None for any other value."""
        return array_of(self.tensors[name], self.label) if name in self.tensors else None

    def body(
        self,
        graph: GraphProto,
        inputs: Mapping[str, TensorInfo],
        tensors: Mapping[str, AnyArray] = MappingProxyType({}),
    ) -> Source:
        """Return the source of a body whose inputs have these types, or are constants."""
        copy = import_onnx().GraphProto()
        copy.CopyFrom(graph)
        del copy.value_info[:]  # exporters declare shapes that differ between iterations
        for info in copy.output:
            info.ClearField("type")
        own = {**tensors, **{tensor.name: tensor for tensor in graph.initializer}}
        captured = {info.name for info in graph.output}.union(*map(needed_names, graph.node)) - local_names(graph)
        types = {name: self.types[name] for name in captured & self.types.keys() - self.tensors.keys()}
        constants = {name: self.tensors[name] for name in captured & self.tensors.keys()}
        graph, types, own = simplified(copy, self.opsets, self.label, {**types, **inputs}, {**constants, **own})
        return replace(self, graph=graph, inputs=tuple(inputs), types=types, tensors=own)


def onnx_model(source: Any, label: str = "") -> Model:
    """Return a model, or read one from a path, bytes or a ModelProto; `label` is its name in errors."""
    if isinstance(source, Model):
        return source
    return Model(source, label) if label else read_model(source)


def source_of(model: Model) -> Source:
    """Simplify a model and infer its types."""
    layered = model._with_layers()
    proto = _inlined(_without_weights(layered), model.label)
    tensors = {tensor.name: layered.arrays.get(tensor.name, tensor) for tensor in proto.graph.initializer}
    given = {info.name: tensor_info(model.label, info) for info in proto.graph.input}
    opsets = {row.domain: row.version for row in proto.opset_import}
    graph, types, tensors = simplified(proto.graph, opsets, model.label, given, tensors)
    layers = {name: site.layer for name, site in layered.sites.items()}
    return Source(model.label, graph, tuple(given), opsets, layers, types, tensors)


def _without_weights(model: RecurrentModel) -> ModelProto:
    """Return a copy of a model whose recurrent nodes have their unique names, and no inputs that their layers own."""
    proto = type(model.proto).FromString(model.proto.SerializeToString())
    names = {site.place: name for name, site in model.sites.items()}
    for place, _, node in protos(model.graph, proto.graph) if names else ():
        if place not in names:
            continue
        node.name, site = names[place], model.sites[names[place]]
        if not isinstance(site.layer, Layer):
            continue
        for position, key in enumerate(site.arguments[: len(node.input)]):
            if key in site.weights or key in site.layer.constants:
                node.input[position] = ""
        if all(attribute.name != "hidden_size" for attribute in node.attribute):
            node.attribute.append(import_onnx().helper.make_attribute("hidden_size", site.layer.op.hidden_size))
    return proto


def _inlined(proto: ModelProto, label: str) -> ModelProto:
    if not proto.functions:
        return proto
    import_onnx()
    from onnx import inliner

    try:
        result: ModelProto = inliner.inline_local_functions(proto, convert_version=True)
    except Exception as error:  # of several types
        raise FormatError(f"{label}: its functions cannot be inlined ({shortened(str(error))})") from error
    return result
