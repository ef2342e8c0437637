"""A stack as a model, so that it can be compared with models and other stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrnnx.layers.layer import Layer
from pyrnnx.models.layers import Layers
from pyrnnx.models.model import LayerValue, Model
from pyrnnx.operator.tensor_info import TensorInfo
from pyrnnx.stacks.stack import Stack


class StackModel(Model):
    """Model that calls a stack; its optional inputs are sequence_lens and, with one hidden_size, initial states."""

    plan = None

    def __init__(self, stack: Stack) -> None:
        self.label, self._stack = stack.label, stack
        dtype, batch_first = stack.dtype.name, stack.batch_first
        sizes = ("batch_size", "seq_length") if batch_first else ("seq_length", "batch_size")
        infos = [
            TensorInfo("X", dtype, (*sizes, stack.input_size)),
            TensorInfo("sequence_lens", "int32", ("batch_size",), optional=True),
        ]
        cells = [layer.op.num_directions for layer in stack.layers if layer.op.has_cell_state]
        if len(set(stack.hidden_sizes)) == 1:
            counts = {"initial_h": sum(stack.num_directions), "initial_c": sum(cells)}
            infos += [
                TensorInfo(name, dtype, (count, "batch_size", stack.hidden_sizes[0]), optional=True)
                for name, count in counts.items()
                if count
            ]
        self.inputs = tuple(infos)
        self.outputs = tuple([TensorInfo(name) for name in ("Y", "Y_h", "Y_c")[: 3 if cells else 2]])

    @property
    def layers(self) -> Layers[Layer]:
        """Layers of the stack by index."""
        layers = {str(place): layer for place, layer in enumerate(self._stack.layers)}
        return Layers(self.label, layers, lambda layer: layer)

    def _layer_values(self) -> Mapping[str, Mapping[str, LayerValue]]:
        """Return the axes of X, which the first layer takes."""
        return {"0": {"X": LayerValue("NTI" if self._stack.batch_first else "TNI", ("X",))}}

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        results = dict(zip(("Y", "Y_h", "Y_c"), self._stack.run(**inputs), strict=False))
        return {name: results[name] for name in outputs}
