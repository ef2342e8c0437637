"""The order in which the layers of an IR can be computed."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyrnnx.errors import FormatError

if TYPE_CHECKING:
    from .net import NetLayer

SHOWN = 8  # so many layers of a cycle are named


def sort_layers(what: str, layers: tuple[NetLayer, ...]) -> tuple[NetLayer, ...]:
    """Each layer after its sources; else in the order of the XML."""
    place = {layer: number for number, layer in enumerate(layers)}
    waits_for = {layer: {source.layer for source in layer.sources} for layer in layers}
    followers: dict[NetLayer, list[NetLayer]] = {layer: [] for layer in layers}
    for layer, sources in waits_for.items():
        for source in sources:
            followers[source].append(layer)
    open_sources = {layer: len(sources) for layer, sources in waits_for.items()}
    ready = [place[layer] for layer in layers if not open_sources[layer]]
    heapq.heapify(ready)
    order = []
    while ready:
        layer = layers[heapq.heappop(ready)]
        order.append(layer)
        for follower in followers[layer]:
            open_sources[follower] -= 1
            if not open_sources[follower]:
                heapq.heappush(ready, place[follower])
    if len(order) != len(layers):
        raise FormatError(f"{what}: layers take inputs from each other in a cycle: {_cycle(layers, open_sources)}")
    return tuple(order)


def _cycle(layers: tuple[NetLayer, ...], open_sources: Mapping[NetLayer, int]) -> str:
    """The layers of one cycle, in the order of the edges. Whatever waits has a source that waits."""
    layer = next(layer for layer in layers if open_sources[layer])
    path: dict[NetLayer, int] = {}
    while layer not in path:
        path[layer] = len(path)
        layer = next(source.layer for source in layer.sources if open_sources[source.layer])
    labels = [one.label for one in reversed(list(path)[path[layer] :])]
    shown = labels[:SHOWN] + (["..."] if len(labels) > SHOWN else [])
    return " -> ".join([*shown, labels[0]])
