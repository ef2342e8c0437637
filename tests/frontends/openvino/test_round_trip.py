"""Random recurrent layers: ONNX node -> IR -> ONNX, IR by OpenVINO -> ONNX; the same result in all runtimes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import float32, random_arrays
from lxml import etree
from openvino_irs import run_exported
from openvino_nodes import IR_NAMES, IR_OUTPUTS, Drawn, draw
from peers import compile_openvino, run_openvino
from rows import each_row, few_rows
from whole_models import Arrays, Results, check_calls

from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, Layer, RecurrentOp
from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends import openvino as openvino_frontend
from pyrnnx.frontends.openvino import OPERATIONS, BoundLayer, read_model, to_onnx, write_model
from pyrnnx.operator.op import CELLS
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of

openvino = pytest.importorskip("openvino")
operations = pytest.importorskip("openvino.opset13")

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


@few_rows("seed", range(0, 60, 10), range(500))
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


def cell_arrays(op: RecurrentOp) -> tuple[list[Array], list[Array]]:
    """Return inputs and weights of one step."""
    arrays = [*random_arrays(op, (1, 3, 4), convention=OPENVINO_CELL).values()]
    return arrays[:-3], arrays[-3:]


@each_row(("name", "flags"), CELLS_AND_OPTIONS, ids=str)
def test_cells(name: str, flags: dict[str, Any], tmp_path: Path) -> None:
    op = RecurrentOp(OPERATIONS[name].cell, 5, **flags)
    inputs, weights = cell_arrays(op)
    layer = BoundLayer(OPERATIONS[name], op, *weights)
    there = run_openvino(write_model(layer, tmp_path / "cell.xml"), inputs)
    assert_close(there, layer(*inputs), TOLERANCE)


@each_row("name", ["a<b>&\"'c", "é漢字", "tab\t, line\n and \r", "X", "Y", "a,b", " blank "])
def test_names(name: str, tmp_path: Path) -> None:
    """OpenVINO sees the name, and no other layer or tensor suffers from it."""
    op = RecurrentOp("RNN", 5)
    layer = BoundLayer(OPERATIONS["RNNCell-1"], op, *cell_arrays(op)[1], name=name)
    path = write_model(layer, tmp_path / "named.xml")
    assert list(read_model(path).layers) == [name]
    model = openvino.Core().read_model(path)
    names = [node.get_friendly_name() for node in model.get_ops()]
    assert [node.get_friendly_name() for node in model.get_ops() if node.get_type_name() == "RNNCell"] == [name]
    assert len(set(names)) == len(names)
    assert [port.any_name for port in (*model.inputs, *model.outputs)] == ["X", "H", "Ho"]


@each_row("seed", range(9))
def test_openvino_writes_the_same_again(seed: int, tmp_path: Path) -> None:
    """The same attributes in the same order, with the same texts but for clip's digits, and the same ports."""
    path = write_model(draw(seed).layer(), tmp_path / "layer.xml")
    openvino.save_model(openvino.Core().read_model(path), tmp_path / "again.xml", compress_to_fp16=False)
    mine, theirs = (recurrent_element(file) for file in (path, tmp_path / "again.xml"))
    assert {**mine.attrib, "id": ""} == {**theirs.attrib, "id": ""}
    attributes = [list(element.find("data").attrib.items()) for element in (mine, theirs)]
    rounded = [[(key, str(np.float32(text)) if key == "clip" else text) for key, text in pairs] for pairs in attributes]
    assert rounded[0] == rounded[1]
    for element in (mine, theirs):
        element.remove(element.find("data"))
        for port in element.iter("port"):
            port.attrib.pop("names", None)
    assert describe(mine) == describe(theirs)


def recurrent_element(path: Path) -> Any:
    (element,) = [one for one in etree.parse(path).iter("layer") if str(one.get("type")).endswith("Sequence")]
    return element


def describe(element: Any) -> list[Any]:
    return [(one.tag, dict(one.attrib), (one.text or "").strip()) for one in element.iterdescendants()]


