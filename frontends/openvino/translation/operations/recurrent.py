"""Translation of RNN, GRU and LSTM, sequences and cells, to ONNX's operators or OpenVINO's operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import FLOAT_TYPES, INTEGERS
from pyrnnx.errors import FormatError
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, OUTPUTS, axis_size, convert_weights, weight_axes
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.operator.tensor_info import fits

from ...layers import BoundLayer, IRLayer
from ...schemas import OPERATIONS, WEIGHTS
from ..context import LayerContext
from ..onnx_frontend import DOMAIN
from ..registry import Translator, translates


def weight_inputs(layer: IRLayer) -> tuple[int, ...]:
    """Return the indices of the inputs W, R, B and P."""
    return tuple(k for k, argument in enumerate(layer.arguments) if argument in WEIGHTS)


def _recurrent(ctx: LayerContext) -> list[str]:
    layer = ctx.recurrent
    assert layer is not None  # the net has a declaration of every recurrent layer
    inputs = dict(zip(layer.arguments, range(len(ctx)), strict=True))
    _check_inputs(ctx, layer)
    weights = _weights(ctx, layer, inputs)
    X = _to_canonical(ctx, layer, "X", ctx[inputs["X"]])
    states = [
        _to_canonical(ctx, layer, name, ctx[inputs[name]]) for name in ("initial_h", "initial_c") if name in inputs
    ]
    lengths = _lengths(ctx, inputs["sequence_lens"], inputs["X"]) if "sequence_lens" in inputs else ""
    arguments = [X, weights["W"], weights["R"], weights.get("B", ""), lengths, *states, weights.get("P", "")]
    while not arguments[-1]:
        arguments.pop()
    outputs = ctx.nodes(
        layer.op.cell, *arguments, outputs=3 if layer.op.has_cell_state else 2, **node_attributes(layer.op)
    )
    by_name = dict(zip(OUTPUTS, outputs, strict=False))
    return [_from_canonical(ctx, layer, name, by_name[name]) for name in layer.operation.outputs]


for row in OPERATIONS.values():
    translates(row.type, since=row.first_opset)(_recurrent)


def as_operation(layer: BoundLayer | IRLayer) -> Translator:
    """Return a translator of a recurrent layer to one node of OpenVINO's operation, which `layer` runs.

    Its inputs are the arguments of `Layer.run`, or for a layer without weights all inputs in port order.
    """

    def translated(ctx: LayerContext) -> list[str]:
        declared = ctx.recurrent
        assert declared is not None  # the layer itself
        _check_inputs(ctx, declared)
        indices = {argument: k for k, argument in enumerate(declared.arguments)}
        order = CALL_ARGUMENTS if isinstance(layer, BoundLayer) else declared.arguments
        inputs = [ctx[indices[argument]] if argument in indices else "" for argument in order]
        return ctx.nodes(declared.type, *inputs, outputs=len(declared.outputs), domain=DOMAIN)

    return translated


def _check_inputs(ctx: LayerContext, layer: IRLayer) -> None:
    """Check that inputs have the shapes and types that the ports declare, as far as they are known."""
    for k, port in enumerate(layer.inputs):
        shape = ctx.shape(k)
        if shape is not None and not fits(port.shape, shape):
            raise FormatError(f"{ctx.label}: {port} reads a value of shape {shape}; the layer declares {port.shape}")
        if port.dtype in FLOAT_TYPES and ctx.dtype(k) != port.dtype:
            raise FormatError(f"{ctx.label}: {port} reads a value of {ctx.dtype(k)}; the layer declares {port.dtype}")


def node_attributes(op: RecurrentOp) -> dict[str, Any]:
    """Return the attributes of the ONNX node, with all parameters of activations, independent of defaults."""
    functions = [function for direction in op.activations for function in direction]
    attributes: dict[str, Any] = {
        "hidden_size": op.hidden_size,
        "direction": op.direction.value,
        "activations": [function.name for function in functions],
        "activation_alpha": [function.alpha for function in functions if function.alpha is not None] or None,
        "activation_beta": [function.beta for function in functions if function.beta is not None] or None,
        "clip": op.clip,
    }
    if op.linear_before_reset:
        attributes["linear_before_reset"] = 1
    if op.input_forget:
        attributes["input_forget"] = 1
    return attributes


def _to_canonical(ctx: LayerContext, layer: IRLayer, argument: str, name: str) -> str:
    """Transpose a value to the canonical axes, with those that the convention lacks inserted."""
    axes, to = layer.convention.axes_of(argument), CANONICAL.axes_of(argument)
    present = [axis for axis in to if axis in axes]
    name = ctx.transpose(name, [axes.index(axis) for axis in present])
    return ctx.unsqueeze(name, [k for k, axis in enumerate(to) if axis not in axes])


def _from_canonical(ctx: LayerContext, layer: IRLayer, argument: str, name: str) -> str:
    axes, source = layer.convention.axes_of(argument), CANONICAL.axes_of(argument)
    name = ctx.squeeze(name, [k for k, axis in enumerate(source) if axis not in axes])
    present = [axis for axis in source if axis in axes]
    return ctx.transpose(name, [present.index(axis) for axis in axes])


def _lengths(ctx: LayerContext, k: int, x: int) -> str:
    """Return the lengths as int32, ONNX's type; "" if all are seq_length."""
    array, shape = ctx.array(k), ctx.shape(x)
    if array is None:
        return ctx.as_dtype(k, "int32")
    if array.dtype.name not in INTEGERS:
        raise FormatError(f"{ctx.label}: sequence_lengths has dtype {array.dtype}; expected {' or '.join(INTEGERS)}")
    if shape is not None and None not in shape and array.shape == shape[:1] and (array == shape[1]).all():
        return ""
    bounded = np.clip(array.astype(object), -1, 2**31 - 1)  # a length out of range stays out of range
    return ctx.constant(bounded.astype(np.int32), "int32")


