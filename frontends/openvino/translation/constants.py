"""Values of an IR that depend on nothing but its constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyrnnx.conventions import AnyArray
from pyrnnx.errors import FormatError, PyrnnxError, shortened

from .call import Call, Values
from .graph import SMALL, Graph, guarded
from .registry import translator

if TYPE_CHECKING:
    from ..ir.constants import Weights
    from ..ir.net import Net, NetLayer, Output
    from ..layers import IRLayer

_CONSTANT_LAYERS: WeakKeyDictionary[Net, frozenset[NetLayer]] = WeakKeyDictionary()


def constant_layers(net: Net) -> frozenset[NetLayer]:
    """The layers whose outputs do not depend on the model's inputs, and that can be translated."""
    found = _CONSTANT_LAYERS.get(net)
    if found is None:
        constant: set[NetLayer] = set()
        for layer in net.order:
            if layer.type == "Const" or (
                layer.sources
                and layer not in net.recurrent
                and all(source.layer in constant for source in layer.sources)
                and translator(layer) is not None
            ):
                constant.add(layer)
        found = _CONSTANT_LAYERS[net] = frozenset(constant)
    return found


class Constants:
    """Constant values of a net; small ones are kept."""

    def __init__(self, net: Net, weights: Weights) -> None:
        self.net, self.weights = net, weights
        self.layers = constant_layers(net)
        self._kept: dict[Output, AnyArray] = {}

    def value(self, output: Output) -> AnyArray | None:
        """None: it depends on the model's inputs, or on a layer that is not translated."""
        if output.layer not in self.layers:
            return None
        if output.layer.type == "Const":
            return self.weights.constant(output.layer)
        found = self._kept.get(output)
        return self._computed(output) if found is None else found

    def _computed(self, output: Output) -> AnyArray:
        """One layer after the other, each after its sources."""
        arrays: dict[Output, AnyArray] = {}
        left = [output.layer]
        while left:
            layer = left[-1]
            missing = [one.layer for one in layer.sources if not self._is_known(one, arrays)]
            if not missing:
                left.pop()
                if type(output)(layer, 0) not in arrays:
                    arrays |= self._results(layer, arrays)
            left.extend(missing)
        return arrays[output]

    def _is_known(self, output: Output, arrays: Mapping[Output, AnyArray]) -> bool:
        return output.layer.type == "Const" or output in arrays or output in self._kept

    def _known(self, output: Output, arrays: Mapping[Output, AnyArray]) -> AnyArray | None:
        if output.layer.type == "Const":
            return self.weights.constant(output.layer)
        found = arrays.get(output)
        return self._kept.get(output) if found is None else found

    def _results(self, layer: NetLayer, arrays: Mapping[Output, AnyArray]) -> dict[Output, AnyArray]:
        from ...onnx.graph.fold import constant_values
        from ..ir.net import Output

        graph = Graph(layer.label)
        names = translate_layer(layer, Values(graph, lambda source: self._known(source, arrays)))
        infos = [graph.onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names)]
        found = constant_values(graph.model((), infos), names)
        if len(found) != len(infos):
            raise PyrnnxError(f"{layer.label}: its value, a constant, cannot be computed")
        results = {Output(layer, k): found[name] for k, name in enumerate(names)}
        self._kept |= {key: array for key, array in results.items() if array.size <= SMALL}
        return results


def translate_layer(
    layer: NetLayer, values: Values, used: Callable[[int], bool] = lambda k: True, recurrent: IRLayer | None = None
) -> list[str]:
    """The names of the values of a layer's outputs.

    Raises
    ------
    PyrnnxError
        Whatever is wrong with the layer, in words that name it.
    """
    function = translator(layer)
    assert function is not None  # the caller has looked
    call = Call(layer, values, used, recurrent)
    with guarded(layer.label, f"attributes and inputs as {shortened(layer.type)} has them"):
        names = function(call)
    if recurrent is None:  # else the reader has checked them
        call.check_attributes()
    found = [names] if isinstance(names, str) else list(names)
    for k in range(len(found), len(layer.outputs)):
        if used(k):
            raise FormatError(f"{layer.label}: output {k} is used; {shortened(layer.type)} has {len(found)}")
    return found


def constant_value(net: Net, weights: Weights, output: Output) -> AnyArray | None:
    """The value of an output if it does not depend on the model's inputs, else None.

    Raises
    ------
    PyrnnxError
        A constant that cannot be read; an option of a layer that is not translated.
    """
    return Constants(net, weights).value(output)
