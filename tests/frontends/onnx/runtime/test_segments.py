"""Graphs cut into pieces: what runs together, in which order, what goes in and what comes out."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import onnx
import pytest
from onnx import helper

from pyrnnx.frontends.onnx.runtime.segments import Piece, Runner, cut, holds_recurrent

# Who runs an operator of the graphs below; all others ONNX Runtime.
RUNNERS = {"LSTM": Runner.PYRNNX, "GRU": Runner.PYRNNX, "Selu": Runner.REFERENCE}
MARKS = {Runner.ONNXRUNTIME: "", Runner.PYRNNX: "", Runner.REFERENCE: "reference "}


def runner_of(node: Any) -> Runner:
    return RUNNERS.get(node.op_type, Runner.ONNXRUNTIME)


def nodes_of(text: str) -> list[onnx.NodeProto]:
    """ "y,z=Split(x) ..." """
    found = re.findall(r"([\w,]+)=(\w+)\(([\w,]*)\)", text)
    return [helper.make_node(op, inputs.split(","), outputs.split(",")) for outputs, op, inputs in found]


def described(piece: Piece) -> str:
    operators = " ".join(node.op_type for node in piece.nodes)
    return f"{MARKS[piece.runner]}{operators}: {','.join(sorted(piece.inputs))} -> {','.join(piece.outputs)}"


# Nodes, the wanted values and constants; the pieces in the order in which they run.
GRAPHS: dict[str, tuple[str, str, str, list[str]]] = {
    "no recurrent node": ("a=Relu(x) y=Neg(a)", "y", "", ["Relu Neg: x -> y"]),
    "nothing": ("", "x", "", []),
    "a layer alone": ("y=LSTM(x,W,R)", "y", "W R", ["LSTM: x -> y"]),
    "around a layer": (
        "a=Relu(x) b=LSTM(a,W,R) y=Neg(b)",
        "y",
        "W R",
        ["Relu: x -> a", "LSTM: a -> b", "Neg: b -> y"],
    ),
    "one behind the other": (
        "a=LSTM(x) b=Relu(a) c=LSTM(b) y=Relu(c)",
        "y",
        "",
        ["LSTM: x -> a", "Relu: a -> b", "LSTM: b -> c", "Relu: c -> y"],
    ),
    "layers behind each other have no segment between": (
        "a=Relu(x) b=LSTM(a) c=GRU(b) y=LSTM(c)",
        "y",
        "",
        ["Relu: x -> a", "LSTM: a -> b", "GRU: b -> c", "LSTM: c -> y"],
    ),
    "layers beside each other": (
        "a=Relu(x) b=LSTM(a) c=GRU(a) y=Add(b,c)",
        "y",
        "",
        ["Relu: x -> a", "LSTM: a -> b", "GRU: a -> c", "Add: b,c -> y"],
    ),
    "what is written behind a layer and needs none runs before it": (
        "a=Relu(x) b=LSTM(a) g=Gather(x) c=Add(b,g) d=LSTM(c) y=Softmax(d)",
        "y",
        "",
        ["Relu Gather: x -> a,g", "LSTM: a -> b", "Add: b,g -> c", "LSTM: c -> d", "Softmax: d -> y"],
    ),
    "results of a segment for a far one": (
        "s,t=Split(x) a=LSTM(s) b=Relu(a) c=LSTM(b) y=Add(c,t)",
        "y",
        "",
        ["Split: x -> s,t", "LSTM: s -> a", "Relu: a -> b", "LSTM: b -> c", "Add: c,t -> y"],
    ),
    "a segment before that no layer needs joins the one behind": (
        "g=Gather(x) a=LSTM(x) y=Add(a,g)",
        "y",
        "",
        ["LSTM: x -> a", "Gather Add: a,x -> y"],
    ),
    "wanted values within a segment": (
        "a=Relu(x) b=Neg(a) y=LSTM(b) z=Neg(y)",
        "a z y",
        "",
        ["Relu Neg: x -> a,b", "LSTM: b -> y", "Neg: y -> z"],
    ),
    "results that nobody needs": (
        "a,u=Split(x) b,v=LSTM(a) y=Relu(b)",
        "y",
        "",
        ["Split: x -> a", "LSTM: a -> b", "Relu: b -> y"],
    ),
    "constants are no inputs": (
        "a=Add(x,k) b=LSTM(a,W,R) y=MatMul(b,k)",
        "y",
        "k W R",
        ["Add: x -> a", "LSTM: a -> b", "MatMul: b -> y"],
    ),
    "the reference evaluator in the middle": (
        "a=Relu(x) b=Selu(a) y=Neg(b)",
        "y",
        "",
        ["Relu: x -> a", "reference Selu: a -> b", "Neg: b -> y"],
    ),
    "the reference evaluator's nodes run together": (
        "a=Selu(x) b=Relu(x) c=Selu(b) d=Selu(a) e=LSTM(d) y=Add(c,e)",
        "y",
        "",
        ["Relu: x -> b", "reference Selu Selu Selu: b,x -> c,d", "LSTM: d -> e", "Add: c,e -> y"],
    ),
    "constants that are dequantized where they are needed": (
        "v=DequantizeLinear(k,s) a=Conv(x,v) b=LSTM(a) w=DequantizeLinear(m,s) c=MatMul(b,w) y=MatMul(c,v)",
        "y",
        "k m s",
        [
            "DequantizeLinear Conv: x -> a",
            "LSTM: a -> b",
            "DequantizeLinear DequantizeLinear MatMul MatMul: b -> y",
        ],
    ),
    "constants that are dequantized for a layer, too": (
        "v=DequantizeLinear(k,s) a=LSTM(x,v) y=MatMul(a,v)",
        "y",
        "k s",
        ["DequantizeLinear:  -> v", "LSTM: v,x -> a", "MatMul: a,v -> y"],
    ),
    "constants that are dequantized and wanted": (
        "v=DequantizeLinear(k,s) a=LSTM(x) y=MatMul(a,v)",
        "y v",
        "k s",
        ["LSTM: x -> a", "DequantizeLinear MatMul: a -> v,y"],
    ),
    "optional inputs and outputs that are left out": (
        "a=Clip(x,,k) b,,c=LSTM(a,W,R) y=Add(b,c)",
        "y",
        "k W R",
        ["Clip: x -> a", "LSTM: a -> b,c", "Add: b,c -> y"],
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_pieces(name: str) -> None:
    text, wanted, constants, expected = GRAPHS[name]
    pieces = cut(nodes_of(text), constants.split(), wanted.split(), runner_of)
    assert [described(piece) for piece in pieces] == expected


def body(text: str, *outputs: str, inputs: Sequence[str] = ()) -> onnx.GraphProto:
    graph = onnx.GraphProto(name="body")
    graph.node.extend(nodes_of(text))
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in inputs)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return graph


def choice(condition: str, output: str, then: onnx.GraphProto, other: onnx.GraphProto) -> onnx.NodeProto:
    return helper.make_node("If", [condition], [output], then_branch=then, else_branch=other)


def by_content(node: Any) -> Runner:
    return Runner.PYRNNX if holds_recurrent(node, lambda one: one.op_type == "LSTM") else Runner.ONNXRUNTIME


def test_what_bodies_capture_is_an_input() -> None:
    """But for what they name themselves, and constants."""
    inner = choice("d", "p", body("p=Add(u,k)", "p"), body("p=Neg(own)", "p"))
    then = body("own=Relu(t)", "p")
    then.node.append(inner)
    nodes = [*nodes_of("t,u=Split(x) c=LSTM(t) d=Not(x)"), choice("c", "y", then, body("", "outer"))]
    (split, lstm, last) = cut(nodes, ["k"], ["y"], runner_of)
    assert described(split) == "Split Not: x -> t,u,d"
    assert described(lstm) == "LSTM: t -> c"
    assert described(last) == "If: c,d,outer,t,u -> y"


def test_bodies_with_recurrent_nodes_are_steps_of_their_own() -> None:
    inner = choice("d", "p", body("p=LSTM(u)", "p"), body("p=Neg(u)", "p"))
    then = onnx.GraphProto(name="then", node=[inner], output=[onnx.ValueInfoProto(name="p")])
    plain = choice("c", "v", body("p=Neg(x)", "p"), body("p=Relu(x)", "p"))
    nodes = [*nodes_of("c=Not(x) d=Not(c) u=Relu(x)"), plain, choice("c", "y", then, body("p=Relu(u)", "p"))]
    first, step = cut(nodes, [], ["y", "v"], by_content)
    assert described(first) == "Not Not Relu If: x -> c,d,u,v"
    assert (step.runner, step.inputs, step.outputs) == (Runner.PYRNNX, ("c", "d", "u"), ("y",))


def drawn(rng: random.Random, size: int) -> list[onnx.NodeProto]:
    """A random graph with many layers."""
    names, nodes = ["x", "z"], []
    for k in range(size):
        inputs = rng.sample(names, min(rng.randint(1, 3), len(names)))
        nodes.append(helper.make_node(rng.choice(["LSTM", "Relu", "Add"]), inputs, [f"v{k}"]))
        names.append(f"v{k}")
    return nodes


def fewest_segments(nodes: Sequence[Any]) -> int:
    """By trying every order: the fewest for each set of nodes that have run, the last of them in a segment or not."""
    needs = [{k for k, one in enumerate(nodes) if set(one.output) & set(node.input)} for node in nodes]
    fewest = {(frozenset[int](), False): 0}
    for _ in nodes:
        longer: dict[tuple[frozenset[int], bool], int] = {}
        for (done, in_segment), count in fewest.items():
            for k, node in enumerate(nodes):
                if k not in done and needs[k] <= done:
                    opens = node.op_type != "LSTM"
                    state, total = (done | {k}, opens), count + (opens and not in_segment)
                    longer[state] = min(total, longer.get(state, total))
        fewest = longer
    return min(fewest.values())


@pytest.mark.parametrize("seed", range(50))
def test_random_graphs(seed: int) -> None:
    """Each node once, behind all that it needs, in as few segments as there can be."""
    rng = random.Random(seed)
    nodes = drawn(rng, rng.randint(1, 9))
    wanted = [nodes[-1].output[0], rng.choice(nodes).output[0]]
    pieces = cut(nodes, ["z"], wanted, runner_of)
    known = {"x"}
    for piece in pieces:
        assert set(piece.inputs) <= known
        assert piece.runner is Runner.ONNXRUNTIME or len(piece.nodes) == 1
        known |= set(piece.outputs)
    assert set(wanted) <= known
    assert sorted(node.output[0] for piece in pieces for node in piece.nodes) == sorted(n.output[0] for n in nodes)
    assert sum(piece.runner is Runner.ONNXRUNTIME for piece in pieces) == fewest_segments(nodes)
