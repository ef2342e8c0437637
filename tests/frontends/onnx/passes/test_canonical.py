"""Names of bodies that hide others, and nodes in any order, as ONNX Runtime takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from both_doors import run_both, weights_like
from onnx import helper
from onnx_models import make_graph, simple_model
from rows import each_row

from pyrnnx import FormatError, reference
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.graph.walk import Graph
from pyrnnx.frontends.onnx.passes import canonical
from pyrnnx.testing.numbers import Array

node = helper.make_node
H = 4
X = weights_like(0, x=(5, 2, H))["x"]
GRU = weights_like(1, W=(1, 3 * H, H), R=(1, 3 * H, H))
COUNTS: dict[str, Any] = {"three": np.array(3), "two": np.array(2), "axis": np.array([1])}
STATE = {"k": np.array(0), "go": np.array(True), "h": np.zeros((1, 2, H), np.float32)}
Sample = tuple[onnx.ModelProto, dict[str, Array], list[str]]


def step(prefix: str = "", *nodes: Any) -> onnx.GraphProto:
    """One step of a decoder, with the names that each of the bodies of a table recogniser has."""
    state = f"{prefix}h_next"
    cell = node("GRU", ["x", "W", "R", "", "", "h"], ["", state], hidden_size=H)
    ends = [node("Identity", ["go"], [f"{prefix}on"]), node("Neg", [state], [f"{prefix}out"])]
    return make_graph([*(nodes or [cell]), *ends], STATE, [f"{prefix}on", state, f"{prefix}out"])


def loop(state: str, outputs: list[str], body: onnx.GraphProto, count: str = "three", name: str = "") -> Any:
    return node("Loop", [count, "", state], outputs, body=body, name=name)


def around(nodes: list[Any], outputs: list[str], constants: dict[str, Any] | None = None) -> onnx.ModelProto:
    """The graph itself defines `h` and `go`, which inputs of the bodies hide."""
    first = [node("GRU", ["x", "W", "R"], ["y", "h"], hidden_size=H, name="first"), node("Identity", ["flag"], ["go"])]
    inputs = {"x": X, "flag": np.array(True)}
    return simple_model([*first, *nodes], inputs, ["y", *outputs], {**GRU, **COUNTS, **(constants or {})})


def nested() -> Sample:
    """Inputs of the inner body hide those of the outer one, which hide values of the graph."""
    inner = [
        node("GRU", ["x", "W", "R", "", "", "h"], ["", "h1"], hidden_size=H),
        loop("h1", ["h_next", "hs"], step("inner_"), "two"),
    ]
    nodes = [loop("h", ["a", "as"], step("", *inner)), node("Sub", ["a", "h"], ["z"])]
    inputs = {"x": X, "flag": np.array(True)}
    return around(nodes, ["a", "as", "z"]), inputs, ["first", "a/body/h1", "a/body/h_next/body/inner_h_next"]


def scans() -> Sample:
    """Two Scan nodes whose bodies are equal, and name their inputs as values of the graph."""
    body = make_graph(
        [node("RNN", ["y3", "V", "V", "", "", "h"], ["", "h_next"], hidden_size=H), node("Neg", ["h_next"], ["out"])],
        {"h": STATE["h"], "y3": STATE["h"]},
        ["h_next", "out"],
    )
    first = node("Unsqueeze", ["x", "axis"], ["y3"])
    nodes = [
        first,
        node("Scan", ["h", "y3"], ["a", "as"], body=body, num_scan_inputs=1),
        node("Scan", ["a", "y3"], ["b", "bs"], body=body, num_scan_inputs=1),
    ]
    constants = weights_like(3, V=(1, H, H))
    inputs = {"x": X, "flag": np.array(True)}
    return around(nodes, ["a", "as", "b", "bs"], constants), inputs, []


SAMPLES: tuple[Callable[[], Sample], ...] = (nested, scans)


@each_row("make", SAMPLES)
def test_names_that_hide_others(make: Callable[[], Sample]) -> None:
    proto, inputs, layers = make()
    run_both(proto, inputs, {**inputs, "x": X[:2]}, layers=layers or None)


def test_values_that_hide_others() -> None:
    """Initializers and results of nodes, which ONNX Runtime does not take, have the scopes of inputs."""
    weights = {seed: weights_like(seed, W=(1, 3 * H, H), R=(1, 3 * H, H)) for seed in (5, 6)}
    bodies: dict[str, Any] = {
        key: make_graph([node("GRU", ["x", "W", "R"], ["y"], hidden_size=H)], {}, ["y"], weights[seed])
        for seed, key in zip(weights, ("then_branch", "else_branch"), strict=True)
    }
    model = read_model(around([node("If", ["flag"], ["z"], **bodies)], ["z"]))
    assert list(model.layers) == ["first", "z/else_branch/y#2", "z/then_branch/y#3"]
    for flag, seed in ((True, 5), (False, 6)):
        results = model(X, np.array(flag))
        np.testing.assert_allclose(results["z"], reference.gru(X, **weights[seed])[0], atol=1e-6)
        np.testing.assert_allclose(results["y"], reference.gru(X, **GRU)[0], atol=1e-6)


def test_nodes_in_any_order() -> None:
    """The nodes of a graph and of a body are sorted; the model itself stays as it is."""
    body = make_graph([node("Neg", ["q"], ["p"]), node("Abs", ["y"], ["q"])], {}, ["p"])
    nodes = [
        node("If", ["c"], ["z"], then_branch=body, else_branch=body),
        node("Neg", ["t"], ["y"]),
        node("Relu", ["x"], ["t"]),
    ]
    bodies = nodes[0].attribute
    bodies[1].g.node[0].output[0] = bodies[1].g.output[0].name = "other"
    proto = simple_model(nodes, {"x": X, "c": np.array(True)}, ["z"])
    model, graph = canonical(proto, Graph(proto.graph), "ONNX model")
    assert [one.op_type for one in model.graph.node] == ["Relu", "Neg", "If"]
    assert [one.op_type for one in graph.node] == ["Relu", "Neg", "If"]
    assert [[one.op_type for one in a.g.node] for a in model.graph.node[2].attribute] == [["Abs", "Neg"]] * 2
    assert [one.op_type for one in proto.graph.node] == ["If", "Neg", "Relu"]


def test_sparse_initializers() -> None:
    """Both are renamed with the annotations of quantized values."""
    values = onnx.numpy_helper.from_array(np.array([2.5], np.float32), "s")
    indices = onnx.numpy_helper.from_array(np.array([3]), "")
    sparse = helper.make_sparse_tensor(values, indices, [H])
    body = make_graph([node("Add", ["x", "s"], ["p"])], {}, ["p"])
    body.sparse_initializer.append(sparse)
    body.quantization_annotation.add(tensor_name="s")
    other = make_graph([node("Neg", ["x"], ["q"])], {}, ["q"])
    nodes = [node("Neg", ["x"], ["s"]), node("If", ["c"], ["y"], then_branch=body, else_branch=other)]
    proto = simple_model(nodes, {"x": X, "c": np.array(True)}, ["y", "s"])
    model, _ = canonical(proto, Graph(proto.graph), "ONNX model")
    (then,) = (a.g for a in model.graph.node[1].attribute if a.name == "then_branch")
    assert then.sparse_initializer[0].values.name == then.quantization_annotation[0].tensor_name == "s#2"
    assert list(then.node[0].input) == ["x", "s#2"]


@pytest.mark.parametrize("name", ["a", "b"])
def test_names_defined_twice_in_one_graph(name: str) -> None:
    body = make_graph([node("Neg", ["x"], [name]), node("Abs", ["x"], ["a"]), node("Relu", ["x"], ["b"])], {}, ["a"])
    nodes = [node("If", ["c"], ["y"], then_branch=body, else_branch=body, name="choice")]
    proto = simple_model(nodes, {"x": X, "c": np.array(True)}, ["y"])
    with pytest.raises(FormatError, match=f"If 'choice': .*the output '{name}' is defined twice"):
        canonical(proto, Graph(proto.graph), "ONNX model")
