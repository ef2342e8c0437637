"""Names of the inputs, outputs, values and layers of an IR."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pyrnnx.errors import FormatError
from pyrnnx.operator.tensor_info import TensorInfo

from .element_types import by_name, by_precision
from .layer import NetLayer, Output
from .net_graph import NetGraph
from .ports import split_names

_SINK = re.compile(r"/sink_port_\d+$")  # suffix of a Result's name that converters append to the output's name


class _Choice(NamedTuple):
    """Candidates for the name of an input or output."""

    wanted: str  # by the rule of `Model`
    instead: Sequence[str]  # alternatives if an earlier one has that name
    aliases: Sequence[str]  # other names of the same value
    id: str
    source: NetLayer  # layer that computes the value


def input_infos(net: NetGraph) -> tuple[TensorInfo, ...]:
    """Return a TensorInfo for each Parameter, named by the rule of `Model`."""
    infos = []
    for layer, (name, aliases) in zip(net.parameters, _named(map(_of_parameter, net.parameters)), strict=True):
        port, text = layer.outputs[0], layer.data.get("element_type")
        dtype = _dtype(layer.label, port.precision) if text is None else by_name(layer.label, text).computed
        infos.append(TensorInfo(name, dtype, layer.shape if "shape" in layer.data else port.shape, aliases))
    return tuple(infos)


def output_infos(net: NetGraph) -> tuple[TensorInfo, ...]:
    """Return a TensorInfo for each Result; one has the name of an input only if it is that input."""
    inputs = {info.name: layer for info, layer in zip(input_infos(net), net.parameters, strict=True)}
    infos = []
    for layer, (name, aliases) in zip(net.results, _named(map(_of_result, net.results), inputs), strict=True):
        port = layer.sources[0].port
        infos.append(TensorInfo(name, _dtype(layer.label, port.precision), port.shape, aliases))
    return tuple(infos)


def _dtype(label: str, precision: str | None) -> str | None:
    """Return the dtype; None for an unknown precision too, so that models that contain it load."""
    try:
        return None if precision is None else by_precision(label, precision).computed
    except FormatError:
        return None


def _of_parameter(layer: NetLayer) -> _Choice:
    tensor, own = layer.outputs[0].names, layer.name
    wanted = own if own in tensor or not tensor else tensor[0]
    return _Choice(wanted, (*tensor, own), (*tensor, own), layer.id, layer)


def _of_result(layer: NetLayer) -> _Choice:
    source = layer.sources[0]
    tensor = split_names(layer.element.get("output_names", "")) or source.port.names
    own = _SINK.sub("", layer.name)
    computed = source.layer.name
    if len(source.layer.outputs) > 1 and computed:
        computed = f"{computed}.{source.index}"
    by_result = own in tensor or (own != layer.name and not tensor)
    wanted = own if by_result else tensor[0] if tensor else computed
    aliases = (*tensor, *source.port.names, computed, own, layer.name)
    return _Choice(wanted, (*tensor, layer.name), aliases, layer.id, source.layer)


def _named(
    candidates: Iterable[_Choice], inputs: Mapping[str, NetLayer] = MappingProxyType({})
) -> list[tuple[str, tuple[str, ...]]]:
    """Return a unique name for each choice, and the aliases that are neither a name nor an alias of another choice.

    ==========  =========  =====  =====================================================
    wanted      instead    id     name
    ==========  =========  =====  =====================================================
    "x"         "x", "a"   "0"    "x", which no earlier choice has
    "x"         "x", "b"   "1"    "b", the first alternative that no choice has or wants
    "x"         "x", "b"   "2"    "x.2", with the id, as no alternative is left
    ""          ""         "3"    "3", the id
    ==========  =========  =====  =====================================================
    """
    choices = list(candidates)
    wanted = {choice.wanted for choice in choices}
    names: dict[str, None] = {}
    for choice in choices:
        used = names.keys() | {name for name, layer in inputs.items() if layer is not choice.source}
        name = choice.wanted
        if not name or name in used:
            used |= wanted
            free = [other for other in choice.instead if other and other not in used]
            with_id = f"{choice.wanted}.{choice.id}" if choice.wanted else choice.id
            name = free[0] if free else _free(with_id, used)
        names[name] = None
    claims = Counter(alias for choice in choices for alias in set(choice.aliases))
    claims.update(names.keys())
    aliases = [
        tuple(alias for alias in dict.fromkeys(choice.aliases) if alias and claims[alias] == 1) for choice in choices
    ]
    return list(zip(names, aliases, strict=True))


def _free(name: str, used: Collection[str]) -> str:
    while name in used:
        name += "_"
    return name


def state_names(ids: Iterable[str], taken: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return unique names of each variable's input and output, by id: "h" and "h_out" of "h"."""
    used, names = set(taken), dict[str, tuple[str, str]]()
    for identifier in ids:
        before = _free(identifier, used)
        used.add(before)
        names[identifier] = before, _free(f"{before}_out", used)
        used.add(names[identifier][1])
    return names


def layer_keys(layers: Iterable[tuple[NetLayer, str]]) -> dict[NetLayer, str]:
    """Return a unique key for each layer, from pairs of a layer and the path of its body, or "".

    The key is the name, or the label of a layer without one. If several layers have the name, the key adds the path,
    and the id if the path is not enough.
    """
    rows = list(layers)
    counts = Counter(layer.name for layer, _ in rows)
    in_body = Counter(path + layer.name for layer, path in rows if path)
    used = {name for name, count in counts.items() if count == 1}
    keys = {}
    for layer, path in rows:
        key = layer.name
        if not key or counts[key] > 1:
            key = path + (key or layer.label)
            if layer.name and in_body[key] != 1:
                key = f"{key} (id {layer.id})"
            key = _free(key, used)
            used.add(key)
        keys[layer] = key
    return keys


def value_names(net: NetGraph) -> dict[str, Output]:
    """Return values by the names of tensors and layers, with an index (".1") for layers of several outputs.

    Names of tensors have precedence over names of layers; names of several values are left out.
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
