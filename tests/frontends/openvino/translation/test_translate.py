"""Exported names, dimensions and constants, and values that depend only on constants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino_nets as nets
import pytest
from openvino_irs import check, openvino, rng_of, run_exported, save
from openvino_nets import Bin, edges, layer, net, parameter, result
from openvino_operations import Maker, const, f32, i64, ops
from rows import each_row

import pyrnnx.frontends.openvino.translation.graph as graph_module
from pyrnnx import UnsupportedError
from pyrnnx.frontends.openvino import read_model, to_onnx
from pyrnnx.frontends.openvino.ir.element_types import ELEMENT_TYPES


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


def test_equal_constants_are_one_and_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products with weights of 64 x 64 that are equal, and one sum."""
    W = np.random.default_rng(0).uniform(-1, 1, (64, 64)).astype(np.float32)
    x = ops(1).parameter([-1, 64], f32)
    y = ops(1).matmul(ops(1).matmul(x, const(W, f32), False, True), const(W.copy(), f32), False, True)
    z = ops(1).add(y, const(np.full((1, 64), 0.5), f32))
    model = read_model(save(openvino.Model([ops(1).result(z)], [x], "m"), tmp_path))
    assert sum(list(one.dims) == [64, 64] for one in to_onnx(model).graph.initializer) == 1
    monkeypatch.setattr(graph_module, "LARGEST_MODEL", 16_000)  # as if 2 GB were that little
    with pytest.raises(UnsupportedError, match=r"constants exceed 16000 bytes"):
        to_onnx(model)


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


@pytest.mark.slow
def test_long_chains() -> None:
    """Longer than Python's stack, of constants and of what depends on the input."""
    last, store, row = 2202, Bin(), [("FP32", (2,))]
    layers = [parameter(0, "x", "2", (2,)), store.constant(1, "c", np.array([3, -1], np.float32), "f32", "FP32")]
    layers += [layer(k, f"n{k}", "Negative", None, row, row) for k in range(2, last)]
    layers += [layer(last, "sum", "Add", None, row * 2, row), result(last + 1, "y", (2,))]
    ends = [f"{k - 2}.{int(k > 3)} {k}.0" for k in range(2, last)]
    ends += [f"{last - 2}.1 {last}.0", f"{last - 1}.1 {last}.1", f"{last}.2 {last + 1}.0"]
    model = read_model(net(layers, edges(*ends)), store.data)
    (y,) = model(np.array([10, 20], np.float32)).values()
    assert y.tolist() == [13, 19]


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


def interpolate(mode: str = "nearest", **attributes: Any) -> Any:
    more = {"mode": mode, "shape_calculation_mode": "sizes", **attributes}
    return lambda p: ops(11).interpolate(p(1, 1, 4, 4), const([2, 2]), axes=const([2, 3]), **more)


# Name, operation, and words of the message.
OPTIONS: tuple[tuple[str, Callable[[Maker], Any], str], ...] = (
    ("Pad", lambda p: ops(12).pad(p(3, 3), const([-1, 0]), const([0, 2]), "reflect"), r"pads is \[-1, 0, 0, 2\]"),
    ("Interpolate", interpolate(mode="linear_onnx", antialias=True), "antialias is True"),
    ("Interpolate nearest_mode", interpolate(nearest_mode="simple"), "nearest_mode is 'simple'"),
    ("Interpolate transform", interpolate(coordinate_transformation_mode="tf_half_pixel_for_nn"),
        "coordinate_transformation_mode is 'tf_half_pixel_for_nn'"),
    ("Transpose", lambda p: ops(1).transpose(p(2, 3), p(2, dtype=i64)),
        r"order \(input 1\) is computed by Param"),
    ("AdaptiveAvgPool", lambda p: ops(8).adaptive_avg_pool(p(1, 2, 5, 5), const([2, 2])),
        r"output_shape is \[2, 2\]"),
    ("ScatterElementsUpdate", lambda p: ops(12).scatter_elements_update(p(5), p(2, dtype=i64), p(2), const(0),
        "mean"), "reduction is 'mean'"),
    ("MaxPool", lambda p: ops(1).max_pool(p(1, 1, 8), [3], [1], [1], [3], "ceil"), "rounding_type is 'ceil'"),
    ("Selu", lambda p: ops(1).selu(p(2), p(1), const(1, f32)), r"alpha \(input 1\) is computed"),
)  # fmt: skip


