"""Translation of RNN, GRU and LSTM, sequences and cells, to ONNX's operators or OpenVINO's operations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray
from pyrnnx.errors import FormatError
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, OUTPUTS, convert_weights

from ....onnx.operators.schemas import op_attributes
from ...layers import BoundLayer, IRLayer
from ...schemas import OPERATIONS, WEIGHTS
from ..context import LayerContext, translates

DOMAIN = "org.openvinotoolkit"  # of OpenVINO's own operators


def weight_inputs(layer: IRLayer) -> tuple[int, ...]:
    """Return the indices of the inputs W, R, B and P."""
    return tuple(k for k, argument in enumerate(layer.arguments) if argument in WEIGHTS)


def _recurrent(ctx: LayerContext) -> list[str]:
    layer, runner = ctx.scope.net.declared(ctx.layer), ctx.scope.runner(ctx.layer)
    assert layer is not None  # the net has a declaration of every recurrent layer
    inputs = dict(zip(layer.arguments, range(len(ctx)), strict=True))
    if runner is not None:  # a layer with weights runs their operation as `Layer.run` takes its arguments
        order = CALL_ARGUMENTS if isinstance(runner, BoundLayer) else layer.arguments
        names = [ctx[inputs[argument]] if argument in inputs else "" for argument in order]
        return ctx.nodes(layer.type, *names, outputs=len(layer.outputs), domain=DOMAIN)
    weights = {
        name: ctx.constant_input(inputs[name], layer.convention.name_of(name)) for name in WEIGHTS if name in inputs
    }
    sources = {name: f"{ctx.layer.sources[inputs[name]].layer.name}/{name}" for name in weights}
    axes = layer.convention.axes_of
    arguments: dict[str, str] = {
        name: arranged(ctx, ctx[inputs[name]], axes(name), CANONICAL.axes_of(name))
        for name in ("X", "initial_h", "initial_c")
        if name in inputs
    }
    if "sequence_lens" in inputs:
        arguments["sequence_lens"] = _lengths(ctx, inputs["sequence_lens"], inputs["X"])
    outputs = operator(ctx, layer, layer.check_weights(weights), sources, arguments)
    return [selected(ctx, outputs[name], CANONICAL.axes_of(name), axes(name)) for name in layer.operation.outputs]


def operator(
    ctx: LayerContext,
    layer: IRLayer,
    weights: Mapping[str, AnyArray],
    names: Mapping[str, str],
    arguments: Mapping[str, str],
) -> dict[str, str]:
    """Add an RNN, GRU or LSTM of ONNX; return the names of its canonical outputs.

    `weights` are in the layer's convention, and `names` are those of their initializers. `arguments` are the names of
    the other inputs, in the canonical convention; "" stands for none.
    """
    converted = convert_weights(layer.op, weights, layer.convention, CANONICAL, layer.label)
    values = dict(arguments)
    for name, array in converted.items():
        values[name] = ctx.graph.constant(np.ascontiguousarray(array), names.get(name, f"{layer.name}/{name}"))
    inputs = [values.get(name, "") for name in ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")]
    if not layer.op.has_cell_state:
        inputs = inputs[:6]
    while not inputs[-1]:
        inputs.pop()
    count = 3 if layer.op.has_cell_state else 2
    outputs = ctx.nodes(layer.op.cell, *inputs, outputs=count, **op_attributes(layer.op))
    return dict(zip(OUTPUTS, outputs, strict=False))


def arranged(ctx: LayerContext, name: str, axes: str, to: str) -> str:
    """Transpose a value to the axes `to`, with those that it lacks inserted."""
    present = [axis for axis in to if axis in axes]
    name = ctx.transpose(name, [axes.index(axis) for axis in present])
    return ctx.unsqueeze(name, [k for k, axis in enumerate(to) if axis not in axes])


def selected(ctx: LayerContext, name: str, axes: str, to: str) -> str:
    """Transpose a value to the axes `to`, with all others removed."""
    name = ctx.squeeze(name, [k for k, axis in enumerate(axes) if axis not in to])
    present = [axis for axis in axes if axis in to]
    return ctx.transpose(name, [present.index(axis) for axis in to])


for row in OPERATIONS.values():
    translates(row.type, since=row.first_opset)(_recurrent)


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
