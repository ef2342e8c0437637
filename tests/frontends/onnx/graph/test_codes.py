"""Constants that stay codes: those used only in products of codes."""

from __future__ import annotations

import re

import numpy as np
import onnx
from onnx import helper
from onnx_models import simple_model
from rows import each_row

from pyrnnx.frontends.onnx.graph.codes import products_of_codes
from pyrnnx.frontends.onnx.graph.fold import FoldedGraph, fold
from pyrnnx.frontends.onnx.graph.walk import Graph
from pyrnnx.frontends.onnx.runtime.evaluator import evaluate_node

SHORT = {"Q": "QuantizeLinear", "D": "DequantizeLinear"}


def nodes_of(text: str) -> list[onnx.NodeProto]:
    """ "y=MatMul(x,w) ..."; s is a scale."""
    found = re.findall(r"([\w,]+)=(\w+)\(([\w,]*)\)", text)
    return [helper.make_node(SHORT.get(op, op), inputs.split(","), outputs.split(",")) for outputs, op, inputs in found]


# Nodes, of which y is the output and x the input; what stays in codes. k, b are codes, W floats, all constants.
GRAPHS = {
    "a product between codes": ("p=Q(x,s) q=D(p,s) w=D(k,s) c=Conv(q,w) d=Q(c,s) y=D(d,s)", "w"),
    "and its bias": ("p=Q(x,s) q=D(p,s) w=D(k,s) v=D(b,s) c=Conv(q,w,v) d=Q(c,s) y=D(d,s)", "w v"),
    "weights before": ("w=D(k,s) p=Q(x,s) q=D(p,s) c=Conv(q,w) d=Q(c,s) y=D(d,s)", "w"),
    "what clips before codes do": ("q=D(x,s) w=D(k,s) c=Conv(q,w) r=Relu(c) l=Clip(r) d=Q(l,s) y=D(d,s)", "w"),
    "floats from a product": ("q=D(x,s) w=D(k,s) y=MatMul(q,w)", "w"),
    "floats from a convolution": ("q=D(x,s) w=D(k,s) y=Conv(q,w)", ""),
    "codes and floats from it": ("q=D(x,s) w=D(k,s) c=Conv(q,w) d=Q(c,s) y=Add(c,c)", ""),
    "an output beside its codes": ("q=D(x,s) w=D(k,s) y=Conv(q,w) d=Q(y,s)", ""),
    "weights alone in codes": ("w=D(k,s) y=MatMul(x,w)", ""),
    "two constants": ("w=D(k,s) v=D(b,s) y=MatMul(w,v)", ""),
    "a table in codes": ("w=D(k,s) e=Gather(w,x) d=Q(e,s) y=D(d,s)", "w"),
    "a table of floats": ("w=D(k,s) e=Gather(w,x) y=Relu(e)", ""),
    "weights of a layer": ("q=D(x,s) w=D(k,s) y=LSTM(q,w,w)", ""),
    "shared with a layer": ("q=D(x,s) w=D(k,s) m=MatMul(q,w) y=LSTM(m,w,w)", ""),
    "shared by products": ("q=D(x,s) w=D(k,s) m=MatMul(q,w) n=MatMul(q,w) y=Add(m,n)", "w"),
    "quantized in the file": ("q=D(x,s) k2=Q(W,s) w=D(k2,s) y=MatMul(q,w)", "w"),
    "turned afterwards": ("q=D(x,s) w=D(k,s) t=Transpose(w) y=MatMul(q,t)", ""),
    "an output": ("q=D(x,s) y=D(k,s) z=MatMul(q,y)", ""),
}


@each_row("name", GRAPHS)
def test_which_stay(name: str) -> None:
    text, expected = GRAPHS[name]
    nodes = Graph(onnx.GraphProto(node=nodes_of(text))).node
    found = products_of_codes(nodes, {"y"}, {"k", "b", "s", "W"})
    assert [nodes[index].output[0] for index in sorted(found)] == expected.split()


def test_nodes_without_inputs_or_outputs() -> None:
    nodes = [helper.make_node("DequantizeLinear", inputs, outputs) for inputs in ([], ["x"]) for outputs in ([], ["y"])]
    assert products_of_codes(Graph(onnx.GraphProto(node=nodes)).node, {"y"}, set()) == set()


def folded(text: str, dtype: str, *, codes: bool) -> FoldedGraph:
    constants = {"k": np.ones((2, 2), dtype), "W": np.ones((2, 2), np.float32), "s": np.array(0.5, np.float32)}
    proto = simple_model(nodes_of(text), {"x": np.ones((2, 2), np.uint8)}, ["y"], constants, 21)
    return fold(proto.graph, {"": 21}, evaluate_node, "test", codes=codes)


@each_row("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_folded_only_where_asked(dtype: str) -> None:
    text = "q=D(x,s) w=D(k,s) y=MatMul(q,w)"
    found = folded(text, dtype, codes=True)
    assert found.folded == set()
    assert found.constants.value("w") is None
    found = folded(text, dtype, codes=False)
    assert found.folded == {1}
    np.testing.assert_array_equal(found.constants.value("w"), np.full((2, 2), 0.5))


def test_constants_that_become_codes_are_folded() -> None:
    found = folded("q=D(x,s) k2=Q(W,s) w=D(k2,s) y=MatMul(q,w)", "int8", codes=True)
    assert found.folded == {1}
    np.testing.assert_array_equal(found.constants.value("k2"), np.full((2, 2), 2))
