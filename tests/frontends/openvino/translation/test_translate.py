"""What is kept and what is computed in an export: names, dimensions, constants; and values of constants alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino_nets as nets
import pytest
from layers import random_weights
from openvino_irs import check, run_exported, save
from openvino_nets import Bin, edges, layer, net, parameter, result
from openvino_operations import const, f32, ops

import pyrnnx.frontends.openvino.translation.graph as graph_module
from pyrnnx import UnsupportedError
from pyrnnx.conventions import OPENVINO_SEQUENCE_1
from pyrnnx.frontends.openvino import Model, read_model, to_onnx
from pyrnnx.frontends.openvino.ir.layer import Output
from pyrnnx.frontends.openvino.translation import ConstantValues
from pyrnnx.testing import reference

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
    value = ConstantValues(model.net, model.weights).value(layer_named(model, "scaled"))
    np.testing.assert_array_equal(value, expected)
    assert value is not None
    assert value.dtype == np.float32
    check(tmp_path / "model.xml", [np.ones((2, 4), np.float32)])


def test_value_that_depends_on_an_input() -> None:
    model = read_model(*nets.lstm_net())
    assert ConstantValues(model.net, model.weights).value(layer_named(model, "relu")) is None
    assert ConstantValues(model.net, model.weights).value(layer_named(model, "X")) is None


def test_value_behind_what_is_not_translated() -> None:
    store = Bin()
    const_ = store.constant(0, "c", np.ones(2, np.float32), "f32", "FP32")
    odd = layer(1, "odd", "Frobnicate", None, [("FP32", (2,))], [("FP32", (2,))])
    model = read_model(net([const_, odd, result(2, "y", (2,))], edges("0.0 1.0", "1.1 2.0")), store.data)
    assert ConstantValues(model.net, model.weights).value(layer_named(model, "odd")) is None


def test_long_chains() -> None:
    """Longer than Python's stack, of constants and of what depends on the input."""
    count, store = 1100, Bin()
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


def first_version(cell: bool, computed: str, **data: Any) -> tuple[Model, list[Any], list[Any]]:
    """A model of LSTMSequence-1 or LSTMCell-1, its inputs, and Y, Ho, Co (Ho, Co) by the oracle.

    OpenVINO has the sequence no more, and ignores P and input_forget of the cell. Weights of the names in `computed`
    are inputs of the model, so that nodes arrange them.
    """
    H, store = nets.H, Bin()
    weights = random_weights(nets.LSTM, nets.I, convention=OPENVINO_SEQUENCE_1, peepholes=True)
    arrays: dict[str, Any] = {**nets.lstm_inputs(), **weights}
    if cell:
        del arrays["lengths"]
        arrays = {name: a[:, 0] if name in "XHC" else a[0] for name, a in arrays.items()}
    ports = [("I32" if name == "lengths" else "FP32", a.shape) for name, a in arrays.items()]
    layers, inputs = [], []
    for k, ((name, array), (precision, shape)) in enumerate(zip(arrays.items(), ports, strict=True)):
        if name in "WRBP" and name not in computed:
            layers.append(store.constant(k, name, array, "f32", "FP32"))
        else:
            layers.append(parameter(k, name, ",".join(map(str, shape)), shape, precision.replace("FP", "f").lower()))
            inputs.append(array)
    count, state = len(ports), arrays["H"].shape
    outputs = [state, state] if cell else [(nets.N, 1, nets.T, H), state, state]
    kind = "LSTMCell" if cell else "LSTMSequence"
    attributes = {"hidden_size": H, "input_forget": "true", **({} if cell else {"direction": "forward"}), **data}
    layers.append(layer(count, "lstm", kind, attributes, ports, [("FP32", shape) for shape in outputs]))
    layers += [result(count + 1 + k, f"out{k}", shape) for k, shape in enumerate(outputs)]
    ends = [f"{k}.0 {count}.{k}" for k in range(count)]
    ends += [f"{count}.{count + k} {count + 1 + k}.0" for k in range(len(outputs))]
    model = read_model(net(layers, edges(*ends)), store.data)
    # both have them in port order
    return model, inputs, list(reference.run(f"{kind}-1", *arrays.values(), input_forget=True))


@pytest.mark.parametrize("computed", ["", "W", "B", "RP", "WRBP"])
@pytest.mark.parametrize("cell", [False, True], ids=["sequence", "cell"])
def test_peepholes_and_input_forget(cell: bool, computed: str) -> None:
    """P in the order f, i, o, and i = 1 - f: negated in the place of the gate that ONNX computes, by nodes too."""
    model, inputs, expected = first_version(cell, computed)
    proto = to_onnx(model)
    assert sum(node.op_type == "Neg" for node in proto.graph.node) == len(computed)
    for outputs in (list(model(*inputs).values()), run_exported(proto, inputs)):
        for one, other in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=5e-6)  # float32, 5 steps


@pytest.mark.parametrize("computed", ["", "WRBP"])
@pytest.mark.parametrize("cell", [False, True], ids=["sequence", "cell"])
def test_input_forget_of_gates_that_are_no_sigmoid(cell: bool, computed: str) -> None:
    """Only 1 - sigmoid(x) is the function of -x: no operator of ONNX; the model is run all the same."""
    model, inputs, _ = first_version(cell, computed, activations="hardsigmoid,tanh,tanh")
    label = rf"^LSTM{'Cell' if cell else 'Sequence'} 'lstm' \(id \d\): "
    with pytest.raises(UnsupportedError, match=rf"{label}input_forget with activation HardSigmoid.*i = 1 - f"):
        to_onnx(model)
    for array, other in zip(model(*inputs).values(), model.layers["lstm"](*inputs), strict=True):
        assert np.isfinite(array).all()
        np.testing.assert_array_equal(array, other, strict=True)


def test_a_constant_order_tells_the_rank(tmp_path: Path) -> None:
    """Of a value whose rank the file leaves open; OpenVINO's CPU plugin compiles none such."""
    x, shape = ops(1).parameter([24], f32), ops(1).parameter([-1], np.int64)
    y = ops(1).transpose(ops(1).reshape(x, shape, False), const([1, 2, 0]))
    assert y.input(0).get_partial_shape().rank.is_dynamic
    given = np.arange(24, dtype=np.float32)
    path = save(openvino.Model([ops(1).result(y)], [x, shape], "open"), tmp_path)
    (result,) = read_model(path)(given, np.array([2, 3, 4])).values()
    np.testing.assert_array_equal(result, given.reshape(2, 3, 4).transpose(1, 2, 0))


def test_an_output_has_no_name_of_another_input() -> None:
    """The file gives the tensors x and y one name; two values of one name no ONNX model can have."""
    layers = [
        parameter(0, "x", "3", (3,), names="same"),
        layer(1, "relu", "ReLU", None, [("FP32", (3,))], [("FP32", (3,), "same")]),
        result(2, "y", (3,)),
        result(3, "same", (3,)),
    ]
    model = read_model(net(layers, edges("0.0 1.0", "1.1 2.0", "0.0 3.0")), b"")
    assert ([info.name for info in model.inputs], [info.name for info in model.outputs]) == (["same"], ["y", "same"])
    given = np.array([-1, 0, 1], f32)
    for results in (list(model(given).values()), run_exported(to_onnx(model), [given])):
        np.testing.assert_array_equal(results, [np.maximum(given, 0), given])
