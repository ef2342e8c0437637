"""Subjects of scoring, what a run calls: a layer, a stack, a model, or a model frame by frame.

interface   batches of items, and the interface of all subjects
models      models that take whole sequences, or one time step a call with their states
outputs     axes of outputs, results of single items, and the check of the first batch
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.load import is_source, read_model_or_layer
from pyrnnx.models.model import Model
from pyrnnx.operator.quantized import Quantized
from pyrnnx.scoring.subjects.interface import Input, Options, Subject, chosen_outputs
from pyrnnx.scoring.subjects.models import ModelSubject, StreamSubject
from pyrnnx.stacks.stack import Stack

ROWS = 32  # of a batch of a layer by default


def subject_of(model: Any, options: Options, stream: Any, step: int | None) -> Subject:
    """Return the subject of a model, a layer, a stack or a path; `step` is the size of a frame with its context."""
    if is_source(model) or isinstance(model, bytes):
        model = read_model_or_layer(model)
    if not isinstance(stream, (bool, Mapping)):
        raise ArgumentError(f"score: stream is {shown(stream)}; expected True, False or a mapping {{output: input}}")
    if isinstance(model, (Layer, Stack)):
        for name, value in {**options._asdict(), "stream": stream or None}.items():
            if value is not None and name != "outputs":
                raise ArgumentError(
                    f"score: {model.label}: {name} is {shown(value)}; expected None for a layer or stack, which takes "
                    "whole sequences"
                )
        return LayerSubject(model, options.outputs)
    if not isinstance(model, Model):
        raise ArgumentError(
            f"score: model has type {type(model).__name__}; expected a path, a Model, a Stack, or a Layer with weights"
        )
    if options.inputs is not None and not isinstance(options.inputs, Mapping):
        raise ArgumentError(
            f"score: inputs is {shown(options.inputs)}; expected a mapping of arrays by names of inputs"
        )
    if stream is False:
        return ModelSubject(model, options)
    if options.lengths is not None:
        raise ArgumentError(
            f"score: lengths is {shown(options.lengths)}; expected None for a stream, which has one step a push"
        )
    return StreamSubject(model, None if stream is True else stream, options, step)


class LayerSubject(Subject):
    """Layer or stack as a subject; items begin with initial states of zero."""

    mixes_lengths = is_trusted = True

    def __init__(self, layer: Layer | Stack, outputs: Sequence[str] | None) -> None:
        self.label, self.what, self._outputs = layer.label, layer, outputs
        if isinstance(layer, Stack):
            axes = "NTI" if layer.batch_first else "TNI"
        else:
            axes = layer.convention.axes_of("X")
            if layer.constants:
                constants = ", ".join(layer.constants)
                raise UnsupportedError(
                    f"score: {layer.label} has the constants {constants}; expected a layer without them"
                )
            if not {"T", "N"} <= set(axes):
                raise UnsupportedError(
                    f"score: {layer.label} takes X [{', '.join(axes)}]; expected sequences (T) of rows (N)"
                )
        self.input = Input("X", layer.dtype, axes, tuple(layer.input_size if axis == "I" else None for axis in axes))

    def rows(self, batch: int | None) -> int:
        """Return the number of rows: one if a layer quantizes X with one scale for the whole batch."""
        for layer in self.what.layers if isinstance(self.what, Stack) else [self.what]:
            is_quantized = any(isinstance(array, Quantized) for array in layer.kept_weights.values())
            if layer.weight_dtype is None and is_quantized:
                if batch not in (None, 1):
                    raise ArgumentError(
                        f"score: {self.label}: batch is {batch}; expected 1, because {layer.label} quantizes X with "
                        "one scale for the whole batch"
                    )
                return 1
        return batch or ROWS

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        run = _stack_outputs if isinstance(self.what, Stack) else _layer_outputs
        outputs = run(self.what, batch, lengths)
        return {name: outputs[name] for name in chosen_outputs(self.label, self._outputs, list(outputs))}


def _layer_outputs(layer: Layer, batch: AnyArray, lengths: AnyArray) -> dict[str, AnyArray]:
    sizes = {"N": len(lengths), "D": layer.op.num_directions, "H": layer.op.hidden_size}
    state = np.zeros([sizes[axis] for axis in layer.convention.axes_of("state")], layer.dtype)
    # Explicit zeros: conventions that require states get them, and for the others they are the default.
    states = (state, state) if layer.op.has_cell_state else (state,)
    return dict(zip(layer.output_names, Layer.run(layer, batch, lengths.astype(np.int32), *states), strict=True))


def _stack_outputs(stack: Stack, batch: AnyArray, lengths: AnyArray) -> dict[str, AnyArray]:
    """Return the outputs; if hidden sizes differ, the states of layer k are "Y_h.k"."""
    outputs: dict[str, AnyArray] = {}
    for name, value in zip(stack.output_names, stack.run(batch, lengths), strict=True):
        if isinstance(value, list):
            outputs |= {f"{name}.{k}": state for k, state in enumerate(value) if state is not None}
        else:
            outputs[name] = value
    return outputs
