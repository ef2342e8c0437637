"""Names of the values of a net, and axes of the values of its recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyrnnx.models.model import LayerValue
from pyrnnx.operator.conventions import CALL_ARGUMENTS
from pyrnnx.operator.tensor_info import TensorInfo

from .ir.layer import NetLayer, Output
from .net import Net


def computed_values(net: Net, values: Mapping[str, Output]) -> tuple[dict[str, Output], frozenset[str]]:
    """Return values that depend on inputs or states, by name in order of computation, and the unreliable names.

    A name is unreliable if it is a layer's name but not a name of the layer's tensor: converters keep the names of
    layers even if they change the axes of the results, so a value of the original model with this name may differ.
    """
    ranks = {layer: rank for rank, layer in enumerate(net.order)}
    changing: set[NetLayer] = set()  # layers that depend on an input or a variable
    for layer in net.order:
        if layer.type in ("Parameter", "ReadValue") or any(source.layer in changing for source in layer.sources):
            changing.add(layer)
    own = [item for item in values.items() if item[1].layer in changing and item[1].layer.type != "Parameter"]
    ordered = dict(sorted(own, key=lambda item: (ranks[item[1].layer], item[1].index)))
    return ordered, frozenset(name for name, value in ordered.items() if name not in value.port.names)


def layer_values(
    net: Net,
    keys: Mapping[NetLayer, str],
    values: Mapping[str, Output],
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
) -> dict[str, dict[str, LayerValue]]:
    """Return the named values of each recurrent layer outside bodies, by its key.

    `values` maps names to values; `inputs` and `outputs` are the model's. If a loop was recognized as a sequence, its
    values have the axes of the loop.
    """
    names: dict[Output, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(name)
    for info, layer in zip(inputs, net.parameters, strict=True):
        names.setdefault(Output(layer, 0), []).append(info.name)
    for info, layer in zip(outputs, net.results, strict=True):
        names.setdefault(layer.sources[0], []).append(info.name)
    readers: dict[Output, list[str]] = {}
    for layer in net.layers:
        for source in layer.sources:
            if layer.type != "Result":
                readers.setdefault(source, []).append(layer.type)
    return {
        keys[layer]: {
            argument: LayerValue(
                axes,
                tuple(dict.fromkeys(names[value])),
                tuple(readers.get(value, ())) if value.layer is layer else _writers(value),
            )
            for argument, axes, value in _arrays(net, layer)
            if value in names
        }
        for layer, path in net.recurrent_paths()
        if not path
    }


def _writers(value: Output) -> tuple[str, ...]:
    return () if value.layer.type == "Parameter" else (value.layer.type,)


def _arrays(net: Net, layer: NetLayer) -> Iterator[tuple[str, str, Output]]:
    looped, declared = net.looped.get(layer), net.declared(layer)
    if looped is not None:
        yield "X", looped.axes, layer.sources[looped.X]
        yield from ((argument, "NH", layer.sources[place]) for argument, place in looped.states.items())
        yield from ((argument, axes, Output(layer, place)) for place, (argument, axes) in looped.outputs.items())
        return
    assert declared is not None  # recurrent_paths yields only recurrent layers
    inputs = zip(declared.arguments, layer.sources, strict=True)
    arrays = [(argument, value) for argument, value in inputs if argument in CALL_ARGUMENTS]
    arrays += [
        (argument, Output(layer, k)) for k, argument in enumerate(declared.operation.outputs[: len(layer.outputs)])
    ]
    yield from ((argument, declared.convention.axes_of(argument), value) for argument, value in arrays)
