"""Topological order of the layers of an IR."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from graphlib import CycleError, TopologicalSorter

from pyrnnx.errors import FormatError

SHOWN = 8  # number of layers of a cycle that errors list


def sort_layers(what: str, labels: Sequence[str], sources: Sequence[Collection[int]]) -> list[int]:
    """Return the numbers of layers in topological order, ascending if several orders are possible.

    Raises
    ------
    FormatError
        The graph has a cycle.
    """
    sorter = TopologicalSorter(dict(enumerate(sources)))
    try:
        sorter.prepare()
    except CycleError as error:
        raise FormatError(
            f"{what}: layers depend on each other in a cycle: {_described(error.args[1][1:], labels)}"
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
    """Describe a cycle from its lowest layer back to it, so that the text does not depend on the search."""
    first = cycle.index(min(cycle)) + 1
    named = [labels[number] for number in cycle[first:] + cycle[:first]]
    shown = named[:SHOWN] + (["..."] if len(named) > SHOWN else [])
    return " -> ".join([*shown, named[0]])
