"""Cutting a graph for its runtimes, into as few segments as there can be between the steps of ours.

Steps of ours are recurrent operators, and control flow around them.

Nodes are taken as early as their inputs allow. So every node is in the first segment that it can be in, and there are
as many segments as recurrent steps lie behind each other, and one more where nodes lie before the first:

    Conv -> Relu -> LSTM -> Add -> LSTM -> Softmax        segment [Conv, Relu, Gather], LSTM, segment [Add], LSTM,
            Gather -----------^                           segment [Softmax]        (Gather as early as it can run)

            LSTM -> Add                                   LSTM, segment [Gather, Add]
          Gather ----^
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import permutations
from typing import Any

from ..graph.walk import needed_names, subgraphs


class Runner(Enum):
    """Who runs a node."""

    ONNXRUNTIME = "ONNX Runtime"
    REFERENCE = "reference evaluator"
    PYRNNX = "pyrnnx"


@dataclass(frozen=True)
class Piece:
    """Nodes that run together: a segment, or one node that is a step of its own.

    Attributes
    ----------
    runner : Runner
    nodes : tuple of onnx.NodeProto
        Sorted; one where the runner is pyrnnx.
    inputs : tuple of str
        What it needs of the values that are computed before it or given, constants not among them.
    outputs : tuple of str
        What is needed of its results elsewhere.
    """

    runner: Runner
    nodes: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def holds_recurrent(node: Any, is_recurrent: Callable[[Any], bool]) -> bool:
    """Whether a node is, or has in its bodies at any depth, a recurrent one."""
    if is_recurrent(node):
        return True
    return any(holds_recurrent(inner, is_recurrent) for _, body in subgraphs(node) for inner in body.node)


def cut(
    nodes: Sequence[Any], constants: Iterable[str], wanted: Iterable[str], runner_of: Callable[[Any], Runner]
) -> list[Piece]:
    """The pieces of a graph, in the order in which they run.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto
        Sorted.
    constants : iterable of str
        Names of the graph's initializers.
    wanted : iterable of str
        Names of the values that are returned.
    runner_of : callable
        Node -> Runner.
    """
    needs = [needed_names(node) for node in nodes]
    runners = [runner_of(node) for node in nodes]
    orders = permutations([runner for runner in Runner if runner in runners])
    groups = min(
        (_grouped(nodes, needs, runners, order) for order in orders),
        key=lambda groups: sum(runners[group[0]] is not Runner.PYRNNX for group in groups),
        default=[],
    )
    constants, wanted = set(constants), set(wanted)
    users: dict[str, set[int]] = {}
    for number, group in enumerate(groups):
        for index in group:
            for name in needs[index]:
                users.setdefault(name, set()).add(number)
    pieces = []
    for number, group in enumerate(groups):
        made = [name for index in group for name in nodes[index].output if name]
        needed = dict.fromkeys(name for index in group for name in sorted(needs[index]))
        inputs = tuple(name for name in needed if name not in constants and name not in set(made))
        outputs = tuple(name for name in made if name in wanted or users.get(name, {number}) - {number})
        pieces.append(Piece(runners[group[0]], tuple(nodes[index] for index in group), inputs, outputs))
    return pieces


def _grouped(
    nodes: Sequence[Any], needs: Sequence[set[str]], runners: Sequence[Runner], order: Sequence[Runner]
) -> list[list[int]]:
    """Indices of nodes by piece: all that one runner can run now, then all that the next in the order can."""
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    missing = [{producers[name] for name in names if name in producers} for names in needs]
    users: list[list[int]] = [[] for _ in nodes]
    for index, before in enumerate(missing):
        for one in before:
            users[one].append(index)
    ready: dict[Runner, list[int]] = {runner: [] for runner in Runner}
    for index, before in enumerate(missing):
        if not before:
            ready[runners[index]].append(index)
    groups: list[list[int]] = []
    while any(ready.values()):
        for runner in order:
            queue, ready[runner] = ready[runner], []
            group: list[int] = []
            while queue:
                index = queue.pop()
                group.append(index)
                for user in users[index]:
                    missing[user].discard(index)
                    if not missing[user]:
                        (queue if runners[user] is runner else ready[runners[user]]).append(user)
            group.sort()
            groups += [[index] for index in group] if runner is Runner.PYRNNX else [group] if group else []
    return groups
