"""Convolutions over a short axis, which become products, beside a float64 oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model
from whole_models import check_calls

from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.numbers import Array

node = helper.make_node
C, M = 33, 130  # channels of inputs and results
rng = np.random.default_rng(0)


@dataclass(frozen=True)
class Convolution:
    """A Conv of one input, and the length that the input declares."""

    length: int
    kernel: int = 3
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)
    has_bias: bool = True


PRODUCTS = {
    "a few windows": Convolution(7),
    "the most windows": Convolution(10),
    "one window": Convolution(3),
    "padding": Convolution(4, pads=(2, 1)),
    "stride": Convolution(9, stride=3),
    "stride that leaves elements": Convolution(10, stride=3, pads=(1, 0)),
    "stride beyond the kernel": Convolution(9, kernel=2, stride=3, pads=(1, 0)),
    "padding beyond the kernel": Convolution(2, kernel=2, pads=(4, 3)),
    "kernel beyond the length": Convolution(4, kernel=7, pads=(2, 3)),
    "dilation": Convolution(11, dilation=2),
    "elements": Convolution(5, kernel=1),
    "every second element": Convolution(5, kernel=1, stride=2),
    "without bias": Convolution(6, kernel=4, stride=2, pads=(0, 3), dilation=2, has_bias=False),
}


def weights_of(case: Convolution, channels: int = C, results: int = M) -> dict[str, Array]:
    W = rng.uniform(-1, 1, (results, channels, case.kernel)) / np.sqrt(channels * case.kernel)
    B = rng.standard_normal(results)
    return {"W": W.astype(np.float32)} | ({"B": B.astype(np.float32)} if case.has_bias else {})


def conv(case: Convolution, names: Sequence[str], output: str = "y", **attributes: Any) -> Any:
    given = {"strides": [case.stride], "dilations": [case.dilation], "pads": case.pads, **attributes}
    return node("Conv", names, [output], **given)


def oracle(case: Convolution, x: Any, W: Any, B: Any = 0.0) -> tuple[Array, Array]:
    """Return the convolution in float64, and the sum of the magnitudes of its terms."""
    padded = np.pad(np.asarray(x, np.float64), ((0, 0), (0, 0), case.pads))
    span = (case.kernel - 1) * case.dilation + 1
    starts = range(0, padded.shape[2] - span + 1, case.stride)
    windows = np.stack([padded[:, :, k : k + span : case.dilation] for k in starts], axis=-1)
    exact, bias = np.asarray(W, np.float64), np.reshape(np.asarray(B, np.float64), (-1, 1))
    terms = [(windows, exact, bias), (np.abs(windows), np.abs(exact), np.abs(bias))]
    result, magnitude = (np.einsum("ncki,mck->nmi", x, w) + b for x, w, b in terms)
    return result, magnitude


def declare(model: onnx.ModelProto, length: int | str) -> onnx.ModelProto:
    """Let the first input of a model declare its length."""
    size = model.graph.input[0].type.tensor_type.shape.dim[-1]
    if isinstance(length, int):
        size.dim_value = length
    return model


def counts(model: Any) -> tuple[int, int]:
    """Return how many convolutions and products the plan has."""
    words = str(model.plan).replace(",", " ").split()

    def count(name: str) -> int:
        before = words[words.index(name) - 1] if name in words else "0"
        return int(before) if before.isdigit() else 1

    return count("Conv"), count("MatMul")


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    """Their errors are at most those of a float32 sum of the same terms in blocks: K / 8 + 8 roundings of 2**-24."""
    case = PRODUCTS[name]
    constants = weights_of(case)
    x = rng.standard_normal((5, C, case.length)).astype(np.float32)
    model = read_model(declare(simple_model([conv(case, ["x", *constants])], {"x": x}, ["y"], constants), case.length))
    assert counts(model) == (0, 1)
    bound = (C * case.kernel / 8 + 8) * 2.0**-24
    for rows in (5, 1, 3, 5, 2):
        X = (x[:rows] * rows).astype(np.float32)
        expected, magnitude = oracle(case, X, **constants)
        (y,) = model({"x": X}).values()
        assert y.shape == expected.shape
        assert np.all(np.abs(y - expected) <= bound * magnitude)


CASE = Convolution(6)
CONVOLUTIONS: Mapping[str, Callable[[], tuple[Any, dict[str, Array], int | str]]] = {
    "length unknown": lambda: (conv(CASE, ["x", "W", "B"]), weights_of(CASE), "?"),
    "many windows": lambda: (conv(CASE, ["x", "W", "B"]), weights_of(CASE), 11),
    "few weights": lambda: (conv(CASE, ["x", "W", "B"]), weights_of(CASE, results=3), 6),
    "groups": lambda: (conv(CASE, ["x", "W", "B"], group=3), weights_of(CASE, C // 3, 3 * M), 6),
    "automatic padding": lambda: (node("Conv", ["x", "W", "B"], ["y"], auto_pad="SAME_UPPER"), weights_of(CASE), 6),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_others_stay(name: str) -> None:
    made, constants, length = CONVOLUTIONS[name]()
    x = rng.standard_normal((2, C, length if isinstance(length, int) else 6)).astype(np.float32)
    model = read_model(declare(simple_model([made], {"x": x}, ["y"], constants), length))
    assert counts(model) == (1, 0)
    assert np.isfinite(model({"x": x})["y"]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_computed_weights_and_float16_stay(dtype: Any) -> None:
    constants = {name: array.astype(dtype) for name, array in weights_of(CASE).items()}
    inputs = {"x": rng.standard_normal((2, C, 6)).astype(dtype)}
    inputs |= constants if dtype == np.float32 else {}
    inside = constants if dtype == np.float16 else {}
    proto = declare(simple_model([conv(CASE, ["x", "W", "B"])], inputs, ["y"], inside), 6)
    assert counts(read_model(proto)) == (1, 0)


@pytest.mark.parametrize("computed", [False, True])
def test_chains(computed: bool) -> None:
    """Lengths are estimated through the operators around convolutions, and shared weights stay for the other nodes.

    PyTorch writes pads as a few nodes that compute them, and numbers as Constant nodes.
    """
    first, second = Convolution(0, kernel=128, stride=64, has_bias=False), Convolution(0, pads=(1, 1))
    W, V = weights_of(first, 1, 90)["W"], weights_of(second, 45, 45)
    constants = {
        "W": W, "V": V["W"], "B": V["B"], "pads": np.array([0, 0, 0, 64]), "one": np.array([1]),
        "from": np.array([45, 1]), "to": np.array([90, 2**62]), "axes": np.array([1, 2]), "steps": np.array([1, 1]),
    }  # fmt: skip
    power = node("Mul", ["part", "part"], ["power"])
    nodes = [
        node("Pad", ["x", "pads"], ["padded"], mode="reflect"),
        node("Unsqueeze", ["padded", "one"], ["wave"]),
        conv(first, ["wave", "W"], "spectrum"),
        node("Slice", ["spectrum", "from", "to", "axes", "steps"], ["part"]),
        power,
        conv(second, ["power", "V", "B"], "a"),
        node("Relu", ["a"], ["b"]),
        conv(second, ["b", "V", "B"], "y"),
        node("ReduceSum", ["V"], ["sum"]),
    ]
    if computed:
        constants["reversed"] = constants.pop("pads")[::-1].astype(np.float32).reshape(2, 2)
        constants |= {"ends": np.array([-1]), "begin": np.array([-5]), "all": np.array([-1])}
        nodes = [
            node("Reshape", ["reversed", "all"], ["flat"]),
            node("Slice", ["flat", "ends", "begin", "zero", "all"], ["floats"]),
            node("Cast", ["floats"], ["pads"], to=onnx.TensorProto.INT64),
            node("Constant", [], ["two"], value_float=2.0),
            *nodes,
        ]
        nodes[nodes.index(power)] = node("Pow", ["part", "two"], ["power"])
        constants["zero"] = np.array([0])
    x = rng.standard_normal((3, 320)).astype(np.float32)
    model = read_model(declare(simple_model(nodes, {"x": x}, ["y", "sum"], constants), 320))
    assert counts(model) == (0, 3)

    def exact(inputs: Mapping[str, Array]) -> list[Array]:
        padded = np.pad(inputs["x"], ((0, 0), (0, 64)), mode="reflect")[:, np.newaxis]
        part = oracle(first, padded, W)[0][:, 45:90, 1:]
        a = oracle(second, part**2, V["W"], V["B"])[0]
        return [oracle(second, np.maximum(a, 0), V["W"], V["B"])[0], V["W"].astype(np.float64).sum(keepdims=True)]

    check_calls(model, exact, {"x": x}, {"x": x[:1]}, atol=2e-5)
