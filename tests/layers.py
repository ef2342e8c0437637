"""Random layers and arrays of any cell, sizes, dtype and convention, reproducible from a seed.

Activations do not saturate, and states are not near 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pyrnnx import CANONICAL, Convention, Layer, RecurrentOp
from pyrnnx._kernels import engines
from pyrnnx.operator.conventions import axis_size, canonical_for, convert_weights, rearrange, weight_axes
from pyrnnx.operator.op import CELLS
from pyrnnx.testing.cases import draw
from pyrnnx.testing.numbers import Array

bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
float16, float32, float64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
DTYPES = (float32, float64, float16, bfloat16)
# The instruction sets of this build and machine that use matrices for many rows.
MATRICES = (*([engines.MODEL] if engines.has_model() else []), *({"amx"} & set(engines.supported())))
needs_matrices = pytest.mark.skipif(not MATRICES, reason="needs AMX, or a build with PYRNNX_BUILD_MODEL=1")


def _generator(seed: int | str, stream: int) -> np.random.Generator:
    """Return a generator for a number or a name; inputs and weights of the same seed have different streams."""
    return np.random.default_rng((zlib.crc32(seed.encode()) if isinstance(seed, str) else seed, stream))


def gate_count(cell: str) -> int:
    return len(CELLS[cell].gates)


def random_weights(
    op: RecurrentOp,
    input_size: int,
    dtype: Any = np.float32,
    *,
    convention: Convention = CANONICAL,
    peepholes: bool = False,
    exact_bias: bool = False,
    seed: int | str = 0,
) -> dict[str, Array]:
    """Return W, R, B[, P]; the same seed is the same layer in every convention.

    `exact_bias`: biases are multiples of 1/16, so that Wb + Rb is exact in every dtype.
    """
    rng, canonical = _generator(seed, 0), canonical_for(convention)
    sizes = {"D": op.num_directions, "H": op.hidden_size, "I": input_size}
    weights: dict[str, Array] = {}
    for name, axes in weight_axes(op, canonical).items():
        if name != "P" or peepholes:
            shape = [axis_size(axis, sizes) or 0 for axis in axes]
            weights[name] = draw(rng, name, shape).astype(dtype)
    if exact_bias:
        weights["B"] = (np.rint(16 * weights["B"]) / 16).astype(dtype)
    return convert_weights(op, weights, canonical, convention)


def random_inputs(
    op: RecurrentOp,
    sizes: tuple[int, int, int],
    dtype: Any = np.float32,
    *,
    convention: Convention = CANONICAL,
    lens: Sequence[int] | None = None,
    seed: int | str = 0,
) -> dict[str, Array]:
    """Return the inputs of a call of `sizes` T, N, I, with the convention's names and order.

    Default lengths differ and include T and 0.
    """
    rng, (T, N, _) = _generator(seed, 1), sizes
    if lens is None:
        lens = np.append([T, 0], rng.integers(0, T + 1, N))[:N].tolist()
    states = (op.num_directions, N, op.hidden_size)
    arrays = {"X": draw(rng, "X", sizes), "initial_h": draw(rng, "initial_h", states)}
    if op.has_cell_state:
        arrays["initial_c"] = draw(rng, "initial_c", states)
    inputs = {
        convention.name_of(name): np.ascontiguousarray(
            rearrange(a, CANONICAL.axes_of(name), convention.axes_of(name))
        ).astype(dtype)
        for name, a in arrays.items()
    }
    if convention.axes_of("sequence_lens"):
        inputs[convention.name_of("sequence_lens")] = np.array(lens, np.int32)
    return inputs


def random_arrays(
    op: RecurrentOp,
    sizes: tuple[int, int, int],
    dtype: Any = np.float32,
    *,
    convention: Convention = CANONICAL,
    peepholes: bool = False,
    lens: Sequence[int] | None = None,
    seed: int | str = 0,
) -> dict[str, Array]:
    """Return inputs and weights by name, in the order of OpenVINO's ports."""
    inputs = random_inputs(op, sizes, dtype, convention=convention, lens=lens, seed=seed)
    return inputs | random_weights(op, sizes[2], dtype, convention=convention, peepholes=peepholes, seed=seed)


def random_layer(
    op: RecurrentOp,
    input_size: int,
    dtype: Any = np.float32,
    *,
    convention: Convention = CANONICAL,
    peepholes: bool = False,
    seed: int | str = 0,
    **keywords: Any,
) -> Layer:
    """Return a layer with random weights; `keywords` are those of Layer."""
    weights: Any = random_weights(op, input_size, dtype, convention=convention, peepholes=peepholes, seed=seed)
    return Layer(op, **weights, convention=convention, **keywords)
