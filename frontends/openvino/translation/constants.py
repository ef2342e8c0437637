"""Values of an IR that depend only on its constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, PyrnnxError, shortened

from ...onnx.onnx_package import import_onnx
from ...onnx.session import NotRunnable, constant_values, onnxruntime
from ..ir.bin_file import BinFile
from ..ir.layer import NetLayer, Output
from ..ir.port_maps import read_body
from ..layers import IRLayer
from ..net import Net
from .context import LayerContext, Translator
from .graph import SMALL, Graph, guarded
from .inputs import ValueNames
from .operations import translator


class ConstantValues:
    """The values of a net that depend only on its weights; small ones are cached.

    Attributes
    ----------
    net : Net
    weights : BinFile
    layers : frozenset of NetLayer
        Layers, in bodies too, that can be translated and do not depend on the model's inputs. Parameters of bodies are
        among them if their value is always constant.
    """

    def __init__(self, net: Net, weights: BinFile) -> None:
        self.net, self.weights = net, weights
        self._outer = _invariant(net)
        self.layers = _constant_layers(net, self._outer)
        self._cache: dict[Output, AnyArray] = {}

    def value(self, output: Output) -> AnyArray | None:
        """Return a value; None if it depends on the model's inputs or on a layer that is not translated."""
        if output.layer not in self.layers:
            return None
        known: dict[Output, AnyArray] = {}
        for layer in self.net.in_order(self._uncomputed(output)):
            known |= self._results(layer, known)
        return self._known(output, known)

    def _uncomputed(self, output: Output) -> set[NetLayer]:
        """Return the layers that have to be computed for a value."""
        layers: set[NetLayer] = set()
        queue = [output]
        while queue:
            value = queue.pop()
            if value.layer in self._outer:
                queue.append(self._outer[value.layer])
            elif value.layer.type != "Const" and value not in self._cache and value.layer not in layers:
                layers.add(value.layer)
                queue += value.layer.sources
        return layers

    def _known(self, output: Output, known: Mapping[Output, AnyArray]) -> AnyArray | None:
        while output.layer in self._outer:
            output = self._outer[output.layer]
        if output.layer.type == "Const":
            return self.weights.constant(output.layer)
        array = known.get(output)
        return self._cache.get(output) if array is None else array

    def _results(self, layer: NetLayer, known: Mapping[Output, AnyArray]) -> dict[Output, AnyArray]:
        what = f"{layer.label}: computing its constant value"
        import_onnx(what)
        onnxruntime(what)
        graph = Graph(layer.label)
        function = translator(layer)
        assert function is not None  # `layers` has only those with a translator
        names = translate_layer(layer, function, ValueNames(graph, lambda source: self._known(source, known)))
        infos = [graph.onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names)]
        try:
            arrays = constant_values(graph.model((), infos), names)
        except NotRunnable as error:
            message = shortened(str(error))
            raise PyrnnxError(f"{layer.label}: its value, a constant, cannot be computed ({message})") from error
        results = {Output(layer, k): array for k, array in enumerate(arrays)}
        self._cache |= {key: array for key, array in results.items() if array.size <= SMALL}
        return results


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
        elif layer.type == "Const" or (
            layer.sources
            and net.declared(layer) is None
            and all(source.layer in constant for source in layer.sources)
            and translator(layer) is not None
        ):
            constant.add(layer)
    return frozenset(constant)


def translate_layer(
    layer: NetLayer,
    function: Translator,
    values: ValueNames,
    used: Callable[[int], bool] = lambda k: True,
    recurrent: IRLayer | None = None,
) -> list[str]:
    """Translate a layer with `function`; return the names of its outputs' values."""
    ctx = LayerContext(layer, values, used, recurrent)
    with guarded(layer.label, f"attributes and inputs of {shortened(layer.type)}"):
        names = function(ctx)
    if recurrent is None:  # else the reader has checked them
        ctx.check_attributes()
    outputs = [names] if isinstance(names, str) else list(names)
    for k in range(len(outputs), len(layer.outputs)):
        if used(k):
            raise FormatError(
                f"{layer.label}: another layer reads its output {k}; {shortened(layer.type)} has {len(outputs)} "
                f"{'output' if len(outputs) == 1 else 'outputs'}"
            )
    return outputs
