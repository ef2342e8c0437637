"""`pyrnnx convert --for onnxruntime`: the written model runs in sessions of ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from rows import each_row
from sessions import session

from pyrnnx import load
from pyrnnx.cli import main

SMALL = str(Path(__file__).parents[2] / "examples" / "small_rnn.onnx")


def test_a_model(tmp_path: Any, capsys: Any) -> None:
    target = tmp_path / "out.onnx"
    assert main(["convert", SMALL, str(target), "--for", "onnxruntime", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["verified"] is True
    assert facts["files"] == {str(target): target.stat().st_size}
    model = load(SMALL)
    inputs = {
        info.name: np.ones([size if isinstance(size, int) else 2 for size in info.shape or ()], info.dtype)
        for info in model.inputs
    }
    (first, *_), expected = session(target.read_bytes()).run(None, inputs), model(inputs)
    np.testing.assert_allclose(first, next(iter(expected.values())), rtol=1e-5, atol=1e-6)


@each_row(
    ("arguments", "message"),
    [
        (["out.onnx", "--for", "tensorrt"], "--for is 'tensorrt'; expected one of onnxruntime"),
        (["out.xml", "--for", "onnxruntime"], "expected two names that end in .onnx"),
        (["out.onnx", "--for", "onnxruntime", "--layer", "0"], "--layer does not apply with --for onnxruntime"),
    ],
)
def test_what_is_refused(tmp_path: Any, capsys: Any, arguments: Any, message: Any) -> None:
    assert main(["convert", SMALL, str(tmp_path / arguments[0]), *arguments[1:]]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())
