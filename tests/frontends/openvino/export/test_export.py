"""What is kept and what is computed in an export: names, dimensions, constants; and values of constants alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino_nets as nets
import pytest
from openvino_irs import check, run_exported, save
from openvino_nets import Bin, edges, layer, net, parameter, result
from openvino_operations import const, f32, ops

import pyrnnx.frontends.openvino.export.graph as graph_module
from pyrnnx import UnsupportedError
from pyrnnx.frontends.openvino import Model, read_model
from pyrnnx.frontends.openvino.export import constant_value, to_onnx
from pyrnnx.frontends.openvino.net import Output

openvino = pytest.importorskip("openvino")


def shape_of(info: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]


def test_names_and_dimensions() -> None:
    model = read_model(*nets.lstm_net())
    proto = to_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    assert (proto.ir_version, proto.opset_import[0].version) == (10, 22)
    assert {one.name: shape_of(one) for one in proto.graph.input} == {
        "X": ["X_dim_0", "X_dim_1", 4],
        "H": ["H_dim_0", 1, 6],
        "C": ["C_dim_0", 1, 6],
        "lengths": ["lengths_dim_0"],
    }
    assert proto.graph.input[0].doc_string == "X_dim_0: 1..8"
    assert [one.name for one in proto.graph.output] == ["Y", "Ho", "Co"]
    assert all(shape_of(one)[-1] == nets.H for one in proto.graph.output)
    nodes = {node.name: node for node in proto.graph.node}
    assert nodes["relu"].output[0] == "x"  # the tensor's name
    (lstm,) = (node for node in proto.graph.node if node.op_type == "LSTM")
    assert lstm.name.startswith("lstm")
    assert lstm.input[4] == "lengths"  # int32 already


def test_output_dimension_that_is_an_inputs(tmp_path: Path) -> None:
    x = ops(1).parameter([-1, 3], f32)
    x.output(0).set_names({"x"})
    proto = to_onnx(read_model(save(openvino.Model([ops(1).result(ops(1).tanh(x))], [x], "m"), tmp_path)))
    assert shape_of(proto.graph.output[0]) == ["x_dim_0", 3]


def matmul(folder: Path, *, f16: bool) -> Model:
    """Two products with weights of 64 x 64 that are equal, and one sum."""
    W = np.random.default_rng(0).uniform(-1, 1, (64, 64)).astype(np.float32)
    x = ops(1).parameter([-1, 64], f32)
    y = ops(1).matmul(ops(1).matmul(x, const(W, f32), False, True), const(W.copy(), f32), False, True)
    z = ops(1).add(y, const(np.full((1, 64), 0.5), f32))
    return read_model(save(openvino.Model([ops(1).result(z)], [x], "m"), folder, f16=f16))


def test_equal_constants_are_one(tmp_path: Path) -> None:
    proto = to_onnx(matmul(tmp_path, f16=False))
    assert sum(list(one.dims) == [64, 64] for one in proto.graph.initializer) == 1
    assert "Transpose" not in {node.op_type for node in proto.graph.node}  # computed in the export


def test_compressed_constants_stay(tmp_path: Path) -> None:
    proto = to_onnx(matmul(tmp_path, f16=True))
    (W,) = (one for one in proto.graph.initializer if list(one.dims) == [64, 64])
    assert W.data_type == onnx.TensorProto.FLOAT16
    assert proto.ByteSize() < 2 * 64 * 64 + 2000


def test_too_large_for_a_protobuf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "LARGEST_MODEL", 16_000)  # as if 2 GB were that little
    with pytest.raises(UnsupportedError, match=r"constants exceed 16000 bytes"):
        to_onnx(matmul(tmp_path, f16=False))


def test_input_and_constant_that_are_outputs() -> None:
    store = Bin()
    layers = [
        parameter(0, "x", "2", (2,), names="x"),
        store.constant(1, "c", np.array([1.5, 2.5], np.float32), "f32", "FP32"),
        layer(2, "neg", "Negative", None, [("FP32", (2,))], [("FP32", (2,))]),
        *(result(k, f"r{k}", (2,)) for k in (3, 4, 5, 6)),
    ]
    text = net(layers, edges("0.0 2.0", "0.0 3.0", "1.0 4.0", "2.1 5.0", "2.1 6.0"))
    model = read_model(text, store.data)
    outputs = list(model(np.array([1, 2], np.float32)).values())
    np.testing.assert_array_equal(outputs, [[1, 2], [1.5, 2.5], [-1, -2], [-1, -2]])
    onnx.checker.check_model(to_onnx(model), full_check=True)


# Values of constants


def int8_weights(folder: Path) -> tuple[Model, Any]:
    """As int8 models have them: Convert, Subtract, Multiply."""
    stored = const(np.arange(-6, 6).reshape(3, 4), np.int8)
    wide = ops(1).convert(stored, "f32")
    scaled = ops(1).multiply(ops(1).subtract(wide, const([[1], [2], [0]], f32)), const([[0.5], [0.25], [2]], f32))
    x = ops(1).parameter([2, 4], f32)
    scaled.set_friendly_name("scaled")
    y = ops(1).matmul(x, scaled, False, True)
    expected = (np.arange(-6, 6).reshape(3, 4) - [[1], [2], [0]]) * np.array([[0.5], [0.25], [2]])
    return read_model(save(openvino.Model([ops(1).result(y)], [x], "m"), folder)), expected


def layer_named(model: Model, name: str) -> Output:
    (found,) = (one for one in model.net.layers if one.name == name)
    return Output(found, 0)


def test_value_of_a_chain(tmp_path: Path) -> None:
    model, expected = int8_weights(tmp_path)
    value = constant_value(model.net, model.weights, layer_named(model, "scaled"))
    np.testing.assert_array_equal(value, expected)
    assert value is not None
    assert value.dtype == np.float32
    check(tmp_path / "model.xml", [np.ones((2, 4), np.float32)])


def test_value_that_depends_on_an_input() -> None:
    model = read_model(*nets.lstm_net())
    assert constant_value(model.net, model.weights, layer_named(model, "relu")) is None
    assert constant_value(model.net, model.weights, layer_named(model, "X")) is None


def test_value_behind_what_is_not_translated() -> None:
    store = Bin()
    const_ = store.constant(0, "c", np.ones(2, np.float32), "f32", "FP32")
    odd = layer(1, "odd", "Frobnicate", None, [("FP32", (2,))], [("FP32", (2,))])
    model = read_model(net([const_, odd, result(2, "y", (2,))], edges("0.0 1.0", "1.1 2.0")), store.data)
    assert constant_value(model.net, model.weights, layer_named(model, "odd")) is None


def test_long_chains() -> None:
    """Longer than Python's stack, of constants and of what depends on the input."""
    count, store = 1500, Bin()
    row = [("FP32", (2,))]
    layers = [parameter(0, "x", "2", (2,)), store.constant(1, "c", np.array([3, -1], np.float32), "f32", "FP32")]
    ends = []
    for k in range(count):
        first, second = 10 + 2 * k, 11 + 2 * k
        layers += [
            layer(first, f"a{k}", "Negative", None, row, row),
            layer(second, f"b{k}", "Negative", None, row, row),
        ]
        before = ("0.0", "1.0") if k == 0 else (f"{first - 2}.1", f"{second - 2}.1")
        ends += [f"{before[0]} {first}.0", f"{before[1]} {second}.0"]
    last = 10 + 2 * count
    layers += [layer(last, "sum", "Add", None, row * 2, row), result(last + 1, "y", (2,))]
    ends += [f"{last - 2}.1 {last}.0", f"{last - 1}.1 {last}.1", f"{last}.2 {last + 1}.0"]
    model = read_model(net(layers, edges(*ends)), store.data)
    (y,) = model(np.array([10, 20], np.float32)).values()
    assert y.tolist() == [13, 19]


