"""Layers of ONNX models: constant and computed weights, in branches, functions and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import GRU, LSTM, branches, case_model, lstm_node, simple_model, weights_of
from rows import each_row
from whole_models import check_calls

from pyrnnx import Layer, PyrnnxWarning, reference
from pyrnnx.frontends.onnx import NodeLayer, UnboundNode, read_model
from pyrnnx.testing.cases import expected_outputs, make_arrays
from pyrnnx.testing.numbers import assert_close, tolerance_of

node = helper.make_node
TOLERANCE = tolerance_of(LSTM.dtype)


def test_layer_with_computed_weights() -> None:
    model, given = case_model(LSTM, ("B", "initial_h"))
    model.graph.node[0].name = "it"
    read = read_model(model)
    (found,) = read.layers.values()
    assert isinstance(found, UnboundNode)
    assert (found.label, found.dtype, found.sizes, found.op) == ("LSTM 'it'", None, {}, None)
    assert_close(list(read(given).values()), expected_outputs(LSTM, make_arrays(LSTM)), TOLERANCE)
    arrays = make_arrays(LSTM)
    layer = found.bind(arrays["W"], arrays["R"], arrays["B"])
    assert_close(layer(given["X"], initial_c=given["initial_c"]), expected_outputs(LSTM, make_arrays(LSTM)), TOLERANCE)
    W, R, B = (arrays[name] for name in ("W", "R", "B"))
    assert_close(
        found(given["X"], W, R, B, initial_c=given["initial_c"]), expected_outputs(LSTM, make_arrays(LSTM)), TOLERANCE
    )
    assert "UnboundNode LSTM 'it'" in repr(found)


def test_layers_in_branches() -> None:
    proto, given = branches()
    model = read_model(proto)
    assert set(model.layers) == {"Y/else_branch/h", "Y/then_branch/h", "own", "V"}
    for condition, seed, branch in ((True, 1, "then_branch"), (False, 2, "else_branch")):
        weights = weights_of(LSTM, seed=seed)
        expected = reference.lstm(given["X"], **weights)
        assert_close([model({**given, "c": np.array(condition)})["Y"]], expected[:1], TOLERANCE)
        layer = model.layers[f"Y/{branch}/h"]
        assert isinstance(layer, Layer)
        assert_close(layer.run(given["X"]), expected, TOLERANCE)
    assert_close([model(given)["Z"]], expected[:1], TOLERANCE)


def test_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions run the very layers of `layers`, whichever comes first."""
    made: list[str] = []
    original = NodeLayer.__init__

    def counted(self: Any, *arguments: Any, **keywords: Any) -> None:
        made.append(keywords["name"])
        original(self, *arguments, **keywords)

    monkeypatch.setattr(NodeLayer, "__init__", counted)
    proto, given = branches()
    model = read_model(proto)
    for _ in range(3):
        model(given)
    assert len(model.layers) == len(made) == len(set(made)) == 4


def test_names_of_layers() -> None:
    """Empty and repeated names give way to outputs, and those to the names of other nodes."""
    nodes = [
        lstm_node("o", ["a"], name="same"),
        lstm_node("o", ["b"], name="same"),
        lstm_node("o", ["", "c"]),
        lstm_node("o", ["d"]),
        node("Identity", ["X"], ["e"], name="d"),
        lstm_node("o", ["f"], name="mine"),
    ]
    X = make_arrays(LSTM)["X"]
    model = read_model(simple_model(nodes, {"X": X}, ["a"], weights_of(LSTM, "o")))
    assert list(model.layers) == ["a", "b", "c", "d#2", "mine"]
    assert model.layers["mine"].label == "LSTM 'mine'"
    assert repr(model) == "<Model ONNX model: (X) -> (a)>"


@each_row("clip", [0.0, -0.0])
@each_row("constant", [("W", "R", "B"), ()])
def test_a_clip_of_zero_is_none(clip: float, constant: tuple[str, ...]) -> None:
    """Exporters mean no clip; it is an error everywhere else."""
    proto, inputs = case_model(GRU, constant)
    proto.graph.node[0].attribute.append(helper.make_attribute("clip", clip))
    weights = {name: array for name, array in make_arrays(GRU).items() if name in constant}
    with pytest.warns(PyrnnxWarning, match=r"GRU.*: clip is 0, .*; it is read as no clip"):
        check_calls(
            read_model(proto),
            lambda arrays: reference.run("GRU", **weights, **arrays, direction="bidirectional"),
            inputs,
        )
