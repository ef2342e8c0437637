"""Shapes of what Loops without iterations stack, as ONNX Runtime infers them from the unchanged model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model
from peers import onnxruntime_session

from pyrnnx.frontends.onnx import read_model

pytest.importorskip("onnxruntime")
node = helper.make_node
FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
X = np.arange(30, dtype=np.float32).reshape(3, 2, 5)
GIVEN = {"X": X, "s": X[0], "go": np.array(True)}


def declared(values: dict[str, Any]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in values.items()]


def loop(outputs: list[str]) -> onnx.NodeProto:
    """Stack a row of X, the sum of the rows before, and a value whose shape changes from step to step."""
    step = [
        node("Identity", ["c"], ["on"]),
        node("Gather", ["X", "i"], ["row"]),
        node("Neg", ["row"], ["y"]),
        node("Add", ["h", "row"], ["t"]),
        node("Concat", ["g", "g"], ["f"], axis=0),
        node("Identity", ["g"], ["z"]),
        node("Identity", ["h"], ["h_"]),
    ]
    inputs: dict[str, Any] = {"i": (INT64, []), "c": (BOOL, []), "h": (FLOAT, None), "g": (FLOAT, None)}
    results: dict[str, Any] = {"on": (BOOL, [])} | dict.fromkeys(["t", "f", "y", "h_", "z"], (FLOAT, None))
    body = helper.make_graph(step, "body", declared(inputs), declared(results))
    return node("Loop", ["K", "", "s", "s"], outputs, body=body)


def in_branch() -> list[onnx.NodeProto]:
    then = make_graph([loop(["p", "q", "Ys", "Hs", "Zs"])], {}, ["Ys", "Hs", "Zs"])
    other = make_graph([loop(["p", "q", "Ys", "Hs", "Zs"])], {}, ["Ys", "Hs", "Zs"])
    return [node("If", ["go"], ["Ys", "Hs", "Zs"], then_branch=then, else_branch=other)]


PLACES = {"in the graph": lambda: [loop(["p", "q", "Ys", "Hs", "Zs"])], "in a branch": in_branch}


@pytest.mark.parametrize("runtime", ["auto", "reference"])
@pytest.mark.parametrize("place", PLACES)
def test_loops_without_iterations(place: str, runtime: Any) -> None:
    transpose = node("Transpose", ["Ys"], ["Y"], perm=[1, 0, 2])
    proto = simple_model([*PLACES[place](), transpose], {**GIVEN, "K": np.array(0)}, ["Y", "Hs", "Zs"], {}, 17)
    del proto.graph.input[:]
    shapes = {"X": (FLOAT, ["T", "N", 5]), "s": (FLOAT, ["N", 5]), "go": (BOOL, []), "K": (INT64, [])}
    proto.graph.input.extend(declared(shapes))
    model, session = read_model(proto, runtime=runtime), onnxruntime_session(proto)
    for count in (0, 1, 0):
        given = {**GIVEN, "K": np.array(count)}
        Y, Hs, Zs = model(given).values()
        np.testing.assert_array_equal(Y, session.run(["Y"], given)[0])
        rows = 2 if count else 0
        assert Hs.shape == (count, rows, 5)
        assert Zs.shape == ((1, 2, 5) if count else (0,))  # the rank of `g` could differ between steps
