"""The order in which the layers of an IR can be computed."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from graphlib import CycleError, TopologicalSorter

from pyrnnx.errors import FormatError

SHOWN = 8  # so many layers of a cycle are named


def sort_layers(what: str, labels: Sequence[str], sources: Sequence[Collection[int]]) -> list[int]:
    """The numbers of the layers, each after its sources; else ascending.

    Raises
    ------
    FormatError
        Layers that take inputs from each other.
    """
    sorter = TopologicalSorter(dict(enumerate(sources)))
    try:
        sorter.prepare()
    except CycleError as error:
        raise FormatError(
            f"{what}: layers take inputs from each other in a cycle: {_described(error.args[1][1:], labels)}"
        ) from None
    order: list[int] = []
    ready: list[int] = []
    while sorter.is_active():
        for number in sorter.get_ready():
            heapq.heappush(ready, number)
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
    return order


def _described(cycle: list[int], labels: Sequence[str]) -> str:
    """The layers of a cycle in the order of its edges; the lowest of them closes it, whichever one was met first."""
    first = cycle.index(min(cycle)) + 1
    named = [labels[number] for number in cycle[first:] + cycle[:first]]
    shown = named[:SHOWN] + (["..."] if len(named) > SHOWN else [])
    return " -> ".join([*shown, named[0]])
