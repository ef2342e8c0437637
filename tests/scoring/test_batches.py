"""Batches of a model: `batch=` and `lengths=` of small graphs, and the check of the first batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from layers import random_layer
from rows import each_row
from scoring_data import Results, of_npz, onnx_model, write_npy

import pyrnnx
from pyrnnx import PyrnnxError, RecurrentOp
from pyrnnx.operator.quantized import Quantized

pytest.importorskip("onnx")

SIZE = 5
RNG = np.random.default_rng(5)
# Maxima of the layer over the first item are above 0, so that zeros of padding would not show. Others are below zero,
# or beyond the first's: what padding, or other rows, would change.
ITEMS = [3 * np.random.default_rng(0).normal(size=(4, SIZE)).astype(np.float32)]
ITEMS += [RNG.normal(size=(length, SIZE)).astype(np.float32) for length in (7, 2, 7, 1)]
ITEMS += [-np.abs(RNG.normal(size=(length, SIZE))).astype(np.float32) - 1 for length in (3, 7, 5)]
ITEMS += [50 * ITEMS[1]]
CONSTANTS: dict[str, Any] = {
    "W": RNG.uniform(-0.7, 0.7, (1, 12, SIZE)).astype(np.float32),
    "R": RNG.uniform(-0.7, 0.7, (1, 12, 3)).astype(np.float32),
    "C": RNG.uniform(-0.7, 0.7, (4, SIZE, 2)).astype(np.float32),
    "zero": np.array([0]),
    "one": np.array([1]),
    "five": np.array([5]),
}
ALL, EQUAL, NONE = "", "leave out lengths='lens'", "leave out batch=9"  # end of the error of a batch of all items
LSTM = "Y, Y_h = LSTM <hidden_size = 3> (X, W, R, , lens)"


class Graph(NamedTuple):
    nodes: str  # from X [T, N, 5], unless `axes` says otherwise, to Z
    error: str = ALL
    axes: str = "TNI"


GRAPHS: dict[str, Graph] = {
    "steps of a layer": Graph(f"{LSTM} Z = Identity (Y)"),
    "last states": Graph(f"{LSTM} Z = Identity (Y_h)"),
    "no lengths": Graph("Y, Z = LSTM <hidden_size = 3> (X, W, R)", EQUAL),
    "maximum behind lengths": Graph(f"{LSTM} Z = ReduceMax <axes = [0], keepdims = 0> (Y)", EQUAL),
    "softmax over time": Graph("Z = Softmax <axis = 0> (X)", EQUAL),
    "fewer time steps": Graph("Z = Conv <strides = [2], pads = [1, 1]> (X, C)", EQUAL, "NIT"),
    "rows as time steps": Graph("Z = LSTM <hidden_size = 3, layout = 1> (X, W, R)", NONE),
    "maximum of all rows": Graph("m = ReduceMax <axes = [1]> (X) Z = Sub (X, m)", NONE),
    "number of rows": Graph("S = Shape (X) n = Gather (S, one) f = Cast <to = 1> (n) Z = Mul (X, f)", NONE),
    "scrambled": Graph(
        "S = Shape (X) n = Gather (S, one) t = Gather (S, zero) d = Concat <axis = 0> (n, t, five) "
        "A = Reshape (X, d) Z = Transpose <perm = [1, 0, 2]> (A)",
        NONE,
    ),
}


def model_of(graph: Graph) -> Any:
    axes = ", ".join(str(SIZE) if letter == "I" else letter for letter in graph.axes)
    unused = "" if "lens" in graph.nodes else " unused = Identity (lens)"
    text = f"(float[{axes}] X, int32[N] lens) => (float Z) {{ {graph.nodes}{unused} }}"
    model = onnx_model(text, **CONSTANTS)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def assert_as_alone(model: Any, axes: str, scored: Results) -> None:
    """The axes differ, because time steps come first, and so does the order of sums. Values are up to 50 * 25."""
    order = ["NTI".index(letter) for letter in axes]
    for index, item in enumerate(ITEMS):
        lens = {"lens": np.array([len(item)], np.int32)} if len(model.inputs) > 1 else {}
        wanted = model({"X": item[np.newaxis].transpose(order), **lens})["Z"]
        result = scored[f"{index:03}.npy"]["Z"]
        np.testing.assert_allclose(np.sort(result.ravel()), np.sort(wanted.ravel()), rtol=1e-4, atol=1e-4)


@each_row("name", GRAPHS)
def test_the_first_batch(name: str, tmp_path: Path) -> None:
    """A batch that changes results is an error before anything is written; without its option, results are right."""
    graph = GRAPHS[name]
    source = write_npy(tmp_path / "in", ITEMS)
    model = pyrnnx.load(model_of(graph))
    options: Any = {"workers": 0, "axes": graph.axes, "batch": len(ITEMS), "lengths": "lens"}
    if graph.error:
        with pytest.raises(PyrnnxError, match=f"score: .* in a batch of .*{graph.error}"):
            pyrnnx.score(model, source, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()
        options["batch"] = 1
    pyrnnx.score(model, source, tmp_path / "out", **options)
    assert_as_alone(model, graph.axes, of_npz(tmp_path / "out"))


@each_row("name", ["softmax over time", "no lengths", "fewer time steps"])
def test_items_of_equal_length(name: str, tmp_path: Path) -> None:
    """Without `lengths`, only these share a batch, and nothing is padded."""
    graph = GRAPHS[name]
    proto = model_of(graph)
    del proto.graph.input[1], proto.graph.node[-1]  # lens
    model, source = pyrnnx.load(proto), write_npy(tmp_path / "in", ITEMS)
    assert pyrnnx.score(model, source, tmp_path / "out", workers=0, axes=graph.axes, batch=9).batch == 9
    assert_as_alone(model, graph.axes, of_npz(tmp_path / "out"))


def test_a_batch_of_a_later_part(tmp_path: Path) -> None:
    """Lengths first differ in the third part: the batch that is checked is from there."""
    items = [ITEMS[1], *ITEMS[1:2] * 3, ITEMS[0], ITEMS[5]]
    source = write_npy(tmp_path / "in", items)
    options: Any = {"workers": 0, "batch": 9, "lengths": "lens", "memory": 1_800}
    with pytest.raises(PyrnnxError, match=r"of item '00[45].npy' .*leave out lengths='lens'"):
        pyrnnx.score(model_of(GRAPHS["maximum behind lengths"]), source, tmp_path / "out", **options)


def test_items_of_different_steps(tmp_path: Path) -> None:
    """Steps of one value are not repeated to the size of those of the other items."""
    model = onnx_model("(float[T,N,I] X) => (float[?,?,1] Z) { Z = ReduceSum <keepdims = 1> (X, axes) }", axes=[2])
    items = [np.full((3, size), 2, np.float32) for size in (4, 1)]
    source = write_npy(tmp_path / "in", items)
    pyrnnx.score(model, source, tmp_path / "out", workers=0, axes="TNI")
    scored = of_npz(tmp_path / "out")
    assert [scored[f"00{index}.npy"]["Z"].ravel().tolist() for index in (0, 1)] == [[8] * 3, [2] * 3]


def test_layers_with_a_scale_of_the_batch(tmp_path: Path) -> None:
    """DynamicQuantizeLSTM rounds X with one scale for all rows."""
    layer = random_layer(RecurrentOp("LSTM", hidden_size=3), SIZE)
    layer._kept = {**layer._kept, "W": Quantized(np.zeros(1, np.int8), np.ones(1, np.float32), np.zeros(1, np.int8))}
    source = write_npy(tmp_path / "in", ITEMS)
    with pytest.raises(PyrnnxError, match="batch is 2; expected 1, because LSTM quantizes X with one scale"):
        pyrnnx.score(layer, source, tmp_path / "out", workers=0, batch=2)


def test_an_item_that_the_model_rejects(tmp_path: Path) -> None:
    """Only this item of its batch is bad."""
    nodes = "{ i = Cast <to = 7> (X) Z = Gather (P, i) }"
    model = onnx_model(f"(float[T, N, I] X) => (float[T, N, I] Z) {nodes}", P=np.arange(4, dtype=np.float32))
    items = [np.full((3, 2), value, np.float32) for value in (1, 9, 3)]
    source = write_npy(tmp_path / "in", items)
    report = pyrnnx.score(model, source, tmp_path / "out", workers=0, axes="TNI", batch=3, skip_errors=True)
    assert list(report.skipped) == ["001.npy"]
    assert {name: result["Z"].max() for name, result in of_npz(tmp_path / "out").items()} == {
        "000.npy": 1,
        "002.npy": 3,
    }
