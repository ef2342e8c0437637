"""Arrays of a case, and its outputs from the oracle."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from pyrnnx import reference
from pyrnnx._internal.scalars import integer
from pyrnnx.testing.cases.case import Case
from pyrnnx.testing.numbers import Array, numpy_dtype

LENGTHS, STATES = ("sequence_lens", "sequence_lengths"), ("initial_h", "initial_c", "H", "C")


def draw(rng: np.random.Generator, name: str, shape: Sequence[int]) -> Array:
    """Return an array in float64 for the argument of that name."""
    values: Array = rng.uniform(-1, 1, shape)
    if name in STATES:
        values = np.copysign(0.25 + 0.75 * np.abs(values), values)
    scales = {"W": max(shape[-1], 1) ** -0.5, "R": max(shape[-1], 1) ** -0.5, "B": 0.5, "P": 0.5}
    values *= scales.get(name, 1.0)
    return values


def make_arrays(case: Case, dtype: DTypeLike | None = None, seed: int | None = None) -> dict[str, Array]:
    """Return the inputs of a case by name, in the operator's order. States are non-zero; nothing saturates.

    They are a function of the case, of `dtype` (default: the case's) and of `seed` (default: of the case's name).

    Raises
    ------
    ArgumentError
        A seed that is no integer of 0 or above.
    """
    seed = zlib.crc32(case.name.encode()) if seed is None else integer("make_arrays", "seed", seed, 0)
    dtype = numpy_dtype(case.dtype if dtype is None else dtype)
    rng = np.random.default_rng(seed)
    shapes = case.shapes()
    arrays: dict[str, Array] = {}
    for name in case.given:
        if name in LENGTHS:
            lens = [case.T] * case.N if case.lens is None else case.lens
            arrays[name] = np.array(lens, np.int32 if case.family == "ONNX" else np.int64).reshape(shapes[name])
        else:
            values = draw(rng, name, shapes[name])
            arrays[name] = (values * case.scale if name == "X" else values).astype(dtype)
    if case.nan:
        _put_nan(case, arrays["X"])
    return arrays


def _put_nan(case: Case, X: Array) -> None:
    steps_first = X[np.newaxis] if X.ndim == 2 else X.swapaxes(0, 1) if case.layout or case.family == "OpenVINO" else X
    if case.nan == "row":
        steps_first[case.T // 2, case.N // 2, 0] = np.nan
    else:
        for row, length in enumerate(case.lens or ()):
            steps_first[length:, row] = np.nan


def expected_outputs(case: Case, arrays: Mapping[str, Any], **changes: Any) -> tuple[Array, ...]:
    """Return the oracle's outputs, in float64; `changes` are its own arguments, or replace the case's attributes."""
    return reference.run(case.operator, **arrays, **{**case.attributes, **changes})