def test_peepholes_and_input_forget() -> None:
    """LSTMSequence of opset1, P in the order f, i, o. OpenVINO has it no more: the layer is the witness."""
    rng, H = np.random.default_rng(4), nets.H
    store, arrays = Bin(), {**nets.weights(), "P": rng.uniform(-0.5, 0.5, 3 * H).astype(np.float32)}
    arrays["P"] = arrays["P"].reshape(1, -1)
    state = ("FP32", (3, 1, H))
    shapes = [("FP32", (3, 5, 4)), state, state, ("I32", (3,)), *(("FP32", a.shape) for a in arrays.values())]
    layers = [
        parameter(0, "X", "3,5,4", (3, 5, 4)),
        parameter(1, "H", f"3,1,{H}", (3, 1, H)),
        parameter(2, "C", f"3,1,{H}", (3, 1, H)),
        parameter(3, "lengths", "3", (3,), "i32"),
        *(store.constant(4 + k, name, a, "f32", "FP32") for k, (name, a) in enumerate(arrays.items())),
        layer(
            8,
            "lstm",
            "LSTMSequence",
            {"direction": "forward", "hidden_size": H, "input_forget": "true"},
            shapes,
            [("FP32", (3, 1, 5, H)), state, state],
        ),
        *(result(9 + k, name, dims) for k, (name, dims) in enumerate([("Y", (3, 1, 5, H)), ("Ho", (3, 1, H))])),
    ]
    ends = [f"{k}.0 8.{k}" for k in range(8)] + ["8.8 9.0", "8.9 10.0"]
    model = read_model(net(layers, edges(*ends)), store.data)
    inputs = [np.asarray(a) for a in nets.lstm_inputs().values()]
    expected = model.layers["lstm"](*inputs)[:2]
    for outputs in (list(model(*inputs).values()), run_exported(to_onnx(model), inputs)):
        for one, other in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=5e-6)  # float32, 5 steps
