"""Random recurrent layers as ONNX node, IR and ONNX again: the same result in all runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import float32, random_arrays
from openvino_irs import run_exported
from openvino_nodes import IR_NAMES, IR_OUTPUTS, Drawn, draw
from peers import compile_openvino, run_openvino
from rows import each_row, few_rows
from whole_models import Arrays, Results, check_calls

from pyrnnx import OPENVINO_CELL, Layer, RecurrentOp
from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends.openvino import OPERATIONS, BoundLayer, read_model, to_onnx, write_model
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of

openvino = pytest.importorskip("openvino")

# float32 on every side: sums of up to 30 terms in another order, up to 7 steps, functions of some units each
TOLERANCE = 1e-5


def run_written(path: Path, drawn: Drawn) -> tuple[Array, ...]:
    """Run a written node through OpenVINO, with its names of inputs and outputs."""
    inputs = drawn.ir_inputs()
    # with dynamic shapes the plugin ignores lengths; without lengths these stay dynamic
    compiled = compile_openvino(path, inputs if "sequence_lens" in drawn.arrays else None)
    assert [port.any_name for port in compiled.inputs] == [name for name in IR_NAMES.values() if name in inputs]
    assert tuple(port.any_name for port in compiled.outputs) == IR_OUTPUTS[drawn.case.operator]
    results = compiled(inputs)
    return drawn.as_onnx([results[port] for port in compiled.outputs])


@few_rows("seed", range(0, 60, 20), range(500), mark="nightly")
def test_node_to_ir_to_onnx(seed: int, tmp_path: Path) -> None:
    drawn = draw(seed)
    layer, expected, inputs = drawn.layer(), drawn.expected(), drawn.ir_inputs()
    path = write_model(layer, tmp_path / "layer.xml")
    model = read_model(path)
    (read,) = model.layers.values()
    assert (read.name, read.op) == (layer.name, layer.op)
    exported = to_onnx(model)
    assert_close(drawn.as_onnx(model(inputs)), expected, tolerance_of(float32), drawn)
    if seed % 15 == 0:

        def fresh(feeds: Arrays) -> Results:
            return read_model(path)(feeds)

        check_calls(model, fresh, inputs, atol=0, label=str(drawn))
    assert_close(run_written(path, drawn), expected, TOLERANCE, drawn)
    assert_close(drawn.as_onnx(run_exported(exported, [*inputs.values()])), expected, TOLERANCE, drawn)
    (back,) = onnx_frontend.read_model(exported).layers.values()
    assert isinstance(back, Layer)
    assert back.op == layer.op
    for name in ("W", "R"):
        np.testing.assert_array_equal(back.weights[name], layer.weights[name])


CELLS_AND_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("RNNCell-1", {}), ("GRUCell-3", {}), ("GRUCell-3", {"linear_before_reset": True}),
    ("LSTMCell-4", {"clip": 0.25}), ("LSTMCell-1", {}),  # becomes LSTMCell-4
]  # fmt: skip


@each_row(("name", "flags"), CELLS_AND_OPTIONS, ids=str)
def test_cells(name: str, flags: dict[str, Any], tmp_path: Path) -> None:
    op = RecurrentOp(OPERATIONS[name].cell, 5, **flags)
    *inputs, W, R, B = random_arrays(op, (1, 3, 4), convention=OPENVINO_CELL).values()
    layer = BoundLayer(OPERATIONS[name], op, W, R, B)
    there = run_openvino(write_model(layer, tmp_path / "cell.xml"), inputs)
    assert_close(there, layer(*inputs), TOLERANCE)
