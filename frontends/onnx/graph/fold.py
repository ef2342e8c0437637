"""Constant folding: values that depend on constants only are computed once.

    W8 -> Cast -> W,  (x, W) -> MatMul -> y      becomes      (x, W) -> MatMul -> y   with W an initializer

The caller's evaluator computes each node whose inputs are all constant, in topological order. Four kinds of nodes
stay: nodes without a rule for the size of their results, or with results beyond the budget; nodes with results beyond
`largest`, although their dependents are folded; optionally, DequantizeLinear if a runtime computes with codes; and
nodes with bodies (If, Loop, Scan), which are folded inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray

from ..schemas import SCHEMAS
from .codes import DTYPES, products_of_codes
from .constants import Constants
from .sizes import expected_bytes, is_foldable
from .stand_ins import stand_ins
from .walk import Graph, Node

if TYPE_CHECKING:
    from onnx import GraphProto, TensorProto

# Random operators, and recurrent ones, for which onnx's evaluator ignores most attributes.
_NEVER = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
_NEVER |= {"RandomUniformLike", *SCHEMAS}
# Budget of folding: bytes for any model, and a multiple of the bytes of its own constants.
_FREE_BYTES, _TIMES = 2**24, 64

# (node, inputs by name, opsets) -> outputs by name, or None if they cannot be computed.
Evaluate = Callable[[Node, Mapping[str, Any], Mapping[str, int]], "dict[str, AnyArray] | None"]


@dataclass(frozen=True, eq=False)
class FoldedGraph:
    """Graph with the results of folding.

    Attributes
    ----------
    graph : Graph
        The original graph.
    nodes : tuple of Node
        Nodes in topological order.
    constants : Constants
    folded : frozenset of int
        Indices in `nodes` of those whose results are all constant.
    bodies : mapping
        Folded graphs of the subgraphs of nodes, by index of the node.
    large : mapping
        Bytes of constant results that are too large to store, by index of the node.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    constants: Constants
    folded: frozenset[int]
    bodies: Mapping[int, tuple[FoldedGraph, ...]]
    large: Mapping[int, int]


def fold(
    graph: GraphProto | Graph,
    opsets: Mapping[str, int],
    evaluate: Evaluate,
    label: str,
    *,
    defaults: bool = False,
    wanted: set[str] | None = None,
    largest: int | None = None,
    codes: bool = False,
) -> FoldedGraph:
    """Fold the constants of a graph.

    Parameters
    ----------
    graph : onnx.GraphProto or Graph
        Graph of a model without functions.
    opsets : mapping
        Version by domain.
    evaluate : callable
        Function that computes a node.
    label : str
        How errors name the model.
    defaults : bool
        Whether initializers that are also inputs count as constants.
    wanted : set of str, optional
        Only nodes with one of these outputs are folded, also in bodies. Default: all.
    largest : int, optional
        A node stays if its result has more elements, and takes more bytes than its sources.
    codes : bool
        Whether DequantizeLinear of constants stays if a runtime can compute with the codes (codes.py).
    """
    read = graph if isinstance(graph, Graph) else Graph(graph)
    return _Folder(opsets, evaluate, label, largest, codes).fold(read, None, defaults, wanted)


