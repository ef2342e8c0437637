"""What the inputs, outputs, values and recurrent layers of an IR are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pyrnnx.errors import FormatError
from pyrnnx.tensor_info import TensorInfo

from .element_types import by_name, by_precision
from .layer import NetLayer, Output
from .net import Net
from .ports import split_names

_SINK = re.compile(r"/sink_port_\d+$")  # what converters append to the name of an output for its Result


def input_infos(net: Net) -> tuple[TensorInfo, ...]:
    """One for each Parameter; see `Model` for the rule of names."""
    names, aliases = _names([_of_parameter(layer) for layer in net.parameters], [layer.id for layer in net.parameters])
    infos = []
    for layer, name, others in zip(net.parameters, names, aliases, strict=True):
        text = layer.data.get("element_type")
        infos.append(
            TensorInfo(
                name,
                _dtype(layer.label, layer.outputs[0].precision) if text is None else by_name(layer.label, text).dtype,
                layer.outputs[0].shape if "shape" not in layer.data else layer.shape,
                others,
            )
        )
    return tuple(infos)


def output_infos(net: Net) -> tuple[TensorInfo, ...]:
    """One for each Result."""
    names, aliases = _names([_of_result(layer) for layer in net.results], [layer.id for layer in net.results])
    infos = []
    for layer, name, others in zip(net.results, names, aliases, strict=True):
        port = layer.sources[0].port
        infos.append(TensorInfo(name, _dtype(layer.label, port.precision), port.shape, others))
    return tuple(infos)


def _dtype(label: str, precision: str | None) -> str | None:
    """None also of a precision that is not known: it need not keep a model from being read."""
    try:
        return None if precision is None else by_precision(label, precision).dtype
    except FormatError:
        return None


def _of_parameter(layer: NetLayer) -> tuple[str, Sequence[str], Sequence[str]]:
    """The name that it would have, those that it may have instead, and further ones of the same value."""
    tensor, own = layer.outputs[0].names, layer.name
    first = own if own in tensor or not tensor else tensor[0]
    return first, (*tensor, own), (*tensor, own)


def _of_result(layer: NetLayer) -> tuple[str, Sequence[str], Sequence[str]]:
    source = layer.sources[0]
    tensor = split_names(layer.element.get("output_names", "")) or source.port.names
    own = _SINK.sub("", layer.name)
    computed = source.layer.name
    if len(source.layer.outputs) > 1 and computed:
        computed = f"{computed}.{source.index}"
    by_result = own in tensor or (own != layer.name and not tensor)
    first = own if by_result else tensor[0] if tensor else computed
    return first, (*tensor, layer.name), (*tensor, *source.port.names, computed, own, layer.name)


def _names(
    rows: Sequence[tuple[str, Sequence[str], Sequence[str]]], ids: Sequence[str]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """A name for each that no other has, and its aliases: further names that are no other's name or alias."""
    wanted = [first for first, _, _ in rows]
    taken: set[str] = set()
    names: list[str] = []
    for (first, instead, _), identifier in zip(rows, ids, strict=True):
        name = first
        if not name or name in taken:
            free = (other for other in instead if other and other not in taken and other not in wanted)
            name = next(free, None) or _free(f"{first}.{identifier}" if first else identifier, taken | set(wanted))
        taken.add(name)
        names.append(name)
    claims = Counter(alias for _, _, aliases in rows for alias in set(aliases))
    return names, [
        tuple(dict.fromkeys(one for one in aliases if one and one not in taken and claims[one] == 1))
        for _, _, aliases in rows
    ]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def layer_keys(layers: Iterable[NetLayer]) -> dict[NetLayer, str]:
    """A key for each: its name, with its id where others have the same name, or its label where it has none."""
    given = list(layers)
    counts = Counter(layer.name for layer in given)
    taken = {name for name, count in counts.items() if count == 1}
    keys = {}
    for layer in given:
        key = layer.name
        if not key or counts[key] > 1:
            key = _free(f"{key} (id {layer.id})" if key else layer.label, taken)
            taken.add(key)
        keys[layer] = key
    return keys


def value_names(net: Net) -> dict[str, Output]:
    """Every name of a value: tensors' names, and those of layers, with the place of the output where there are several.

    A name of a tensor goes before a layer's; a name that several values have is none.
    """
    tensors: dict[str, set[Output]] = {}
    layers: dict[str, set[Output]] = {}
    for layer in net.layers:
        for index, port in enumerate(layer.outputs):
            output = Output(layer, index)
            for name in port.names:
                tensors.setdefault(name, set()).add(output)
            if layer.name:
                key = layer.name if len(layer.outputs) == 1 else f"{layer.name}.{index}"
                layers.setdefault(key, set()).add(output)
    return {name: next(iter(outputs)) for name, outputs in {**layers, **tensors}.items() if len(outputs) == 1}
