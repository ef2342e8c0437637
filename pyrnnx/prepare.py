"""The one door to the kernels: weights in canonical form, widened, packed for the engine of this process."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyrnnx import config
from pyrnnx._kernels import engines
from pyrnnx._kernels.packed_layer import PackedLayer
from pyrnnx.conventions import CANONICAL, KERNELS, Convention, bias_blocks, canonical_for, convert_bias, convert_weights
from pyrnnx.dtypes import FLOAT_TYPES, AnyArray, widened
from pyrnnx.op import CELLS, KERNEL_NUMBERS, Activation, RecurrentOp
from pyrnnx.reduced import WEIGHT_DTYPES, rounded


def prepare(
    op: RecurrentOp, weights: Mapping[str, AnyArray], convention: Convention, weight_dtype: str | None
) -> PackedLayer:
    """The weights as the kernels take them: gates in ONNX order, widened, biases summed after widening."""
    converted = convert_weights(op, weights, convention, canonical_for(convention))
    canonical = {name: widened(a) for name, a in converted.items()}
    dtype = canonical["W"].dtype
    packed_in = WEIGHT_DTYPES[weight_dtype]
    if not engines.packs(config.ISA, dtype.itemsize, packed_in):  # it computes with the same numbers, kept as they are
        canonical |= {name: rounded(canonical[name], weight_dtype) for name in ("W", "R")}
        packed_in = WEIGHT_DTYPES[None]
    GH = len(op.gates) * op.hidden_size
    if "B" in canonical:
        bias = convert_bias(canonical["B"], op, CANONICAL, KERNELS)
    else:
        bias = np.zeros((op.num_directions, len(bias_blocks(op, KERNELS)) * op.hidden_size), dtype)
    return PackedLayer(
        isa=config.ISA,
        cell=CELLS[op.cell].kernel_number,
        reverse=op.direction.reversed,
        activations=tuple([tuple(map(_kernel_activation, functions)) for functions in op.activations]),
        clip=np.inf if op.clip is None else op.clip,
        linear_before_reset=op.linear_before_reset,
        coupled_gate=convention.coupled_gate if op.input_forget else None,
        W=canonical["W"],
        R=canonical["R"],
        bias=np.ascontiguousarray(bias[:, :GH]),
        recurrent_bias=np.ascontiguousarray(bias[:, GH:]) if op.linear_before_reset else None,
        peepholes=canonical.get("P"),
        weight_dtype=packed_in,
        dtype=weights["W"].dtype,
        storage=FLOAT_TYPES[weights["W"].dtype.name].storage,
        X_axes=convention.axes_of("X"),
        Y_axes=convention.axes_of("Y"),
        state_axes=convention.axes_of("initial_h"),
    )


def _kernel_activation(activation: Activation) -> tuple[int, float, float]:
    return KERNEL_NUMBERS[activation.name], activation.alpha or 0.0, activation.beta or 0.0
