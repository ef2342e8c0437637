"""Weights of com.microsoft's DynamicQuantizeLSTM: codes of 8 bits, with their scales and zero points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError
from pyrnnx.operator import check
from pyrnnx.operator.quantized import Quantized


def quantized_weights(label: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return W and R in the shapes of an LSTM, and B and P, of the weights of a node.

    W [num_directions, input_size, 4*hidden_size] and R [num_directions, hidden_size, 4*hidden_size] are int8 or uint8,
    with W_scale, W_zero_point, R_scale and R_zero_point of shape [num_directions] or [num_directions, 4*hidden_size].

    Raises
    ------
    ArgumentError
        An array has another dtype or shape.
    """
    arrays = {name: check.as_array(label, name, value) for name, value in given.items()}
    codes = {name: _quantized(label, name, arrays) for name in ("W", "R")}
    return {"B": arrays.get("B"), "P": arrays.get("P"), **codes}


def _quantized(label: str, name: str, arrays: Mapping[str, AnyArray]) -> Quantized:
    weight = arrays[name]
    if weight.dtype.name not in ("int8", "uint8") or weight.ndim != 3:
        raise ArgumentError(
            f"{label}: {name} has dtype {weight.dtype} and shape {weight.shape}; expected int8 or uint8, and "
            f"[num_directions, {'input_size' if name == 'W' else 'hidden_size'}, 4*hidden_size]"
        )
    per_tensor, per_channel = weight.shape[:1], (weight.shape[0], weight.shape[2])
    parts = [np.array(weight.transpose(0, 2, 1), order="C")]
    for kind, dtype in (("scale", np.dtype(np.float32)), ("zero_point", weight.dtype)):
        array = arrays[f"{name}_{kind}"]
        if array.shape not in (per_tensor, per_channel) or array.dtype != dtype:
            raise ArgumentError(
                f"{label}: {name}_{kind} has dtype {array.dtype} and shape {array.shape}; expected {dtype}, and "
                f"{per_tensor} or {per_channel}"
            )
        parts.append(np.array(np.broadcast_to(array.reshape(weight.shape[0], -1), per_channel), dtype, order="C"))
    for part in parts:
        part.flags.writeable = False
    return Quantized(*parts)
