"""What the oracle gives for a layer, and what it would give for others that are often meant in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx.conventions import canonical_for, convert_weights
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError
from pyrnnx.layer import Layer
from pyrnnx.testing import reference

MOST_COST = 2**33  # products of numbers: some seconds
_COST_OF_A_STEP = 2**16  # products that take the time of the rest of a step
Arguments = dict[str, Any]


def cost(layer: Layer, arrays: Mapping[str, AnyArray]) -> int:
    """Of a run of the oracle, as so many products of numbers."""
    op = layer.op
    T, N, I = (int(size) for size in arrays["X"].shape)
    products = N * len(op.gates) * op.hidden_size * (I + op.hidden_size)
    return T * op.num_directions * (products + _COST_OF_A_STEP)


def arguments(layer: Layer, arrays: Mapping[str, AnyArray]) -> Arguments:
    """A layer and canonical arrays as the oracle takes them.

    Raises
    ------
    PyrnnxError
        More steps than the oracle can run in some seconds.
    """
    op, source = layer.op, canonical_for(layer.convention)
    if cost(layer, arrays) > MOST_COST:
        T, N, _ = arrays["X"].shape
        raise PyrnnxError(f"The oracle was not run: {T} steps of {N} rows would take it too long.")
    wide = {name: array.astype(np.float64) for name, array in layer.weights.items()}
    functions = [function for direction in op.activations for function in direction]
    given: Arguments = {
        **convert_weights(op, wide, layer.convention, source),
        **{name: _as_given(name, array, layer.dtype) for name, array in arrays.items()},
        "activations": [one.name for one in functions],
        "activation_alpha": [one.alpha for one in functions if one.alpha is not None],
        "activation_beta": [one.beta for one in functions if one.beta is not None],
        "clip": op.clip,
        "direction": op.direction.value,
    }
    if op.cell == "GRU":
        given["linear_before_reset"] = int(op.linear_before_reset)
    if op.cell == "LSTM":
        given |= {"input_forget": int(op.input_forget), "coupled_gate": source.coupled_gate}
    return given


def _as_given(name: str, array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Rounded as the layer is given it."""
    return array if name == "sequence_lens" else array.astype(dtype)


def outputs(layer: Layer, given: Arguments) -> dict[str, AnyArray]:
    """The oracle's outputs by canonical name, in float64 and canonical axes; infinite beyond the layer's dtype."""
    results = reference.run(layer.op.cell, **given)
    return {name: _in_range(array, layer.dtype) for name, array in zip(layer.output_names, results, strict=True)}


def _in_range(array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    with np.errstate(over="ignore"):
        narrow = array.astype(dtype).astype(np.float64)
    return np.where(np.isinf(narrow), narrow, array)
