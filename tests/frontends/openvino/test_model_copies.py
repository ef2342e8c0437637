"""Pickles and copies of models and their size; and results, which are copies if they must be."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest

from pyrnnx.frontends.openvino import BoundLayer, Model, read_model

XML, BIN = nets.lstm_net()
COPIES: tuple[Callable[[Any], Any], ...] = (lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy)


def test_copies_of_a_model_need_no_files(tmp_path: Path) -> None:
    path, arrays = tmp_path / "model.xml", nets.lstm_inputs()
    path.write_text(XML)
    path.with_suffix(".bin").write_bytes(BIN)
    models = [read_model(XML, BIN), read_model(path)]
    copies = [(model, make(model)) for model in models for make in COPIES]
    path.unlink()
    path.with_suffix(".bin").unlink()
    for model, again in copies:
        assert type(again) is Model
        assert (again.label, again.inputs, again.outputs) == (model.label, model.inputs, model.outputs)
        for name, array in again(arrays).items():
            np.testing.assert_array_equal(array, model(arrays)[name], strict=True)
        bound = again.layers["lstm"]
        assert isinstance(bound, BoundLayer)
        np.testing.assert_array_equal(bound.weights["R"], nets.weights()["R"])


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


@pytest.mark.e2e
def test_onnx_is_not_needed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", CODE], check=True, env=environment, cwd=tmp_path)
