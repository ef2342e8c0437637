"""Whole IRs: names of inputs and outputs, recurrent layers with their constants, calls, intermediate values."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from layers import random_weights
from openvino_nets import Array, H, I, N, T, edges, layer, net, parameter, result

from pyrnnx import Interval, PyrnnxError, PyrnnxWarning, TensorInfo, load
from pyrnnx.frontends.openvino import BoundLayer, IRLayer, Model, lstm_sequence, read_model

XML, BIN = nets.lstm_net()


def expected(arrays: dict[str, Array]) -> tuple[Array, ...]:
    X, *others = arrays.values()
    return lstm_sequence(np.maximum(X, 0), *others, *nets.weights().values())


def save(folder: Path) -> Path:
    (folder / "small.xml").write_text(XML)
    (folder / "small.bin").write_bytes(BIN)
    return folder / "small.xml"


# Reading


def test_inputs_and_outputs() -> None:
    model = read_model(XML, BIN)
    assert model.label == "IR 'small'"
    assert model.inputs == (
        TensorInfo("X", "float32", (Interval(1, 8), None, 4)),
        TensorInfo("H", "float32", (None, 1, 6)),
        TensorInfo("C", "float32", (None, 1, 6)),
        TensorInfo("lengths", "int32", (None,)),
    )
    assert [(info.name, info.dtype, info.shape) for info in model.outputs] == [
        ("Y", "float32", (None, 1, None, 6)),
        ("Ho", "float32", (None, 1, 6)),
        ("Co", "float32", (None, 1, 6)),
    ]
    assert repr(model) == "<Model IR 'small': (X, H, C, lengths) -> (Y, Ho, Co)>"


def test_what_is_unknown_is_a_warning() -> None:
    text, weights = nets.lstm_net()
    with pytest.warns(PyrnnxWarning, match=r"LSTMSequence 'lstm' \(id 8\): attribute 'speed' is unknown") as caught:
        read_model(text.replace('clip="0"', 'clip="0" speed="2"'), weights)
    assert [one.filename for one in caught] == [__file__]


def test_load_reads_a_pair_of_files(tmp_path: Path) -> None:
    model = load(save(tmp_path))
    assert isinstance(model, Model)
    assert model.label == str(tmp_path / "small.xml")
    arrays = nets.lstm_inputs()
    for a, w in zip(model.layers["lstm"](*_after_relu(arrays)), expected(arrays), strict=True):
        np.testing.assert_array_equal(a, w, strict=True)


def _after_relu(arrays: dict[str, Array]) -> list[Array]:
    return [np.maximum(arrays["X"], 0), *list(arrays.values())[1:]]


# Layers


def test_layers_are_bound_to_their_constants() -> None:
    model = read_model(XML, BIN)
    assert list(model.layers) == ["lstm"]
    bound = model.layers["lstm"]
    assert isinstance(bound, BoundLayer)
    assert (bound.name, bound.label) == ("lstm", "LSTMSequence 'lstm' (id 8)")
    assert model.layers["lstm"] is bound
    assert repr(model.layers) == "<layers 'lstm'>"
    for name, array in nets.weights().items():
        np.testing.assert_array_equal(bound.weights[name], array)
    again = pickle.loads(pickle.dumps(bound))
    arrays = nets.lstm_inputs()
    np.testing.assert_array_equal(again(*arrays.values())[0], bound(*arrays.values())[0])


def test_layers_are_lazy(tmp_path: Path) -> None:
    """The .bin is not touched before a layer is asked for: what stands in it then is what is read."""
    path = save(tmp_path)
    path.with_suffix(".bin").write_bytes(bytes(len(BIN)))
    model = read_model(path)
    assert "lstm" in model.layers
    assert "other" not in model.layers
    assert len(model.layers) == 1
    with path.with_suffix(".bin").open("r+b") as file:
        file.write(BIN)
    bound = model.layers["lstm"]
    assert isinstance(bound, BoundLayer)
    np.testing.assert_array_equal(bound.weights["W"], nets.weights()["W"])


def test_unknown_layer_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        read_model(XML, BIN).layers["nothing"]


def test_layers_whose_weights_are_computed_are_as_declared() -> None:
    """R is an input of the model."""
    text = re.sub(r'<layer id="5".*?</layer>', parameter(5, "R", "1,24,6", (1, 24, 6)), XML)
    model = read_model(text, BIN)
    declared = model.layers["lstm"]
    assert isinstance(declared, IRLayer)
    arrays, weights = nets.lstm_inputs(), nets.weights()
    outputs = declared(*_after_relu(arrays), *weights.values())
    np.testing.assert_array_equal(outputs[0], expected(arrays)[0])
    pytest.importorskip("onnx")
    assert [info.name for info in model.inputs] == ["X", "H", "C", "lengths", "R"]
    results = model(arrays | {"R": weights["R"]})
    np.testing.assert_array_equal(results["Y"], expected(arrays)[0], strict=True)


@pytest.mark.parametrize("kind", ["f16", "i8"])
def test_compressed_weights(kind: str) -> None:
    """W as float16 and Convert; or as int8, Convert, Subtract, Multiply by a scale for each row."""
    pytest.importorskip("onnx")
    W = nets.weights()["W"]
    store = nets.Bin()
    store.data = BIN
    shape, rows = ("FP32", (1, 24, 4)), ("FP32", (1, 24, 1))
    if kind == "f16":
        layers = [store.constant(20, "W16", W.astype(np.float16), "f16", "FP16")]
        layers.append(layer(21, "W32", "Convert", {"destination_type": "f32"}, [("FP16", (1, 24, 4))], [shape]))
        connections, last = edges("20.0 21.0", "21.1 8.4"), W.astype(np.float16).astype(np.float32)
    else:
        small = np.rint(W / np.float32(0.004)).astype(np.int8)
        scale = np.linspace(0.003, 0.005, 24, dtype=np.float32).reshape(1, 24, 1)
        layers = [
            store.constant(20, "W8", small, "i8", "I8"),
            layer(21, "converted", "Convert", {"destination_type": "f32"}, [("I8", (1, 24, 4))], [shape]),
            store.constant(22, "zero", np.full((1, 24, 1), 3, np.float32), "f32", "FP32"),
            layer(23, "shifted", "Subtract", {"auto_broadcast": "numpy"}, [shape, rows], [shape]),
            store.constant(24, "scale", scale, "f32", "FP32"),
            layer(25, "scaled", "Multiply", {"auto_broadcast": "numpy"}, [shape, rows], [shape]),
        ]
        connections = edges("20.0 21.0", "21.1 23.0", "22.0 23.1", "23.2 25.0", "24.0 25.1", "25.2 8.4")
        last = (small.astype(np.float32) - np.float32(3)) * scale
    text = XML.replace("</layers>", "\n".join(layers) + "</layers>").replace(edges("4.0 8.4"), connections)
    bound = read_model(text, store.data).layers["lstm"]
    assert isinstance(bound, BoundLayer)
    np.testing.assert_array_equal(bound.weights["W"], last, strict=True)


def test_layers_with_the_same_name_and_without_one() -> None:
    data, cell = {"hidden_size": 1}, [("FP32", (2, 1))] * 2 + [("FP32", (1, 1))] * 2 + [("FP32", (1,))]
    shapes = [(2, 1), (2, 1), (1, 1), (1, 1), (1,)]
    parameters = [parameter(k, f"p{k}", ",".join(map(str, dims)), dims) for k, dims in enumerate(shapes)]
    names = ["a", "", "a", "b", ""]
    cells = [layer(10 + k, name, "RNNCell", data, cell, [("FP32", (2, 1))]) for k, name in enumerate(names)]
    text = net(parameters + cells, edges(*(f"{p}.0 {10 + k}.{p}" for k in range(5) for p in range(5))))
    model = read_model(text)
    assert list(model.layers) == ["a (id 10)", "RNNCell (id 11)", "a (id 12)", "b", "RNNCell (id 14)"]
    assert [one.id for one in model.layers.values()] == ["10", "11", "12", "13", "14"]


def test_first_version_of_lstm() -> None:
    """LSTMSequence-1, with peepholes among its constants."""
    P = np.linspace(-0.5, 0.5, 3 * H, dtype=np.float32).reshape(1, 3 * H)
    store = nets.Bin()
    store.data = BIN
    text = XML.replace('version="opset5"', 'version="opset1"').replace(
        "</layers>", store.constant(30, "P", P, "f32", "FP32") + "</layers>"
    )
    start = text.index('type="LSTMSequence"')
    end = text.index("</input>", start)
    text = text[:end] + nets.port(70, ("FP32", P.shape)) + text[end:]
    model = read_model(text.replace("</edges>", edges("30.0 8.70") + "</edges>"), store.data)
    arrays = nets.lstm_inputs()
    X, H0, C0, lengths = _after_relu(arrays)
    W, R, B = nets.weights().values()
    wanted = lstm_sequence(X, H0, C0, lengths, W, R, B, P, opset=1)
    np.testing.assert_array_equal(model.layers["lstm"](*_after_relu(arrays))[0], wanted[0])
    assert np.abs(wanted[0] - expected(arrays)[0]).max() > 0.01
    pytest.importorskip("onnx")
    np.testing.assert_allclose(model(arrays)["Y"], wanted[0], rtol=0, atol=1e-6)  # float32, other order of sums at most


WITHOUT_ONNX = """
import sys
sys.modules["onnx"] = None  # an import of it fails
import numpy as np, openvino_nets as nets, pyrnnx
from pyrnnx.frontends.openvino import read_model
model = read_model(*nets.lstm_net())
arrays = nets.lstm_inputs()
assert model.layers["lstm"](*arrays.values())[0].shape == (3, 1, 5, 6)
try:
    model(arrays)
