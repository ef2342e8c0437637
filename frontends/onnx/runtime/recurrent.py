"""RNN, GRU and LSTM (and their quantized relative) as operators of onnx's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from pyrnnx.conventions import CALL_ARGUMENTS, Convention
from pyrnnx.immutable import is_immutable
from pyrnnx.layer import CONSTANTS, Layer
from pyrnnx.op import RecurrentOp

from ..makers import MAKERS, Maker
from ..onnx_package import import_onnx
from ..schemas import OPERATORS
from .memory import ask, is_metered

_WEIGHT_AXES = 3
_MOST_UNITS, _NARROWEST = 16, 4  # of a block, in the widest vectors; bytes of what kernels compute in

# What runs a node of another domain: the node and the values of its inputs, to those of its outputs.
Call = Callable[[Any, Sequence[Any]], Sequence[Any]]


class LayerCall:
    """What runs a node of another domain that is a recurrent layer.

    Attributes
    ----------
    layer : Layer
        Or, in a derived class, what is called instead.
    arguments : sequence of str
        What the inputs of the node are: here, the arguments of `Layer.run`.
    """

    def __init__(self, layer: Any, arguments: Sequence[str] = CALL_ARGUMENTS) -> None:
        self.layer, self.arguments = layer, arguments
        self._first = 0 if "T" in layer.convention.axes_of("X") else 1  # a cell has no Y among its outputs

    def __call__(self, node: Any, arrays: Sequence[Any]) -> Sequence[Any]:
        if is_metered():
            ask(self.layer.label, result_bytes(self.layer.op, self.layer.convention, arrays[0]))
        results: Sequence[Any] = self.layer.run(*arrays)
        return results[self._first :]


def reference_ops(layers: Mapping[str, Any] | None = None) -> list[type[Any]]:
    """Operators for ``onnx.reference.ReferenceEvaluator(model, new_ops=reference_ops())``.

    RNN, GRU and LSTM of every opset, and com.microsoft's DynamicQuantizeLSTM, with all that their texts say. Weights
    are prepared once where nobody can change them, as a model's initializers, and at every call elsewhere.

    Parameters
    ----------
    layers : mapping, optional
        Prepared layers by the names of nodes; those nodes use them, whatever weights they are given.

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
        """One node; `layers`, if any, has its layer."""

        op_domain: str
        inputs: tuple[str, ...]
        weights: tuple[str, ...]
        maker: Maker
        layers: Mapping[str, Any] = {}

        def __init__(self, onnx_node: Any, run_params: Any, schema: Any = None) -> None:
            super().__init__(onnx_node, run_params, schema)
            found = self.layers.get(onnx_node.name)
            self._layer = found if isinstance(found, Layer) else None
            # A layer of constant weights, with those and with the attributes that it was made of; one value, so that
            # threads see it whole.
            self._kept: tuple[tuple[Any, ...], Mapping[str, Any], Layer] | None = None

        def _run(self, *arrays: Any, **attributes: Any) -> tuple[Any, ...]:
            given = dict(zip(self.inputs, arrays, strict=False))
            layer = self._layer or self._prepared(given, attributes)
            X = given.get("X")
            ask(self.onnx_node, result_bytes(layer.op, layer.convention, X))
            outputs = layer.run(X, *map(given.get, CONSTANTS))
            return outputs[: len(self.onnx_node.output)]

        def _prepared(self, given: Mapping[str, Any], attributes: Mapping[str, Any]) -> Layer:
            weights = tuple(map(given.get, self.weights))
            linked = {name: attributes[name] for name in self._linked()}
            if self._kept is not None:
                used, values, kept = self._kept
                if linked == values and all(a is b for a, b in zip(weights, used, strict=True)):
                    return kept
            ask(self.onnx_node, packed_bytes(given.get("W"), given.get("R")))
            node = self._resolved(linked)
            sources = dict(zip(self.inputs, node.input, strict=False))
            constants = {sources[name]: a for name, a in zip(self.weights, weights, strict=True) if a is not None}
            layer = self.maker.layer(node, constants, self.run_params["opsets"].get(self.op_domain, 1))
            if all(a is None or is_immutable(a, or_owned=True) for a in weights):
                self._kept = weights, linked, layer
            return layer

        def _linked(self) -> list[str]:
            if not self.has_linked_attribute:
                return []
            return [one.name for one in self.onnx_node.attribute if one.ref_attr_name]

        def _resolved(self, linked: Mapping[str, Any]) -> Any:
            """The node with the values of attributes that it takes from the function around it."""
            if not linked:
                return self.onnx_node
            onnx = import_onnx()
            node = onnx.NodeProto()
            node.CopyFrom(self.onnx_node)
            del node.attribute[:]
            for one in self.onnx_node.attribute:
                if one.name not in linked:
                    node.attribute.append(one)
                elif linked[one.name] is not None:
                    node.attribute.append(onnx.helper.make_attribute(one.name, linked[one.name], attr_type=one.type))
            return node

    def members(name: str) -> dict[str, Any]:
        row = OPERATORS[name]
        return {"op_domain": row.domain, "inputs": row.inputs, "weights": row.weights, "maker": MAKERS[name]}

    return tuple(type(name, (Recurrent,), members(name)) for name in OPERATORS)


def called_ops(calls: Mapping[str, Call], nodes: Iterable[Any]) -> list[type[Any]]:
    """Operators for ReferenceEvaluator's new_ops, of those nodes that functions run, by the nodes' names."""
    import_onnx()
    from onnx.reference.op_run import OpRun

    def run(self: Any, *arrays: Any) -> tuple[Any, ...]:
        return tuple(calls[self.onnx_node.name](self.onnx_node, arrays))

    kinds = {(node.domain, node.op_type) for node in nodes if node.name in calls}
    return [type(name, (OpRun,), {"op_domain": domain, "_run": run}) for domain, name in sorted(kinds)]


def result_bytes(op: RecurrentOp, convention: Convention, X: Any) -> int:
    """Of Y and of the states; 0 where X is none that the operator takes."""
    axes, shape = convention.axes_of("X"), np.shape(X)
    if len(shape) != len(axes):
        return 0
    steps = shape[axes.index("T")] if "T" in axes else 0
    states = 2 if op.has_cell_state else 1
    rows = int((steps + states) * shape[axes.index("N")])
    return rows * op.num_directions * op.hidden_size * int(getattr(X, "itemsize", 0))


def packed_bytes(W: Any, R: Any) -> int:
    """At most, of weights as the kernels take them: in blocks of units, widened; 0 where they are none."""
    if not all(isinstance(one, np.ndarray) and one.ndim == _WEIGHT_AXES for one in (W, R)):
        return 0
    hidden_size = max(int(min(R.shape[1:])), 1)  # of DynamicQuantizeLSTM the axes are the other way round
    blocks = -(-hidden_size // _MOST_UNITS)
    size = int(W.size) + int(R.size)
    return -(-size // hidden_size) * blocks * _MOST_UNITS * max(int(W.itemsize), _NARROWEST)
