"""Loops and choices of IRs that OpenVINO writes, compared with OpenVINO."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino_bodies as bodies
import pytest
from layers import random_inputs, random_weights
from openvino_bodies import (
    H,
    I,
    N,
    T,
    chosen,
    const,
    counted,
    iterated,
    looped,
    one_step_then_loop,
    ops,
    parameter,
    result,
)
from openvino_irs import check, from_onnx, openvino, save, types_in
from peers import run_openvino
from rows import each_row, few_rows
from written_bodies import GRAPHS

from pyrnnx import OPENVINO_SEQUENCE, Direction, FormatError, RecurrentOp, UnsupportedError
from pyrnnx.frontends.onnx import read_model as read_onnx
from pyrnnx.frontends.openvino import BoundLayer, read_model, to_onnx
from pyrnnx.operator.op import CELLS, CellName

LOOPED: dict[str, dict[str, Any]] = {
    f"{kind} {direction} axis {axis}": {"kind": kind, "reverse": direction == "reverse", "axis": axis}
    for kind, direction, axis in product(CELLS, ("forward", "reverse"), (0, 1))
}
LOOPED |= {f"{kind} reshape": {"kind": kind, "reshape": True} for kind in CELLS}
LOOPED |= {f"{kind} dynamic": {"kind": kind, "dynamic": True, "axis": k % 2} for k, kind in enumerate(CELLS)}


# the cells, directions and axes in turn; one reshaped, one dynamic
FEW = [name for k, name in enumerate(LOOPED) if k in (0, 6, 11, 13, 17)]


@few_rows("case", [LOOPED[name] for name in FEW], [LOOPED[name] for name in LOOPED if name not in FEW], ids=str)
def test_a_loop_around_one_cell_is_a_sequence(case: dict[str, Any], tmp_path: Path) -> None:
    model, arrays = looped(**case)
    path = save(model, tmp_path, f16=case.get("dynamic", False))
    assert ("TensorIterator", "opset1") in types_in(path)
    read = check(path, arrays)
    layer = read.layers["loop"]
    assert isinstance(layer, BoundLayer)
    assert layer.operation.type == f"{case['kind']}Sequence"
    assert layer.op.direction.value == ("reverse" if case.get("reverse") else "forward")
    assert list(read.layers) == ["loop"]
    (recurrent,) = (node for node in to_onnx(read).graph.node if node.op_type in CELLS)
    assert recurrent.op_type == case["kind"]


OTHERS: dict[str, Callable[[], bodies.Model]] = {
    **{f"slices {kind}": partial(iterated, kind) for kind in ("GRU", "RNN")},
    "slices backwards": lambda: iterated(reverse=True),
    "Loop": counted,
    "Loop of a computed number": lambda: counted(computed=True),
    "Loop until a condition": lambda: counted(trips=6, most=2.5),
    "Loop of no limit": lambda: counted(trips=-1, most=5.5),
    "Loop of a computed number that is none": lambda: counted(trips=-1, most=5.5, computed=True),
    "Loop over slices": lambda: counted(trips=6, sliced=1),
    "Loop over slices backwards": lambda: counted(trips=6, sliced=-1),
    "Loop over slices until a condition": lambda: counted(trips=6, most=2.5, sliced=1),
    "Loop of none": lambda: counted(trips=0, computed=True),
    "If, then": lambda: chosen(one_step_then_loop, True),
    "If, else a Loop": lambda: chosen(one_step_then_loop, False),
}


@few_rows("name", [*OTHERS][::3], [name for k, name in enumerate(OTHERS) if k % 3])
def test_other_bodies(name: str, tmp_path: Path) -> None:
    model, arrays = OTHERS[name]()
    read = check(save(model, tmp_path), arrays)
    assert read.layers
    assert all(isinstance(layer, BoundLayer) for layer in read.layers.values())


def test_unequal_slices(tmp_path: Path) -> None:
    path = save(iterated()[0], tmp_path)
    text = path.read_text("utf-8")
    longer = re.sub(rf"(<dim>4</dim>\s*)<dim>{T}</dim>", rf"\g<1><dim>{T + 1}</dim>", text)
    assert longer != text
    path.write_text(longer.replace(f'"{N},4,{T}"', f'"{N},4,{T + 1}"'), "utf-8")
    with pytest.raises(FormatError, match=rf"its sliced inputs have \[{T}, {T + 1}\] slices; expected the same number"):
        to_onnx(read_model(path))


def test_a_loop_that_never_ends(tmp_path: Path) -> None:
    X, total = parameter([N, I]), parameter([N, I])
    after, again = result(ops.add(total, const(1, np.float32))), result(const(True, np.bool_))
    loop = ops.loop(const(-1), const(True, np.bool_))
    loop.set_function(openvino.Model([again, after], [total], "body"))
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(total, X.output(0), after.output(0))
    path = save(openvino.Model([ops.result(loop.get_iter_value(after.output(0), -1))], [X], "endless"), tmp_path)
    with pytest.raises(UnsupportedError, match="it never ends: it has no number of iterations"):
        read_model(path)(np.ones((N, I), np.float32))


def test_a_loop_that_never_begins(tmp_path: Path) -> None:
    """OpenVINO cannot compile it: the parts of no iterations have no shape there."""
    model, (X, h0) = counted(first=False)
    path = save(model, tmp_path)
    check(path, [X, h0], expected=[h0, np.zeros((N, 0, H), np.float32), np.zeros(1, np.float32)])


# OpenVINO's conversions of ONNX models, and of its own sequences


@each_row("name", ["scanned", "until a condition", "nested choices, two results", "around a recurrent node"])
def test_bodies_of_onnx_models(name: str, tmp_path: Path) -> None:
    proto, arrays = GRAPHS[name].model(), list(GRAPHS[name].inputs.values())
    read = check(save(from_onnx(proto, tmp_path), tmp_path), arrays)
    assert len(read.layers) == (name == "around a recurrent node")
    for one, other in zip(read(*arrays).values(), read_onnx(proto)(*arrays).values(), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)


DIRECTIONS = (Direction("forward"), Direction("reverse"))  # the other is no loop to OpenVINO
SEQUENCES = [(kind, direction, () if kind == "RNN" else (T, 1, 4)) for kind in CELLS for direction in DIRECTIONS]


@few_rows(("kind", "direction", "lens"), SEQUENCES[::3], SEQUENCES, ids=lambda one: str(getattr(one, "value", one)))
def test_sequences_as_loops(kind: CellName, direction: Direction, lens: tuple[int, ...], tmp_path: Path) -> None:
    """A loop with lengths keeps the states of finished rows; the original sequence is the reference."""
    op = RecurrentOp(kind, H, direction)
    weights = random_weights(op, I, convention=OPENVINO_SEQUENCE, seed=kind)
    arrays = random_inputs(op, (T, N, I), convention=OPENVINO_SEQUENCE, lens=lens or (T,) * N, seed=kind)
    inputs = {name: parameter(a.shape, a.dtype) for name, a in arrays.items() if name != "sequence_lengths"}
    lengths = const(arrays["sequence_lengths"], np.int32) if not lens else parameter((N,), np.int32)
    make = {"RNN": ops.rnn_sequence, "GRU": ops.gru_sequence, "LSTM": ops.lstm_sequence}[kind]
    own = [["tanh"], [], []] if kind == "RNN" else []
    constants = [const(a, np.float32) for a in weights.values()]
    node = make(*inputs.values(), lengths, *constants, H, direction.value, *own)
    parameters = [*inputs.values(), *([lengths] if lens else [])]
    model = openvino.Model([ops.result(one) for one in node.outputs()], parameters, "sequence")
    given = [arrays[name] for name in inputs] + ([arrays["sequence_lengths"]] if lens else [])
    expected = run_openvino(model, given)
    transformations = pytest.importorskip("openvino._offline_transformations")
    transformations.convert_sequence_to_tensor_iterator_transformation(model)
    path = save(model, tmp_path)
    assert ("TensorIterator", "opset1") in types_in(path)
    read = check(path, given, expected=expected)
    assert len(read.layers) == 1
