"""Plan of a model: which engine runs each part, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .graph.walk import subgraphs

if TYPE_CHECKING:
    from onnx import NodeProto

ONNXRUNTIME, PYRNNX = "ONNX Runtime", "pyrnnx"
_COUNTED = {
    ONNXRUNTIME: ("session of ONNX Runtime", "sessions of ONNX Runtime"),
    PYRNNX: ("recurrent layer", "recurrent layers"),
}
Row = tuple[str, str, str]  # engine, part of the model, reason if it is not obvious


class Plan:
    """Table of the engines that run the parts of a model, and why."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = list(rows)

    def rows(self) -> list[Row]:
        """Return (runner, what it runs, why) for each part."""
        return list(self._rows)

    def __repr__(self) -> str:
        counts = Counter(runner for runner, _, _ in self._rows)
        parts = [f"{count} {_COUNTED[runner][count != 1]}" for runner, count in counts.items()]
        return f"<Plan: {', '.join(parts) or 'nothing to run'}>"

    def __str__(self) -> str:
        widths = [max((len(row[column]) for row in self._rows), default=0) for column in range(2)]
        return "\n".join(f"{who:{widths[0]}}  {what:{widths[1]}}  {why}".rstrip() for who, what, why in self._rows)


def counted(nodes: Sequence[NodeProto]) -> str:
    """Return the operators of nodes by descending count, with bodies: "2 Conv, If (3 Add, Relu), Relu"."""
    counts = Counter(node.op_type for node in nodes)
    inside: dict[str, list[NodeProto]] = {}
    for node in nodes:
        inside.setdefault(node.op_type, []).extend(inner for _, body in subgraphs(node) for inner in body.node)
    parts = []
    for name, count in counts.most_common():
        bodies = f" ({counted(inside[name])})" if inside[name] else ""
        parts.append(f"{name if count == 1 else f'{count} {name}'}{bodies}")
    return ", ".join(parts)
