"""RNN, GRU, LSTM and DynamicQuantizeLSTM as operators of onnx's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.immutable import is_immutable
from pyrnnx.layers.layer import CONSTANTS, Layer
from pyrnnx.operator.conventions import CALL_ARGUMENTS, Convention
from pyrnnx.operator.op import RecurrentOp

from ..makers import MAKERS, Maker
from ..messages import copied
from ..onnx_package import import_onnx
from ..schemas import OPERATORS
from ..stream_layer import StreamLayer
from .memory import ask, is_metered

if TYPE_CHECKING:
    from onnx import NodeProto

_WEIGHT_AXES = 3
_MOST_UNITS, _NARROWEST = 16, 4  # units of a block in the widest vectors; bytes of the kernels' smallest type

# Runner of a node of another domain: (node, input values) -> output values.
Call = Callable[["NodeProto", Sequence[Any]], Sequence[Any]]


class LayerCall:
    """Runner of a recurrent node of another domain.

    Attributes
    ----------
    layer : Layer
        The layer; a derived class may have another callable.
    arguments : sequence of str
        Names of the node's inputs: here, the arguments of `Layer.run`.
    """

    def __init__(self, layer: Any, arguments: Sequence[str] = CALL_ARGUMENTS) -> None:
        self.layer, self.arguments = layer, arguments
        self._first = 1 if is_cell(layer) else 0

    def __call__(self, node: NodeProto, arrays: Sequence[Any]) -> Sequence[Any]:
        if is_metered():
            ask(self.layer.label, result_bytes(self.layer.op, self.layer.convention, arrays[0]))
        results: Sequence[Any] = self.layer.run(*arrays)
        return results[self._first :]


def is_cell(layer: Any) -> bool:
    """Return whether a layer runs single steps, and has no Y."""
    return "T" not in layer.convention.axes_of("X")


def reference_ops(layers: Mapping[str, Any] | None = None) -> list[type[Any]]:
    """Return operators for ``onnx.reference.ReferenceEvaluator(model, new_ops=reference_ops())``.

    They are RNN, GRU and LSTM of every opset, and com.microsoft's DynamicQuantizeLSTM, with all features. Read-only
    weights, such as initializers, are prepared once; other weights are prepared in every call.

    Parameters
    ----------
    layers : mapping, optional
        Prepared layers by node name; those nodes ignore their weight inputs.

    Returns
    -------
    list of type

    Raises
    ------
    PyrnnxError
        The onnx package is not installed.
    """
    if layers is None:
        return list(_operator_classes())
    return [type(cls.__name__, (cls,), {"layers": layers}) for cls in _operator_classes()]


@cache
def _operator_classes() -> tuple[type[Any], ...]:
    import_onnx()
    from onnx.reference.op_run import OpRun

    class Recurrent(OpRun):
        """Recurrent node; `layers` may have its layer."""

        op_domain: str
        inputs: tuple[str, ...]
        weights: tuple[str, ...]
        maker: Maker
        layers: Mapping[str, Any] = {}

        def __init__(self, onnx_node: NodeProto, run_params: Any, schema: Any = None) -> None:
            super().__init__(onnx_node, run_params, schema)
            layer = self.layers.get(onnx_node.name)
            self._layer = layer if isinstance(layer, (Layer, StreamLayer)) else None
            # Weights, linked attributes and their layer: attribute tuple, so that threads never see a part.
            self._cache: tuple[tuple[Any, ...], Mapping[str, Any], Layer] | None = None

        def _run(self, *arrays: Any, **attributes: Any) -> tuple[Any, ...]:
            inputs = dict(zip(self.inputs, arrays, strict=False))
            layer = self._layer or self._prepared(inputs, attributes)
            X = inputs.get("X")
            ask(self.onnx_node, result_bytes(layer.op, layer.convention, X))
            outputs = layer.run(X, *map(inputs.get, CONSTANTS))
            return outputs[: len(self.onnx_node.output)]

        def _prepared(self, inputs: Mapping[str, Any], attributes: Mapping[str, Any]) -> Layer:
            weights = tuple(map(inputs.get, self.weights))
            linked = {name: attributes[name] for name in self._linked()}
            if self._cache is not None:
                used, values, cached = self._cache
                if linked == values and all(a is b for a, b in zip(weights, used, strict=True)):
                    return cached
            ask(self.onnx_node, packed_bytes(inputs.get("W"), inputs.get("R")))
            node = self._resolved(linked)
            sources = dict(zip(self.inputs, node.input, strict=False))
            constants = {sources[name]: a for name, a in zip(self.weights, weights, strict=True) if a is not None}
            layer = self.maker.layer(node, constants, self.run_params["opsets"].get(self.op_domain, 1))
            if all(a is None or is_immutable(a, or_owned=True) for a in weights):
                self._cache = weights, linked, layer
            return layer

        def _linked(self) -> list[str]:
            if not self.has_linked_attribute:
                return []
            return [attribute.name for attribute in self.onnx_node.attribute if attribute.ref_attr_name]

        def _resolved(self, linked: Mapping[str, Any]) -> NodeProto:
            """Return the node with the values of attributes that reference its function."""
            if not linked:
                return self.onnx_node
            onnx = import_onnx()
            node = copied(self.onnx_node)
            del node.attribute[:]
            for attribute in self.onnx_node.attribute:
                if attribute.name not in linked:
                    node.attribute.append(attribute)
                elif linked[attribute.name] is not None:
                    node.attribute.append(
                        onnx.helper.make_attribute(attribute.name, linked[attribute.name], attr_type=attribute.type)
                    )
            return node

    def members(name: str) -> dict[str, Any]:
        row = OPERATORS[name]
        return {"op_domain": row.domain, "inputs": row.inputs, "weights": row.weights, "maker": MAKERS[name]}

    return tuple(type(name, (Recurrent,), members(name)) for name in OPERATORS)


def called_ops(calls: Mapping[str, Call], nodes: Iterable[NodeProto]) -> list[type[Any]]:
    """Return operators for ReferenceEvaluator's `new_ops` that run nodes by `calls`, by node name."""
    import_onnx()
    from onnx.reference.op_run import OpRun

    def run(self: Any, *arrays: Any) -> tuple[Any, ...]:
        return tuple(calls[self.onnx_node.name](self.onnx_node, arrays))

    kinds = {(node.domain, node.op_type) for node in nodes if node.name in calls}
    return [type(name, (OpRun,), {"op_domain": domain, "_run": run}) for domain, name in sorted(kinds)]


def result_bytes(op: RecurrentOp, convention: Convention, X: Any) -> int:
    """Return the bytes of Y and the states; 0 if X has the wrong rank."""
    axes, shape = convention.axes_of("X"), np.shape(X)
    if len(shape) != len(axes):
        return 0
    steps = shape[axes.index("T")] if "T" in axes else 0
    states = 2 if op.has_cell_state else 1
    rows = int((steps + states) * shape[axes.index("N")])
    return rows * op.num_directions * op.hidden_size * int(getattr(X, "itemsize", 0))


def packed_bytes(W: Any, R: Any) -> int:
    """Return an upper bound on the bytes of packed weights; 0 if the weights have the wrong rank."""
    if not all(isinstance(weights, np.ndarray) and weights.ndim == _WEIGHT_AXES for weights in (W, R)):
        return 0
    hidden_size = max(int(min(R.shape[1:])), 1)  # DynamicQuantizeLSTM transposes R
    blocks = -(-hidden_size // _MOST_UNITS)
    size = int(W.size) + int(R.size)
    return -(-size // hidden_size) * blocks * _MOST_UNITS * max(int(W.itemsize), _NARROWEST)
