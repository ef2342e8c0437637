"""Small models that need much memory or time: they are refused at once, or left unfolded."""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model
from rows import few_rows

import pyrnnx
from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.constants import fold_constants
from pyrnnx.frontends.onnx.graph.sizes import RULES
from pyrnnx.testing.numbers import Array

pytestmark = pytest.mark.usefixtures("small_limit")
node = helper.make_node
X = np.ones((2, 3), np.float32)
ONE = np.ones(1, np.float32)
MEGABYTE = 2**20


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def chain(operator: str, count: int, *others: str, **attributes: Any) -> list[onnx.NodeProto]:
    """r = f(f(...f(one)...))"""
    names = ["one", *(f"v{k}" for k in range(1, count)), "r"]
    return [node(operator, [a, *others], [b], **attributes) for a, b in pairwise(names)]


def doubled(count: int) -> list[onnx.NodeProto]:
    names = ["one", *(f"v{k}" for k in range(1, count)), "r"]
    return [node("Concat", [a, a], [b], axis=0) for a, b in pairwise(names)]


LARGE: dict[str, list[onnx.NodeProto]] = {
    "ConstantOfShape": [node("ConstantOfShape", ["shape"], ["r"])],
    "Tile": chain("Tile", 40, "two"),
    "Concat": doubled(40),
    "Pad": [node("Pad", ["one", "pads"], ["r"])],
    "Expand": [node("Expand", ["one", "shape"], ["r"])],
    "Range": [node("Range", ["zero", "huge", "step"], ["r"])],
    "OneHot": [node("OneHot", ["two", "huge", "values"], ["r"])],
    "Resize": [node("Resize", ["image", "", "", "image_size"], ["r"], mode="nearest")],
    "RandomNormal": [node("RandomNormal", [], ["r"], shape=[2**20, 2**20])],
    "RandomUniform": [node("RandomUniform", [], ["r"], shape=[2**20, 2**20])],
    "broadcasting": [
        node("Expand", ["one", "column"], ["c"]),
        node("Expand", ["one", "row"], ["d"]),
        node("Add", ["c", "d"], ["r"]),
    ],
    "MatMul": [
        node("Expand", ["one", "column"], ["c"]),
        node("Expand", ["one", "row"], ["d"]),
        node("MatMul", ["c", "d"], ["r"]),
    ],
    "Einsum": [node("Expand", ["one", "flat"], ["c"]), node("Einsum", ["c", "c"], ["r"], equation="i,j->ij")],
    "Gather": [
        node("Expand", ["one", "row"], ["c"]),
        node("Expand", ["index", "flat"], ["d"]),
        node("Gather", ["c", "d"], ["r"], axis=0),
    ],
    "Conv": [node("Conv", ["image", "kernel"], ["r"], pads=[2**20] * 4)],
    "dilated Conv": [node("Conv", ["image", "kernel"], ["r"], pads=[1] * 4, dilations=[2**20, 2**20])],
    "MaxPool": [node("MaxPool", ["image"], ["r"], kernel_shape=[2**20, 2**20], auto_pad="SAME_UPPER")],
    "ConvTranspose": [node("ConvTranspose", ["image", "kernel"], ["r"], output_padding=[2**20, 2**20])],
    "HannWindow": [node("HannWindow", ["huge"], ["r"])],
    "MelWeightMatrix": [node("MelWeightMatrix", ["many", "many", "many", "low", "high"], ["r"])],
    "CenterCropPad": [node("CenterCropPad", ["one", "shape"], ["r"])],
    "AffineGrid": [node("AffineGrid", ["theta", "grid_size"], ["r"])],
    "DFT": [node("DFT", ["signal", "huge"], ["r"])],
    # larger on the way than in the end
    "TopK": [node("TopK", ["one", "many_of_one"], ["r", "i"], axis=0)],
    "Tile, empty": [node("Tile", ["image", "empty_tiles"], ["r"])],
    "Expand, empty": [node("Expand", ["nothing", "empty_row"], ["r"])],
    "LayerNormalization": [node("LayerNormalization", ["image", "one"], ["r"], axis=-(2**40))],
    "Resize, empty": [node("Resize", ["image", "", "", "empty_size"], ["r"], mode="nearest")],
    "AveragePool, empty": [node("AveragePool", ["no_image"], ["r"], kernel_shape=[1, 1], pads=[0, 0, 2**40, 0])],
    "AveragePool, too many strides": [
        node("AveragePool", ["no_image"], ["r"], kernel_shape=[1, 1], pads=[0, 0, 2**40, 0], strides=[1, 1, 1])
    ],
    "AveragePool, empty image": [node("AveragePool", ["batch"], ["r"], kernel_shape=[1, 1])],
    "ReduceSum, empty": [node("ReduceSum", ["no_rows", "index"], ["r"])],
    "StringConcat": [
        node("StringConcat", ["text", "text"] if k == 0 else [f"v{k}"] * 2, ["r" if k == 39 else f"v{k + 1}"])
        for k in range(40)
    ],
}
CONSTANTS: dict[str, Array] = {
    "one": ONE,
    "two": integers(2),
    "shape": integers(2**31),
    "pads": integers(2**40, 0),
    "zero": np.array(0),
    "huge": np.array(2**40),
    "step": np.array(1),
    "values": np.array([0.0, 1.0], np.float32),
    "column": integers(2**20, 1),
    "row": integers(1, 2**20),
    "flat": integers(2**20),
    "index": integers(0),
    "image": np.ones((1, 1, 4, 4), np.float32),
    "batch": np.zeros((2**21, 0, 1, 1), np.float32),
    "no_rows": np.zeros((0, 2**27), np.float32),
    "no_image": np.zeros((0, 1, 4, 4), np.float32),
    "image_size": integers(1, 1, 2**20, 2**20),
    "many_of_one": integers(2**31),
    "empty_tiles": integers(1, 1, 2**40, 0),
    "nothing": np.zeros((0, 1), np.float32),
    "empty_row": integers(1, 2**40),
    "empty_size": integers(1, 1, 2**40, 0),
    "kernel": np.ones((1, 1, 2, 2), np.float32),
    "many": np.array(2**20),
    "low": np.array(1.0, np.float32),
    "high": np.array(2.0, np.float32),
    "theta": np.ones((1, 2, 3), np.float32),
    "grid_size": integers(1, 1, 2**20, 2**20),
    "signal": np.ones((1, 2, 1), np.float32),
    "text": np.array(["a" * 100], object),
}


