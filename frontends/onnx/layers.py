"""An onnx.NodeProto to a layer: prepared, where its weights are constants, or as it is declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyrnnx.conventions import Convention
from pyrnnx.errors import ArgumentError
from pyrnnx.layer import Layer
from pyrnnx.op import RecurrentOp

from .functions import build_layer
from .nodes import RecurrentNode, read_node
from .schemas import DEFAULT_OPSET, SCHEMAS


class NodeLayer(Layer):
    """The layer of one ONNX node; inputs that are constants of the model need not be given again.

    Parameters
    ----------
    *arguments, **keywords
        As of `Layer`; its `constants` are those of the node.
    node_inputs : iterable of str
        Those of sequence_lens, initial_h and initial_c that the node has an input for, constant or not.

    Attributes
    ----------
    node_inputs : frozenset of str
    """

    def __init__(self, *arguments: Any, node_inputs: Iterable[str] = (), **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.node_inputs = frozenset(node_inputs)

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments = super().__reduce__()
        return partial(make, node_inputs=self.node_inputs), arguments


def from_node(
    node: Any, initializers: Mapping[str, Any], opset: int = DEFAULT_OPSET, *, weight_dtype: str | None = None
) -> NodeLayer:
    """A prepared layer from an ONNX node.

    Parameters
    ----------
    node : onnx.NodeProto
        An RNN, GRU or LSTM.
    initializers : mapping
        Constant arrays by the name of the node's input; those of W and R, and of B and P where the node has them, must
        be there. Others (sequence_lens, initial_h, initial_c) become what a call takes when they are not given.
    opset : int
        Version of the default domain in the model.
    weight_dtype : str, optional
        "bfloat16" or "int8": keep W and R in fewer bits, see `Layer`. Default: that of W.

    Returns
    -------
    NodeLayer
        Called as ``layer(X, sequence_lens=None, initial_h=None[, initial_c=None])``, in the layout of the node.

    Raises
    ------
    PyrnnxError
        Another operator, missing weights, too many inputs, attributes or arrays that the opset does not allow.
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
    """The layer of a node and its weights.

    Raises
    ------
    PyrnnxError
        Weights that do not fit the node or each other.
    """
    make = partial(cls, name=node.name, constants=constants, node_inputs=node.call_inputs, weight_dtype=weight_dtype)
    return build_layer(node.definition, node.label, weights, node.attributes, make)


def check_initializers(label: str, initializers: Any) -> None:
    """Reject what is no mapping.

    Raises
    ------
    ArgumentError
    """
    if not isinstance(initializers, Mapping):
        raise ArgumentError(f"{label}: initializers is {type(initializers).__name__}; expected a mapping of arrays")


@dataclass(frozen=True, eq=False)
class UnboundNode:
    """A recurrent node whose weights are computed at run time.

    Attributes
    ----------
    node : onnx.NodeProto
    opset : int
        Version of the default domain in the model.
    label : str
        How errors name this layer.
    constants : mapping
        sequence_lens, initial_h, initial_c, where they are constants.
    op : RecurrentOp or None
        None where the node does not say hidden_size.
    convention : Convention
    """

    parts: RecurrentNode = field(repr=False)
    constants: Mapping[str, Any]
    op: RecurrentOp | None

    @property
    def node(self) -> Any:
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
        """None: the weights are to tell."""
        return None

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the operator calls the inputs that the node has."""
        return tuple(self.parts.inputs)

    @property
    def sizes(self) -> dict[str, int]:
        """Empty: a node declares no size of X."""
        return {}

    def bind(self, W: Any, R: Any, B: Any = None, P: Any = None, *, weight_dtype: str | None = None) -> NodeLayer:
        """The layer with its weights prepared, for many calls; `weight_dtype` as of `from_node`.

        Raises
        ------
        PyrnnxError
            Weights that do not fit the node or each other.
        """
        weights = {"W": W, "R": R, "B": B, "P": P}
        return node_layer(self.parts, weights, self.constants, weight_dtype=weight_dtype)


def unbound_node(node: Any, initializers: Mapping[str, Any], opset: int = DEFAULT_OPSET) -> UnboundNode:
    """A recurrent node without its weights; what of its other inputs is among the initializers becomes its constants.

    Raises
    ------
    PyrnnxError
        As `from_node`, for all but the weights.
    """
    read = read_node("unbound_node", node, opset, SCHEMAS)
    return UnboundNode(read, read.constants(initializers), read.op())
