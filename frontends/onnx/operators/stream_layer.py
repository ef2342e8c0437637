"""Recurrent layer in a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError
from pyrnnx.layers.layer import Layer


class StreamLayer:
    """Layer in a stream, with the weights of that layer.

    `starts` are the initial values of carried states: an array, or None for zeros. If empty, the stream supplies the
    states. A call passes an array of sizes 0 for zeros.
    """

    def __init__(self, layer: Layer, starts: Mapping[str, AnyArray | None]) -> None:
        self.layer, self.starts = layer, starts
        self.op, self.convention, self.label, self.dtype = layer.op, layer.convention, layer.label, layer.dtype

    def run(self, X: Any, sequence_lens: Any, initial_h: Any, initial_c: Any) -> tuple[AnyArray, ...]:
        """Run a layer that carries states and takes lengths, which must be full; without steps, the states stay."""
        states = {"initial_h": initial_h, "initial_c": initial_c}
        for name in self.starts:
            if not any(np.shape(states[name])):
                states[name] = self._zeros(X)
        axis = self.convention.axes_of("X").index("T")
        steps = X.shape[axis : axis + 1]
        if steps and (sequence_lens != steps[0]).any():
            name = self.convention.name_of("sequence_lens")
            raise ArgumentError(
                f"{self.label}: {name} is {sequence_lens.tolist()}; expected seq_length={steps[0]} for every row in a "
                "stream"
            )
        Y, *last = self.layer.run(X, sequence_lens, *states.values())
        if steps == (0,):
            last = [state if before is None else before for state, before in zip(last, states.values(), strict=False)]
        return Y, *last

    def _zeros(self, X: Any) -> AnyArray | None:
        """Return zero states; None if X has the wrong rank."""
        axes, shape = self.convention.axes_of("X"), np.shape(X)
        if len(axes) != len(shape):
            return None
        sizes = {**dict(zip(axes, shape, strict=True)), "D": self.op.num_directions, "H": self.op.hidden_size}
        return np.zeros([sizes[axis] for axis in self.convention.axes_of("initial_h")], self.dtype)