@each_row(("name", "make", "words"), OPTIONS, ids=[row[0] for row in OPTIONS])
def test_option_that_onnx_does_not_have(name: str, make: Callable[[Maker], Any], words: str, tmp_path: Path) -> None:
    maker = Maker(name, dynamic=name == "AdaptiveAvgPool")
    model = openvino.Model([openvino.opset1.result(make(maker).output(0))], maker.parameters, "one")
    with pytest.raises(UnsupportedError, match=rf"{name.split(maxsplit=1)[0]} '.*' \(id \d+\): {words}"):
        to_onnx(read_model(save(model, tmp_path)))


N, T, I, H = 2, 4, 3, 5
STORED = [row.name for row in ELEMENT_TYPES.values() if row.stored_only]


def stored(kind: str, shape: tuple[int, ...], seed: str = "") -> Any:
    """A constant of powers of 2 from 1/4 to 2, which every one of the types has."""
    values = 2.0 ** rng_of(kind + seed).integers(-1 if kind == "f4e2m1" else -2, 2, shape)
    return ops(13).constant(values.astype(np.float32), dtype=getattr(openvino.Type, kind))


@each_row("kind", STORED)
def test_weights_of_a_layer_and_of_a_product(kind: str, tmp_path: Path) -> None:
    """Powers of 2 in W and in a MatMul's matrix, each converted to f32, W then scaled."""
    X, h, c = (ops(13).parameter(shape, np.float32) for shape in ((N, T, I), (N, 1, H), (N, 1, H)))
    W = ops(13).multiply(ops(13).convert(stored(kind, (1, 4 * H, I)), "f32"), ops(13).constant(np.float32(-0.25)))
    R = ops(13).convert(stored(kind, (1, 4 * H, H), "R"), "f32")
    B = ops(13).constant(np.zeros((1, 4 * H), np.float32))
    lengths = ops(13).constant(np.full(N, T, np.int32))
    layer = ops(13).lstm_sequence(X, h, c, lengths, W, R, B, H, "forward")
    Y = ops(13).matmul(layer.output(0), ops(13).convert(stored(kind, (H, 2), "out"), "f32"), False, False)
    model = openvino.Model([ops(13).result(Y)], [X, h, c], "stored")
    rng = rng_of(kind)
    arrays = [rng.uniform(-1, 1, one.shape).astype(np.float32) for one in (X, h, c)]
    read = check(save(model, tmp_path), arrays)
    assert [one.op.cell for one in read.layers.values()] == ["LSTM"]


@each_row("kind", [*STORED, "nf4", "u3", "u6"])
def test_errors_name_the_layer_when_it_is_used(kind: str, tmp_path: Path) -> None:
    """Reading is none; neither is a layer beside it."""
    x = ops(13).parameter([3], np.float32)
    odd = ops(13).constant(np.ones(8, np.float32), dtype=getattr(openvino.Type, kind))
    taken = ops(13).gather(odd, ops(13).constant(np.array([0, 1, 0])), ops(13).constant(np.array(0)))
    y = ops(13).add(x, ops(13).convert(taken, "f32"))
    read = read_model(save(openvino.Model([ops(13).result(y)], [x], "odd"), tmp_path))
    for use in (lambda: read(np.zeros(3, np.float32)), lambda: to_onnx(read)):
        with pytest.raises(UnsupportedError, match=rf"\(id \d+\): .*element type '{kind}'"):
            use()
    x = ops(13).parameter([3], getattr(openvino.Type, kind))
    path = save(openvino.Model([ops(13).result(ops(13).convert(x, "f32"))], [x], "odd"), tmp_path)
    if kind in STORED:
        with pytest.raises(
            UnsupportedError, match=rf"Parameter .*element type '{kind}' is supported in constants only"
        ):
            to_onnx(read_model(path))