def _weights(ctx: LayerContext, layer: IRLayer, inputs: dict[str, int]) -> dict[str, str]:
    """Return the canonical W, R, B and P: initializers, or nodes that convert computed weights."""
    names = [name for name in WEIGHTS if name in inputs]
    arrays = {name: ctx.array(inputs[name]) for name in names}
    constant = layer.check_weights({name: array for name, array in arrays.items() if array is not None})
    converted = convert_weights(layer.op, constant, layer.convention, CANONICAL, layer.label)
    result = {}
    for name in names:
        if name in converted:
            source = ctx.layer.sources[inputs[name]].layer
            result[name] = ctx.graph.constant(np.ascontiguousarray(converted[name]), f"{source.name}/{name}")
        else:
            result[name] = _by_nodes(ctx, layer, name, inputs[name])
    return result


def _by_nodes(ctx: LayerContext, layer: IRLayer, argument: str, k: int) -> str:
    """Add nodes that convert a computed weight, the k-th input, by moving its blocks of hidden_size rows.

    Converting an array of block numbers like a weight shows where each block goes: LSTM gates f, i, c, o, numbered
    1, 2, 3, 4, become i, o, f, c: 2, 4, 1, 3. A negative number is a negated block. 0 is a block of zeros (of B), or
    one that is never read (with input_forget), which may be any block.
    """
    op, convention, name = layer.op, layer.convention, ctx[k]
    count = axis_size(weight_axes(op, convention)[argument][-1 if argument in "BP" else -2], {"H": 1}) or 1
    numbered = np.repeat(np.arange(1.0, count + 1), op.hidden_size)
    if argument not in "BP":
        numbered = numbered[:, np.newaxis]
    if convention.has_directions:
        numbered = np.stack([numbered] * op.num_directions)
    else:
        name = ctx.unsqueeze(name, [0])
    converted = convert_weights(op, {argument: numbered}, convention, CANONICAL)[argument]
    numbers = [int(number) for number in converted[0].reshape(-1)[:: op.hidden_size]]
    if numbers == list(range(1, count + 1)):
        return name
    blocks = ctx.nodes("Split", name, outputs=count, axis=1, num_outputs=count)
    filler = blocks[0]
    if argument == "B":
        filler = ctx.constant(np.zeros((op.num_directions, op.hidden_size)), ctx.dtype(k))

    def block(number: int) -> str:
        if number == 0:
            return filler
        return blocks[number - 1] if number > 0 else ctx.node("Neg", blocks[-number - 1])

    return ctx.concat([block(number) for number in numbers], axis=1)
