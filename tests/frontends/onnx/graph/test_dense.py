"""Sparse tensors of ONNX models, which become dense when they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import make_graph, simple_model
from rows import each_row

import pyrnnx
from pyrnnx import ArgumentError, FormatError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import Array

node = helper.make_node
X = np.arange(6, dtype=np.float32).reshape(2, 3)
DENSE = np.array([[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 3]], np.float32)
VALUES = np.array([1, 2, 3], np.float32)
LINEAR = np.array([0, 5, 11])
PAIRS = np.array([[0, 0], [1, 1], [2, 3]])


def sparse(indices: Any = LINEAR, values: Array = VALUES, dims: Any = (3, 4), name: str = "k") -> Any:
    tensors = numpy_helper.from_array(values, name), numpy_helper.from_array(np.asarray(indices))
    return helper.make_sparse_tensor(*tensors, dims)


def product(tensor: onnx.SparseTensorProto) -> onnx.ModelProto:
    model = simple_model([node("MatMul", ["x", "k"], ["y"])], {"x": X}, ["y"])
    model.graph.sparse_initializer.append(tensor)
    return model


def in_a_node() -> onnx.ModelProto:
    made = node("Constant", [], ["k"], sparse_value=sparse())
    return simple_model([made, node("MatMul", ["x", "k"], ["y"])], {"x": X}, ["y"])


def in_bodies() -> onnx.ModelProto:
    one = make_graph([node("MatMul", ["x", "k"], ["y1"])], {}, ["y1"])
    one.sparse_initializer.append(sparse())
    made = node("Constant", [], ["k"], sparse_value=sparse())
    other = make_graph([made, node("MatMul", ["x", "k"], ["y2"])], {}, ["y2"])
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Cast", ["sum"], ["go"], to=onnx.TensorProto.BOOL),
        node("If", ["go"], ["y"], then_branch=one, else_branch=other),
    ]
    return simple_model(nodes, {"x": X}, ["y"])


MODELS = {
    "linear indices": lambda: product(sparse()),
    "indices of each axis": lambda: product(sparse(PAIRS)),
    "in a node": in_a_node,
    "in bodies": in_bodies,
}


@each_row("runtime", ["auto", "reference"])
@each_row("name", MODELS)
def test_models(name: str, runtime: str) -> None:
    proto = MODELS[name]()
    before = proto.SerializeToString()
    model = read_model(proto, runtime=runtime)
    for x in (X, np.zeros_like(X)):
        np.testing.assert_array_equal(model(x)["y"], x @ DENSE)
    assert proto.SerializeToString() == before


def test_a_default_of_an_input() -> None:
    proto = product(sparse())
    proto.graph.input.append(helper.make_tensor_value_info("k", onnx.TensorProto.FLOAT, [3, 4]))
    model = read_model(proto)
    assert [info.optional for info in model.inputs] == [False, True]
    np.testing.assert_array_equal(model(X)["y"], X @ DENSE)
    np.testing.assert_array_equal(model(X, DENSE + 1)["y"], X @ (DENSE + 1))


def test_weights_of_a_layer() -> None:
    W = np.zeros((1, 3, 3), np.float32)
    W[0, 1, 2] = 0.5
    recurrent = node("RNN", ["x", "W", "R"], ["Y"], hidden_size=3, name="rnn")
    proto = simple_model([recurrent], {"x": X[:, None]}, ["Y"], {"R": np.zeros((1, 3, 3), np.float32)})
    proto.graph.sparse_initializer.append(sparse([5], VALUES[:1] / 2, (1, 3, 3), "W"))
    layer: Any = read_model(proto).layers["rnn"]
    np.testing.assert_array_equal(layer.weights["W"], W)


@pytest.mark.parametrize("values", [np.zeros(0, np.float32), np.zeros(0)], ids=["float32", "float64"])
def test_no_values(values: Array) -> None:
    proto = product(sparse(np.zeros(0, np.int64), values))
    proto.graph.input[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(values.dtype)
    np.testing.assert_array_equal(read_model(proto)(X.astype(values.dtype))["y"], np.zeros((2, 4)))


WRONG: dict[str, tuple[Any, str]] = {
    "exceed": (sparse([0, 5, 12]), r"has indices outside its dims \[3, 4\]"),
    "before the first": (sparse([-1, 5, 11]), "has indices outside its dims"),
    "beyond an axis": (sparse([[0, 0], [1, 4], [2, 3]]), "has indices outside its dims"),
    "twice": (sparse([0, 5, 5]), "has indices that do not ascend"),
    "in another order": (sparse([[1, 1], [0, 0], [2, 3]]), "has indices that do not ascend"),
    "too few": (sparse([0, 5]), r"has indices int64 \(2,\); expected int64, \[3\] or \[3, 2\]"),
    "of three axes": (sparse(np.zeros((3, 3), np.int64)), r"has indices int64 \(3, 3\); expected"),
    "no integers": (sparse(LINEAR.astype(np.float32)), r"has indices float32 \(3,\); expected int64"),
    "values of two axes": (sparse(LINEAR, VALUES[None]), r"has dims \[3, 4\] and values \(1, 3\); expected \[NNZ\]"),
    "a negative size": (sparse(dims=(3, -4)), r"has dims \[3, -4\]"),
}


@each_row("name", WRONG)
def test_wrong(name: str) -> None:
    tensor, message = WRONG[name]
    with pytest.raises(FormatError, match=f"ONNX model: the sparse tensor 'k' {message}"):
        read_model(product(tensor))


def test_beyond_the_memory_limit(small_limit: None) -> None:
    """Refused before anything is made, though the file is small."""
    with pytest.raises(
        ArgumentError, match=r"sparse tensor 'k' would take \d+ bytes; the sparse tensors of a model may take"
    ):
        read_model(product(sparse(dims=(2**30, 2**30))))
    proto = product(sparse())
    proto.graph.sparse_initializer.append(sparse(name="other"))
    pyrnnx.set_memory_limit(2 * DENSE.nbytes - 1)
    with pytest.raises(ArgumentError, match="sparse tensor 'other' would take 48 bytes on top of 48;"):
        read_model(proto)
    pyrnnx.set_memory_limit(2 * DENSE.nbytes)
    read_model(proto)
