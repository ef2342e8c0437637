"""The float64 oracle of DynamicQuantizeLSTM, which rounds X, and h before each step, to 8 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx import reference
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.comparison.agreement import Rule
from pyrnnx.frontends.onnx.operators.layers import QuantizedLayer, UnboundNode
from pyrnnx.models.model import Model

# Two computations of h that differ in the last bit may round it to two codes, 1/255 of its range apart.
ROUNDED = Rule(2e-2, 2e-2)


def is_quantized(model: Model) -> bool:
    """Return whether recurrent layers of a model round numbers to 8 bits."""
    return any(
        isinstance(layer, QuantizedLayer) or (isinstance(layer, UnboundNode) and layer.is_quantized)
        for layer in model.layers.values()
    )


def outputs(layer: QuantizedLayer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the outputs of a layer, of its dequantized weights and of the codes of X and h, by canonical name."""
    given: dict[str, Any] = oracle.arguments(layer, arrays)
    T, N, _ = given["X"].shape
    op, shape = layer.op, (layer.op.num_directions, N, layer.op.hidden_size)
    lengths = given.pop("sequence_lens", np.full(N, T))
    X = rounded(given.pop("X"), np.arange(T)[:, np.newaxis] < lengths)
    h, c = (given.pop(name, np.zeros(shape)).astype(np.float64) for name in ("initial_h", "initial_c"))
    weights = {name: given.pop(name) for name in "WRBP" if name in given}
    options = {key: given[key] for key in given if key != "direction" and not key.startswith("activation")}
    Y = np.zeros((T, *shape))
    for d, is_backward in enumerate(op.direction.reversed):
        of_direction = {name: array[d : d + 1] for name, array in weights.items()} | oracle.activations(
            op.activations[d]
        )
        ran = np.full(N, True)
        for step in range(max(lengths, default=0)):
            codes, ran = rounded(h[d], ran), lengths > step
            times = (lengths - 1 - step if is_backward else np.full(N, step))[ran]
            states = {"initial_h": codes[np.newaxis, ran], "initial_c": c[d : d + 1, ran]}
            _, new_h, new_c = reference.lstm(X[times, ran][np.newaxis], **of_direction, **states, **options)
            Y[times, d, ran] = h[d, ran] = new_h[0]
            c[d, ran] = new_c[0]
    h[:, lengths == 0] = c[:, lengths == 0] = 0
    results = {"Y": Y, "Y_h": h, "Y_c": c}
    return {name: results[name] for name in layer.output_names}


def rounded(values: AnyArray, counted: AnyArray) -> AnyArray:
    """Return values as 8 bits represent them, by the range of zero and of the finite values that are `counted`."""
    numbers = np.append(values[counted], 0).astype(np.float32)
    low, high = (extreme(numbers[np.isfinite(numbers)]) for extreme in (np.min, np.max))
    scale = (high - low) / np.float32(255) or np.float32(1)
    zero_point = np.rint(-low / scale)
    codes = np.clip(np.rint(values.astype(np.float32) / scale), -zero_point, 255 - zero_point)
    return np.asarray(codes.astype(np.float64) * np.float64(scale))
