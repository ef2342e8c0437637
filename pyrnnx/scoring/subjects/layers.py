"""Layers and stacks as subjects: their rows are independent, and they ignore padding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.quantized import Quantized
from pyrnnx.scoring.subjects.interface import Input, Subject, chosen_outputs
from pyrnnx.stacks.stack import Stack

ROWS = 32  # of a batch by default


def _rows(label: str, layers: Iterable[Layer], batch: int | None) -> int:
    """Return the number of rows: one if a layer quantizes X with one scale for the whole batch."""
    for layer in layers:
        if layer.weight_dtype is None and any(isinstance(array, Quantized) for array in layer.kept_weights.values()):
            if batch not in (None, 1):
                raise ArgumentError(
                    f"score: {label}: batch is {batch}; expected 1, because {layer.label} quantizes X with one scale "
                    "for the whole batch"
                )
            return 1
    return batch or ROWS


class LayerSubject(Subject):
    """Layer as a subject; items begin with initial states of zero."""

    mixes_lengths = is_trusted = True

    def __init__(self, layer: Layer, outputs: Sequence[str] | None) -> None:
        self.label, self._layer = layer.label, layer
        convention = layer.convention
        axes = convention.axes_of("X")
        if layer.constants:
            constants = ", ".join(layer.constants)
            raise UnsupportedError(f"score: {layer.label} has the constants {constants}; expected a layer without them")
        if not {"T", "N"} <= set(axes):
            raise UnsupportedError(
                f"score: {layer.label} takes X [{', '.join(axes)}]; expected sequences (T) of rows (N)"
            )
        self.input = Input("X", layer.dtype, axes, tuple(layer.input_size if axis == "I" else None for axis in axes))
        self._outputs = chosen_outputs(f"score: {layer.label}", outputs, layer.output_names)
        self.axes = {name: convention.axes_of(name if name == "Y" else "state") for name in self._outputs}

    @property
    def what(self) -> Any:
        return self._layer

    def rows(self, batch: int | None) -> int:
        return _rows(self.label, [self._layer], batch)

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        layer = self._layer
        sizes = {"N": len(lengths), "D": layer.op.num_directions, "H": layer.op.hidden_size}
        state = np.zeros([sizes[axis] for axis in layer.convention.axes_of("state")], layer.dtype)
        # Explicit zeros: conventions that require states get them, and for the others they are the default.
        states = (state, state) if layer.op.has_cell_state else (state,)
        results = Layer.run(layer, batch, lengths.astype(np.int32), *states)
        outputs = dict(zip(layer.output_names, results, strict=True))
        return {name: outputs[name] for name in self._outputs}


class StackSubject(Subject):
    """Stack as a subject; if hidden sizes differ, the states of layer k are the output "Y_h.k"."""

    mixes_lengths = is_trusted = True

    def __init__(self, stack: Stack, outputs: Sequence[str] | None) -> None:
        self.label, self._stack = stack.label, stack
        axes = "NTI" if stack.batch_first else "TNI"
        self.input = Input("X", stack.dtype, axes, tuple(stack.input_size if axis == "I" else None for axis in axes))
        self._outputs = outputs
        self.axes = {"Y": axes}

    @property
    def what(self) -> Any:
        return self._stack

    def rows(self, batch: int | None) -> int:
        return _rows(self.label, self._stack.layers, batch)

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        outputs: dict[str, AnyArray] = {}
        for name, value in zip(self._stack.output_names, self._stack.run(batch, lengths), strict=True):
            if isinstance(value, list):
                outputs |= {f"{name}.{k}": state for k, state in enumerate(value) if state is not None}
            else:
                outputs[name] = value
        return {name: outputs[name] for name in chosen_outputs(self.label, self._outputs, list(outputs))}
