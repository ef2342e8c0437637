"""Translation of a TensorIterator around one cell to a sequence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, OUTPUTS, convert_weights

from ..looped_cells import LoopedCell
from .constants import ConstantValues
from .context import LayerContext
from .graph import SMALL
from .onnx_frontend import DOMAIN
from .operations.recurrent import node_attributes


def sequence(ctx: LayerContext, loop: LoopedCell, constants: ConstantValues, *, keep_operation: bool) -> list[str]:
    """Translate the loop to OpenVINO's operation or to ONNX's operator; return the names of the loop's outputs."""
    layer = loop.layer
    convention = layer.convention if keep_operation else CANONICAL
    names = {"X": _arranged(ctx, ctx[loop.X], loop.axes, convention.axes_of("X"))}
    for argument, place in loop.states.items():
        names[argument] = _arranged(ctx, ctx[place], "NH", convention.axes_of(argument))
    if keep_operation:
        names["sequence_lens"] = _lengths(ctx, loop)
        inputs = [names.get(argument, "") for argument in CALL_ARGUMENTS]
        outputs = ctx.nodes(layer.type, *inputs, outputs=len(layer.operation.outputs), domain=DOMAIN)
        values = dict(zip(layer.operation.outputs, outputs, strict=True))
    else:
        values = _operator(ctx, loop, names, constants)
    results = [""] * len(ctx.layer.outputs)
    for place, (argument, axes) in loop.outputs.items():
        results[place] = _without_axes(ctx, values[argument], convention.axes_of(argument), axes)
    return results


def _lengths(ctx: LayerContext, loop: LoopedCell) -> str:
    """Return seq_length for every row, a required input of OpenVINO's sequences."""
    steps, rows = (loop.axes.index(axis) for axis in "TN")
    shape = ctx.shape(loop.X) or (None,) * 3
    length, count = shape[steps], shape[rows]
    if length is not None and count is not None and count <= SMALL:
        return ctx.constant([length] * count)
    X = ctx[loop.X]
    return ctx.node("Expand", ctx.dimension(X, steps), ctx.dimension(X, rows))


def _operator(
    ctx: LayerContext, loop: LoopedCell, names: Mapping[str, str], constants: ConstantValues
) -> dict[str, str]:
    layer = loop.layer
    arrays = layer.check_weights(loop.arrays(constants.value))
    weights = {
        name: ctx.graph.constant(np.ascontiguousarray(array), f"{layer.name}/{name}")
        for name, array in convert_weights(layer.op, arrays, layer.convention, CANONICAL, layer.label).items()
    }
    arguments = [names["X"], weights["W"], weights["R"], weights.get("B", ""), ""]
    arguments += [names[argument] for argument in loop.states] + [weights.get("P", "")]
    while not arguments[-1]:
        arguments.pop()
    count = 3 if layer.op.has_cell_state else 2
    outputs = ctx.nodes(layer.op.cell, *arguments, outputs=count, **node_attributes(layer.op))
    return dict(zip(OUTPUTS, outputs, strict=False))


def _arranged(ctx: LayerContext, name: str, axes: str, to: str) -> str:
    """Transpose a value to the axes `to`, with those that it lacks inserted."""
    present = [axis for axis in to if axis in axes]
    name = ctx.transpose(name, [axes.index(axis) for axis in present])
    return ctx.unsqueeze(name, [k for k, axis in enumerate(to) if axis not in axes])


def _without_axes(ctx: LayerContext, name: str, axes: str, to: str) -> str:
    """Transpose a value to the axes `to`, with all others removed."""
    name = ctx.squeeze(name, [k for k, axis in enumerate(axes) if axis not in to])
    present = [axis for axis in axes if axis in to]
    return ctx.transpose(name, [present.index(axis) for axis in to])
