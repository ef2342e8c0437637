"""Sessions of ONNX Runtime get the arrays of constants and do not keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import value_info

from pyrnnx.errors import FormatError
from pyrnnx.frontends.onnx.runtime.session import NotRunnable, new_session, nodes_model
from pyrnnx.testing.numbers import Array

pytest.importorskip("onnxruntime")
node = helper.make_node
LIMIT = 2**30


def drawn(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


CASES: dict[str, tuple[onnx.NodeProto, Array, Array]] = {
    "Add": (node("Add", ["x", "w"], ["y"]), drawn(1, 40), drawn(30, 40)),
    "MatMul": (node("MatMul", ["x", "w"], ["y"]), drawn(3, 40), drawn(40, 48)),
    "Gemm": (node("Gemm", ["x", "w"], ["y"], transB=1), drawn(3, 40), drawn(48, 40)),
    "Conv": (node("Conv", ["x", "w"], ["y"]), drawn(1, 16, 9), drawn(32, 16, 3)),
    "Gather": (node("Gather", ["w", "x"], ["y"]), np.array([7, 2]), drawn(30, 40)),
    "of float16": (node("Gather", ["w", "x"], ["y"]), np.array([7, 2]), drawn(30, 40).astype(np.float16)),
    "of integers": (node("Add", ["x", "w"], ["y"]), np.array([7]), np.arange(300)),
    "of bool": (node("Gather", ["w", "x"], ["y"]), np.array([7, 2]), drawn(30, 40) > 0),
    "small": (node("Add", ["x", "w"], ["y"]), drawn(1, 4), drawn(3, 4)),
}


def session_for(one: onnx.NodeProto, x: Array, w: Any) -> Any:
    model = nodes_model([one], ["x"], {"x": value_info("x", x).type}, ["y"], {}, {"": 17})
    return new_session("test", model, {"w": w}, 1, LIMIT)


@pytest.mark.parametrize("form", ["array", "tensor of another name"])
@pytest.mark.parametrize("name", CASES)
def test_constants_are_copied(name: str, form: str) -> None:
    one, x, w = CASES[name]
    whole = nodes_model([one], ["x"], {"x": value_info("x", x).type}, ["y"], {"w": w}, {"": 17})
    (expected,) = new_session("test", whole, {}, 1, LIMIT).run(None, {"x": x})
    mine = w.copy()
    session = session_for(one, x, mine if form == "array" else numpy_helper.from_array(w, "other"))
    mine[...] = 0  # whoever frees it later does the same
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)


def test_a_transposed_array() -> None:
    one, x, w = CASES["MatMul"]
    expected = session_for(one, x, w).run(None, {"x": x})[0]
    np.testing.assert_array_equal(session_for(one, x, np.asfortranarray(w)).run(None, {"x": x})[0], expected)


def test_a_constant_that_cannot_be_read() -> None:
    one, x, w = CASES["MatMul"]
    tensor = numpy_helper.from_array(w, "w")
    tensor.raw_data = tensor.raw_data[:-1]
    with pytest.raises(FormatError, match="test: the tensor 'w' cannot be read"):
        session_for(one, x, tensor)


def test_a_type_that_the_operator_does_not_take() -> None:
    with pytest.raises(NotRunnable):
        session_for(*CASES["MatMul"][:2], CASES["MatMul"][2].astype(np.float16))
