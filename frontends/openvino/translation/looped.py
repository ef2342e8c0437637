"""A TensorIterator around one cell, as the sequence that it is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyrnnx.conventions import CALL_ARGUMENTS, CANONICAL, OUTPUTS, Convention, convert_weights

from ..looped_cells import LoopedCell
from .constants import ConstantValues
from .context import LayerContext
from .graph import SMALL
from .onnx_frontend import DOMAIN
from .operations.recurrent import node_attributes


def sequence(ctx: LayerContext, found: LoopedCell, constants: ConstantValues, *, as_it_is: bool) -> list[str]:
    """The names of the loop's outputs: of a node that a layer runs as it is, or of an operator of ONNX."""
    layer = found.layer
    convention = layer.convention if as_it_is else CANONICAL
    names = {"X": _arranged(ctx, ctx[found.X], found.axes, convention.axes_of("X"))}
    for argument, place in found.states.items():
        names[argument] = _arranged(ctx, ctx[place], "NH", convention.axes_of(argument))
    if as_it_is:
        names["sequence_lens"] = _lengths(ctx, found)
        inputs = [names.get(argument, "") for argument in CALL_ARGUMENTS]
        outputs = ctx.nodes(layer.type, *inputs, outputs=len(layer.operation.outputs), domain=DOMAIN)
        made = dict(zip(layer.operation.outputs, outputs, strict=True))
    else:
        made = _operator(ctx, found, names, constants)
    results = [""] * len(ctx.layer.outputs)
    for place, (argument, axes) in found.outputs.items():
        results[place] = _from(ctx, made[argument], convention, argument, axes)
    return results


def _lengths(ctx: LayerContext, found: LoopedCell) -> str:
    """seq_length for every row, which OpenVINO's sequences are always told."""
    steps, rows = (found.axes.index(axis) for axis in "TN")
    shape = ctx.shape(found.X) or (None,) * 3
    length, count = shape[steps], shape[rows]
    if length is not None and count is not None and count <= SMALL:
        return ctx.constant([length] * count)
    X = ctx[found.X]
    return ctx.node("Expand", ctx.dimension(X, steps), ctx.dimension(X, rows))


def _operator(
    ctx: LayerContext, found: LoopedCell, names: Mapping[str, str], constants: ConstantValues
) -> dict[str, str]:
    layer = found.layer
    given = layer.check_weights(found.arrays(constants.value))
    weights = {
        name: ctx.graph.constant(np.ascontiguousarray(array), f"{layer.name}/{name}")
        for name, array in convert_weights(layer.op, given, layer.convention, CANONICAL, layer.label).items()
    }
    arguments = [names["X"], weights["W"], weights["R"], weights.get("B", ""), ""]
    arguments += [names[argument] for argument in found.states] + [weights.get("P", "")]
    while not arguments[-1]:
        arguments.pop()
    count = 3 if layer.op.has_cell_state else 2
    outputs = ctx.nodes(layer.op.cell, *arguments, outputs=count, **node_attributes(layer.op))
    return dict(zip(OUTPUTS, outputs, strict=False))


def _arranged(ctx: LayerContext, name: str, axes: str, to: str) -> str:
    """A value in other axes, with those that it lacks."""
    present = [axis for axis in to if axis in axes]
    name = ctx.transpose(name, [axes.index(axis) for axis in present])
    return ctx.unsqueeze(name, [k for k, axis in enumerate(to) if axis not in axes])


def _from(ctx: LayerContext, name: str, convention: Convention, argument: str, axes: str) -> str:
    own = convention.axes_of(argument)
    name = ctx.squeeze(name, [k for k, axis in enumerate(own) if axis not in axes])
    present = [axis for axis in own if axis in axes]
    return ctx.transpose(name, [present.index(axis) for axis in axes])
