"""Models for known constants and sizes: their nodes, and the results of ONNX Runtime on the unchanged model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from peers import onnxruntime_session
from rows import each_row

from pyrnnx import ArgumentError

onnx = pytest.importorskip("onnx")
from pyrnnx.frontends.onnx import read_model  # noqa: E402  # needs onnx

RNG = np.random.default_rng(4)
C, O = 3, 5  # channels of X and of Y, as in the texts of Conv
LENGTH = 23


def convolution(attributes: str, size: int, *, channels: int = C, bias: bool = False) -> Any:
    """X [N, C, 23] -> Conv -> Y."""
    inputs = "X, W, B" if bias else "X, W"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m (float[N, {channels}, L] X) => (float[N, {O}, P] Y) '
        f"{{ Y = Conv <{attributes}> ({inputs}) }}"
    )
    arrays = {"W": RNG.normal(size=(O, channels, size)), "B": RNG.normal(size=O)}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items() if name in inputs
    )
    return model


# Attributes, size of the window, options, and whether it becomes a product.
CONVOLUTIONS: dict[str, tuple[str, int, dict[str, Any], bool]] = {
    "one": ("kernel_shape = [1]", 1, {}, True),
    "three": ("kernel_shape = [3]", 3, {}, True),
    "pads": ("pads = [2, 1]", 3, {"bias": True}, True),
    "stride": ("strides = [2]", 3, {}, True),
    "stride and pads": ("strides = [3], pads = [0, 2]", 4, {"bias": True}, True),
    "dilation": ("dilations = [3]", 4, {}, True),
    "dilation and stride": ("dilations = [2], strides = [2]", 4, {"bias": True}, True),
    "whole blocks": ("strides = [2]", 4, {"bias": True}, True),
    "whole blocks with pads": ("strides = [4], pads = [1, 3]", 12, {}, True),
    "blocks of one channel": ("strides = [5]", 10, {"channels": 1}, True),
    "window as stride": ("strides = [6]", 6, {"channels": 1, "bias": True}, True),
    "one position": ("strides = [2]", 23, {}, True),
    "auto_pad": ('auto_pad = "VALID"', 3, {}, True),
    "same": ('auto_pad = "SAME_UPPER"', 3, {}, False),
}


@each_row("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    attributes, size, options, becomes = CONVOLUTIONS[name]
    model = convolution(attributes, size, **options)
    session, special = onnxruntime_session(model), read_model(model).specialized({}, {"X": (None, None, LENGTH)})
    assert ("Conv" not in {node.op_type for node in special.proto.graph.node}) == becomes
    for rows in (1, 4, 2, 7, 3):
        X = RNG.normal(size=(rows, options.get("channels", C), LENGTH)).astype(np.float32)
        # products of up to 70 terms, summed in another order
        np.testing.assert_allclose(special(X)["Y"], session.run(None, {"X": X})[0], rtol=1e-5, atol=3e-6)


STAYS: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "an open length": ("kernel_shape = [3]", {}, None),
    "many positions": ("kernel_shape = [3]", {}, 40),
}


@each_row("name", STAYS)
def test_convolutions_that_stay(name: str) -> None:
    attributes, options, length = STAYS[name]
    special = read_model(convolution(attributes, 3, **options)).specialized({}, {"X": (None, None, length)})
    assert [node.op_type for node in special.proto.graph.node] == ["Conv"]


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
