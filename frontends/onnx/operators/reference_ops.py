"""RNN, GRU, LSTM and DynamicQuantizeLSTM as operators of onnx's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.immutable import is_immutable
from pyrnnx.layers.layer import CONSTANTS, Layer

from ..messages import copied
from ..onnx_package import import_onnx
from .layers import from_node
from .schemas import OPERATORS

if TYPE_CHECKING:
    from onnx import NodeProto


def reference_ops() -> list[type[Any]]:
    """Return operators for ``onnx.reference.ReferenceEvaluator(model, new_ops=reference_ops())``.

    They are RNN, GRU and LSTM of every opset, and com.microsoft's DynamicQuantizeLSTM, with all features. Read-only
    weights, such as initializers, are prepared once; other weights are prepared in every call.

    Returns
    -------
    list of type

    Raises
    ------
    PyrnnxError
        The onnx package is not installed.
    """
    return list(_operator_classes())


@cache
def _operator_classes() -> tuple[type[Any], ...]:
    import_onnx()
    from onnx.reference.op_run import OpRun

    class Recurrent(OpRun):
        op_domain: str
        inputs: tuple[str, ...]
        weights: tuple[str, ...]

        def __init__(self, onnx_node: NodeProto, run_params: Any, schema: Any = None) -> None:
            super().__init__(onnx_node, run_params, schema)
            self._cache: tuple[tuple[Any, ...], Layer] | None = None  # one value, so that threads never see a part

        def _run(self, *arrays: Any, **attributes: Any) -> tuple[Any, ...]:
            inputs = dict(zip(self.inputs, arrays, strict=False))
            layer = self._prepared(inputs, attributes)
            outputs = layer.run(inputs.get("X"), *map(inputs.get, CONSTANTS))
            return outputs[: len(self.onnx_node.output)]

        def _prepared(self, inputs: Mapping[str, Any], attributes: Mapping[str, Any]) -> Layer:
            weights = tuple(map(inputs.get, self.weights))
            if self._cache is not None and all(a is b for a, b in zip(weights, self._cache[0], strict=True)):
                return self._cache[1]
            node = copied(self.onnx_node)
            linked = [row for row in node.attribute if row.ref_attr_name]  # to attributes of the node's function
            for row in linked:
                node.attribute.remove(row)
                if attributes[row.name] is not None:
                    value = attributes[row.name]
                    node.attribute.append(import_onnx().helper.make_attribute(row.name, value, attr_type=row.type))
            sources = dict(zip(self.inputs, node.input, strict=False))
            constants = {sources[name]: a for name, a in zip(self.weights, weights, strict=True) if a is not None}
            layer = from_node(node, constants, self.run_params["opsets"].get(self.op_domain, 1))
            if not linked and all(a is None or is_immutable(a, or_owned=True) for a in weights):
                self._cache = weights, layer
            return layer

    return tuple(
        type(name, (Recurrent,), {"op_domain": row.domain, "inputs": row.inputs, "weights": row.weights})
        for name, row in OPERATORS.items()
    )
