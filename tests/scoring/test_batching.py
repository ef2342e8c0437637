"""Batches that a graph allows: decisions for small graphs, and their results compared with single items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row
from scoring_data import of_npz, write_npy
from scoring_graphs import ALONE, EQUAL, GRAPHS, HIDDEN, ITEMS, LSTM, PADDED, SIZE, model_of

import pyrnnx
from pyrnnx.scoring.outputs import Batching
from pyrnnx.scoring.probe import probe
from pyrnnx.scoring.proof import Proof
from pyrnnx.scoring.proof.values import ROWS, Atom, UnprovenError, Value, axis_of, broadcast, constant
from pyrnnx.scoring.subject import subject_of
from pyrnnx.testing.numbers import Array

onnx = pytest.importorskip("onnx")


def call_alone(model: Any, item: Array, axes: str) -> Array:
    """Z of one item, as the model gives it."""
    order = ["NTI".index(letter) for letter in axes]
    result: Array = model({"X": item[np.newaxis].transpose(order), "lens": np.array([len(item)], np.int32)})["Z"]
    return result


@each_row("name", GRAPHS)
def test_batching(name: str, tmp_path: Path) -> None:
    graph = GRAPHS[name]
    source = write_npy(tmp_path / "in", ITEMS)
    model = pyrnnx.load(model_of(graph))
    report = pyrnnx.score(model, source, tmp_path / "out", workers=0, axes=graph.axes, lengths="lens")
    assert (report.batching, graph.word in report.batching_reason) == (graph.batching, True), report.batching_reason
    scored = of_npz(tmp_path / "out")
    for index, item in enumerate(ITEMS):
        wanted, scored_item = call_alone(model, item, graph.axes), scored[f"{index:03}.npy"]["Z"]
        # The axes differ, because time steps come first, and so does the order of sums. Values are up to 50 * 25.
        np.testing.assert_allclose(np.sort(scored_item.ravel()), np.sort(wanted.ravel()), rtol=1e-4, atol=1e-4)


def test_a_model_as_ir(tmp_path: Path) -> None:
    from pyrnnx.frontends.openvino import write_model

    for name in ("maximum behind lengths", "sum behind lengths", "maximum of all rows"):
        graph = GRAPHS[name]
        path = write_model(model_of(graph), str(tmp_path / "model.xml"))
        source = write_npy(tmp_path / "in", ITEMS)
        options: Any = {"axes": graph.axes, "lengths": "lens", "outputs": ["Z"], "overwrite": True}
        report = pyrnnx.score(path, source, tmp_path / "out", workers=0, **options)
        assert report.batching == graph.batching, (name, report.batching_reason)


PROBED = {"maximum behind lengths": EQUAL, "maximum of all rows": ALONE, "sum behind lengths": PADDED}


@each_row("name", PROBED)
def test_the_probe_is_a_second_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe detects dependence on padding or other rows, even if the graph's proof were wrong.

    The maxima of the first item are above zero, so copies of it alone would show nothing.
    """
    graph = GRAPHS[name]
    subject = subject_of(model_of(graph), input=None, axes=graph.axes, lengths="lens", inputs=None, outputs=None)
    proven = replace(subject.proof(), rows="", padding="")
    monkeypatch.setattr(type(subject), "proof", lambda self: proven)
    scorer = probe(subject, [np.abs(ITEMS[0]), *ITEMS[1:4]], [len(item) for item in ITEMS], Batching.PADDED)
    assert scorer.batching.value == PROBED[name]


def test_outputs_inside_a_model(tmp_path: Path) -> None:
    source = write_npy(tmp_path / "in", ITEMS)
    graph = GRAPHS["maximum behind lengths"]
    for output, batching in (("Y", PADDED), ("Z", EQUAL)):
        options: Any = {"axes": "TNI", "lengths": "lens", "outputs": [output], "overwrite": True}
        assert pyrnnx.score(model_of(graph), source, tmp_path / "out", workers=0, **options).batching == batching


def test_a_default_that_is_replaced(tmp_path: Path) -> None:
    """A bias of zeros behind the layer leaves the padding zero; the one that every call gives does not."""
    nodes = f"{LSTM} A = Add (Y, H) Z = ReduceSum <keepdims = 0> (A, zero)"
    model = model_of(GRAPHS["sum behind lengths"]._replace(nodes=nodes))
    model.graph.input.append(onnx.helper.make_tensor_value_info("H", 1, [HIDDEN]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(HIDDEN, np.float32), "H"))
    source = write_npy(tmp_path / "in", ITEMS)
    for name, inputs, batching in (("zero", {}, PADDED), ("one", {"H": np.ones(HIDDEN, np.float32)}, EQUAL)):
        report = pyrnnx.score(model, source, tmp_path / name, workers=0, lengths="lens", input="X", inputs=inputs)
        assert report.batching == batching, report.batching_reason


def test_a_constant_for_each_row() -> None:
    """An operand for a fixed number of rows may be a constant only if it is the same for all of them."""
    rows = Value(((Atom(ROWS, 2),), axis_of(3)))
    assert broadcast([rows, constant(np.ones((2, 1)))], "Add") == rows.axes
    with pytest.raises(UnprovenError, match="Add has a constant with an element for each row"):
        broadcast([rows, constant(np.array([[1], [2]]))], "Add")


def test_items_of_different_steps(tmp_path: Path) -> None:
    """Steps of one value are not repeated to the size of those of the items beside."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> m (float[T,N,I] X) => (float[?,?,1] Z) '
        "{ Z = ReduceSum <keepdims = 1> (X, axes) }"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2]), "axes"))
    items = [np.full((3, size), 2, np.float32) for size in (4, 1)]
    source = write_npy(tmp_path / "in", items)
    pyrnnx.score(model, source, tmp_path / "out", workers=0, axes="TNI")
    scored = of_npz(tmp_path / "out")
    assert [scored[f"00{index}.npy"]["Z"].ravel().tolist() for index in (0, 1)] == [[8] * 3, [2] * 3]


def test_layers_with_a_scale_of_the_batch() -> None:
    """DynamicQuantizeLSTM rounds X with one scale for all rows."""
    from layers import random_layer

    from pyrnnx import RecurrentOp
    from pyrnnx.operator.quantized import Quantized

    layer = random_layer(RecurrentOp("LSTM", hidden_size=HIDDEN), SIZE)
    options: Any = dict.fromkeys(("input", "axes", "lengths", "inputs", "outputs"))
    assert subject_of(layer, **options).proof() == Proof()
    layer._kept = {**layer._kept, "W": Quantized(np.zeros(1, np.int8), np.ones(1, np.float32), np.zeros(1, np.int8))}
    assert "scale for the whole batch" in subject_of(layer, **options).proof().rows
