"""The recurrent layers of a model in one call of it: what each took and gave, and what the oracle gives for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx.comparison.layers import label, prepared_call, run_layer
from pyrnnx.comparison.model_runs import kept_states
from pyrnnx.conventions import CALL_ARGUMENTS, CANONICAL, OUTPUTS, rearrange
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError
from pyrnnx.frontends.onnx.quantized import QuantizedLayer
from pyrnnx.layer import Layer
from pyrnnx.model import LayerValue, Model
from pyrnnx.testing.same import oracle

IN_BODY = "it is in the body of If, Loop or Scan, whose values a call does not give"
QUANTIZED = "X and h are quantized as it runs, which the oracle does not do"
NO_WEIGHTS = "its weights are computed in the call"


@dataclass(frozen=True, eq=False)
class LayerRun:
    """One recurrent layer in a call.

    Attributes
    ----------
    name : str
        In the model.
    label : str
        How errors name it.
    layer : Layer or None
        None where `problem` says why it cannot be looked at.
    arrays, outputs : mapping
        What it took and gave: canonical axes, by canonical name.
    expected : mapping
        The oracle's outputs, in float64; empty where there are none.
    problem : str
        Why there are no arrays, or no oracle.
    """

    name: str
    label: str
    layer: Layer | None = None
    arrays: Mapping[str, AnyArray] | None = None
    outputs: Mapping[str, AnyArray] | None = None
    expected: Mapping[str, AnyArray] | None = None
    problem: str = ""


def layer_runs(model: Model, inputs: Mapping[str, Any]) -> list[LayerRun]:
    """All recurrent layers of a model, in its order, in a call with these inputs; its variables stay as they are."""
    values = model._layer_values()
    found = []
    for name, layer in model.layers.items():
        if name not in values:
            found.append(LayerRun(name, label(layer), problem=IN_BODY))
        elif not isinstance(layer, Layer):
            found.append(LayerRun(name, label(layer), problem=NO_WEIGHTS))
        elif isinstance(layer, QuantizedLayer):
            found.append(LayerRun(name, label(layer), problem=QUANTIZED))
        else:
            found.append(_captured(model, inputs, name, layer, values[name]))
    return found


def single_run(layer: Any, inputs: Mapping[str, Any] | None, seed: int) -> LayerRun:
    """A layer by itself, on canonical arrays; those that are missing, and weights that it has not, are random.

    Raises
    ------
    PyrnnxError
        As of `pyrnnx.compare`.
    """
    (bound, _), arrays = prepared_call(layer, layer, inputs, seed)
    typed = {name: one if name == "sequence_lens" else one.astype(bound.dtype) for name, one in arrays.items()}
    return _judged(layer.name or bound.op.cell, bound, typed, run_layer(bound, typed))


def _captured(
    model: Model, inputs: Mapping[str, Any], name: str, layer: Layer, values: Mapping[str, LayerValue]
) -> LayerRun:
    wanted = {argument: one.names[0] for argument, one in values.items() if one.names and one.names[0] not in inputs}
    try:
        with kept_states(model):
            given = model(inputs, outputs=list(dict.fromkeys(wanted.values())))
    except PyrnnxError as error:
        return LayerRun(name, label(layer), problem=f"its values cannot be had ({error})")
    arrays = {}
    for argument, one in values.items():
        array = np.asarray({**inputs, **given}[one.names[0]])
        arrays[argument] = rearrange(array, one.axes, CANONICAL.axes_of(argument))
    for argument, constant in layer.constants.items():
        if argument not in arrays:
            axes = layer.convention.axes_of(argument), CANONICAL.axes_of(argument)
            arrays[argument] = rearrange(constant, *axes)
    if "X" not in arrays or not any(one in arrays for one in OUTPUTS):
        return LayerRun(name, label(layer), problem="the call does not give its values")
    taken = {argument: arrays[argument] for argument in CALL_ARGUMENTS if argument in arrays}
    if "sequence_lens" in taken:
        taken["sequence_lens"] = taken["sequence_lens"].astype(np.int32)
    return _judged(name, layer, taken, {one: arrays[one] for one in OUTPUTS if one in arrays})


def _judged(name: str, layer: Layer, arrays: Mapping[str, AnyArray], outputs: Mapping[str, AnyArray]) -> LayerRun:
    try:
        expected = oracle.outputs(layer, oracle.arguments(layer, arrays))
    except PyrnnxError as error:
        return LayerRun(name, label(layer), layer, arrays, outputs, problem=str(error))
    return LayerRun(name, label(layer), layer, arrays, outputs, expected)
