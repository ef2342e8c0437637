"""Pickles and copies of models and their size; and results, which are copies if they must be."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from rows import each_row

from pyrnnx import Layer, RecurrentOp
from pyrnnx.frontends.openvino import BoundLayer, Model, read_model, write_model

XML, BIN = nets.lstm_net()
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def sources(folder: Path) -> dict[str, Model]:
    path = folder / "model.xml"
    path.write_text(XML)
    path.with_suffix(".bin").write_bytes(BIN)
    return {"bytes": read_model(XML, BIN), "files": read_model(path)}


@each_row("make", COPIES.values(), ids=COPIES)
@each_row("source", ["bytes", "files"])
def test_models(make: Callable[[Any], Any], source: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    model = sources(tmp_path)[source]
    arrays = nets.lstm_inputs()
    wanted = model(arrays)
    again = make(model)
    for path in tmp_path.iterdir():
        path.unlink()
    assert type(again) is Model
    assert (again.label, again.inputs, again.outputs) == (model.label, model.inputs, model.outputs)
    for name, array in again(arrays).items():
        np.testing.assert_array_equal(array, wanted[name], strict=True)
    bound = again.layers["lstm"]
    assert isinstance(bound, BoundLayer)
    np.testing.assert_array_equal(bound.weights["R"], nets.weights()["R"])


def large(folder: Path, size: int = 256) -> Model:
    """An LSTM with 8*size^2 weights."""
    rng = np.random.default_rng(3)
    W, R = (rng.uniform(-0.1, 0.1, (1, 4 * size, size)).astype(np.float32) for _ in "WR")
    return read_model(write_model(Layer(RecurrentOp("LSTM", size), W, R, name="l"), folder / "large.xml"))


def owner(array: Any) -> Any:
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def test_weights_of_a_file_are_not_copied(tmp_path: Path) -> None:
    """They are bytes that nobody can write to, read once; beside them are only the packed weights."""
    model = large(tmp_path)
    tracemalloc.start()
    bound = model.layers["l"]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(bound, BoundLayer)
    assert all(isinstance(owner(array), bytes) for array in bound.weights.values())
    assert held < 2.1 * sum(array.nbytes for array in bound.weights.values())


CODE = """
import sys
sys.modules["onnx"] = None  # an import of it fails
import openvino_nets as nets, pyrnnx
from pyrnnx.frontends.openvino import read_model, write_layer, write_model
model, arrays = read_model(*nets.lstm_net()), nets.lstm_inputs()
layer = model.layers["lstm"]
assert abs(layer(*arrays.values())[0]).max() > 0
write_layer(layer)
assert not [name for name in sys.modules if name.startswith("pyrnnx.frontends.onnx")]
assert len(pyrnnx.load(write_model(layer, "layer.xml")).layers) == 1
try:
    model(arrays)
except pyrnnx.PyrnnxError as error:
    assert "onnx" in str(error), error
else:
    raise AssertionError("the model ran")
"""


def test_onnx_is_not_needed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", CODE], check=True, env=environment, cwd=tmp_path)
