"""Subjects of scoring, what a run calls: a layer, a stack, a model, or a model frame by frame.

interface   batches of items, and the interface of all subjects
layers      layers and stacks
models      models that take whole sequences, or one time step a call with their states
outputs     axes of outputs, results of single items, and the check of the first batch
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.load import is_source, read_model_or_layer
from pyrnnx.models.model import Model
from pyrnnx.scoring.subjects.interface import Options, Subject
from pyrnnx.scoring.subjects.layers import LayerSubject
from pyrnnx.scoring.subjects.models import ModelSubject, StreamSubject
from pyrnnx.stacks.stack import Stack


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
