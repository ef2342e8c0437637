"""Parts of a call: sums of profiled events by layer and operator. No time is asserted."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from rows import each_row
from two_layers import two_layers

from pyrnnx import UnsupportedError
from pyrnnx.bench.breakdown import Breakdown, measure_parts, parts_of
from pyrnnx.testing.numbers import Array

pytestmark = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs ONNX Runtime")

CALLS = 4


def call(*nodes: tuple[str, str, int]) -> list[dict[str, Any]]:
    """Return the events of one run: (name, operator, microseconds) of its nodes."""
    events = [
        {"cat": "Node", "name": f"{name}_kernel_time", "dur": dur, "args": {"op_name": operator}}
        for name, operator, dur in nodes
    ]
    return [*events, {"cat": "Session", "name": "model_run", "dur": 1000, "args": {}}]


RNN, ADD, MORE = ("rnn", "Recurrent", 8), ("a", "Add", 2), ("b", "Add", 4)
SLOW = ("rnn", "Recurrent", 500)

# The calls, the first three untimed, and (kind, name, runs, microseconds) of the parts.
PROFILES: dict[str, tuple[list[Any], list[tuple[str, str, float, float]]]] = {
    "layer and operator": ([call(RNN, ADD, MORE)] * 7, [("layer", "rnn", 1, 8), ("operator", "Add", 2, 6)]),
    "first calls do not count": ([*[call(SLOW)] * 3, *[call(RNN)] * 4], [("layer", "rnn", 1, 8)]),
    "nor does one slow call": ([*[call(RNN)] * 6, call(SLOW)], [("layer", "rnn", 1, 8)]),
    "body of a loop": ([call(ADD, ADD, ADD, ("loop", "Loop", 90))] * 7, [("operator", "Add", 3, 6)]),
    "branch of the first calls": ([*[call(ADD, RNN)] * 3, *[call(RNN)] * 4], [("layer", "rnn", 1, 8)]),
    "branch of one call": (
        [call(ADD), *[call(RNN)] * 5, call(ADD)],
        [("layer", "rnn", 0.75, 6), ("operator", "Add", 0.25, 0.5)],
    ),
    "two layers": (
        [call(("l", "Recurrent", 1), RNN)] * 7,
        [("layer", "rnn", 1, 8), ("layer", "l", 1, 1)],
    ),
    "no nodes": ([call()] * 7, []),
}


@each_row(("calls", "expected"), PROFILES.values(), ids=PROFILES)
def test_parts(calls: list[Any], expected: list[tuple[str, str, float, float]]) -> None:
    events = [{**event, "ts": 1000 * k} for k, one in enumerate(calls) for event in one]
    found = [(part.kind, part.name, part.nodes, round(part.seconds * 1e6, 6)) for part in parts_of(events, CALLS)]
    assert found == expected


def test_shares_of_no_time() -> None:
    """The clock of a profile has whole microseconds."""
    parts = parts_of([{**event, "ts": k} for k in range(7) for event in call(("a", "Add", 0))], CALLS)
    assert Breakdown("", 1, CALLS, 1.0, parts).to_dict()["parts"][0]["share"] == 0


def test_model(tmp_path: Path) -> None:
    onnx.save(two_layers("GRU"), tmp_path / "m.onnx")
    inputs: dict[str, Array] = {"X": np.ones((3, 2, 4), np.float32)}
    texts: list[str] = []
    found = measure_parts(tmp_path / "m.onnx", inputs, 1, 5, progress=texts.append)
    assert texts == [*(f"round {k} of 5" for k in range(1, 6)), f"{found.calls} calls with a profile"]
    layers = {part.name: part.nodes for part in found.parts if part.kind == "layer"}
    assert set(layers.values()) == {1}
    assert len(layers) == 2
    values = json.loads(json.dumps(found.to_dict()))
    assert sum(part["share"] for part in values["parts"]) == pytest.approx(1)
    assert min(values["call"], values["nodes"], values["calls"]) > 0


def test_a_model_that_onnxruntime_rejects(tmp_path: Path) -> None:
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    node = onnx.helper.make_node("Nonsense", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "none", [x], [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match=r"m\.onnx: ONNX Runtime cannot run the model: .*Nonsense"):
        measure_parts(tmp_path / "m.onnx", {"x": np.ones(2, np.float32)}, 1, 5)
