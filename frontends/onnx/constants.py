"""What is constant in a model, and the model with it folded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyrnnx.dtypes import AnyArray

from .graph.check import opsets_of
from .graph.fold import fold
from .graph.inline import inlined
from .graph.rebuild import rebuild, with_graph
from .graph.walk import needed_names
from .runtime.evaluator import evaluate_node

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


def constant_values(model: ModelProto, names: Iterable[str]) -> dict[str, AnyArray]:
    """Values of those of the names at the top level that depend on constants only.

    Parameters
    ----------
    model : onnx.ModelProto
    names : iterable of str
        Initializers and outputs of nodes. Only what they depend on is computed.

    Returns
    -------
    dict
        {name: array}; a name that depends on an input, or on an operator that is never folded, is absent. An
        initializer that is an input too is a default that a caller may replace: no constant.
    """
    wanted, label = list(names), "constant_values"
    source, opsets = inlined(model, opsets_of(model, label), label)
    folded = fold(source.graph, opsets, evaluate_node, label, wanted=_with_ancestors(source.graph, wanted))
    values = ((name, folded.constants.value(name)) for name in wanted)
    return {name: value for name, value in values if value is not None}


def fold_constants(model: ModelProto, *, largest: int | None = None) -> ModelProto:
    """A new model in which the results of nodes with only constant inputs are initializers.

    Local functions are inlined, dead nodes and initializers dropped. Nodes with bodies (If, Loop, Scan), and random,
    recurrent, unknown and failing ones stay, and so do those that Python's loops compute; those in bodies are folded
    like those outside. A node stays, too, where its results, told by their shapes, would make all the results take
    more than 16 MiB and 64 times what the model's own constants take.

    Parameters
    ----------
    model : onnx.ModelProto
    largest : int, optional
        A node stays if its result has more elements than that and takes more bytes than the constants that it was
        computed from. What depends on it is folded nevertheless. Default: everything is folded.
    """
    label = "fold_constants"
    source, opsets = inlined(model, opsets_of(model, label), label)
    return with_graph(source, rebuild(fold(source.graph, opsets, evaluate_node, label, largest=largest)))


def _with_ancestors(graph: GraphProto, names: Iterable[str]) -> set[str]:
    """The names, and every name that their values depend on."""
    producers = {output: node for node in graph.node for output in node.output}
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            if name in producers:
                left.extend(needed_names(producers[name]))
    return found
