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
from pyrnnx.scoring.subjects.layers import LayerSubject, StackSubject
from pyrnnx.scoring.subjects.models import ModelSubject
from pyrnnx.scoring.subjects.streams import StreamSubject
from pyrnnx.stacks.stack import Stack


def subject_of(
    model: Any,
    *,
    input: str | None,  # as the argument of `score`
    axes: str | None,
    lengths: str | None,
    inputs: Mapping[str, Any] | None,
    outputs: Sequence[str] | None,
    stream: bool | Mapping[str, str] = False,
    step: int | None = None,
) -> Subject:
    """Return the subject of a model, a layer, a stack or a path; `step` is the size of a frame with its context."""
    if is_source(model) or isinstance(model, bytes):
        model = read_model_or_layer(model)
    if not isinstance(stream, (bool, Mapping)):
        raise ArgumentError(f"score: stream is {shown(stream)}; expected True, False or a mapping {{output: input}}")
    is_stream = stream is not False
    if isinstance(model, (Layer, Stack)):
        if is_stream:
            raise ArgumentError(
                f"score: {model.label}: stream is {shown(stream)}; expected False, because a layer or stack takes "
                "whole sequences"
            )
        for name, value in (("input", input), ("axes", axes), ("lengths", lengths), ("inputs", inputs)):
            if value is not None:
                raise ArgumentError(
                    f"score: {model.label}: {name} is {shown(value)}; expected None for a layer or stack"
                )
        return LayerSubject(model, outputs) if isinstance(model, Layer) else StackSubject(model, outputs)
    if not isinstance(model, Model):
        raise ArgumentError(
            f"score: model has type {type(model).__name__}; expected a path, a Model, a Stack, or a Layer with weights"
        )
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ArgumentError(f"score: inputs is {shown(inputs)}; expected a mapping of arrays by names of inputs")
    if not is_stream:
        return ModelSubject(model, input, axes, lengths, inputs or {}, outputs)
    if lengths is not None:
        raise ArgumentError(
            f"score: lengths is {shown(lengths)}; expected None for a stream, which has one step a push"
        )
    states = None if stream is True else dict(stream)  # type: ignore[arg-type]
    return StreamSubject(model, states, input, axes, inputs or {}, outputs, step)
