"""Models for known constants and sizes: their nodes, and the results of ONNX Runtime on the unchanged model."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from peers import onnxruntime_session

from pyrnnx import ArgumentError

onnx = pytest.importorskip("onnx")
from pyrnnx.frontends.onnx import read_model  # noqa: E402  # needs onnx

RNG = np.random.default_rng(4)
CHOICE = """<ir_version: 8, opset_import: ["" : 17]> m (float[N, 4] X, int64 rate) => (float[N, 4] Y)
<int64 wide = {16}, float two = {2}> {
    is = Equal (rate, wide)
    Y = If (is) <
        then_branch = a () => (float[N, 4] t) { h = Mul (X, two) t = Tanh (h) },
        else_branch = b () => (float[N, 4] e) { yes = Equal (rate, wide) no = Not (yes) e = If (no) <
            then_branch = c () => (float[N, 4] u) { u = Neg (X) }, else_branch = d () => (float[N, 4] v) { v = Abs (X) }
        > }
    >
}"""


def test_choices() -> None:
    """The branch of a constant, and of the one inside it, takes the place of the If."""
    model = onnx.parser.parse_model(CHOICE)
    session = onnxruntime_session(model)
    for rate, operators in ((16, {"Mul", "Tanh", "Identity"}), (8, {"Neg", "Identity"})):
        special = read_model(model).specialized({"rate": rate}, {})
        assert {node.op_type for node in special.proto.graph.node} == operators
        assert [info.name for info in special.inputs] == ["X"]
        for _ in range(5):
            X = RNG.normal(size=(3, 4)).astype(np.float32)
            expected = session.run(None, {"X": X, "rate": np.array(rate)})[0]
            np.testing.assert_allclose(special(X)["Y"], expected, rtol=0, atol=1e-6)


def test_names_that_collide() -> None:
    """Names of a branch that another body has, too, keep the If as it is."""
    text = CHOICE.replace(
        "is = Equal",
        "k = If (more) <then_branch = f () => (float[N, 4] h) { h = Neg (X) }, "
        "else_branch = g () => (float[N, 4] w) { w = Abs (X) }> is = Equal",
    )
    text = text.replace("int64 rate)", "int64 rate, bool more)").replace("t = Tanh (h)", "t = Add (h, k)")
    model = onnx.parser.parse_model(text)
    special = read_model(model).specialized({"rate": 16}, {})
    assert Counter(node.op_type for node in special.proto.graph.node) == {"If": 2}
    X = RNG.normal(size=(3, 4)).astype(np.float32)
    for more in (True, False):
        feed = {"X": X, "rate": np.array(16), "more": np.array(more)}
        expected = onnxruntime_session(model).run(None, feed)[0]
        np.testing.assert_allclose(special(X, np.array(more))["Y"], expected, rtol=0, atol=1e-6)


def test_wrong_constants() -> None:
    model = read_model(onnx.parser.parse_model(CHOICE))
    with pytest.raises(ArgumentError, match=r"input 'rate' has dtype float64; expected int64"):
        model.specialized({"rate": 1.5}, {})
    with pytest.raises(ArgumentError, match=r"input 'no' is unknown; expected"):
        model.specialized({"no": 1, "rate": 16}, {})


def test_wrong_sizes() -> None:
    model = read_model(onnx.parser.parse_model(CHOICE))
    for sizes, message in (
        ({"X": [3]}, r"sizes of input 'X' are \[3\]; expected \[None, 4\]"),
        ({"X": [3, 4, 5]}, r"sizes of input 'X' are \[3, 4, 5\]; expected \[None, 4\]"),
        ({"X": [-1, 4]}, r"sizes of input 'X' are \[-1, 4\]; expected \[None, 4\]"),
        ({"X": [3, 5]}, r"sizes of input 'X' are \[3, 5\]; expected \[None, 4\]"),
        ({"no": [3]}, r"sizes has 'no'; expected inputs: 'X', 'rate'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            model.specialized({"rate": 16}, sizes)
