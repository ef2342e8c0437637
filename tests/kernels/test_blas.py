"""The portable engine compared with the oracle: every cell and variant, whichever engine is the default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import random_inputs, random_layer
from rows import each_row

from pyrnnx import RecurrentOp, config, reference
from pyrnnx.comparison import oracle
from pyrnnx.operator.op import CellName

OPS: dict[str, tuple[CellName, dict[str, Any]]] = {
    "RNN": ("RNN", {}),
    "GRU": ("GRU", {}),
    "GRU, linear_before_reset": ("GRU", {"linear_before_reset": True}),
    "LSTM": ("LSTM", {}),
    "LSTM, input_forget": ("LSTM", {"input_forget": True}),
    "LSTM, clip": ("LSTM", {"clip": 0.5}),
}


@each_row("dtype", [np.float32, np.float64])
@each_row("name", OPS)
def test_cells(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "ISA", "blas")
    cell, attributes = OPS[name]
    op = RecurrentOp(cell, 5, direction="bidirectional", **attributes)
    layer = random_layer(op, 3, dtype, peepholes=op.has_cell_state)
    inputs = random_inputs(op, (4, 3, 3), dtype)
    expected = reference.run(cell, **oracle.arguments(layer, inputs))
    tolerance = 1e-5 if dtype == np.float32 else 1e-13  # sums of up to 9 terms in another order, 4 steps
    for result, wanted in zip(layer(**inputs), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=0, atol=tolerance)
