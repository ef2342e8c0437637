"""Constants of a model, and the model with constants folded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyrnnx._internal.dtypes import AnyArray

from .graph.check import opsets_of
from .graph.fold import fold
from .graph.inline import inlined
from .graph.rebuild import rebuild, with_graph
from .graph.walk import needed_names
from .runtime.evaluator import evaluate_node

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


def constant_values(model: ModelProto, names: Iterable[str]) -> dict[str, AnyArray]:
    """Return the values of top-level names that depend on constants only.

    Parameters
    ----------
    model : onnx.ModelProto
    names : iterable of str
        Initializers and outputs of nodes. Only their sources are computed.

    Returns
    -------
    dict
        {name: array}; a name that depends on an input, or on an operator that is never folded, is absent. An
        initializer that is also an input is a default, not a constant.
    """
    wanted, label = list(names), "constant_values"
    source, opsets = inlined(model, opsets_of(model, label), label)
    folded = fold(source.graph, opsets, evaluate_node, label, wanted=_with_ancestors(source.graph, wanted))
    values = ((name, folded.constants.value(name)) for name in wanted)
    return {name: value for name, value in values if value is not None}


def fold_constants(model: ModelProto, *, largest: int | None = None) -> ModelProto:
    """Return a new model in which the results of constant nodes are initializers.

    Local functions are inlined, dead nodes and initializers dropped. Nodes with bodies (If, Loop, Scan) stay but are
    folded inside. Random, recurrent, unknown and failing nodes stay, and so do operators that need Python loops. A node
    also stays if its results would push the total above 16 MiB and 64 times the model's own constants.

    Parameters
    ----------
    model : onnx.ModelProto
    largest : int, optional
        A node stays if its result has more elements, and takes more bytes than its sources. Its dependents are folded
        nevertheless. Default: no limit.
    """
    label = "fold_constants"
    source, opsets = inlined(model, opsets_of(model, label), label)
    return with_graph(source, rebuild(fold(source.graph, opsets, evaluate_node, label, largest=largest)))


def _with_ancestors(graph: GraphProto, names: Iterable[str]) -> set[str]:
    """Return the names and all names that they depend on."""
    producers = {output: node for node in graph.node for output in node.output}
    ancestors: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in ancestors:
            ancestors.add(name)
            if name in producers:
                left.extend(needed_names(producers[name]))
    return ancestors
