"""Arguments of a PackedLayer with random weights, by the numbers of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrnnx import config
from pyrnnx.operator.op import CELLS, KERNEL_NUMBERS


def packed_arguments(cell: str, I: int, H: int, dtype: Any = np.float32, D: int = 1, **changes: Any) -> dict[str, Any]:
    """Return the arguments of a layer without peepholes; D directions, of which the second is reverse."""
    rng, row = np.random.default_rng(H), CELLS[cell]
    G = len(row.gates)

    def draw(*shape: int) -> Any:
        return rng.uniform(-0.5, 0.5, (D, *shape)).astype(dtype)

    return {
        "isa": config.ISA,
        "cell": row.kernel_number,
        "reverse": (False, True)[:D],
        "activations": (tuple([(KERNEL_NUMBERS[name], 0.0, 0.0) for name in row.activations]),) * D,
        "clip": np.inf,
        "linear_before_reset": False,
        "coupled_gate": None,
        "W": draw(G * H, I),
        "R": draw(G * H, H),
        "bias": draw(G * H),
        "recurrent_bias": draw(H) if changes.get("linear_before_reset") else None,
        "peepholes": None,
        "weight_dtype": 0,
        "dtype": np.dtype(dtype),
        "storage": 0,
        "X_axes": "TNI",
        "Y_axes": "TDNH",
        "state_axes": "DNH",
    } | changes
