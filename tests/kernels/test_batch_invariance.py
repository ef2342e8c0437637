"""Batch invariance, where it is asked for: a row's bits are those of the row alone, whatever multiplies many rows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_inputs, random_layer

from pyrnnx import PyrnnxError, RecurrentOp, config, get_batch_invariant, set_batch_invariant
from pyrnnx._kernels import engines


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = get_batch_invariant()
    yield
    set_batch_invariant(before)


ISAS = (*engines.MODELS, *engines.supported())
KINDS: dict[str, dict[str, Any]] = {
    "RNN": {"cell": "RNN", "hidden_size": 131},
    "GRU": {"cell": "GRU", "hidden_size": 67},
    "GRU, linear": {"cell": "GRU", "hidden_size": 67, "linear_before_reset": True},
    "LSTM": {"cell": "LSTM", "hidden_size": 51},
}


@pytest.mark.skipif(not engines.supported(), reason="BLAS sums in an order that depends on the shape of a product")
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_bits_of_the_row_alone(kind: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "ISA", isa)
    op = RecurrentOp(**KINDS[kind])
    layer, X = random_layer(op, 95), random_inputs(op, (4, 21, 95))["X"]
    set_batch_invariant(False)
    usual = layer(X)
    set_batch_invariant(True)
    whole = layer(X)
    for row in range(21):
        alone = layer(X[:, row : row + 1])
        assert alone[0].tobytes() == np.ascontiguousarray(whole[0][:, :, row : row + 1]).tobytes()
    assert (usual[0].tobytes() != whole[0].tobytes()) == isa.startswith("amx")
    set_batch_invariant(False)
    assert layer(X)[0].tobytes() == usual[0].tobytes()


def test_the_environment_says_batch_invariant() -> None:
    for value, word in (("1", "True"), ("0", "False"), ("", "False"), ("yes", "expected one of 0, 1")):
        done = subprocess.run(
            [sys.executable, "-c", "import pyrnnx; print(pyrnnx.get_batch_invariant())"],
            env={**os.environ, "PYRNNX_BATCH_INVARIANT": value},
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert word in done.stdout + done.stderr


@pytest.mark.parametrize("value", [1, 0, "yes", None, np.array(True)], ids=repr)
def test_batch_invariant_is_a_bool(value: Any) -> None:
    with pytest.raises(PyrnnxError, match=r"set_batch_invariant: value is .*; expected True or False"):
        set_batch_invariant(value)


def test_settings_change_with_batch_invariance() -> None:
    before = config.settings()
    set_batch_invariant(np.bool_(True))
    assert (get_batch_invariant(), type(get_batch_invariant()), config.settings() > before) == (True, bool, True)
