"""Random layers and arrays for them: of any cell, sizes, dtype and convention, the same for the same seed.

Nothing saturates, and states are away from 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from pyrnnx import CANONICAL, Convention, Layer, RecurrentOp
from pyrnnx.conventions import axis_size, canonical_for, convert_weights, rearrange, weight_axes
from pyrnnx.op import CELLS
from pyrnnx.testing.cases import draw
from pyrnnx.testing.numbers import Array

bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
float16, float32, float64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
DTYPES = (float32, float64, float16, bfloat16)


def _generator(seed: int | str, stream: int) -> np.random.Generator:
    """Of the name of a case, too; inputs and weights of one seed are of two streams."""
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
    """W, R, B[, P]. The same seed gives the same layer in every convention.

    `exact_bias`: multiples of 1/16, so that Wb + Rb is not rounded in any dtype.
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
    """What a call takes, by the convention's names and in its order, for `sizes` T, N, I.

    Lengths are uneven by default, with a T and a 0.
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
    """Inputs and weights by name, in the order of OpenVINO's ports."""
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
    """`keywords`: those of Layer."""
    weights: Any = random_weights(op, input_size, dtype, convention=convention, peepholes=peepholes, seed=seed)
    return Layer(op, **weights, convention=convention, **keywords)
