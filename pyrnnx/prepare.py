"""The one door to the kernels: weights in canonical form, widened, packed for the engine of this process."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyrnnx import config
from pyrnnx._kernels import engines
from pyrnnx._kernels.sequence import Sequence
from pyrnnx.conventions import (
    CANONICAL,
    KERNELS,
    AnyArray,
    Convention,
    bias_blocks,
    canonical_for,
    convert_bias,
    convert_weights,
)
from pyrnnx.dtypes import FLOAT_TYPES, widened
from pyrnnx.op import CELLS, KERNEL_NUMBERS, Activation, RecurrentOp
from pyrnnx.reduced import WEIGHT_DTYPES, rounded


def prepare(
    op: RecurrentOp, weights: Mapping[str, AnyArray], convention: Convention, weight_dtype: str | None
) -> Sequence:
    """The weights as the kernels take them: gates in ONNX order, widened, biases summed after widening."""
    converted = convert_weights(op, weights, convention, canonical_for(convention))
    canonical = {name: widened(a) for name, a in converted.items()}
    dtype = canonical["W"].dtype
    if not engines.formats(config.ISA, dtype.itemsize) >> WEIGHT_DTYPES[weight_dtype] & 1:
        canonical |= {name: rounded(canonical[name], weight_dtype) for name in ("W", "R")}
        weight_dtype = None
    GH = len(op.gates) * op.hidden_size
    if "B" in canonical:
        bias = convert_bias(canonical["B"], op, CANONICAL, KERNELS)
    else:
        bias = np.zeros((op.num_directions, len(bias_blocks(op, KERNELS)) * op.hidden_size), dtype)
    return Sequence(
        config.ISA,
        CELLS[op.cell].kernel_number,
        op.direction.reversed,
        tuple(tuple(_kernel_activation(one) for one in functions) for functions in op.activations),
        np.inf if op.clip is None else op.clip,
        op.linear_before_reset,
        op.input_forget,
        canonical["W"],
        canonical["R"],
        np.ascontiguousarray(bias[:, :GH]),
        np.ascontiguousarray(bias[:, GH:]) if op.linear_before_reset else None,
        canonical.get("P"),
        WEIGHT_DTYPES[weight_dtype],
        weights["W"].dtype,
        FLOAT_TYPES[weights["W"].dtype.name].storage,
        convention.axes_of("X"),
        convention.axes_of("Y"),
        convention.axes_of("initial_h"),
        coupled_gate=convention.coupled_gate,
    )


def _kernel_activation(activation: Activation) -> tuple[int, float, float]:
    return KERNEL_NUMBERS[activation.name], activation.alpha or 0.0, activation.beta or 0.0