class _Folder:
    """Pass over a graph and its bodies, which share a budget."""

    def __init__(
        self, opsets: Mapping[str, int], evaluate: Evaluate, label: str, largest: int | None, codes: bool
    ) -> None:
        self._opsets, self._evaluate, self._label, self._largest = opsets, evaluate, label, largest
        self._codes = codes
        self._bytes_left = _FREE_BYTES
        # Tensors not yet counted: protobuf serializes them to count their bytes.
        self._uncounted: list[TensorProto] = []
        # Bytes of the sources of constants whose nodes stay.
        self._costs: dict[tuple[Constants, str], int] = {}

    def fold(
        self, graph: Graph, outer: Constants | None, defaults: bool = False, wanted: set[str] | None = None
    ) -> FoldedGraph:
        constants = Constants(graph, outer, self._label, defaults)
        self._uncounted += graph.initializer
        self._bytes_left += _TIMES * sum(array.nbytes for array in graph.arrays.values())
        graph.sort(self._label)
        nodes = tuple(graph.node)
        stay = (
            self._products_of_codes(graph, nodes, constants)
            if self._codes and ("", "DequantizeLinear") in graph.kinds
            else set()
        )
        folded: set[int] = set()
        bodies: dict[int, tuple[FoldedGraph, ...]] = {}
        large: dict[int, int] = {}
        # Stand-ins of constants that are too large to compute: arrays of the shape, without memory.
        unknown: dict[str, AnyArray] = {}
        for index, node in enumerate(nodes):
            inside = tuple([self.fold(body, constants, wanted=wanted) for _, body in node.bodies])
            if inside:
                bodies[index] = inside
            elif wanted is not None and wanted.isdisjoint(node.output):
                continue
            elif (tensor := _constant_tensor(node)) is not None:
                constants.add({node.output[0]: tensor})  # not as an array, which may never be needed
                self._uncounted.append(tensor)
                folded.add(index)
            elif index in stay and _has_codes(node, constants):
                continue
            elif _can_be_folded(node, constants, unknown):
                inputs = [unknown[name] if name in unknown else constants.value(name) for name in node.input]
                if not unknown.keys().isdisjoint(node.input) or not self._fits(node, inputs):
                    arrays, large[index] = stand_ins(node, inputs, self._opsets)
                    unknown |= arrays
                elif self._compute(node, constants):
                    folded.add(index)
        return FoldedGraph(graph, nodes, constants, frozenset(folded), bodies, large)

    def _products_of_codes(self, graph: Graph, nodes: Sequence[Node], constants: Constants) -> set[int]:
        outside = {name for node in nodes for name in node.input if constants.owner(name) is not None}
        return products_of_codes(nodes, {value.name for value in graph.output}, outside)

    def _fits(self, node: Node, inputs: Sequence[AnyArray | None]) -> bool:
        """Return whether the results of a node fit the budget, before they are computed."""
        expected = expected_bytes(node, inputs)
        if expected is None:
            return False
        if expected > self._bytes_left:  # the model's own constants raise the budget
            self._bytes_left += _TIMES * sum(tensor.ByteSize() for tensor in self._uncounted)
            self._uncounted.clear()
        return expected <= self._bytes_left

    def _compute(self, node: Node, constants: Constants) -> bool:
        """Compute the results of a node as constants; return whether the node can go."""
        inputs = {name: constants.value(name) for name in node.input if name}
        results = self._evaluate(node, inputs, self._opsets)
        if results is None:
            return False
        self._bytes_left -= sum(array.nbytes for array in results.values())
        constants.add(results)
        if self._largest is None:
            return True
        cost = sum(self._cost(constants, name) for name in inputs)
        if all(array.size <= self._largest or array.nbytes <= cost for array in results.values()):
            return True
        self._costs |= {(constants, name): cost for name in results}
        return False

    def _cost(self, constants: Constants, name: str) -> int:
        """Return the bytes of a constant in the new graph; if its node stays, the bytes of its sources."""
        owner, value = constants.owner(name), constants.value(name)
        if owner is None or value is None:
            return 0
        return self._costs.get((owner, name), value.nbytes)


def _constant_tensor(node: Node) -> TensorProto | None:
    """Return the tensor of a Constant; None for other constants and nodes."""
    if node.op_type != "Constant" or node.domain or not node.attribute or node.attribute[0].name != "value":
        return None
    tensor: TensorProto = node.attribute[0].t
    return tensor


def _has_codes(node: Node, constants: Constants) -> bool:
    value = constants.value(node.input[0])
    return value is not None and value.dtype.name in DTYPES


def is_deterministic(node: Node) -> bool:
    """Return whether an evaluator computes a node of constants as every call of a runtime does."""
    return node.op_type not in _NEVER and is_foldable(node)


def _can_be_folded(node: Node, constants: Constants, unknown: Mapping[str, AnyArray]) -> bool:
    for name in node.needs:
        if name not in unknown and constants.owner(name) is None:
            return False
    return is_deterministic(node)
