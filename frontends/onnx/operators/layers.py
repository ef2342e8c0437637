"""Layers of ONNX nodes: prepared if their weights are constants, else unbound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError
from pyrnnx.layers.facts import Described
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import Convention
from pyrnnx.operator.op import RecurrentOp

from .functions import build_layer
from .nodes import RecurrentNode, read_node
from .schemas import DEFAULT_OPSET, SCHEMAS, WEIGHTS

if TYPE_CHECKING:
    from onnx import NodeProto


class NodeLayer(Layer):
    """Layer of an ONNX node; constants of the model are default arguments.

    Parameters
    ----------
    *arguments, **keywords
        As for `Layer`; `constants` are those of the node.
    node_inputs : iterable of str
        The node's inputs among sequence_lens, initial_h and initial_c, constant or not.
    origin : str
        Where a model has the layer, if not as a recurrent node: the unrolled steps or the loop.

    Attributes
    ----------
    node_inputs : frozenset of str
    origin : str
    """

    _shares = True
    _fixed = Layer._fixed | {"node_inputs"}

    def __init__(self, *arguments: Any, node_inputs: Iterable[str] = (), origin: str = "", **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.node_inputs, self._origin = frozenset(node_inputs), origin

    @property
    def origin(self) -> str:
        return self._origin

    def _recognised_in(self, origin: str) -> None:
        """Set the origin of a layer that was just made."""
        self._origin = origin

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments = super().__reduce__()
        return partial(make, node_inputs=self.node_inputs, origin=self.origin), arguments


def from_node(
    node: NodeProto, initializers: Mapping[str, Any], opset: int = DEFAULT_OPSET, *, weight_dtype: str | None = None
) -> NodeLayer:
    """Return the prepared layer of an ONNX node.

    Parameters
    ----------
    node : onnx.NodeProto
        An RNN, GRU or LSTM.
    initializers : mapping
        Constant arrays by the name of the node's input: W, R and, if the node has them, B and P. Others (sequence_lens,
        initial_h, initial_c) become defaults of calls.
    opset : int
        Version of the default domain in the model.
    weight_dtype : str, optional
        "bfloat16" or "int8" stores W and R in fewer bits, see `Layer`. Default: the dtype of W.

    Returns
    -------
    NodeLayer
        Called as ``layer(X, sequence_lens=None, initial_h=None[, initial_c=None])``, in the layout of the node.

    Raises
    ------
    PyrnnxError
        Another operator, missing weights, too many inputs, or attributes or arrays that the opset rejects.
    """
    read = read_node("from_node", node, opset, SCHEMAS)
    check_initializers(read.label, initializers)
    return node_layer(read, read.weights(initializers), read.constants(initializers), weight_dtype=weight_dtype)


def node_layer(
    node: RecurrentNode,
    weights: Mapping[str, Any],
    constants: Mapping[str, Any],
    cls: type[NodeLayer] = NodeLayer,
    *,
    weight_dtype: str | None = None,
) -> NodeLayer:
    """Return the layer of a node and its weights.

    Raises
    ------
    PyrnnxError
        The weights do not fit the node or each other.
    """
    make = partial(cls, name=node.name, constants=constants, node_inputs=node.call_inputs, weight_dtype=weight_dtype)
    return build_layer(node.definition, node.label, weights, node.attributes, make)


def check_initializers(label: str, initializers: Any) -> None:
    """Reject initializers that are not a mapping.

    Raises
    ------
    ArgumentError
    """
    if not isinstance(initializers, Mapping):
        raise ArgumentError(f"{label}: initializers is {type(initializers).__name__}; expected a mapping of arrays")


@dataclass(frozen=True, eq=False, repr=False)
class UnboundNode(Described):
    """Recurrent node whose weights are computed at run time.

    Attributes
    ----------
    node : onnx.NodeProto
    opset : int
        Version of the default domain in the model.
    label : str
        How errors name this layer.
    constants : mapping
        Constants among sequence_lens, initial_h and initial_c.
    op : RecurrentOp or None
        None if the node lacks hidden_size.
    convention : Convention
    """

    parts: RecurrentNode
    constants: Mapping[str, Any]
    op: RecurrentOp | None

    @property
    def node(self) -> NodeProto:
        return self.parts.proto

    @property
    def opset(self) -> int:
        return self.parts.opset

    @property
    def label(self) -> str:
        return self.parts.label

    @property
    def convention(self) -> Convention:
        return self.parts.convention

    @property
    def dtype(self) -> str | None:
        """Dtype: None, because the weights determine it."""
        return None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the node's inputs in the operator's definition."""
        return tuple(self.parts.inputs)

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of X: empty, because a node declares none."""
        return {}

    def bind(self, W: Any, R: Any, B: Any = None, P: Any = None, *, weight_dtype: str | None = None) -> NodeLayer:
        """Return the layer with prepared weights, for many calls; `weight_dtype` as in `from_node`.

        Raises
        ------
        PyrnnxError
            The weights do not fit the node or each other.
        """
        weights = {"W": W, "R": R, "B": B, "P": P}
        return node_layer(self.parts, weights, self.constants, weight_dtype=weight_dtype)

    def __call__(self, *arrays: Any, **named: Any) -> tuple[AnyArray, ...]:
        """Run with all inputs of the operator, weights included, in its order or by name.

        Parameters
        ----------
        *arrays, **named : array_like
            X, W, R, B, sequence_lens, initial_h and, for an LSTM, initial_c and P. None if absent.

        Returns
        -------
        tuple of ndarray
            Y, Y_h and, for an LSTM, Y_c, in the layout of the node.

        Raises
        ------
        PyrnnxError
            An array is missing, unknown or duplicated, or does not fit the node or the others.
        """
        arguments = check.arguments(self.label, self.convention, self.parts.definition.inputs, arrays, named)
        bound = self.bind(*(arguments.pop(name, None) for name in WEIGHTS))
        return bound._for_one_call().run(**arguments)


def unbound_node(node: NodeProto, initializers: Mapping[str, Any], opset: int = DEFAULT_OPSET) -> UnboundNode:
    """Return a recurrent node without its weights; initializers of other inputs become constants.

    Raises
    ------
    PyrnnxError
        As in `from_node`, except for weights.
    """
    read = read_node("unbound_node", node, opset, SCHEMAS)
    return UnboundNode(read, read.constants(initializers), read.op())
