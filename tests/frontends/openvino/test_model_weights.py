"""The weights of an IR: read, prepared and held once, however its layers are used."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from openvino_nets import edges, layer

from pyrnnx import Layer, RecurrentOp
from pyrnnx import layer as layer_module
from pyrnnx.frontends.openvino import BoundLayer, Model, read_model, to_onnx, write_model
from pyrnnx.prepare import prepare

XML, BIN = nets.lstm_net()


def large(folder: Path, size: int = 256) -> Model:
    """An LSTM with 8*size^2 weights."""
    rng = np.random.default_rng(3)
    W, R = (rng.uniform(-0.1, 0.1, (1, 4 * size, size)).astype(np.float32) for _ in "WR")
    return read_model(write_model(Layer(RecurrentOp("LSTM", size), W, R, name="l"), folder / "large.xml"))


def owner(array: Any) -> Any:
    while isinstance(array, np.ndarray):
        array = array.base
    return array


@pytest.mark.parametrize("layers_first", [False, True])
def test_calls_and_layers_share_what_is_prepared(layers_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    prepared = []

    def counted(*given: Any) -> Any:
        prepared.append(given)
        return prepare(*given)

    monkeypatch.setattr(layer_module, "prepare", counted)
    model, arrays = read_model(XML, BIN), nets.lstm_inputs()
    if layers_first:
        assert isinstance(model.layers["lstm"], BoundLayer)
    outputs = model(arrays)
    model(arrays, outputs=["relu", *outputs])
    assert isinstance(model.layers["lstm"], BoundLayer)
    assert len(prepared) == 1


def test_what_is_run_does_not_hold_the_weights(tmp_path: Path) -> None:
    """The export has them; the translated model that is run does not."""
    pytest.importorskip("onnx")
    model = large(tmp_path)
    bound = model.layers["l"]
    assert isinstance(bound, BoundLayer)
    size = sum(array.nbytes for array in bound.weights.values())
    inputs = [np.zeros((2, 3, 256), np.float32), *(np.zeros((2, 1, 256), np.float32) for _ in "HC")]
    tracemalloc.start()
    model(*inputs, np.array([3, 3], np.int32))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < size / 4
    assert to_onnx(model).ByteSize() > size


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


def test_constants_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the layers are not computed again for a call."""
    pytest.importorskip("onnx")
    from pyrnnx.frontends.openvino.translation import constants

    store, shape = nets.Bin(), (1, 24, 4)
    store.data = BIN
    half = store.constant(20, "W16", nets.weights()["W"].astype(np.float16), "f16", "FP16")
    full = layer(21, "W32", "Convert", {"destination_type": "f32"}, [("FP16", shape)], [("FP32", shape)])
    text = XML.replace("</layers>", f"{half}{full}</layers>").replace(edges("4.0 8.4"), edges("20.0 21.0", "21.1 8.4"))
    model = read_model(text, store.data)
    assert isinstance(model.layers["lstm"], BoundLayer)
    monkeypatch.setattr(constants, "constant_values", lambda *given: pytest.fail("a constant is computed again"))
    model(nets.lstm_inputs())
