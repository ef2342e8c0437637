"""Subjects of scoring, what a run calls: a layer, a stack, a model, or a model frame by frame.

interface   batches of items, and the interface of all subjects
layers      layers and stacks
models      models that take whole sequences
streams     models that take one time step a call, and their states
outputs     axes of outputs, results of single items, and the check of the first batch
digest      checksums of models and layers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.load import is_source, read_model_or_layer
from pyrnnx.models.model import Model
from pyrnnx.scoring.subjects.interface import Subject
from pyrnnx.scoring.subjects.layers import LayerSubject
from pyrnnx.scoring.subjects.models import ModelSubject
from pyrnnx.scoring.subjects.streams import StreamSubject
from pyrnnx.stacks.stack import Stack


def subject_of(
    model: Any, *, outputs: Sequence[str] | None, stream: Any, step: int | None = None, **options: Any
) -> Subject:
    """Return the subject of a model, a layer, a stack or a path.

    `outputs`, `stream` and `options` (input, axes, lengths and inputs) are arguments of `score`; `step` is the size of
    a frame with its context.
    """
    if is_source(model) or isinstance(model, bytes):
        model = read_model_or_layer(model)
    if not isinstance(stream, (bool, Mapping)):
        raise ArgumentError(f"score: stream is {shown(stream)}; expected True, False or a mapping {{output: input}}")
    if isinstance(model, (Layer, Stack)):
        for name, value in {**options, "stream": stream or None}.items():
            if value is not None:
                raise ArgumentError(
                    f"score: {model.label}: {name} is {shown(value)}; expected None for a layer or stack, which takes "
                    "whole sequences"
                )
        return LayerSubject(model, outputs)
    if not isinstance(model, Model):
        raise ArgumentError(
            f"score: model has type {type(model).__name__}; expected a path, a Model, a Stack, or a Layer with weights"
        )
    input, axes, lengths, inputs = (options[name] for name in ("input", "axes", "lengths", "inputs"))
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ArgumentError(f"score: inputs is {shown(inputs)}; expected a mapping of arrays by names of inputs")
    if stream is False:
        return ModelSubject(model, input, axes, lengths, inputs or {}, outputs)
    if lengths is not None:
        raise ArgumentError(
            f"score: lengths is {shown(lengths)}; expected None for a stream, which has one step a push"
        )
    states = None if stream is True else dict(stream)
    return StreamSubject(model, states, input, axes, inputs or {}, outputs, step)
