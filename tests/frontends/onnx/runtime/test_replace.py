"""The pass that replaces nodes by custom operators."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import LSTM, make_graph, simple_model, weights_of

from pyrnnx.errors import UnsupportedError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.runtime.replace import NotReplaceable, Replaced, kind_of, replaced
from pyrnnx.frontends.onnx.runtime.settings import Settings
from pyrnnx.frontends.onnx.runtime.types import Scope, contents_of, inferred, types_of
from pyrnnx.layers.custom_operators import DOMAIN

pytest.importorskip("onnxruntime")
node = helper.make_node
X = np.linspace(-1, 1, LSTM.T * LSTM.N * LSTM.I, dtype=np.float32).reshape(LSTM.T, LSTM.N, LSTM.I)
GIVEN: dict[str, Any] = {
    "x": X,
    "d": X.astype(np.float64),
    "c": np.array(True),
    "h": np.ones((1, LSTM.N, LSTM.H), np.float32),
    "lens": np.full(LSTM.N, 2, np.int32),
    "w": np.ones((1, 4 * LSTM.H, LSTM.I), np.float32),
}
CONSTANTS: dict[str, Any] = {**weights_of(LSTM), "three": np.array(3), "s": np.array([1, 1, 0.6], np.float32)}


def lstm(inputs: Sequence[str], outputs: Sequence[str], name: str = "lstm") -> onnx.NodeProto:
    return node("LSTM", inputs, outputs, hidden_size=LSTM.H, name=name)


def resize(source: str, result: str, name: str = "") -> onnx.NodeProto:
    """A node that ONNX Runtime must not get."""
    attributes: Any = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    return node("Resize", [source, "", "s"], [result], name=name, **attributes)


def branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    return make_graph(nodes, {}, ["p"])


def choice(then: onnx.GraphProto, other: onnx.GraphProto, name: str = "choice") -> onnx.NodeProto:
    return node("If", ["c"], ["y"], then_branch=then, else_branch=other, name=name)


def loop(*nodes: onnx.NodeProto) -> onnx.NodeProto:
    kinds: tuple[tuple[str, int, list[int]], ...] = (
        ("i", onnx.TensorProto.INT64, []),
        ("go", onnx.TensorProto.BOOL, []),
    )
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), *nodes],
        "body",
        [helper.make_tensor_value_info(*kind) for kind in kinds],
        [helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, []), onnx.ValueInfoProto(name="p")],
    )
    return node("Loop", ["three", ""], ["y"], body=body, name="loop")


def scan_body() -> onnx.GraphProto:
    """A layer, which the evaluator runs with the node around it."""
    names = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "tapq"]
    nodes = [lstm(["x", "W", "R"], ["", "m"]), node("Add", ["t", "m"], ["p"]), node("Add", ["t", "a"], ["q"])]
    return helper.make_graph(nodes, "body", names[:2], names[2:])


def described(graph: onnx.GraphProto) -> str:
    """ "a=Neg(x) y=Recurrent(a)": nodes, with their bodies in braces; those of other domains than pyrnnx in full."""
    texts = []
    for one in graph.node:
        operator = one.op_type if one.domain in ("", DOMAIN) else f"{one.domain}.{one.op_type}"
        bodies = [f"{{{described(attribute.g)}}}" for attribute in one.attribute if attribute.HasField("g")]
        texts.append(f"{','.join(one.output)}={operator}({','.join(one.input)}){''.join(bodies)}")
    return " ".join(texts)


# Nodes that compute y; the nodes of the session.
GRAPHS: dict[str, tuple[list[onnx.NodeProto], str]] = {
    "nothing to replace": ([node("Neg", ["x"], ["a"]), node("Abs", ["a"], ["y"])], "a=Neg(x) y=Abs(a)"),
    "a layer": (
        [node("Neg", ["x"], ["a"]), lstm(["a", "W", "R", "B"], ["b"]), node("Abs", ["b"], ["y"])],
        "a=Neg(x) b=Recurrent(a) y=Abs(b)",
    ),
    "lengths and a state": (
        [lstm(["x", "W", "R", "", "lens", "h"], ["y", "", "z"])],
        "y,,z=Recurrent(x,lens,h)",
    ),
    "a state alone": ([lstm(["x", "W", "R", "B", "", "", "h"], ["", "", "y"])], ",,y=Recurrent(x,,,h)"),
    "weights that are computed": (
        [node("Neg", ["w"], ["v"]), lstm(["x", "v", "R", "", "", "h"], ["", "y"])],
        "v=Neg(w) y=Python(x,v,R,h)",
    ),
    "a node that ONNX Runtime must not get": (
        [resize("x", "a"), node("Neg", ["a"], ["y"])],
        "a=Python(x) y=Neg(a)",
    ),
    "a node that ONNX Runtime has no kernel for": (
        [node("Selu", ["d"], ["a"]), node("Neg", ["a"], ["y"])],
        "a=Python(d) y=Neg(a)",
    ),
    "two of one kind, and one of another": (
        [node("Selu", ["d"], ["a"]), node("Selu", ["a"], ["b"]), node("Selu", ["x"], ["f"]), node("Abs", ["b"], ["y"])],
        "a=Python(d) b=Python(a) y=Abs(b)",
    ),
    "in branches": (
        [choice(branch(lstm(["x", "W", "R"], ["", "p"])), branch(lstm(["x", "W", "R"], ["", "p"])))],
        "y=If(c){,p=Recurrent(x)}{,p=Recurrent(x)}",
    ),
    "a branch in a loop": (
        [loop(node("If", ["c"], ["p"], then_branch=branch(resize("x", "p")), else_branch=branch(resize("x", "p"))))],
        "y=Loop(three,){on=Identity(go) p=If(c){p=Python(x)}{p=Python(x)}}",
    ),
    "a captured value": (
        [node("Neg", ["x"], ["a"]), choice(branch(resize("a", "p")), branch(node("Abs", ["a"], ["p"])))],
        "a=Neg(x) y=If(c){p=Abs(a)}{p=Python(a)}",
    ),
    "a Scan with a state": (
        [node("Scan", ["h", "h"], ["y", "z"], body=scan_body(), num_scan_inputs=1, name="scan")],
        "y,z=Python(h,x)",
    ),
}


def session_graph(nodes: Sequence[onnx.NodeProto], *, results: Sequence[str] = ("y",)) -> Replaced:
    needed = {name for one in nodes for name in GIVEN if f'"{name}"' in str(one)}
    proto = simple_model(nodes, {name: GIVEN[name] for name in GIVEN if name in needed}, results, CONSTANTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = read_model(proto)._programs.program()._replaced
    assert result is not None
    return result


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name: str) -> None:
    nodes, expected = GRAPHS[name]
    assert described(session_graph(nodes).model.graph) == expected


def test_names_are_unique_in_a_graph_and_its_bodies() -> None:
    """ONNX Runtime's messages name nodes: each has a name of its own, its old one unless a node before has that."""
    then = branch(node("Neg", ["a"], ["b"], name="same"), node("Abs", ["b"], ["p"], name="own"))
    other = branch(node("Abs", ["a"], ["p"], name="same"))
    nodes = [node("Neg", ["x"], ["a"], name="it's"), choice(then, other)]
    graph = session_graph(nodes).model.graph
    bodies = [attribute.g for attribute in graph.node[1].attribute]
    names = [one.name for part in (graph, *bodies) for one in part.node]
    assert names == ["it_s", "choice", "same", "b", "own"]


