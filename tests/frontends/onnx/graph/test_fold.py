"""Constants of a model, and the model with folded constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import make_graph, make_model, simple_model, value_info
from rows import each_row
from whole_models import Arrays, check_calls

from pyrnnx import load
from pyrnnx.frontends.onnx import constants
from pyrnnx.frontends.onnx.constants import constant_values, fold_constants
from pyrnnx.frontends.onnx.runtime import evaluator
from pyrnnx.testing.numbers import Array

node = helper.make_node
X = np.array([[1.5, -2.0, 3.0]], np.float32)
A = np.array([[0.5, 4.0, -1.0], [2.0, 0.25, 8.0]], np.float32)


def run(model: onnx.ModelProto, given: dict[str, Array]) -> Array:
    (result,) = list(ReferenceEvaluator(model).run(None, given))
    return np.asarray(result)


def constant(name: str, value: Array) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))


AXIS = constant("axis", np.array([0], np.int64))
ZERO = constant("zero", np.array(3, np.int8))
CHAINS: dict[str, tuple[list[onnx.NodeProto], Array]] = {
    "initializer": ([node("Identity", ["a"], ["r"])], A),
    "Constant": ([constant("r", A * 2)], A * 2),
    "Constant of floats": ([node("Constant", [], ["r"], value_floats=[1.5, 2.5])], np.array([1.5, 2.5], np.float32)),
    "Unsqueeze": ([AXIS, node("Unsqueeze", ["a", "axis"], ["r"])], A[np.newaxis]),
    "Transpose": ([node("Transpose", ["a"], ["r"], perm=[1, 0])], A.T),
    "Concat of slices": (
        [
            node("Split", ["a"], ["s", "t"], axis=0, num_outputs=2),
            node("Concat", ["t", "s"], ["r"], axis=0),
        ],
        A[::-1],
    ),
    "Cast": ([node("Cast", ["h"], ["r"], to=onnx.TensorProto.FLOAT)], A),
    "DequantizeLinear": (
        [ZERO, constant("scale", np.array(0.5, np.float32)), node("DequantizeLinear", ["q", "scale", "zero"], ["r"])],
        np.array([[-1.0, 1.0]], np.float32),
    ),
    "Shape of a constant": ([node("Shape", ["a"], ["r"])], np.array([2, 3])),
}
CONSTANTS: dict[str, Array] = {"a": A, "h": A.astype(np.float16), "q": np.array([[1, 5]], np.int8)}


def model_of(nodes: Sequence[onnx.NodeProto], opset: int = 18) -> onnx.ModelProto:
    return simple_model(nodes, {"x": X}, ["r"], CONSTANTS, opset)


@each_row("name", CHAINS)
def test_chains(name: str) -> None:
    nodes, expected = CHAINS[name]
    model = model_of(nodes)
    model.graph.output[0].CopyFrom(value_info("r", expected))
    before = model.SerializeToString()
    found = constant_values(model, ["r"])["r"]
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)
    folded = fold_constants(model)
    assert len(folded.graph.node) == 0
    assert [one.name for one in folded.graph.initializer] == ["r"]
    onnx.checker.check_model(folded, full_check=True)
    np.testing.assert_array_equal(run(folded, {"x": X}), expected)
    assert model.SerializeToString() == before


VARIABLE: dict[str, list[onnx.NodeProto]] = {
    "an input": [node("Add", ["x", "a"], ["r"])],
    "random": [node("RandomNormalLike", ["a"], ["r"])],
    "random before": [node("RandomUniform", [], ["s"], shape=[2]), node("Shape", ["s"], ["r"])],
    "unknown domain": [node("Add", ["a", "a"], ["r"], domain="test")],
    "unknown operator": [node("Nonsense", ["a"], ["r"])],
    "one that fails": [node("MatMul", ["a", "a"], ["r"])],
    "recurrent": [node("RNN", ["a", "a", "a"], ["r"])],
    "a sequence": [node("SequenceConstruct", ["a", "a"], ["r"])],
}


@each_row("name", VARIABLE)
def test_not_constant(name: str) -> None:
    model = simple_model(VARIABLE[name], {"x": X}, ["r"], CONSTANTS, domains={"test": 1})
    assert constant_values(model, ["r", "nowhere"]) == {}
    assert list(fold_constants(model).graph.node) == list(model.graph.node)


@each_row("operator", ["Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"])
def test_random_numbers_are_not_constant(operator: str) -> None:
    constants = {"a": np.full((2, 3), 0.5, np.float32)}  # as Bernoulli takes it, too
    assert constant_values(simple_model([node(operator, ["a"], ["r"])], {"x": X}, ["r"], constants), ["r"]) == {}


def test_constants_of_a_model_take_a_part_of_the_memory() -> None:
    """Each would fit, all of them do not: so much more than what the file has is computed in every call."""
    names = [f"r{k}" for k in range(4)]
    nodes = [node("Expand", ["one", "size"], [name]) for name in names]
    constants = {"one": np.ones(1, np.float32), "size": np.array([2**21])}
    assert sorted(constant_values(simple_model(nodes, {"x": X}, names, constants), names)) == names[:1]


def test_default_of_an_input_is_not_constant() -> None:
    model = simple_model([node("Add", ["a", "a"], ["r"])], {"a": A}, ["r"], {"a": A})
    assert constant_values(model, ["a", "r"]) == {}
    assert len(fold_constants(model).graph.node) == 1


def test_only_what_is_needed_stays() -> None:
    nodes = [
        node("Add", ["a", "b"], ["sum"]),
        node("Mul", ["x", "sum"], ["r"]),
        node("Mul", ["x", "b"], ["dead"]),
    ]
    model = simple_model(nodes, {"x": X}, ["r"], {"a": A, "b": A + 1, "unused": A})
    model.graph.value_info.append(onnx.ValueInfoProto(name="dead"))
    folded = fold_constants(model).graph
    assert [one.op_type for one in folded.node] == ["Mul"]
    assert [one.name for one in folded.initializer] == ["sum"]
    assert len(folded.value_info) == 0


def test_large_results_stay_computed() -> None:
    """Weights in few bits are not blown up, and neither is what comes after them; shapes of them are folded."""
    weights = np.arange(-8, 8, dtype=np.int8).reshape(4, 4)
    nodes = [
        node("Cast", ["w8"], ["w"], to=onnx.TensorProto.FLOAT),
        node("Sub", ["w", "three"], ["centred"]),
        node("Shape", ["centred"], ["shape"]),
        node("Expand", ["three", "shape"], ["large"]),
        node("Transpose", ["w8"], ["turned"]),
        node("Add", ["centred", "large"], ["s"]),
        node("Cast", ["turned"], ["t"], to=onnx.TensorProto.FLOAT),
        node("Add", ["s", "t"], ["u"]),
        node("Add", ["u", "x"], ["r"]),
    ]
    x = np.ones((4, 4), np.float32)
    model = simple_model(nodes, {"x": x}, ["r"], {"w8": weights, "three": np.array([3], np.float32)})
    folded = fold_constants(model, largest=4)
    assert [one.op_type for one in folded.graph.node] == ["Cast", "Sub", "Expand", "Add", "Cast", "Add", "Add"]
    sizes = {one.name: tuple(one.dims) for one in folded.graph.initializer}
    assert sizes == {"w8": (4, 4), "three": (1,), "shape": (2,), "turned": (4, 4)}
    assert len(fold_constants(model, largest=16).graph.node) == 1
    for one in (model, folded, fold_constants(model)):
        np.testing.assert_array_equal(run(one, {"x": x}), weights + weights.T + x)


def branches() -> onnx.ModelProto:
    """y = x + (2 * a) + local if c else x - a; both branches call their values by the same names."""
    then_branch = make_graph(
        [
            node("Add", ["a", "a"], ["v"]),
            node("Add", ["v", "local"], ["w"]),
            node("Add", ["x", "w"], ["y"]),
        ],
        {},
        ["y"],
        {"local": A * 10},
    )
    else_branch = make_graph([node("Neg", ["a"], ["v"]), node("Add", ["x", "v"], ["y"])], {}, ["y"])
    nodes = [node("If", ["c"], ["r"], then_branch=then_branch, else_branch=else_branch)]
    return simple_model(nodes, {"x": X, "c": np.array(True)}, ["r"], {"a": A})


def added(addend: Array, feeds: Arrays) -> list[Array]:
    return [feeds["x"] + addend]


def test_bodies_are_folded() -> None:
    folded = fold_constants(branches())
    (found,) = folded.graph.node
    bodies = {one.name: one.g for one in found.attribute}
    assert {name: [n.op_type for n in body.node] for name, body in bodies.items()} == {
        "then_branch": ["Add"],
        "else_branch": ["Add"],
    }
    assert [one.name for one in bodies["then_branch"].initializer] == ["w"]
    assert len(folded.graph.initializer) == 0
    for condition, addend in ((True, 12 * A), (False, -A)):
        given = {"x": X, "c": np.array(condition)}
        np.testing.assert_array_equal(run(folded, given), X + addend)
        check_calls(load(branches()), partial(added, addend), given, atol=1e-6)


def test_what_a_body_needs_stays() -> None:
    model = branches()
    model.graph.initializer.append(onnx.numpy_helper.from_array(A, "outer"))
    bodies = {one.name: one.g for one in model.graph.node[0].attribute}
    bodies["then_branch"].node[2].input[1] = "outer"
    assert "outer" in {one.name for one in fold_constants(model).graph.initializer}


def test_functions_are_inlined() -> None:
    body = [node("Neg", ["p"], ["n"]), node("Add", ["n", "q"], ["s"])]
    imports = [helper.make_opsetid("", 17)]
    function = helper.make_function("test", "Difference", ["p", "q"], ["s"], body, imports)
    nodes = [node("Difference", ["a", "b"], ["d"], domain="test"), node("Add", ["d", "x"], ["r"])]
    model = simple_model(nodes, {"x": X}, ["r"], {"a": A, "b": A * 3}, domains={"test": 1}, functions=[function])
    np.testing.assert_array_equal(constant_values(model, ["d"])["d"], A * 2)
    folded = fold_constants(model)
    assert [one.op_type for one in folded.graph.node] == ["Add"]
    assert len(folded.functions) == 0


def test_unsorted_nodes_are_sorted() -> None:
    nodes = [node("Add", ["v", "x"], ["r"]), node("Mul", ["u", "x"], ["v"]), node("Neg", ["x"], ["u"])]
    folded = fold_constants(simple_model(nodes, {"x": X}, ["r"]))
    assert [one.op_type for one in folded.graph.node] == ["Neg", "Mul", "Add"]


def test_each_value_is_computed_once_and_chains_may_be_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain in which each value is used twice: 2^3000 visits, or a recursion of depth 3000, would not end well."""
    nodes = [node("Sub", [f"v{k}", f"v{k}"], [f"v{k + 1}"]) for k in range(3000)]
    model = simple_model([*nodes, node("Add", ["v3000", "x"], ["r"])], {"x": X}, ["r"], {"v0": X})
    computed: list[str] = []
    evaluate = evaluator.evaluate_node

    def counted(one: onnx.NodeProto, *rest: object) -> object:
        computed.append(one.output[0])
        return evaluate(one, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(constants, "evaluate_node", counted)
    folded = fold_constants(model)
    assert len(folded.graph.node) == 1
    assert sorted(computed) == sorted(one.output[0] for one in nodes)
    computed.clear()
    constant_values(model, ["v7"])
    assert computed == [f"v{k}" for k in range(1, 8)]


def test_what_belongs_to_a_model_is_kept() -> None:
    graph = make_graph([node("Add", ["x", "a"], ["r"])], {"x": X}, ["r"], {"a": A})
    model = make_model(graph)
    model.producer_name, model.doc_string = "somebody", "about it"
    helper.set_model_props(model, {"key": "value"})
    folded = fold_constants(model)
    assert (folded.producer_name, folded.doc_string, folded.ir_version) == ("somebody", "about it", 8)
    assert [(one.key, one.value) for one in folded.metadata_props] == [("key", "value")]
    assert folded == model
