"""Inputs and outputs of each recurrent layer in one call of a model, and the oracle's outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.comparison.calls import label, prepared_call, run_layer
from pyrnnx.comparison.models.runs import kept_states
from pyrnnx.comparison.weights import canonical_constants
from pyrnnx.errors import PyrnnxError
from pyrnnx.frontends.onnx.operators.layers import QuantizedLayer
from pyrnnx.layers.layer import Layer
from pyrnnx.models.model import LayerValue, Model, layer_values
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, OUTPUTS, rearrange
from pyrnnx.testing.models import quantized

NO_WEIGHTS = "its weights are computed in the call"


@dataclass(frozen=True, eq=False)
class LayerRun:
    """A recurrent layer in a call: canonical arrays by canonical name, in canonical axes."""

    name: str  # in the model
    label: str  # as errors name it
    layer: Layer | None = None  # None if `problem` says why it cannot be looked at
    arrays: Mapping[str, AnyArray] | None = None
    outputs: Mapping[str, AnyArray] | None = None
    expected: Mapping[str, AnyArray] | None = None  # the oracle's outputs, in float64, if there are any
    problem: str = ""  # why there are no arrays, or no oracle
    is_alone: bool = False  # on random arrays: in the body of If, Loop or Scan, whose values a call does not return


def layer_runs(model: Model, inputs: Mapping[str, Any]) -> list[LayerRun]:
    """Return all recurrent layers of a model in a call with these inputs; its variables stay as they are."""
    inside = layer_values(model)
    return [_layer_run(model, inputs, name, layer, inside.get(name)) for name, layer in model.layers.items()]


def _layer_run(
    model: Model, inputs: Mapping[str, Any], name: str, layer: Any, values: Mapping[str, LayerValue] | None
) -> LayerRun:
    if not isinstance(layer, Layer):
        return LayerRun(name, label(layer), problem=NO_WEIGHTS)
    if values is not None:
        return _captured(model, inputs, name, layer, values)
    inputs_of_node = {"X", *getattr(layer, "node_inputs", CALL_ARGUMENTS)}
    return replace(single_run(layer, None, 0, inputs_of_node), name=name, is_alone=True)


def single_run(
    layer: Any, inputs: Mapping[str, Any] | None, seed: int, taken: Collection[str] = CALL_ARGUMENTS
) -> LayerRun:
    """Run a layer by itself on the `taken` of canonical arrays; missing ones, and missing weights, are random."""
    (bound, _), arrays = prepared_call(layer, layer, inputs, seed)
    typed = oracle.rounded({name: array for name, array in arrays.items() if name in taken}, bound.dtype)
    return _judged(layer.name or bound.op.cell, bound, typed, run_layer(bound, typed))


def _captured(
    model: Model, inputs: Mapping[str, Any], name: str, layer: Layer, values: Mapping[str, LayerValue]
) -> LayerRun:
    names = {argument: value.names[0] for argument, value in values.items() if value.names}
    asked = dict.fromkeys(name for name in names.values() if name not in inputs)
    try:
        with kept_states(model):
            results = {**inputs, **model(inputs, outputs=list(asked))}
    except PyrnnxError as error:
        return LayerRun(name, label(layer), problem=f"its values cannot be computed ({error})")
    arrays = canonical_constants(layer)
    for argument, own in names.items():
        array = np.asarray(results[own])
        arrays[argument] = rearrange(array, values[argument].axes, CANONICAL.axes_of(argument))
    outputs = {argument: arrays[argument] for argument in OUTPUTS if argument in arrays}
    if "X" not in arrays or not outputs:
        return LayerRun(name, label(layer), problem="the call does not give its values")
    taken = {argument: arrays[argument] for argument in CALL_ARGUMENTS if argument in arrays}
    if "sequence_lens" in taken:
        taken["sequence_lens"] = taken["sequence_lens"].astype(np.int32)
    return _judged(name, layer, taken, outputs)


def _judged(name: str, layer: Layer, arrays: Mapping[str, AnyArray], outputs: Mapping[str, AnyArray]) -> LayerRun:
    try:
        if isinstance(layer, QuantizedLayer):
            expected = quantized.outputs(layer, arrays)
        else:
            expected = oracle.outputs(layer, oracle.arguments(layer, arrays))
    except PyrnnxError as error:
        return LayerRun(name, label(layer), layer, arrays, outputs, problem=str(error))
    return LayerRun(name, label(layer), layer, arrays, outputs, expected)
