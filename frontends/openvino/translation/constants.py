"""Values of an IR that depend only on its constants."""

from __future__ import annotations

from collections.abc import Mapping

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError, shortened

from ...onnx.graph.walk import prune
from ...onnx.onnx_package import import_onnx
from ...onnx.session import NotRunnable, constant_values, onnxruntime
from ..ir.bin_file import BinFile
from ..ir.layer import NetLayer, Output
from ..ir.port_maps import read_body
from ..ir.variables import variable_ids
from ..net import Net
from .context import translate_layer, translator
from .graph import SMALL, Graph
from .scope import Scope


class ConstantValues:
    """The values of a net that depend only on its weights; small ones are cached.

    `layers` are those, in bodies too, that can be translated and do not depend on the model's inputs. Parameters of
    bodies are among them if their value is always constant.
    """

    def __init__(self, net: Net, weights: BinFile) -> None:
        self.net, self.weights = net, weights
        self._outer = _invariant(net)
        self.layers = _constant_layers(net, self._outer)
        self._cache: dict[Output, AnyArray] = {}

    def value(self, output: Output) -> AnyArray | None:
        """Return a value; None if it depends on the model's inputs or on a layer that is not translated."""
        output = self._source(output)
        if output.layer not in self.layers:
            return None
        if output.layer.type == "Const":
            return self.weights.constant(output.layer)
        array = self._cache.get(output)
        if array is None:
            array = self._computed(output)
            if array.size <= SMALL:
                self._cache[output] = array
        return array

    def _source(self, output: Output) -> Output:
        """Return the value that a Parameter of a body always has."""
        while output.layer in self._outer:
            output = self._outer[output.layer]
        return output

    def _computed(self, output: Output) -> AnyArray:
        what = f"{output.layer.label}: computing its constant value"
        import_onnx(what)
        onnxruntime(what)
        scope = Scope(self, Graph(output.layer.label))
        for layer in self.net.in_order(self._uncomputed(output)):
            names = translate_layer(layer, scope)
            scope.names.update((Output(layer, k), name) for k, name in enumerate(names))
        name = scope.name(output)
        model = scope.graph.model((), [scope.graph.onnx.ValueInfoProto(name=name)])
        prune(model.graph)
        try:
            (array,) = constant_values(model, [name])
        except NotRunnable as error:
            message = shortened(str(error))
            raise PyrnnxError(f"{output.layer.label}: its value, a constant, cannot be computed ({message})") from error
        result: AnyArray = array
        return result

    def _uncomputed(self, output: Output) -> set[NetLayer]:
        """Return the layers that have to be computed for a value."""
        layers: set[NetLayer] = set()
        queue = [output]
        while queue:
            value = self._source(queue.pop())
            if value.layer.type != "Const" and value not in self._cache and value.layer not in layers:
                layers.add(value.layer)
                queue += value.layer.sources
        return layers


def _invariant(net: Net) -> dict[NetLayer, Output]:
    """Return the outer values of Parameters of bodies that are the same in every iteration."""
    outer: dict[NetLayer, Output] = {}
    for layer in net.everything:
        for tag in layer.bodies:
            try:
                body = read_body(layer, tag)
            except PyrnnxError:  # translating the layer raises it again
                continue
            outer |= {mapped.layer: layer.sources[mapped.place] for mapped in body.invariant}
    return outer


def _constant_layers(net: Net, outer: Mapping[NetLayer, Output]) -> frozenset[NetLayer]:
    constant: set[NetLayer] = set()
    for layer in net.everything:
        if layer in outer:
            if outer[layer].layer in constant:
                constant.add(layer)
        elif layer.type == "Const" or (_is_function(net, layer) and {row.layer for row in layer.sources} <= constant):
            constant.add(layer)
    return frozenset(constant)


def _is_function(net: Net, layer: NetLayer) -> bool:
    """Return whether a layer can be translated alone, and its inputs decide its results."""
    alone = layer.sources and not layer.bodies and not variable_ids([layer]) and net.declared(layer) is None
    return bool(alone) and translator(layer) is not None