@dataclass(frozen=True)
class Sequences:
    """A sequence operation with inputs in port order; those at `constant` are constants, lengths as `lengths` says."""

    function: str
    attributes: dict[str, Any]
    arrays: tuple[Array, ...]
    constant: frozenset[int]
    dynamic: frozenset[str]
    compressed: bool

    @property
    def given(self) -> list[Array]:
        return [array for k, array in enumerate(self.arrays) if k not in self.constant]


def draw_ir(seed: int) -> Sequences:
    rng = np.random.default_rng(seed)
    drawn = draw(seed)
    case = drawn.case
    H, lbr = case.H, bool(case.attributes.get("linear_before_reset"))
    op = RecurrentOp(case.cell, H, case.attributes["direction"], linear_before_reset=lbr)
    lengths = {0: [case.T] * case.N, 1: [0] * case.N}.get(int(rng.integers(4)), rng.integers(0, case.T + 1, case.N))
    sizes = (case.T, case.N, case.I)
    named = random_arrays(op, sizes, convention=OPENVINO_SEQUENCE, lens=[int(k) for k in lengths], seed=seed)
    named["sequence_lengths"] = named["sequence_lengths"].astype([np.int32, np.int64][int(rng.integers(2))])
    arrays = [*named.values()]
    weights = range(len(arrays) - 3, len(arrays))
    functions = case.attributes.get("activations", CELLS[case.operator].activations)
    attributes: dict[str, Any] = {
        "hidden_size": H,
        "direction": case.attributes["direction"],
        "activations": [name.lower() for name in functions[: len(CELLS[case.operator].activations)]],
        "clip": case.attributes.get("clip", 0.0),
    }
    if case.operator == "GRU":
        attributes["linear_before_reset"] = lbr
    dynamic = frozenset(("", "T", "N", "NT")[seed // 9 % 4])
    others = range(1, 1 if "N" in dynamic else weights[0])  # a constant state fixes the batch size
    constant = frozenset(weights) | {k for k in others if rng.integers(3) == 0}
    compressed = bool(rng.integers(2))
    if compressed:  # exact in float16: a constant of one element may stay float32 when it is saved
        arrays = [a if a.dtype.kind == "i" else a.astype(np.float16).astype(np.float32) for a in arrays]
    return Sequences(f"{case.operator.lower()}_sequence", attributes, tuple(arrays), constant, dynamic, compressed)


def save(drawn: Sequences, path: Path) -> Path:
    inputs, parameters = [], []
    for k, array in enumerate(drawn.arrays):
        if k in drawn.constant:
            inputs.append(operations.constant(array))
            continue
        axes = {0: "NTI", len(drawn.arrays) - 4: "N"}.get(k, "NDH")
        shape = [-1 if axis in drawn.dynamic else size for axis, size in zip(axes, array.shape, strict=True)]
        parameters.append(operations.parameter(shape, array.dtype.type, name=f"input {k}"))
        inputs.append(parameters[-1])
    node = getattr(operations, drawn.function)(*inputs, **drawn.attributes, activations_alpha=[], activations_beta=[])
    model = openvino.Model([operations.result(output) for output in node.outputs()], parameters, "drawn")
    openvino.save_model(model, path, compress_to_fp16=drawn.compressed)
    return path


def check_ir(drawn: Sequences, path: Path) -> None:
    model = read_model(save(drawn, path))
    expected = getattr(openvino_frontend, drawn.function)(*drawn.arrays, **drawn.attributes)
    inputs = dict(zip((info.name for info in model.inputs), drawn.given, strict=True))
    assert_close(tuple(model(inputs).values()), expected, tolerance_of(float32), drawn)
    assert_close(run_exported(to_onnx(model), drawn.given), expected, TOLERANCE, drawn)
    if not drawn.dynamic:  # with a dynamic dimension the plugin ignores lengths
        assert_close(run_openvino(path, drawn.given), expected, TOLERANCE, drawn)


@few_rows("seed", range(0, 60, 5), range(400))
def test_ir_to_onnx(seed: int, tmp_path: Path) -> None:
    check_ir(draw_ir(seed), tmp_path / "model.xml")
