"""Writer of RNN, GRU and LSTM as OpenVINO's sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrnnx.errors import UnsupportedError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import OPENVINO_SEQUENCE, Convention

from ....onnx.operators.schemas import OPERATORS
from ...layer_writer import add_layer
from ..context import NodeContext
from ..views import View, plain


def write_recurrent(ctx: NodeContext, layer: Layer | Any) -> Sequence[View]:
    """Write the operation of a layer; return its outputs in the node's order."""
    if not isinstance(layer, Layer):
        raise UnsupportedError(f"{layer.label}: its weights are computed at run time; expected constant weights")
    operator, convention = OPERATORS[ctx.node.op_type], layer.convention
    inputs = {}
    for position, key in enumerate(operator.inputs[: len(ctx.node.input)]):
        if ctx.has(position) and key not in layer.constants:
            view = ctx.view(position)
            order = _order(convention, OPENVINO_SEQUENCE, key)
            if view.rank != len(order):
                ctx.refuse(f"{key} of {view.rank} axes", f"{len(order)}")
            inputs[key] = ctx.in_order(view.transposed(order))
    outputs = add_layer(ctx.net.ir, layer, ctx.node.name, inputs)
    return [
        plain(value).transposed(_order(OPENVINO_SEQUENCE, convention, key))
        for key, value in ((key, outputs[key]) for key in operator.outputs)
    ]


def _order(source: Convention, target: Convention, argument: str) -> list[int]:
    """Return the permutation of an argument's axes from one convention to another."""
    axes = source.axes_of(argument)
    return [axes.index(axis) for axis in target.axes_of(argument)]
