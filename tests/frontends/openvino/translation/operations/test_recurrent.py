"""Recurrent operations that OpenVINO saves: cells, computed weights, activations with parameters."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from layers import random_arrays
from openvino_irs import check, save
from openvino_layers import DEFAULTS, assert_same, function, make_arrays, write
from rows import each_row, few_rows

from pyrnnx import (
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    Direction,
    RecurrentOp,
    UnsupportedError,
    reference,
)
from pyrnnx.frontends.openvino import OPERATIONS, BoundLayer, IRLayer, Model, read_layer, read_model, to_onnx
from pyrnnx.operator.op import CellName
from pyrnnx.testing.numbers import Array

openvino = pytest.importorskip("openvino")
operations = pytest.importorskip("openvino.opset13")

T, N, I, H = 5, 3, 4, 6
FLAVOURS: tuple[tuple[CellName, bool], ...] = (("RNN", False), ("GRU", False), ("GRU", True), ("LSTM", False))


def run(name: str, op: RecurrentOp, arrays: dict[str, Array], constants: str, folder: Path, **attributes: Any) -> Model:
    """Check a model of one operation, with those of its inputs constant whose first letters are `constants`.

    If `is_open`, batch and time are dynamic, and constants are saved in float16.
    """
    expected, is_open = attributes.pop("expected", None), attributes.pop("is_open", False)
    nodes = {}
    for key, array in arrays.items():
        sizes = [-1 if is_open and size in (N, T) else size for size in array.shape]
        kind = array.dtype.type
        nodes[key] = operations.constant(array) if key[0] in constants else operations.parameter(sizes, kind)
    if op.cell == "GRU":
        attributes["linear_before_reset"] = op.linear_before_reset
    attributes = {"activations": DEFAULTS[op.cell], "activations_alpha": [], "activations_beta": [], **attributes}
    node = getattr(operations, name)(*nodes.values(), hidden_size=H, **attributes)
    names = [key for key in arrays if key[0] not in constants]
    results = [operations.result(output) for output in node.outputs()]
    path = save(openvino.Model(results, [nodes[key] for key in names], "model"), folder, f16=is_open)
    # float32: sums of up to 11 terms in another order, vectorised exp and tanh of some units, 5 steps
    return check(path, [arrays[key] for key in names], tolerance=5e-6, expected=expected)


@each_row(("cell", "lbr"), FLAVOURS)
def test_cell(cell: CellName, lbr: bool, tmp_path: Path) -> None:
    op = RecurrentOp(cell, H, linear_before_reset=lbr)
    arrays = random_arrays(op, (1, N, I), convention=OPENVINO_CELL)
    run(f"{cell.lower()}_cell", op, arrays, "WRB", tmp_path, clip=0.5)


SEQUENCES = [(*row, *flavour) for *row, flavour in product((False, True), Direction, FLAVOURS)]


# Each third row: every cell and every direction, open and not.
@few_rows(
    ("is_open", "direction", "cell", "lbr"), SEQUENCES[::3], [row for k, row in enumerate(SEQUENCES) if k % 3], str
)
def test_sequence(cell: CellName, lbr: bool, direction: Direction, is_open: bool, tmp_path: Path) -> None:
    """Lengths are inputs; states are constants, or inputs of an open batch, for which OpenVINO ignores lengths."""
    op = RecurrentOp(cell, H, direction, linear_before_reset=lbr)
    arrays = random_arrays(op, (T, N, I), convention=OPENVINO_SEQUENCE, lens=(T, 0, 3))
    attributes: dict[str, Any] = {"direction": direction.value, "clip": 0.5}
    expected = None
    if is_open:
        half = {name: a.astype(np.float16).astype(np.float32) for name, a in arrays.items()}  # float16 has them exactly
        arrays = half | {"sequence_lengths": arrays["sequence_lengths"].astype(np.int64)}
        own = attributes | ({"linear_before_reset": lbr} if cell == "GRU" else {})
        expected = function(f"{cell}Sequence", *arrays.values(), **own)
    constants = "WRB" if is_open else "HCWRB"
    run(f"{cell.lower()}_sequence", op, arrays, constants, tmp_path, is_open=is_open, expected=expected, **attributes)


@each_row("lengths", [(T, 1, 3), (3, 3, 3), (T, T, T)])
def test_activation_parameters(lengths: tuple[int, ...], tmp_path: Path) -> None:
    """OpenVINO writes functions that its plugins do not run; the oracle knows them. Places in the lists, not turns."""
    attributes: dict[str, Any] = {"activations": ["hardsigmoid", "tanh", "elu"], "direction": "bidirectional"}
    attributes |= {"activations_alpha": [0.3, 9.0, 0.7], "activations_beta": [0.4, 9.0]}
    op = RecurrentOp("LSTM", H, Direction.BIDIRECTIONAL)
    arrays = random_arrays(op, (T, N, I), convention=OPENVINO_SEQUENCE, lens=lengths)
    wanted = [array.astype(np.float32) for array in reference.run("LSTMSequence-5", *arrays.values(), **attributes)]
    read = run("lstm_sequence", op, arrays, "sWRB", tmp_path, expected=wanted, **attributes)
    assert isinstance(next(iter(read.layers.values())), BoundLayer)
    node = next(node for node in to_onnx(read).graph.node if node.op_type == "LSTM")
    assert bool(node.input[4]) is (lengths != (T, T, T))  # lengths that say what X says are left out


def test_lstm_cell_1(tmp_path: Path) -> None:
    """OpenVINO writes input_forget and weights_format, and no port of P."""
    opset1, op = pytest.importorskip("openvino.opset1"), RecurrentOp("LSTM", H)
    X, h, c, *weights = random_arrays(op, (1, N, I), convention=OPENVINO_CELL).values()
    parameters = [operations.parameter(array.shape, np.float32) for array in (X, h, c)]
    node = opset1.lstm_cell(*parameters, *map(operations.constant, weights), H, DEFAULTS["LSTM"], [], [], clip=0.4)
    model = openvino.Model([operations.result(output) for output in node.outputs()], parameters, "model")
    (layer,) = check(save(model, tmp_path), [X, h, c], tolerance=5e-6).layers.values()
    assert isinstance(layer, BoundLayer)
    assert layer.operation is OPERATIONS["LSTMCell-1"]


def recurrent_model(kind: str, **data: str) -> tuple[Any, list[Array]]:
    """Return a net of one layer, all of whose inputs are the model's, and arrays for it."""
    text = write(kind, data, precision="FP32", attributes='id="50" name="it"')
    declared = read_layer(text)
    arrays = make_arrays(declared)
    layers = [
        nets.parameter(
            k, port.name, ",".join(map(str, array.shape)), array.shape, "i32" if array.dtype.kind == "i" else "f32"
        )
        for k, (port, array) in enumerate(zip(declared.inputs, arrays, strict=True))
    ]
    layers += [
        text,
        *(nets.result(60 + k, f"y{k}", [size or 0 for size in port.shape]) for k, port in enumerate(declared.outputs)),
    ]
    ends = [f"{k}.0 50.{port.id}" for k, port in enumerate(declared.inputs)]
    ends += [f"50.{port.id} {60 + k}.0" for k, port in enumerate(declared.outputs)]
    return read_model(nets.net(layers, nets.edges(*ends)), b""), arrays


