"""Batch invariance: if it is set, the bits of a row do not depend on its batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import MATRICES, random_inputs, random_layer
from rows import each_row

from pyrnnx import PyrnnxError, RecurrentOp, config, get_batch_invariant, set_batch_invariant
from pyrnnx._kernels import engines

ISAS = tuple(dict.fromkeys((*MATRICES, *engines.supported())))
KINDS: dict[str, dict[str, Any]] = {
    "RNN": {"cell": "RNN", "hidden_size": 131},
    "GRU": {"cell": "GRU", "hidden_size": 67},
    "GRU, linear": {"cell": "GRU", "hidden_size": 67, "linear_before_reset": True},
    "LSTM": {"cell": "LSTM", "hidden_size": 51},
}


@pytest.mark.skipif(not engines.supported(), reason="BLAS sums in an order that depends on the shape of a product")
@each_row("isa", ISAS)
@each_row("kind", KINDS)
def test_rows_have_the_bits_of_the_row_alone(kind: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "ISA", isa)
    op = RecurrentOp(**KINDS[kind])
    layer, X = random_layer(op, 95), random_inputs(op, (4, 21, 95))["X"]
    set_batch_invariant(False)
    usual = layer(X)
    set_batch_invariant(True)
    whole = layer(X)
    for row in range(0, 21, 4):
        alone = layer(X[:, row : row + 1])
        assert alone[0].tobytes() == np.ascontiguousarray(whole[0][:, :, row : row + 1]).tobytes()
    assert (usual[0].tobytes() != whole[0].tobytes()) == isa.startswith("amx")
    set_batch_invariant(False)
    assert layer(X)[0].tobytes() == usual[0].tobytes()


def test_the_environment_says_batch_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, choice in (("1", "1"), ("0", "0"), ("", None)):
        monkeypatch.setenv("PYRNNX_BATCH_INVARIANT", value)
        assert config._choice("PYRNNX_BATCH_INVARIANT", config.SWITCHES) == choice
    monkeypatch.setenv("PYRNNX_BATCH_INVARIANT", "yes")
    with pytest.raises(PyrnnxError, match="PYRNNX_BATCH_INVARIANT is 'yes'; expected one of 0, 1"):
        config._choice("PYRNNX_BATCH_INVARIANT", config.SWITCHES)


@each_row("value", [1, 0, "yes", None, np.array(True)], ids=repr)
def test_batch_invariant_is_a_bool(value: Any) -> None:
    with pytest.raises(PyrnnxError, match=r"set_batch_invariant: value is .*; expected True or False"):
        set_batch_invariant(value)


def test_settings_change_with_batch_invariance() -> None:
    before = config.settings()
    set_batch_invariant(np.bool_(True))
    assert (get_batch_invariant(), type(get_batch_invariant()), config.settings() != before) == (True, bool, True)
