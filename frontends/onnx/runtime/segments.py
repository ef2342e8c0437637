"""Cutting a graph for its runtimes, into as few segments as there can be between the steps of ours.

Steps of ours are recurrent operators, and control flow around them.

Nodes are taken as early as their inputs allow. So every node is in the first segment that it can be in, and there are
as many segments as recurrent steps lie behind each other, and one more where nodes lie before the first:

    Conv -> Relu -> LSTM -> Add -> LSTM -> Softmax        segment [Conv, Relu, Gather], LSTM, segment [Add], LSTM,
            Gather -----------^                           segment [Softmax]        (Gather as early as it can run)

            LSTM -> Add                                   LSTM, segment [Gather, Add]
          Gather ----^

DequantizeLinear of constants goes with what it is for, into each segment that needs it: codes are multiplied there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
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

    @property
    def places(self) -> list[int]:
        """Of a step of ours: where `outputs` are among the outputs of its node."""
        (node,) = self.nodes
        return [place for place, name in enumerate(node.output) if name in self.outputs]


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
    constants, wanted = set(constants), set(wanted)
    carried = _carried(nodes, needs, runners, constants, wanted)
    placed = frozenset(carried.values())
    orders = permutations([runner for runner in Runner if runner in runners])
    groups = min(
        (_grouped(nodes, needs, runners, order, placed) for order in orders),
        key=lambda groups: sum(runners[group[0]] is not Runner.PYRNNX for group in groups),
        default=[],
    )
    for group in groups:
        group[:] = sorted({*group, *(carried[name] for index in group for name in needs[index] if name in carried)})
    users: dict[str, set[int]] = {}
    for number, group in enumerate(groups):
        for index in group:
            for name in needs[index]:
                users.setdefault(name, set()).add(number)
    pieces = []
    for number, group in enumerate(groups):
        made = dict.fromkeys(name for index in group for name in nodes[index].output if name)
        needed = dict.fromkeys(name for index in group for name in sorted(needs[index]))
        inputs = tuple(name for name in needed if name not in constants and name not in made)
        outputs = tuple(
            name for name in made if name not in carried and (name in wanted or users.get(name, {number}) - {number})
        )
        pieces.append(Piece(runners[group[0]], tuple(nodes[index] for index in group), inputs, outputs))
    return pieces


def _carried(
    nodes: Sequence[Any], needs: Sequence[set[str]], runners: Sequence[Runner], constants: set[str], wanted: set[str]
) -> dict[str, int]:
    """Of nodes that dequantize constants, for nodes of the same runner alone: their places by their results' names."""
    found = {
        node.output[0]: index
        for index, node in enumerate(nodes)
        if node.op_type == "DequantizeLinear" and needs[index] <= constants and node.output[0] not in wanted
    }
    for index, names in enumerate(needs):
        for name in found.keys() & names:
            if runners[index] is not runners[found[name]]:
                del found[name]
    return found


def _grouped(
    nodes: Sequence[Any],
    needs: Sequence[set[str]],
    runners: Sequence[Runner],
    order: Sequence[Runner],
    carried: Collection[int],
) -> list[list[int]]:
    """Indices of nodes by piece: all that one runner can run now, then all that the next in the order can.

    Without those that are carried.
    """
    producers = {name: k for k, node in enumerate(nodes) if k not in carried for name in node.output if name}
    missing = [{producers[name] for name in names if name in producers} for names in needs]
    users: list[list[int]] = [[] for _ in nodes]
    for index, before in enumerate(missing):
        for one in before:
            users[one].append(index)
    ready: dict[Runner, list[int]] = {runner: [] for runner in Runner}
    for index, before in enumerate(missing):
        if not before and index not in carried:
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
