"""The custom operator Python: functions inside sessions of ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from sessions import BOOL, FLOAT, INT64, graph, model, python, session

from pyrnnx import ArgumentError
from pyrnnx.layers import custom_operators
from pyrnnx.layers.custom_operators import ELEMENT_TYPES, Handle, original_error

STRING = TensorProto.STRING


def function_session(function: Any) -> Any:
    """A session of one function of x, in float32."""
    handle = Handle(function)
    return session(model([python(handle, ["x"], ["y"])], [("x", FLOAT)], [("y", FLOAT)]))


def test_all_element_types() -> None:
    """A function gets and gives arrays of every dtype that ONNX Runtime passes in and out as an array."""
    for name in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                 "uint64", "bool"):  # fmt: skip
        array = (np.arange(6).reshape(2, 3) % 2).astype(name)
        handle = Handle(lambda x: [x.T])
        kind = ELEMENT_TYPES[name]
        ran = session(model([python(handle, ["x"], ["y"])], [("x", kind)], [("y", kind)]))
        for given in (array, array[:0], array[0]):
            (result,) = ran.run(None, {"x": given})
            assert result.dtype == array.dtype, name
            assert np.array_equal(result, np.asarray(given).T), name


def test_several_results() -> None:
    """Types of results inside come from value_info; what is not wanted may be None."""
    handle = Handle(lambda x: [x + 1, None, x.astype(int)])
    nodes = [python(handle, ["x"], ["s", "", "i"]), helper.make_node("Identity", ["i"], ["j"])]
    ran = session(model(nodes, [("x", FLOAT)], [("s", FLOAT), ("j", INT64)], values=[("i", INT64)]))
    s, j = ran.run(None, {"x": np.array([1.5, -2.0], np.float32)})
    assert s.tolist() == [2.5, -1.0]
    assert j.tolist() == [1, -2]


def test_strings_are_refused() -> None:
    handle = Handle(lambda words: [words])
    ran = session(model([python(handle, ["w"], ["y"])], [("w", STRING)], [("y", STRING)]))
    with pytest.raises(Exception, match="elements of ONNX type 8"):
        ran.run(None, {"w": np.array(["a"])})


def test_inputs_cannot_be_written() -> None:
    def write(x: Any) -> Any:
        x[0] = 1

    ran = function_session(write)
    with pytest.raises(Exception, match="read-only"):
        ran.run(None, {"x": np.zeros(2, np.float32)})


def test_in_bodies_with_captured_values() -> None:
    handle = Handle(lambda i, x: [x * i])
    nodes = [
        helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
        python(handle, ["f", "x"], ["y"]),
        helper.make_node("Identity", ["going"], ["going_on"]),
    ]
    body = graph(nodes, [("i", INT64, []), ("going", BOOL, [])], [("going_on", BOOL), ("y", FLOAT)])
    loop = helper.make_node("Loop", ["n", ""], ["ys"], body=body)
    ran = session(model([loop], [("n", INT64), ("x", FLOAT)], [("ys", FLOAT)]))
    for n in (3, 1, 3):
        (ys,) = ran.run(None, {"n": np.array(n), "x": np.ones(2, np.float32)})
        assert ys.tolist() == [[float(i)] * 2 for i in range(n)]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: [], "returned 0 results; expected 1"),
        (lambda x: [x.astype(np.float64)], "output 0 has dtype float64; expected float32"),
        (lambda x: 1 / 0, "division by zero"),
        (lambda x: 5, "object of type 'int' has no len"),
    ],
)
def test_functions_that_fail(function: Any, message: Any) -> None:
    ran = function_session(function)
    with pytest.raises(Exception, match=message):
        ran.run(None, {"x": np.zeros(2, np.float32)})


@pytest.mark.parametrize("kind", [ArgumentError, MemoryError, KeyboardInterrupt])
def test_the_exception_itself_is_found(kind: Any) -> None:
    error = kind("what is wrong")

    def fail(x: Any) -> Any:
        raise error

    ran = function_session(fail)
    with pytest.raises(Exception, match="what is wrong") as caught:
        ran.run(None, {"x": np.zeros(2, np.float32)})
    assert original_error(caught.value) is error


def test_handles() -> None:
    handle = Handle(lambda x: [x])
    proto = model([python(handle, ["x"], ["y"])], [("x", FLOAT)], [("y", FLOAT)])
    ran = session(proto)
    del handle
    assert ran.run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [1, 1]
    with pytest.raises(Exception, match="names no function of this process"):
        session(proto)
    assert original_error(ValueError("another")) is None
    assert custom_operators.library_path().endswith((".so", ".pyd"))
