"""Inputs and outputs of common operators, compared with onnx's schemas and shape inference."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import make_graph, simple_model
from rows import each_row

from pyrnnx.errors import FormatError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.graph import signatures
from pyrnnx.frontends.onnx.graph.inference import infer_shapes
from pyrnnx.frontends.onnx.graph.signatures import SIGNATURES, Result, element_types, signature_of
from pyrnnx.frontends.onnx.runtime import types

node = helper.make_node
NEWEST = onnx.defs.onnx_opset_version()
X = np.ones((2, 3), np.float32)
ONLY = {f"tensor({name})": Result[name.upper()] for name in ("bool", "uint8", "int32", "int64")}


@each_row("name", SIGNATURES)
def test_as_the_schemas_say(name: str) -> None:
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    for opset in range(SIGNATURES[name][-1].first_opset, NEWEST + 1):
        signature, schema = signature_of(node(name, [], []), opset), onnx.defs.get_schema(name, opset)
        assert signature is not None
        needed = [one.option == single for one in schema.inputs]
        assert needed == [True] * signature.required + [False] * (len(needed) - signature.required), opset
        result = schema.outputs[0].type_str
        allowed = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}.get(result, [result])
        if signature.result in (Result.FIRST, Result.SECOND):
            assert schema.inputs[signature.result.value].type_str == result, opset
        elif signature.result in ONLY.values():
            assert [ONLY[one] for one in allowed] == [signature.result], opset
        else:
            assert name in ("Cast", "Constant", "ConstantOfShape", "If")


def test_not_of_other_domains_nor_before_the_first_opset() -> None:
    assert signature_of(node("Add", [], [], domain="test"), 17) is None
    assert signature_of(node("Add", [], []), 6) is None
    assert signature_of(node("Nonsense", [], []), 17) is None


HALF = numpy_helper.from_array(np.ones(1, np.float16), "value")
CHOICE: dict[str, Any] = {
    "then_branch": make_graph([node("Cast", ["x"], ["t"], to=TensorProto.INT8)], {}, ["t"]),
    "else_branch": make_graph([node("Cast", ["x"], ["e"], to=TensorProto.INT8)], {}, ["e"]),
}
GRAPHS: dict[str, list[onnx.NodeProto]] = {
    "of the first": [
        node("Add", ["x", "x"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Concat", ["b", "a"], ["c"], axis=0),
    ],
    "of the second": [node("Greater", ["x", "x"], ["a"]), node("Where", ["a", "k", "k"], ["b"])],
    "always the same": [
        node("Equal", ["x", "x"], ["a"]),
        node("Shape", ["x"], ["b"]),
        node("Gather", ["b", "k"], ["c"]),
    ],
    "told": [
        node("Cast", ["x"], ["a"], to=TensorProto.FLOAT16),
        node("Constant", [], ["b"], value=HALF),
        node("ConstantOfShape", ["k"], ["c"]),
        node("ConstantOfShape", ["k"], ["d"], value=HALF),
    ],
    "of all outputs": [node("Split", ["x"], ["a", "b"], axis=0), node("Neg", ["b"], ["c"])],
    "of a body": [node("Equal", ["k", "k"], ["a"]), node("If", ["a"], ["b"], **CHOICE), node("Abs", ["b"], ["c"])],
    "recurrent": [node("RNN", ["x", "w", "w"], ["a", "b"]), node("Tanh", ["b"], ["c"])],
    "of another domain": [
        node("Any", ["x"], ["a"], domain="test"),
        node("Neg", ["x"], ["b"]),
        node("Neg", ["a"], ["c"]),
    ],
}


def elements(graph: onnx.GraphProto) -> dict[str, int]:
    return {one.name: one.type.tensor_type.elem_type for one in (*graph.input, *graph.value_info)}


@each_row("name", GRAPHS)
def test_as_onnx_infers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = {"k": np.array([1]), "w": np.ones((1, 2, 2), np.float32)}
    model = simple_model(GRAPHS[name], {"x": X}, [], constants, domains={"test": 1})
    inferred = types.inferred(model, model.graph, lambda _: 0)
    monkeypatch.setattr(signatures, "element_types", lambda *_: None)
    expected = types.inferred(model, model.graph, lambda _: 0)
    assert elements(inferred) == elements(expected)
    assert len(elements(inferred)) > 3


UNKNOWN: dict[str, Any] = dict.fromkeys(CHOICE, make_graph([node("Hardmax", ["x"], ["m"])], {}, ["m"]))
LEFT: dict[str, Sequence[onnx.NodeProto]] = {
    "an operator that is not there": [node("Hardmax", ["x"], ["a"])],
    "a second output": [node("MaxPool", ["x"], ["a", "b"], kernel_shape=[1])],
    "a Constant of numbers": [node("Constant", [], ["a"], value_floats=[1.0])],
    "in a body": [
        node("Not", ["c"], ["n"]),
        node("If", ["n"], ["a"], **UNKNOWN),
    ],
}


@each_row("name", LEFT)
def test_left_to_onnx(name: str) -> None:
    model = simple_model(LEFT[name], {"x": X, "c": np.array(True)}, [])
    assert element_types(model.graph, 17, {}) is None


@each_row("inputs", [["x"], ["x", ""], ["", "x"], []])
def test_a_missing_input(inputs: list[str]) -> None:
    with pytest.raises(FormatError, match=r"MatMul.*: its input [AB] is missing"):
        read_model(simple_model([node("MatMul", inputs, ["y"])], {"x": X}, ["y"]))


def test_common_operators_need_no_schemas() -> None:
    pytest.importorskip("onnxruntime")
    model = simple_model([node("Add", ["x", "x"], ["a"]), node("Shape", ["a"], ["y"])], {"x": X}, ["y"], opset=17)
    code = (
        "import sys, onnx, pyrnnx\n"
        "def fail(*_, **__): raise AssertionError\n"
        "onnx.defs.get_schema = onnx.shape_inference.infer_shapes = fail\n"
        f"model = pyrnnx.load({model.SerializeToString()!r})\n"
        "print(len(model.plan.rows()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


def test_a_cast_to_no_type_is_not_known() -> None:
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=2**40)
    graph = onnx.helper.make_graph([node], "g", [onnx.helper.make_tensor_value_info("x", 1, [2])], [])
    assert signatures.element_types(graph, 22, {}) is None


@each_row("size", [3, 2**62])
def test_values_of_long_vectors_are_not_inferred(size: int) -> None:
    """onnx would store each: 150 bytes."""
    nodes = [node("Cast", ["x"], ["y"], to=1), node("ConstantOfShape", ["s"], ["z"])]
    inputs = [helper.make_tensor_value_info("x", 7, [size])]
    outputs = [onnx.ValueInfoProto(name=name) for name in "yz"]
    shape = helper.make_tensor("s", 7, [2], [4, 5])
    graph = infer_shapes(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, [shape])), data_prop=True)
    shapes = [[one.dim_value for one in value.type.tensor_type.shape.dim] for value in graph.graph.output]
    assert shapes == [[size], [4, 5]]


@each_row(
    ("operator", "domain", "attributes"),
    [
        ("RegexFullMatch", "", {}),
        ("EyeLike", "", {"dtype": 1}),
        ("LabelEncoder", "ai.onnx.ml", {"keys_int64s": [1], "values_int64s": [2]}),
        ("DictVectorizer", "ai.onnx.ml", {"int64_vocabulary": [1]}),
        ("TreeEnsemble", "ai.onnx.ml", {"tree_roots": [0]}),
    ],
)
def test_types_that_onnx_cannot_infer_without_ending_the_process(operator: str, domain: str, attributes: Any) -> None:
    """In onnx 1.23, inference of these reads the type of the first input, even where its own inference found none."""
    node = helper.make_node(operator, ["a"], ["y"], domain=domain, **attributes)
    relu = helper.make_node("Relu", ["x"], ["z"])
    for other in (
        helper.make_node("Other", ["x"], ["a"], domain="other"),
        helper.make_node("Other", ["x"], ["a"]),  # unknown, or newer than the opset
        helper.make_node("Cast", ["x"], ["a"], to=99),
        helper.make_node("Concat", ["x"], ["a"], axis=7),
        helper.make_node("Constant", [], ["a"]),
    ):
        x, outputs = helper.make_tensor_value_info("x", 1, [2, 3]), [onnx.ValueInfoProto(name=name) for name in "yz"]
        opsets = [helper.make_opsetid(name, version) for name, version in (("", 22), ("ai.onnx.ml", 5), ("other", 1))]
        model = helper.make_model(helper.make_graph([other, node, relu], "g", [x], outputs), opset_imports=opsets)
        before = model.SerializeToString()
        for options in ({}, {"data_prop": True}):
            inferred = infer_shapes(model, **options)
            assert [value.type.tensor_type.elem_type for value in inferred.graph.output] == [0, 1]
            assert [one.op_type for one in inferred.graph.node] == [other.op_type, operator, "Relu"]
        assert model.SerializeToString() == before


def test_types_of_operators_with_declared_inputs() -> None:
    node = helper.make_node("EyeLike", ["x"], ["y"], dtype=7)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, [2, 3])], [onnx.ValueInfoProto(name="y")]
    )
    inferred = infer_shapes(helper.make_model(graph)).graph.output[0].type.tensor_type
    assert (inferred.elem_type, [size.dim_value for size in inferred.shape.dim]) == (7, [2, 3])
