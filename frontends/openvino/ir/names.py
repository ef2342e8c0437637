"""What the inputs, outputs, values and layers of an IR are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pyrnnx.errors import FormatError
from pyrnnx.tensor_info import TensorInfo

from .element_types import by_name, by_precision
from .layer import NetLayer, Output
from .net_graph import NetGraph
from .ports import split_names

_SINK = re.compile(r"/sink_port_\d+$")  # what converters append to the name of an output for its Result


class _Choice(NamedTuple):
    """What an input or output may be called.

    Attributes
    ----------
    wanted : str
        Its name by the rule of `Model`.
    instead : sequence of str
        Names for it where an earlier one has that name.
    aliases : sequence of str
        Further names of the same value.
    id : str
        Of its layer, which no other has.
    """

    wanted: str
    instead: Sequence[str]
    aliases: Sequence[str]
    id: str


def input_infos(net: NetGraph) -> tuple[TensorInfo, ...]:
    """One for each Parameter; see `Model` for the rule of names."""
    choices = [_of_parameter(layer) for layer in net.parameters]
    names = _names(choices)
    infos = []
    for layer, name, aliases in zip(net.parameters, names, _aliases(choices, names), strict=True):
        port, text = layer.outputs[0], layer.data.get("element_type")
        dtype = _dtype(layer.label, port.precision) if text is None else by_name(layer.label, text).computed
        infos.append(TensorInfo(name, dtype, layer.shape if "shape" in layer.data else port.shape, aliases))
    return tuple(infos)


def output_infos(net: NetGraph) -> tuple[TensorInfo, ...]:
    """One for each Result; none has the name of an input that it is not."""
    inputs = dict(zip(_names([_of_parameter(layer) for layer in net.parameters]), net.parameters, strict=True))
    choices = [_apart(_of_result(layer), inputs, layer.sources[0].layer) for layer in net.results]
    names = _names(choices)
    infos = []
    for layer, name, aliases in zip(net.results, names, _aliases(choices, names), strict=True):
        port = layer.sources[0].port
        infos.append(TensorInfo(name, _dtype(layer.label, port.precision), port.shape, aliases))
    return tuple(infos)


def _dtype(label: str, precision: str | None) -> str | None:
    """None for an unknown precision too: a model that has one can be read, and its other layers run."""
    try:
        return None if precision is None else by_precision(label, precision).computed
    except FormatError:
        return None


def _of_parameter(layer: NetLayer) -> _Choice:
    tensor, own = layer.outputs[0].names, layer.name
    wanted = own if own in tensor or not tensor else tensor[0]
    return _Choice(wanted, (*tensor, own), (*tensor, own), layer.id)


def _of_result(layer: NetLayer) -> _Choice:
    source = layer.sources[0]
    tensor = split_names(layer.element.get("output_names", "")) or source.port.names
    own = _SINK.sub("", layer.name)
    computed = source.layer.name
    if len(source.layer.outputs) > 1 and computed:
        computed = f"{computed}.{source.index}"
    by_result = own in tensor or (own != layer.name and not tensor)
    wanted = own if by_result else tensor[0] if tensor else computed
    return _Choice(wanted, (*tensor, layer.name), (*tensor, *source.port.names, computed, own, layer.name), layer.id)


def _apart(choice: _Choice, inputs: Mapping[str, NetLayer], source: NetLayer) -> _Choice:
    """The choice, or one that does not want the name of an input, unless `source` is that input."""
    if inputs.get(choice.wanted, source) is source:
        return choice
    free = [one for one in choice.instead if one and inputs.get(one, source) is source]
    return choice._replace(wanted=free[0] if free else _free(f"{choice.wanted}.{choice.id}", inputs.keys()))


def _names(choices: Sequence[_Choice]) -> list[str]:
    """A name for each, all different.

    ==========  =========  =====  ==========================================================================
    wanted      instead    id     name
    ==========  =========  =====  ==========================================================================
    "x"         "x", "a"   "0"    "x", as nobody before it has that name
    "x"         "x", "b"   "1"    "b", the first name instead that nobody has or wants
    "x"         "x", "b"   "2"    "x.2", with the id, as there is no such name
    ""          ""         "3"    "3", the id
    ==========  =========  =====  ==========================================================================
    """
    wanted = {one.wanted for one in choices}
    names: dict[str, None] = {}
    for one in choices:
        name = one.wanted
        if not name or name in names:
            free = [other for other in one.instead if other and other not in names and other not in wanted]
            own = f"{one.wanted}.{one.id}" if one.wanted else one.id
            name = free[0] if free else _free(own, names.keys() | wanted)
        names[name] = None
    return list(names)


def _aliases(choices: Sequence[_Choice], names: Sequence[str]) -> list[tuple[str, ...]]:
    """The aliases of each that are nobody's name, and nobody else's alias."""
    claims = Counter(alias for one in choices for alias in set(one.aliases))
    claims.update(names)
    return [tuple([alias for alias in dict.fromkeys(one.aliases) if alias and claims[alias] == 1]) for one in choices]


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def state_names(ids: Iterable[str], taken: Iterable[str]) -> dict[str, tuple[str, str, str]]:
    """By the ids of variables, names for each as an input, an output, and for whether it has a value: nothing twice.

    Of "h": "h", "h_out" and "h_known".
    """
    used, found = set(taken), dict[str, tuple[str, str, str]]()
    for one in ids:
        before = _free(one, used)
        after, known = (_free(f"{before}{end}", {*used, before}) for end in ("_out", "_known"))
        used |= {before, after, known}
        found[one] = before, after, known
    return found


def layer_keys(layers: Iterable[tuple[NetLayer, str]]) -> dict[NetLayer, str]:
    """A key for each: its name, with its id where others have the same name, or its label where it has none.

    With the layers, the paths of the bodies that they are in, "" of others: where others have the same name, it is the
    path that tells a layer in a body from those, and the id only where the path does not.
    """
    given = list(layers)
    counts = Counter(layer.name for layer, _ in given)
    in_body = Counter(path + layer.name for layer, path in given if path)
    taken = {name for name, count in counts.items() if count == 1}
    keys = {}
    for layer, path in given:
        key = layer.name
        if not key or counts[key] > 1:
            key = path + (key or layer.label)
            if layer.name and in_body[key] != 1:
                key = f"{key} (id {layer.id})"
            key = _free(key, taken)
            taken.add(key)
        keys[layer] = key
    return keys


def value_names(net: NetGraph) -> dict[str, Output]:
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
