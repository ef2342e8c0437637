"""Values of an IR that depend on nothing but its constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import FormatError, PyrnnxError, shortened

from ..ir.bin_file import BinFile
from ..ir.layer import NetLayer, Output
from ..ir.port_maps import read_body
from ..layers import IRLayer
from ..net import Net
from .context import LayerContext, ValueNames
from .graph import SMALL, Graph, guarded
from .onnx_frontend import constant_values
from .operations import translator
from .registry import Translator


class ConstantValues:
    """A net with its weights, and the values in it that depend on nothing else; small ones are kept.

    Attributes
    ----------
    net : Net
    weights : BinFile
    layers : frozenset of NetLayer
        Those, in bodies too, whose outputs do not depend on the model's inputs, and that can be translated; Parameters
        of bodies that always have such a value among them.
    """

    def __init__(self, net: Net, weights: BinFile) -> None:
        self.net, self.weights = net, weights
        self._outer = _invariant(net)
        self.layers = _constant_layers(net, self._outer)
        self._kept: dict[Output, AnyArray] = {}

    def value(self, output: Output) -> AnyArray | None:
        """None: it depends on the model's inputs, or on a layer that is not translated.

        Raises
        ------
        PyrnnxError
            A constant that cannot be read; an option of a layer that is not translated.
        """
        if output.layer not in self.layers:
            return None
        known: dict[Output, AnyArray] = {}
        for layer in self.net.in_order(self._left(output)):
            known |= self._results(layer, known)
        return self._known(output, known)

    def _left(self, output: Output) -> set[NetLayer]:
        """The layers that have to be computed before that value is known."""
        found: set[NetLayer] = set()
        left = [output]
        while left:
            one = left.pop()
            if one.layer in self._outer:
                left.append(self._outer[one.layer])
            elif one.layer.type != "Const" and one not in self._kept and one.layer not in found:
                found.add(one.layer)
                left += one.layer.sources
        return found

    def _known(self, output: Output, known: Mapping[Output, AnyArray]) -> AnyArray | None:
        while output.layer in self._outer:
            output = self._outer[output.layer]
        if output.layer.type == "Const":
            return self.weights.constant(output.layer)
        found = known.get(output)
        return self._kept.get(output) if found is None else found

    def _results(self, layer: NetLayer, known: Mapping[Output, AnyArray]) -> dict[Output, AnyArray]:
        graph = Graph(layer.label)
        function = translator(layer)
        assert function is not None  # as `layers` has only such as have one
        names = translate_layer(layer, function, ValueNames(graph, lambda source: self._known(source, known)))
        infos = [graph.onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names)]
        found = constant_values(graph.model((), infos), names)
        if len(found) != len(infos):
            raise PyrnnxError(f"{layer.label}: its value, a constant, cannot be computed")
        results = {Output(layer, k): found[name] for k, name in enumerate(names)}
        self._kept |= {key: array for key, array in results.items() if array.size <= SMALL}
        return results


def _invariant(net: Net) -> dict[NetLayer, Output]:
    """The values of the Parameters of bodies that are the same in every iteration; none of a body that is broken."""
    found: dict[NetLayer, Output] = {}
    for layer in net.everything:
        for tag in layer.bodies:
            try:
                body = read_body(layer, tag)
            except PyrnnxError:  # who translates the layer says so
                continue
            found |= {one.layer: layer.sources[one.place] for one in body.invariant}
    return found


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
    """The names of the values of a layer's outputs, as `function` makes them.

    Raises
    ------
    PyrnnxError
        Whatever is wrong with the layer, in words that name it.
    """
    ctx = LayerContext(layer, values, used, recurrent)
    with guarded(layer.label, f"attributes and inputs as {shortened(layer.type)} has them"):
        names = function(ctx)
    if recurrent is None:  # else the reader has checked them
        ctx.check_attributes()
    found = [names] if isinstance(names, str) else list(names)
    for k in range(len(found), len(layer.outputs)):
        if used(k):
            raise FormatError(f"{layer.label}: output {k} is used; {shortened(layer.type)} has {len(found)}")
    return found
