"""Recurrent layer in a stream: rows without steps keep their states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError
from pyrnnx.layers.layer import Layer


class StreamLayer:
    """Layer in a stream, with the weights of that layer.

    Parameters
    ----------
    layer : Layer
    starts : mapping
        Initial values of carried states: an array, or None for zeros. If empty, the stream supplies the states.
        A call passes an array of sizes 0 for zeros.
    """

    def __init__(self, layer: Layer, starts: Mapping[str, AnyArray | None]) -> None:
        self.layer, self.starts, self._run = layer, starts, layer.run
        self.op, self.convention, self.label, self.dtype = layer.op, layer.convention, layer.label, layer.dtype
        axes = self.convention.axes_of("X")
        self._step_axis = axes.index("T") if "T" in axes else None
        states = self.convention.axes_of("initial_h")
        self._row_shape = tuple(-1 if axis == "N" else 1 for axis in states)

    def run(
        self,
        X: Any = None,
        sequence_lens: Any = None,
        initial_h: Any = None,
        initial_c: Any = None,
        *more: Any,
        **named: Any,
    ) -> tuple[AnyArray, ...]:
        """Run the layer as `Layer.run`; rows without steps keep their states, and carried states need full lengths."""
        if not self.starts:
            results = self._run(X, sequence_lens, initial_h, initial_c, *more, **named)
            if sequence_lens is None and results[0].size:
                return results
            return self._with_idle_states(results, [initial_h, initial_c], sequence_lens)
        states = {"initial_h": initial_h, "initial_c": initial_c}
        for name, start in self.starts.items():
            if states[name] is None:
                states[name] = self._zeros(X) if start is None else start
            elif not any(np.shape(states[name])):
                states[name] = self._zeros(X)
        axis = self._step_axis
        steps = () if axis is None else getattr(X, "shape", ())[axis : axis + 1]
        if sequence_lens is not None and steps and (np.asarray(sequence_lens) != steps[0]).any():
            name = self.convention.name_of("sequence_lens")
            raise ArgumentError(
                f"{self.label}: {name} is {np.asarray(sequence_lens).tolist()}; expected seq_length={steps[0]} for "
                "every row in a stream"
            )
        results = self._run(X, sequence_lens, *states.values(), *more, **named)
        return self._with_idle_states(results, [*states.values()], None) if steps == (0,) else results

    def _with_idle_states(
        self, results: tuple[AnyArray, ...], states: list[Any], sequence_lens: Any
    ) -> tuple[AnyArray, ...]:
        """Return the results, with the previous states for rows without steps."""
        idle = np.asarray(0 if sequence_lens is None else sequence_lens) == 0
        if not idle.any():
            return results
        rows = idle.reshape(self._row_shape)
        new = [
            result if state is None else np.where(rows, np.asarray(state, result.dtype), result)
            for result, state in zip(results[1:], states, strict=False)
        ]
        return results[0], *new

    def _zeros(self, X: Any) -> AnyArray | None:
        """Return zero states; None if X has the wrong rank."""
        axes, shape = self.convention.axes_of("X"), np.shape(X)
        if len(axes) != len(shape):
            return None
        sizes = {**dict(zip(axes, shape, strict=True)), "D": self.op.num_directions, "H": self.op.hidden_size}
        return np.zeros([sizes[axis] for axis in self.convention.axes_of("initial_h")], self.dtype)