def test_shapes_of_files_are_dropped() -> None:
    proto = simple_model([node("Neg", ["x"], ["a"]), node("Abs", ["a"], ["y"])], {"x": X}, ["y"])
    proto.graph.value_info.append(helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [1, 2]))
    model = read_model(proto)
    np.testing.assert_array_equal(model(X)["y"], np.abs(X))
    program = model._programs.program()._replaced
    assert program is not None
    assert not any(value.type.tensor_type.HasField("shape") for value in program.model.graph.value_info)


def test_rows_name_the_bodies() -> None:
    nodes, _ = GRAPHS["a branch in a loop"]
    rows = session_graph(nodes).rows
    assert [(runner, what) for runner, what, _ in rows] == [
        ("reference evaluator", f"Resize (output 'p'), in {branch} of If (output 'p'), in body of Loop 'loop'")
        for branch in ("else_branch", "then_branch")
    ]


def pass_of(proto: onnx.ModelProto, runtime: str = "auto", excluded: Any = None) -> Replaced:
    settings = Settings("test", {"": 17}, {}, runtime)
    scope = Scope(lambda: inferred(proto, proto.graph, settings.element_type))
    return replaced(settings, proto.graph, contents_of(proto.graph), scope, {}, excluded or {}, 2)


def test_kinds_that_are_excluded() -> None:
    """Nodes with the operator, attributes and types of a node that a session rejected."""
    nodes = [node("Selu", ["d"], ["a"]), node("Selu", ["x"], ["b"]), node("Selu", ["a"], ["y"], alpha=2.0)]
    proto = simple_model(nodes, {"x": X, "d": GIVEN["d"]}, ["y", "b"])
    types = types_of(inferred(proto, proto.graph, lambda _: 0), {})
    kinds = [kind_of(one, types) for one in proto.graph.node]
    assert len(set(kinds)) == 3
    result = pass_of(proto, excluded={kinds[0]: "no kernel"})
    assert described(result.model.graph) == "a=Python(d) b=Selu(x) y=Selu(a)"
    assert [kind_in(result, name) for name in "by"] == kinds[1:]
    assert result.rows == [("reference evaluator", "Selu (output 'a')", "no kernel")]
    assert described(proto.graph) == "a=Selu(d) b=Selu(x) y=Selu(a)"  # as it was


def test_kinds_of_nodes_with_bodies() -> None:
    """They stay the same when the pass names the nodes."""
    proto = simple_model(
        [choice(branch(node("Neg", ["x"], ["p"])), branch(node("Abs", ["x"], ["p"])), name="")],
        {"x": X, "c": np.array(True)},
        ["y"],
    )
    kind = kind_in(pass_of(proto), "y")
    assert described(pass_of(proto, excluded={kind: "no kernel"}).model.graph) == "y=Python(c,x)"


def kind_in(result: Replaced, name: str) -> bytes:
    node, scope = result.nodes[name]
    return kind_of(node, scope.types)


def test_what_cannot_be_replaced() -> None:
    nodes = [node("Unique", ["s"], ["y"])]
    proto = simple_model(nodes, {"s": X}, ["y"])
    proto.graph.input[0].type.Clear()
    with pytest.raises(NotReplaceable, match=r"Unique \(output 'y'\): the type of its output y is unknown"):
        pass_of(proto)
    with pytest.raises(UnsupportedError, match=r"runtime is \"onnxruntime\"; Unique .* cannot be run by it"):
        pass_of(proto, "onnxruntime")


def test_owners_keep_layers_and_functions_alive() -> None:
    nodes, _ = GRAPHS["a layer"]
    result = session_graph(nodes)
    (handle,) = result.owners
    (attribute,) = [one for one in result.model.graph.node[1].attribute if one.name == "handle"]
    assert attribute.i == int(handle)
    assert handle.target.label == "LSTM 'lstm'"
