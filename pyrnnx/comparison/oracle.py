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
    """Return a layer and canonical arrays as arguments of the oracle.

    Raises
    ------
    PyrnnxError
        More steps than the oracle can run in some seconds.
    """
    op, source = layer.op, canonical_for(layer.convention)
    if cost(layer, arrays) > MOST_COST:
        T, N, _ = arrays["X"].shape
        raise PyrnnxError(f"The oracle was skipped: {T} steps of {N} rows take too long.")
    wide = {name: array.astype(np.float64) for name, array in layer.weights.items()}
    return {
        **convert_weights(op, wide, layer.convention, source),
        **rounded(arrays, layer.dtype),
        **_attributes(layer, range(op.num_directions)),
        "direction": op.direction.value,
        **({"coupled_gate": source.coupled_gate} if op.cell == "LSTM" else {}),
    }


def outputs(layer: Layer, arguments: Arguments) -> dict[str, AnyArray]:
    """Return the oracle's outputs by canonical name, in float64 and canonical axes; infinities beyond the dtype."""
    from pyrnnx import reference

    results = reference.run(layer.op.cell, **arguments)
    return {name: in_range(array, layer.dtype) for name, array in zip(layer.output_names, results, strict=True)}


def steps(layer: Layer, runs: list[Mapping[str, AnyArray]]) -> dict[str, AnyArray]:
    """Return the values of each step by name, [S, D, N, H].

    `runs` are X and sequence_lens of each direction, in the order in which it runs, and its states.

    Raises
    ------
    UnsupportedError
        Coupled gates that ONNX's equations cannot express.
    """
    from pyrnnx import reference

    weights = canonical_weights(layer)
    parts: list[Mapping[str, AnyArray]] = []
    for d, arrays in enumerate(runs):
        own = {name: array[d : d + 1] for name, array in weights.items()}
        call: Arguments = {**own, **rounded(arrays, layer.dtype), **_attributes(layer, [d])}
        parts.append(reference.run(layer.op.cell, **call, steps=True)[-1])
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}


def _attributes(layer: Layer, directions: range | list[int]) -> Arguments:
    """Return the attributes of some directions of a layer, but for the direction itself."""
    op = layer.op
    functions = [function for d in directions for function in op.activations[d]]
    attributes: Arguments = {**activations(functions), "clip": op.clip}
    if op.cell == "GRU":
        attributes["linear_before_reset"] = int(op.linear_before_reset)
    if op.cell == "LSTM":
        attributes["input_forget"] = int(op.input_forget)
    return attributes


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
