"""Roles of integer inputs: lengths, rows of a table, numbers that the model compares with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import verdicts
from rows import each_row

from pyrnnx import load
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import write_model
from pyrnnx.models.model import input_roles
from pyrnnx.models.roles import Role, named_role

LENGTHS = Role(is_length=True)


def compared(constant: int) -> onnx.ModelProto:
    """Return a model that compares an integer with a number, after a Cast."""
    nodes = "whole = Cast<to = 7>(rate) is = Equal(whole, constant) y = Where(is, X, zero)"
    text = f"(float[N] X, int32 rate) => (float[N] y) {{ {nodes} }}"
    return verdicts.model(text, constant=np.array([constant]), zero=0)


# A model, and the roles of its inputs; other names in an IR have the same.
ROLES: dict[str, tuple[onnx.ModelProto, dict[str, Role]]] = {
    "recurrent node": (verdicts.one_layer("LSTM"), {"lens": LENGTHS}),
    "mask": (verdicts.masked(2), {"n": LENGTHS}),
    "Scan": (verdicts.scanned(0.5), {"n": LENGTHS}),
    "table": (verdicts.embedding(70), {"ids": Role(rows=70)}),
    "comparison": (compared(16000), {"rate": Role(values=(15999, 16000, 16001))}),
    "no integers": (verdicts.dropped(1), {}),
}


@each_row("name", ROLES)
def test_roles(name: str, tmp_path: Path) -> None:
    proto, expected = ROLES[name]
    model = read_model(proto)
    assert input_roles(model) == expected
    assert input_roles(load(write_model(model, tmp_path / "m.xml"))) == expected


def test_names() -> None:
    for name in ("sequence_lens", "sequence_lengths", "seq_len", "seqlens", "x_lens", "lengths", "input_length"):
        assert named_role(name) == LENGTHS, name
    for name in ("silence", "lense", "ids", "calendar"):
        assert named_role(name) == Role(), name
    assert named_role("attention_mask").is_mask
