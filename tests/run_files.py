"""Models and arrays for `pyrnnx run`, and readers of its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import make_model
from onnx_streams import I, gru

from pyrnnx.cli import main
from pyrnnx.testing.numbers import Array

EXAMPLES = Path(__file__).parents[1] / "examples"
ONNX, XML = (str(EXAMPLES / f"small_rnn.{suffix}") for suffix in ("onnx", "xml"))
RNG = np.random.default_rng(7)
GIVEN: dict[str, Any] = {
    "X": RNG.normal(size=(6, 2, 4)).astype(np.float32),
    "sequence_lens": np.array([3, 6], np.int32),
    "initial_h": RNG.normal(size=(2, 2, 8)).astype(np.float32),
}


def make_files(folder: Path) -> Path:
    """Fill a folder with models, and with arrays for them."""
    onnx.save(gru("", ([], {})), folder / "gru.onnx")
    onnx.save(table(), folder / "table.onnx")
    np.savez(folder / "all.npz", **GIVEN)
    for name, array in {**GIVEN, "long": RNG.normal(size=(7, 3, I)).astype(np.float32)}.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "objects.npy", np.array([{}], object), allow_pickle=True)
    return folder


def table() -> onnx.ModelProto:
    """x [B, 2], n -> rows of x of any number, scaled."""
    value = [
        helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["B", 2]),
        helper.make_tensor_value_info("factor", TensorProto.FLOAT, []),
        helper.make_tensor_value_info("out", TensorProto.FLOAT, ["B", 2]),
    ]
    node = helper.make_node("Mul", ["rows", "factor"], ["out"])
    return make_model(helper.make_graph([node], "g", value[:2], value[2:]))


def facts(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    assert main(["run", *map(str, arguments), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    return found


def outputs(capsys: pytest.CaptureFixture[str], path: Path, *arguments: Any) -> dict[str, Array]:
    facts(capsys, *arguments, "--output", path)
    with np.load(path) as found:
        return dict(found)


def same(found: dict[str, Array], expected: dict[str, Any], rtol: float = 0) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol, rtol, err_msg=name)