@each_row("kind", OPERATIONS)
def test_recurrent_versions(kind: str) -> None:
    """Weights, states and lengths computed at run time: the numbers of the function."""
    more: dict[str, Any] = {"direction": "bidirectional"} if "Sequence" in kind else {"clip": 0.5}
    more |= {"linear_before_reset": True} if kind.startswith("GRU") else {}
    rows: list[dict[str, Any]] = [{}, more]
    for attributes in rows:
        model, arrays = recurrent_model(kind, **{name: str(value) for name, value in attributes.items()})
        wanted, declared = function(kind, *arrays, **attributes), model.layers["it"]
        assert isinstance(declared, IRLayer)
        assert_same(tuple(model(*arrays).values()), wanted)
        assert_same(declared(*arrays), wanted)
    with pytest.raises(UnsupportedError, match=r"'it' \(id 50\): W \(input \d\) is computed by Parameter"):
        to_onnx(model)


@each_row("kind", ["LSTMSequence-1", "LSTMCell-1"])
def test_input_forget(kind: str) -> None:
    """P in the order f, i, o, and i = 1 - f."""
    for activations in (None, ["hardsigmoid", "tanh", "tanh"]):
        own = {} if activations is None else {"activations": activations}
        model, arrays = recurrent_model(
            kind, input_forget="true", **{key: ",".join(names) for key, names in own.items()}
        )
        assert_same(tuple(model(*arrays).values()), function(kind, *arrays, input_forget=True, **own))