except pyrnnx.PyrnnxError as error:
    assert "onnx" in str(error), error
else:
    raise AssertionError("the model ran")
"""


def test_reading_and_layers_do_not_need_onnx(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", WITHOUT_ONNX], check=True, env=environment, cwd=tmp_path)


# Calls


def test_call() -> None:
    pytest.importorskip("onnx")
    model = read_model(XML, BIN)
    arrays = nets.lstm_inputs()
    wanted = expected(arrays)
    for outputs in (model(*arrays.values()), model(arrays), model(dict(reversed(arrays.items())))):
        assert list(outputs) == ["Y", "Ho", "Co"]
        for a, w in zip(outputs.values(), wanted, strict=True):
            np.testing.assert_array_equal(a, w, strict=True)
    again = nets.lstm_inputs(seed=7)
    np.testing.assert_array_equal(model(again)["Y"], expected(again)[0])


def test_plan() -> None:
    auto = "ONNX Runtime" if find_spec("onnxruntime") else "reference evaluator"
    for runtime, other in (("reference", "reference evaluator"), ("auto", auto)):
        rows = read_model(XML, BIN, runtime=runtime).plan.rows()
        assert {runner for runner, _, _ in rows} == {other, "pyrnnx"}
        assert ["LSTMSequence 'lstm'" in what for runner, what, _ in rows if runner == "pyrnnx"] == [True]


def test_values_by_name() -> None:
    pytest.importorskip("onnx")
    model = read_model(XML, BIN)
    arrays = nets.lstm_inputs()
    Y, Ho, _ = expected(arrays)
    wanted = {
        "Ho": Ho,  # an output
        "x": np.maximum(arrays["X"], 0),  # a tensor
        "relu": np.maximum(arrays["X"], 0),  # a layer
        "lstm.0": Y,  # an output of a layer with several
        "Y/sink_port_0": Y,  # a Result
        "W": nets.weights()["W"],  # a constant
        "H": arrays["H"],  # an input
    }
    outputs = model(arrays, outputs=list(wanted))
    assert list(outputs) == list(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(outputs[name], array, strict=True, err_msg=name)
    assert list(model(arrays, outputs=["W"])) == ["W"]


def test_values_that_no_output_depends_on() -> None:
    pytest.importorskip("onnx")
    shape = ("FP32", (-1, -1, 4))
    tanh = layer(20, "aside", "Tanh", None, [shape], [shape])
    unknown = layer(21, "what", "Whatever", None, [shape], [("NEW", (-1,))], "extension")
    text = XML.replace("</layers>", tanh + unknown + result(22, "unused", (-1,), "NEW") + "</layers>")
    model = read_model(text.replace("</edges>", edges("0.0 20.0", "7.1 21.0", "21.1 22.0") + "</edges>"), BIN)
    assert (model.outputs[3].name, model.outputs[3].dtype) == ("what", None)
    arrays = nets.lstm_inputs()
    with pytest.raises(PyrnnxError, match=r"Whatever 'what' \(id 21\): Whatever of extension cannot be run"):
        model(arrays)
    without = re.sub(r'<layer id="22".*?</layer>', "", text).replace(edges("21.1 22.0"), "")
    model = read_model(without.replace("</edges>", edges("0.0 20.0", "7.1 21.0") + "</edges>"), BIN)
    np.testing.assert_allclose(model(arrays, outputs=["aside"])["aside"], np.tanh(arrays["X"]), rtol=1e-6)
    with pytest.raises(PyrnnxError, match=r"'what' cannot be computed: Whatever 'what' \(id 21\) is not translated"):
        model(arrays, outputs=["what"])


def test_calls_from_many_threads() -> None:
    pytest.importorskip("onnx")
    model = read_model(XML, BIN)
    arrays = [nets.lstm_inputs(seed) for seed in range(8)]
    results: list[Any] = [None] * 8

    def call(k: int) -> None:
        results[k] = model(arrays[k])["Y"]

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, y in zip(arrays, results, strict=True):
        np.testing.assert_array_equal(y, expected(one)[0])


# Names


def names_of(parameters: Sequence[tuple[str, str]], results: Sequence[tuple[str, str, str]]) -> tuple[Any, Any]:
    """Of parameters (layer, tensors), each with a ReLU (layer, tensors) and a Result."""
    layers, ends = [], []
    for k, ((name, tensors), (relu, tensors_of_relu, sink)) in enumerate(zip(parameters, results, strict=True)):
        layers.append(parameter(f"1{k}", name, "2", (2,), names=tensors))
        layers.append(layer(f"2{k}", relu, "ReLU", None, [("FP32", (2,))], [("FP32", (2,), tensors_of_relu)]))
        layers.append(result(f"3{k}", sink, (2,)))
        ends += [f"1{k}.0 2{k}.0", f"2{k}.1 3{k}.0"]
    model = read_model(net(layers, edges(*ends)))
    return [(info.name, info.aliases) for info in model.inputs], [(info.name, info.aliases) for info in model.outputs]


NAMES: dict[str, Any] = {  # parameters, (layer, tensors, Result), names and aliases of inputs, of outputs
    "of tensors": ([("p", "x")], [("r", "y", "s")], [("x", ("p",))], [("y", ("r", "s"))]),
    "of layers where tensors have none": ([("p", "")], [("r", "", "s")], [("p", ())], [("r", ("s",))]),
    "of a Result as converters write it": (
        [("p", "")], [("r", "", "out/sink_port_0")], [("p", ())], [("out", ("r", "out/sink_port_0"))],
    ),
    "of the layer among several of the tensor": (
        [("x", "hx,x")], [("r", "a,b,c", "b/sink_port_0")], [("x", ("hx",))],
        [("b", ("a", "c", "r", "b/sink_port_0"))],
    ),
    "the first of several": ([("p", "b,a")], [("r", "d,c", "s")], [("b", ("a", "p"))], [("d", ("c", "r", "s"))]),
    "the same twice": (
        [("p", "x"), ("q", "x")], [("r", "y", "s"), ("r", "y", "t")],
        [("x", ("p",)), ("q", ())], [("y", ("s",)), ("t", ())],
    ),
    "one that another makes up": (
        [("x", ""), ("x", ""), ("x.11", "")], [("r", "a", "s"), ("q", "b", "t"), ("p", "c", "u")],
        [("x", ()), ("x.11_", ()), ("x.11", ())], [("a", ("r", "s")), ("b", ("q", "t")), ("c", ("p", "u"))],
    ),
    "none at all": ([("", "")], [("", "", "")], [("10", ())], [("30", ())]),
    "with a comma": ([("p", r"a\,b")], [("r", "y", "s")], [("a,b", ("p",))], [("y", ("r", "s"))]),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "results", "inputs", "outputs"), NAMES.values(), ids=NAMES)
def test_names(parameters: Any, results: Any, inputs: Any, outputs: Any) -> None:
    assert names_of(parameters, results) == (inputs, outputs)


def test_aliases_are_taken() -> None:
    pytest.importorskip("onnx")
    text = XML.replace('names="X"', 'names="X,other"').replace('names="Y"', 'names="Y,why"')
    model = read_model(text, BIN)
    arrays = nets.lstm_inputs()
    arrays = {"other" if name == "X" else name: a for name, a in arrays.items()}
    outputs = model(arrays, outputs=["why", "Y"])
    np.testing.assert_array_equal(outputs["why"], outputs["Y"])


def onnx_model() -> Any:
    onnx = pytest.importorskip("onnx")
    helper, F = onnx.helper, onnx.TensorProto.FLOAT
    weights = random_weights(nets.LSTM, I)
    nodes = [
        helper.make_node("LSTM", ["the input", "W", "R"], ["Y", "Y_h", ""], name="lstm", hidden_size=H),
        helper.make_node("Identity", ["Y_h"], ["same/h"]),
        helper.make_node("Relu", ["Y"], ["relu:0"]),
    ]
    outputs = [helper.make_tensor_value_info(name, F, None) for name in ("relu:0", "Y_h", "same/h", "Y")]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("the input", F, [T, N, I])], outputs,
        [onnx.numpy_helper.from_array(weights[name], name) for name in "WR"],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("compressed", [False, True])
def test_an_onnx_model_has_its_own_names(compressed: bool, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    original = onnx_model()
    (tmp_path / "m.onnx").write_bytes(original.SerializeToString())
    openvino.save_model(openvino.convert_model(tmp_path / "m.onnx"), tmp_path / "m.xml", compress_to_fp16=compressed)
    model = read_model(tmp_path / "m.xml")
    assert [info.name for info in model.inputs] == ["the input"]
    assert [info.name for info in model.outputs] == ["relu:0", "Y_h", "same/h", "Y"]
    (bound,) = model.layers.values()
    assert isinstance(bound, BoundLayer)
    X = np.random.default_rng(1).uniform(-1, 1, (T, N, I)).astype(np.float32)
    compiled = openvino.Core().compile_model(str(tmp_path / "m.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    theirs = compiled([X])
    ours = model(X)
    for k, (name, array) in enumerate(ours.items()):
        # float32 on both sides: sums in another order, vectorised exp and tanh of some units, 5 steps
        np.testing.assert_allclose(array, theirs[k], rtol=0, atol=5e-6, err_msg=name)
