"""What can be pickled and copied, and with how many bytes; and results, which are copies where they have to be."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from openvino_nets import Bin, edges, layer, net, result

from pyrnnx import FormatError
from pyrnnx.frontends.openvino import BoundLayer, Model, read_model, read_net
from pyrnnx.frontends.openvino.ir.bin_file import BinFile

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


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("source", ["bytes", "files"])
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


def test_model_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(read_model(XML, BIN)))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'model.pickle')!r}, 'rb')).layers['lstm'].op)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(read_model(XML, BIN).layers["lstm"].op)


def test_a_pickle_has_the_bytes_of_each_constant_once(tmp_path: Path) -> None:
    """Two constants share a megabyte; three more megabytes are nobody's."""
    store = Bin()
    array = np.arange(2**18, dtype=np.float32)
    first = store.constant(0, "a", array, "f32", "FP32")
    text = net(
        [
            first,
            first.replace('id="0" name="a"', 'id="1" name="b"'),
            *(result(2 + k, f"r{k}", array.shape) for k in (0, 1)),
        ],
        edges("0.0 2.0", "1.0 3.0"),
    )
    path = tmp_path / "model.xml"
    path.write_text(text)
    path.with_suffix(".bin").write_bytes(store.data + bytes(3 * 2**20))
    model = read_model(path)
    data = pickle.dumps(model)
    assert array.nbytes < len(data) < array.nbytes + 10_000
    again = pickle.loads(data)
    for layer_ in again.net.layers[:2]:
        np.testing.assert_array_equal(again.weights.constant(layer_), array, strict=True)
    assert again.weights.size == model.weights.size
    assert len(pickle.dumps(again)) == len(data)


def test_prepared_weights_are_not_in_a_pickle() -> None:
    model = read_model(XML, BIN)
    before = len(pickle.dumps(model))
    model.layers["lstm"](*nets.lstm_inputs().values())
    assert len(pickle.dumps(model)) == before


def test_bytes_that_were_left_behind() -> None:
    """A pickle has the bytes of the model's own constants."""
    again = pickle.loads(pickle.dumps(read_model(XML, b"\xff" * 100 + BIN[100:] + bytes(1000))))
    data = {"element_type": "u8", "shape": "10", "offset": len(BIN) + 100, "size": 10}
    odd = read_net(
        net([layer(7, "c", "Const", data, outputs=[("U8", (10,))]), result(8, "r", (10,), "U8")], edges("7.0 8.0"))
    )
    with pytest.raises(FormatError, match=r"Const 'c' \(id 7\): the bytes .* are not held here"):
        again.weights.constant(odd.layers[0])


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_nets(make: Callable[[Any], Any]) -> None:
    one = read_net(XML)
    again = make(one)
    assert [layer.label for layer in again.layers] == [layer.label for layer in one.layers]
    assert [layer.label for layer in again.order] == [layer.label for layer in one.order]
    assert list(again.recurrent.values()) == list(one.recurrent.values())
    assert (again.name, again.version, again.warnings) == (one.name, one.version, one.warnings)


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("source", ["bytes", "a file", "none"])
def test_weights(make: Callable[[Any], Any], source: str, tmp_path: Path) -> None:
    (tmp_path / "some.bin").write_bytes(BIN)
    given = {"bytes": BIN, "a file": tmp_path / "some.bin", "none": None}[source]
    one = BinFile(given)
    again = make(one)
    (tmp_path / "some.bin").unlink()
    assert (again.origin, again.size) == (one.origin, one.size)
    if given is not None:
        (W,) = (layer for layer in read_net(XML).layers if layer.name == "W")
        np.testing.assert_array_equal(again.constant(W), nets.weights()["W"], strict=True)


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_layers(make: Callable[[Any], Any]) -> None:
    model = read_model(XML, BIN)
    bound, arrays = model.layers["lstm"], list(nets.lstm_inputs().values())
    for one, other in zip(bound(*arrays), make(bound)(*arrays), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    (declared,) = model.net.recurrent.values()
    assert make(declared) == declared


def test_values_by_name_are_the_caller_s_own() -> None:
    """Of a constant, of an input, and of one value under two of its names."""
    pytest.importorskip("onnx")
    model, arrays = read_model(XML, BIN), nets.lstm_inputs()
    for _ in range(2):
        outputs = model(arrays, outputs=["W", "H", "x", "relu", "Y", "Y/sink_port_0"])
        np.testing.assert_array_equal(outputs["W"], nets.weights()["W"])
        np.testing.assert_array_equal(outputs["relu"], np.maximum(arrays["X"], 0))
        np.testing.assert_array_equal(outputs["Y/sink_port_0"], outputs["Y"])
        for one, other in combinations([*outputs.values(), *arrays.values()], 2):
            assert not np.shares_memory(one, other)
        for array in outputs.values():
            array[...] = 99
