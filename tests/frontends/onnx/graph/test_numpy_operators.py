"""Constants computed by NumPy: the same as by onnx's ReferenceEvaluator, or left to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_models import simple_model

from pyrnnx.frontends.onnx.graph import numpy_operators
from pyrnnx.frontends.onnx.graph.numpy_operators import TABLE
from pyrnnx.testing.numbers import Array

node = helper.make_node
A = np.array([[1.5, -2.0, np.nan], [np.inf, -0.0, 8.0]], np.float32)
B = np.array([[0.5, 0.0, 3.0]], np.float32)
C = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
OPSET = 17
Case = tuple[str, list[Array], dict[str, Any], int]


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def tensor(value: Array) -> onnx.TensorProto:
    return numpy_helper.from_array(value)


PLAIN: dict[str, Case] = {
    "Add": ("Add", [A, B], {}, OPSET),
    "Add of no axes": ("Add", [np.array(2, np.int32), np.array(3, np.int32)], {}, OPSET),
    "Add that wraps around": ("Add", [np.array([200, 7], np.uint8), np.array([100], np.uint8)], {}, OPSET),
    "Cast to integers": ("Cast", [np.array([1.9, -1.9], np.float32)], {"to": onnx.TensorProto.INT64}, OPSET),
    "Cast to float16": ("Cast", [C], {"to": onnx.TensorProto.FLOAT16}, OPSET),
    "Cast to bool": ("Cast", [B], {"to": onnx.TensorProto.BOOL}, 6),
    "Concat": ("Concat", [C, C[:, :1]], {"axis": -2}, OPSET),
    "Constant of a number": ("Constant", [], {"value_float": 0.1}, OPSET),
    "Constant of integers": ("Constant", [], {"value_ints": [1, -2]}, OPSET),
    "ConstantOfShape": ("ConstantOfShape", [ints(2, 0, 3)], {}, OPSET),
    "ConstantOfShape of a value": ("ConstantOfShape", [ints(2, 3)], {"value": tensor(np.array([7], np.int8))}, OPSET),
    "Div": ("Div", [A, B], {}, OPSET),
    "Div of integers": ("Div", [C, ints(5)], {}, OPSET),
    "Equal": ("Equal", [A, B], {}, OPSET),
    "Expand": ("Expand", [B, ints(2, 1)], {}, OPSET),
    "Gather": ("Gather", [C, ints(-1, 0)], {"axis": 1}, OPSET),
    "Gather one": ("Gather", [ints(5, 6), np.array(1)], {}, OPSET),
    "Identity": ("Identity", [A], {}, 1),
    "Mul": ("Mul", [A, B], {}, OPSET),
    "Range": ("Range", [np.array(3), np.array(-4), np.array(-2)], {}, OPSET),
    "Range of floats": ("Range", [*np.array([[0], [1], [0.3]], np.float32).reshape(3)], {}, OPSET),
    "Reshape": ("Reshape", [C, ints(0, -1, 2)], {}, OPSET),
    "Shape": ("Shape", [C], {}, OPSET),
    "Slice": ("Slice", [C, ints(-1, 0), ints(-100, 2), ints(2, -2), ints(-2, 1)], {}, OPSET),
    "Slice of the first axes": ("Slice", [C, ints(0, 1), ints(1, 2**62)], {}, 10),
    "Squeeze": ("Squeeze", [C[:1, :, :1], ints(0, 2)], {}, OPSET),
    "Squeeze by an attribute": ("Squeeze", [C[:1, :, :1]], {"axes": [-1]}, 11),
    "Squeeze all": ("Squeeze", [C[:1, :1]], {}, OPSET),
    "Sub": ("Sub", [A, B], {}, OPSET),
    "Transpose": ("Transpose", [C], {}, OPSET),
    "Transpose by perm": ("Transpose", [C], {"perm": [1, 2, 0]}, OPSET),
    "Unsqueeze": ("Unsqueeze", [C, ints(0, 3)], {}, OPSET),
    "Unsqueeze by an attribute": ("Unsqueeze", [C], {"axes": [1, 2]}, 11),
    "Where": ("Where", [A > 0, A, B], {}, OPSET),
}


def node_of(case: Case) -> tuple[onnx.NodeProto, dict[str, Array], int]:
    operator, arrays, attributes, opset = case
    inputs = {f"i{k}": np.asarray(one) for k, one in enumerate(arrays)}
    return node(operator, list(inputs), ["r"], **attributes), inputs, opset


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy in the evaluator, about infinities
@pytest.mark.parametrize("name", PLAIN)
def test_the_same_as_the_evaluator(name: str) -> None:
    one, inputs, opset = node_of(PLAIN[name])
    graph = onnx.GraphProto(node=[one], output=[onnx.ValueInfoProto(name="r")])
    graph.input.extend(onnx.ValueInfoProto(name=key) for key in inputs)
    results: Any = ReferenceEvaluator(graph, opsets={"": opset}).run(None, inputs)
    expected = np.asarray(results[0])
    found = numpy_operators.compute(one, list(inputs.values()), opset)
    assert found is not None
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_every_row_has_a_case_and_an_opset_of_its_operator() -> None:
    assert {case[0] for case in PLAIN.values()} == TABLE.keys()
    for name, row in TABLE.items():
        assert onnx.defs.get_schema(name, row.first_opset).since_version <= row.first_opset
        known = onnx.defs.get_schema(name, onnx.defs.onnx_opset_version()).attributes.keys()
        assert set(row.attributes) - {"axes"} <= known


HALF = np.array([1.5], np.float16)
LEFT: dict[str, Case] = {
    "an operator that is not there": ("Neg", [A], {}, OPSET),
    "an opset before the operator": ("Range", [np.array(3), np.array(4), np.array(1)], {}, 10),
    "other types": ("Add", [A, B.astype(np.float64)], {}, OPSET),
    "texts": ("Concat", [np.array(["a"]), np.array([1])], {"axis": 0}, OPSET),
    "Add-6, with an axis": ("Add", [A, B], {"broadcast": 1, "axis": 0}, 6),
    "allowzero": ("Reshape", [C[:0], ints(0, 3)], {"allowzero": 1}, OPSET),
    "a part of a shape": ("Shape", [C], {"start": 1}, OPSET),
    "an integer that is rounded": ("Div", [ints(-7), ints(2)], {}, OPSET),
    "by zero": ("Div", [ints(7), ints(0)], {}, OPSET),
    "halves": ("Range", [HALF, HALF * 3, HALF], {}, OPSET),
    "Cast to text": ("Cast", [A], {"to": onnx.TensorProto.STRING}, OPSET),
    "Cast to bfloat16": ("Cast", [A], {"to": onnx.TensorProto.BFLOAT16}, OPSET),
    "axes out of order": ("Unsqueeze", [C, ints(3, 0)], {}, OPSET),
    "an axis too far": ("Concat", [C, C], {"axis": 3}, OPSET),
    "no step": ("Slice", [C, ints(0), ints(1), ints(0), ints(0)], {}, OPSET),
    "no such row": ("Gather", [C, ints(9)], {}, OPSET),
    "sizes that do not fit": ("Reshape", [C, ints(5, -1)], {}, OPSET),
    "several values": ("ConstantOfShape", [ints(2)], {"value": tensor(np.ones(2, np.float32))}, OPSET),
    "an attribute of another type": ("Transpose", [C], {"perm": "210"}, OPSET),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_to_the_evaluator(name: str) -> None:
    one, inputs, opset = node_of(LEFT[name])
    assert numpy_operators.compute(one, list(inputs.values()), opset) is None


def test_an_input_that_is_left_out_is_left_to_the_evaluator() -> None:
    one = node("Slice", ["x", "s", "e", "", "t"], ["r"])
    assert numpy_operators.compute(one, [C, ints(0), ints(1), None, ints(1)], OPSET) is None


def test_a_model_is_loaded_without_onnx_reference(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    nodes = [node("Unsqueeze", ["a", "axes"], ["b"]), node("Concat", ["b", "b"], ["c"], axis=0)]
    nodes += [node("Add", ["x", "c"], ["r"])]
    model = simple_model(nodes, {"x": A}, ["r"], {"a": B, "axes": ints(0)}, OPSET)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    code = (
        "import sys, numpy, pyrnnx\n"
        f"model = pyrnnx.load({str(path)!r})\n"
        "model(numpy.zeros((2, 3), numpy.float32))\n"
        "print(len(model.plan.rows()), 'onnx.reference' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
