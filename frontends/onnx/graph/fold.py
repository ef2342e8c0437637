"""Folding: what of a graph depends on constants only is computed once.

    W8 -> Cast -> W,  (x, W) -> MatMul -> y      becomes      (x, W) -> MatMul -> y   with W an initializer

In the order in which they can run, each node whose inputs are all constants is computed (by an evaluator that the
caller gives), and its results are constants for those after it. Four kinds of nodes stay all the same: those without
a rule that tells the size of their results, or with results beyond the budget; those with results beyond `largest`,
though what depends on them is folded; DequantizeLinear, if asked for, where a runtime computes with codes; nodes with
bodies (If, Loop, Scan), inside which the same is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrnnx.dtypes import AnyArray

from ..schemas import SCHEMAS
from .codes import DTYPES, products_of_codes
from .constants import Constants
from .sizes import expected_bytes, is_foldable
from .stand_ins import stand_ins
from .walk import Needs, sorted_nodes, subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

# Another result at every run; and the recurrent ones, which onnx's own evaluator computes without most attributes.
_NEVER = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
_NEVER |= {"RandomUniformLike", *SCHEMAS}
# What the results of folding may take: so much for any model, and so many times what its own constants take.
_FREE_BYTES, _TIMES = 2**24, 64

# Of a node, its inputs by name and the opsets: its outputs by name, or None where they cannot be computed.
Evaluate = Callable[["NodeProto", Mapping[str, Any], Mapping[str, int]], "dict[str, AnyArray] | None"]


@dataclass(frozen=True, eq=False)
class FoldedGraph:
    """A graph, and what is known of it.

    Attributes
    ----------
    graph : onnx.GraphProto
        As it was.
    nodes : tuple of onnx.NodeProto
        In an order in which they can run.
    constants : Constants
    folded : frozenset of int
        The nodes, by their places in `nodes`, whose results are all constants, so that they need not run.
    bodies : mapping
        The folded graphs of the subgraphs of nodes, by the nodes' places.
    large : mapping
        The bytes of results that depend on constants only, but are too large to be kept, by the nodes' places.
    """

    graph: GraphProto
    nodes: tuple[NodeProto, ...]
    constants: Constants
    folded: frozenset[int]
    bodies: Mapping[int, tuple[FoldedGraph, ...]]
    large: Mapping[int, int]


def fold(
    graph: GraphProto,
    opsets: Mapping[str, int],
    evaluate: Evaluate,
    label: str,
    *,
    defaults: bool = False,
    wanted: set[str] | None = None,
    largest: int | None = None,
    codes: bool = False,
) -> FoldedGraph:
    """What of a graph depends on constants only.

    Parameters
    ----------
    graph : onnx.GraphProto
        Of a model without functions.
    opsets : mapping
        Version by domain.
    evaluate : callable
        What computes a node.
    label : str
        How errors name the model.
    defaults : bool
        Whether inputs that are initializers too count as constants.
    wanted : set of str, optional
        Nodes without any of these outputs are passed over. Default: none is.
    largest : int, optional
        A node stays if its result has more elements than that and takes more bytes than what it is computed from.
    codes : bool
        Whether DequantizeLinear of constants stays where a runtime can compute with the codes (codes.py).
    """
    return _Folder(opsets, evaluate, label, largest, codes).fold(graph, None, defaults, wanted)


class _Folder:
    """One pass over a graph and its bodies, which share a budget."""

    def __init__(
        self, opsets: Mapping[str, int], evaluate: Evaluate, label: str, largest: int | None, codes: bool
    ) -> None:
        self._opsets, self._evaluate, self._label, self._largest = opsets, evaluate, label, largest
        self._codes, self._needs = codes, Needs()
        self._bytes_left = _FREE_BYTES
        # Tensors whose bytes protobuf tells by writing them: so only if they are asked for.
        self._uncounted: list[Any] = []
        # Of constants whose nodes stay: the bytes of what they are computed from.
        self._costs: dict[tuple[Constants, str], int] = {}

    def fold(
        self, graph: GraphProto, outer: Constants | None, defaults: bool = False, wanted: set[str] | None = None
    ) -> FoldedGraph:
        constants = Constants(graph, outer, self._label, defaults)
        self._uncounted += graph.initializer
        nodes = tuple(sorted_nodes(graph, self._label, self._needs))
        stay = self._products_of_codes(graph, nodes, constants) if self._codes else set()
        folded: set[int] = set()
        bodies: dict[int, tuple[FoldedGraph, ...]] = {}
        large: dict[int, int] = {}
        # Of what depends on constants only, but is too large to be computed: arrays of its shape, without memory.
        unknown: dict[str, AnyArray] = {}
        for index, node in enumerate(nodes):
            if wanted is not None and wanted.isdisjoint(node.output):
                continue
            inside = tuple(self.fold(body, constants) for _, body in subgraphs(node))
            if inside:
                bodies[index] = inside
            elif (tensor := _constant_tensor(node)) is not None:
                constants.add({node.output[0]: tensor})  # as it is: its array may never be needed
                self._uncounted.append(tensor)
                folded.add(index)
            elif index in stay and _has_codes(node, constants):
                continue
            elif _can_be_folded(node, constants, unknown):
                inputs = [unknown[name] if name in unknown else constants.value(name) for name in node.input]
                if not unknown.keys().isdisjoint(node.input) or not self._fits(node, inputs):
                    found, large[index] = stand_ins(node, inputs, self._opsets)
                    unknown |= found
                elif self._compute(node, constants):
                    folded.add(index)
        return FoldedGraph(graph, nodes, constants, frozenset(folded), bodies, large)

    def _products_of_codes(self, graph: GraphProto, nodes: Sequence[NodeProto], constants: Constants) -> set[int]:
        outside = {name for node in nodes for name in node.input if constants.owner(name) is not None}
        return products_of_codes(nodes, {one.name for one in graph.output}, outside)

    def _fits(self, node: NodeProto, inputs: Sequence[AnyArray | None]) -> bool:
        """Whether the results of a node are within the budget: known from its inputs, before they are computed."""
        expected = expected_bytes(node, inputs)
        if expected is None:
            return False
        if expected > self._bytes_left:  # the constants of a model allow results of so many times as much
            self._bytes_left += _TIMES * sum(one.ByteSize() for one in self._uncounted)
            self._uncounted.clear()
        return expected <= self._bytes_left

    def _compute(self, node: NodeProto, constants: Constants) -> bool:
        """Make the results of a node constants, if it has any; whether it need not run any more."""
        inputs = {name: constants.value(name) for name in node.input if name}
        results = self._evaluate(node, inputs, self._opsets)
        if results is None:
            return False
        self._bytes_left -= sum(one.nbytes for one in results.values())
        constants.add(results)
        if self._largest is None:
            return True
        cost = sum(self._cost(constants, name) for name in inputs)
        if all(one.size <= self._largest or one.nbytes <= cost for one in results.values()):
            return True
        self._costs |= {(constants, name): cost for name in results}
        return False

    def _cost(self, constants: Constants, name: str) -> int:
        """Bytes that a constant takes in the new graph: where its node stays, those of what it is computed from."""
        owner, value = constants.owner(name), constants.value(name)
        if owner is None or value is None:
            return 0
        return self._costs.get((owner, name), value.nbytes)


def _constant_tensor(node: NodeProto) -> Any:
    """The tensor that a Constant holds; None of one that holds something else, and of any other node."""
    if node.op_type != "Constant" or node.domain or not node.attribute or node.attribute[0].name != "value":
        return None
    return node.attribute[0].t


def _has_codes(node: NodeProto, constants: Constants) -> bool:
    value = constants.value(node.input[0])
    return value is not None and value.dtype.name in DTYPES


def _can_be_folded(node: NodeProto, constants: Constants, unknown: Mapping[str, AnyArray]) -> bool:
    if node.op_type in _NEVER or not is_foldable(node):
        return False
    return all(not name or name in unknown or constants.owner(name) is not None for name in node.input)