def large(name: str) -> onnx.ModelProto:
    needed = {one for part in LARGE[name] for one in part.input}
    constants = {key: array for key, array in CONSTANTS.items() if key in needed}
    nodes = [*LARGE[name], node("Shape", ["r"], ["s"]), node("Add", ["s", "x"], ["y"])]
    return simple_model(nodes, {"x": integers(0)}, ["y"], constants, opset=20)


@few_rows("name", [name for name in LARGE if name != "StringConcat"], ["StringConcat"])
def test_large_constants(name: str) -> None:
    """Not folded, and refused before they are computed where a call would."""
    model = large(name)
    tracemalloc.start()
    start = time.process_time()
    folded = fold_constants(model)
    assert tracemalloc.get_traced_memory()[1] < 100 * MEGABYTE
    assert folded.ByteSize() < 40 * MEGABYTE
    with pytest.raises(ArgumentError, match=r"would take \d+ bytes.*; a call may take 67108864 \(pyrnnx.set_memory"):
        read_model(model, runtime="reference")(integers(0))
    assert tracemalloc.get_traced_memory()[1] < 200 * MEGABYTE
    tracemalloc.stop()
    with contextlib.suppress(ArgumentError):  # ONNX Runtime's operators take what they need within the same limit
        read_model(model)(integers(0))
    assert time.process_time() - start < 10  # not a measurement: without a budget these take minutes, or the machine


@pytest.mark.parametrize("name", ["Tile", "Concat"])
def test_chains_of_constants_are_refused_before_any_is_computed(name: str) -> None:
    """The limit would take long to reach."""
    model = read_model(large(name), runtime="reference")
    pyrnnx.set_memory_limit(2**34)
    tracemalloc.start()
    with pytest.raises(ArgumentError, match=rf"{name} .*would take \d+ bytes"):
        model(integers(0))
    assert tracemalloc.get_traced_memory()[1] < 100 * MEGABYTE
    tracemalloc.stop()


def test_large_constants_that_a_call_does_not_need_are_not_asked_for() -> None:
    model = large("Tile")
    del model.graph.node[-2:]
    model.graph.node.append(node("Identity", ["x"], ["y"]))
    assert read_model(model)(integers(3))["y"] == 3


def test_what_is_beyond_the_budget_is_computed_at_the_call() -> None:
    nodes = [node("Expand", ["one", "flat"], ["r"]), node("Add", ["r", "x"], ["y"])]
    model = simple_model(nodes, {"x": ONE}, ["y"], {"one": ONE, "flat": integers(2**23)})
    assert [one.op_type for one in fold_constants(model).graph.node] == ["Expand", "Add"]
    np.testing.assert_array_equal(read_model(model)(ONE)["y"], np.full(2**23, 2, np.float32))


def test_long_chains_of_constants_end() -> None:
    nodes = [node("Neg", [f"v{k}"], [f"v{k + 1}"]) for k in range(1500)]
    model = simple_model([*nodes, node("Add", ["v1500", "x"], ["y"])], {"x": X}, ["y"], {"v0": X})
    np.testing.assert_array_equal(read_model(model)(X)["y"], 2 * X)


def test_every_operator_has_a_rule_of_size() -> None:
    """But for the recurrent ones, whose layers tell, and what only a decoder knows."""
    names = {one.name for one in onnx.defs.get_all_schemas_with_history() if not one.domain}
    assert names - RULES.keys() == {"RNN", "GRU", "LSTM", "ImageDecoder"}
    assert RULES.keys() <= names
