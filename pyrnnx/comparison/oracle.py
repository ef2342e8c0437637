"""Results of the float64 oracle for a layer: its outputs, and the gates of each step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.agreement import in_range
from pyrnnx.comparison.weights import canonical_weights
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import canonical_for, convert_weights
from pyrnnx.operator.op import Activation

MOST_COST = 2**33  # products of numbers: some seconds
_COST_OF_A_STEP = 2**16  # products that take the time of the rest of a step
Arguments = dict[str, Any]


def cost(layer: Layer, arrays: Mapping[str, AnyArray]) -> int:
    """Return the cost of a run of the oracle, as a number of products."""
    op = layer.op
    T, N, I = (int(size) for size in arrays["X"].shape)
    products = N * len(op.gates) * op.hidden_size * (I + op.hidden_size)
    return T * op.num_directions * (products + _COST_OF_A_STEP)


def arguments(layer: Layer, arrays: Mapping[str, AnyArray]) -> Arguments:
    """Return a layer and canonical arrays as arguments of the oracle."""
    op, source = layer.op, canonical_for(layer.convention)
    if cost(layer, arrays) > MOST_COST:
        T, N, _ = arrays["X"].shape
        raise PyrnnxError(f"The oracle was skipped: {T} steps of {N} rows take too long.")
    wide = {name: array.astype(np.float64) for name, array in layer.weights.items()}
    coupled = {"coupled_gate": source.coupled_gate} if op.cell == "LSTM" else {}
    return {**convert_weights(op, wide, layer.convention, source), **_call(layer, arrays), **coupled}


def outputs(layer: Layer, arguments: Arguments) -> dict[str, AnyArray]:
    """Return the oracle's outputs by canonical name, in float64 and canonical axes; infinities beyond the dtype."""
    from pyrnnx import reference

    results = reference.run(layer.op.cell, **arguments)
    return {name: in_range(array, layer.dtype) for name, array in zip(layer.output_names, results, strict=True)}


def steps(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the values of each step by name, [T, D, N, H], by ONNX's equations; NaN beyond the length of a row."""
    from pyrnnx import reference

    values: dict[str, AnyArray] = reference.run(
        layer.op.cell, **canonical_weights(layer), **_call(layer, arrays), steps=True
    )[-1]
    return values


def _call(layer: Layer, arrays: Mapping[str, AnyArray]) -> Arguments:
    """Return the arrays and the attributes of a layer."""
    op = layer.op
    functions = [function for direction in op.activations for function in direction]
    flags = {"GRU": ("linear_before_reset",), "LSTM": ("input_forget",)}.get(op.cell, ())
    return {
        **rounded(arrays, layer.dtype),
        **activations(functions),
        "clip": op.clip,
        "direction": op.direction.value,
        **{flag: int(getattr(op, flag)) for flag in flags},
    }


def activations(functions: Iterable[Activation]) -> Arguments:
    """Return the attributes of the functions of all directions, in order."""
    functions = list(functions)
    return {
        "activations": [function.name for function in functions],
        "activation_alpha": [function.alpha for function in functions if function.alpha is not None],
        "activation_beta": [function.beta for function in functions if function.beta is not None],
    }


def rounded(arrays: Mapping[str, AnyArray], dtype: np.dtype[Any]) -> dict[str, AnyArray]:
    """Return the arrays in the dtype of a layer, as a call of it takes them."""
    return {name: array if name == "sequence_lens" else array.astype(dtype) for name, array in arrays.items()}
