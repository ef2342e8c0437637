"""Loops and choices of IRs that OpenVINO writes: it is the witness."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx_bodies
import openvino_bodies as bodies
import pytest
from layers import random_inputs, random_weights
from openvino_bodies import H, I, N, T, chosen, const, counted, iterated, looped, one_step_then_loop, ops, parameter
from openvino_irs import check, from_onnx, openvino, run_there, save, types_in

from pyrnnx import OPENVINO_SEQUENCE, Direction, RecurrentOp
from pyrnnx.frontends.onnx import read_model as read_onnx
from pyrnnx.frontends.openvino import BoundLayer, read_model, to_onnx
from pyrnnx.op import CELLS

# Bodies that are one cell over a slice

LOOPED: dict[str, dict[str, Any]] = {
    f"{kind} {direction} axis {axis}": {"kind": kind, "reverse": direction == "reverse", "axis": axis}
    for kind, direction, axis in product(CELLS, ("forward", "reverse"), (0, 1))
}
LOOPED |= {f"{kind} reshape": {"kind": kind, "reshape": True} for kind in CELLS}
LOOPED |= {f"{kind} dynamic": {"kind": kind, "dynamic": True, "axis": k % 2} for k, kind in enumerate(CELLS)}


@pytest.mark.parametrize("case", LOOPED.values(), ids=LOOPED)
def test_a_loop_around_one_cell_is_a_sequence(case: dict[str, Any], tmp_path: Path) -> None:
    model, arrays = looped(**case)
    path = save(model, tmp_path)
    assert ("TensorIterator", "opset1") in types_in(path)
    read = check(path, arrays)
    layer = read.layers["loop"]
    assert isinstance(layer, BoundLayer)
    assert layer.operation.type == f"{case['kind']}Sequence"
    assert layer.op.direction.value == ("reverse" if case.get("reverse") else "forward")
    assert list(read.layers) == ["loop"]
    (recurrent,) = (node for node in to_onnx(read).graph.node if node.op_type in CELLS)
    assert recurrent.op_type == case["kind"]


def test_a_sequence_of_compressed_weights(tmp_path: Path) -> None:
    model, arrays = looped("LSTM")
    path = save(model, tmp_path, f16=True)
    assert isinstance(check(path, arrays).layers["loop"], BoundLayer)


def test_such_a_sequence_is_streamed(tmp_path: Path) -> None:
    """As `model.stream` carries any layer: here from the states that it is given."""
    model, (X, *firsts) = looped("LSTM", dynamic=True)
    read = read_model(save(model, tmp_path))
    whole = list(read(X, *firsts).values())
    outputs, inputs = ([info.name for info in infos] for infos in (read.outputs, read.inputs))
    states = dict(zip(outputs[1:], inputs[1:], strict=True))
    stream = read.stream(states, initial=dict(zip(inputs[1:], firsts, strict=True)))
    parts = [stream.push(X[:, begin : begin + 2]) for begin in range(0, T, 2)]
    np.testing.assert_allclose(np.concatenate([part[outputs[0]] for part in parts], 1), whole[0], atol=1e-6)


# Other bodies

OTHERS: dict[str, Callable[[], bodies.Model]] = {
    **{f"slices of {part} {kind}": partial(iterated, kind, part=part) for part in (1, 2, 3) for kind in ("GRU", "RNN")},
    "slices backwards": lambda: iterated(part=2, reverse=True),
    "narrow slices backwards": lambda: iterated(part=1, reverse=True),
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


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_other_bodies(make: Callable[[], bodies.Model], tmp_path: Path) -> None:
    model, arrays = make()
    read = check(save(model, tmp_path), arrays)
    assert read.layers
    assert all(isinstance(layer, BoundLayer) for layer in read.layers.values())


def test_a_loop_that_never_begins(tmp_path: Path) -> None:
    """OpenVINO cannot compile it: the parts of no iterations have no shape there."""
    model, (X, h0) = counted(first=False)
    path = save(model, tmp_path)
    check(path, [X, h0], expected=[h0, np.zeros((N, 0, H), np.float32), np.zeros(1, np.float32)])


# What OpenVINO makes of ONNX models, and of its own sequences

SOURCES: dict[str, Callable[[], onnx_bodies.Made]] = {
    "Scan": onnx_bodies.scan,
    "Scan in reverse": lambda: onnx_bodies.scan(reverse=True),
    "Loop": onnx_bodies.loop,
    "If, then": onnx_bodies.choice,
    "If, else": lambda: onnx_bodies.choice(first=False),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_bodies_of_onnx_models(make: Callable[[], onnx_bodies.Made], tmp_path: Path) -> None:
    proto, arrays = make()
    read = check(save(from_onnx(proto, tmp_path), tmp_path), arrays)
    assert read.layers
    expected = list(read_onnx(proto)(*arrays).values())
    for one, other in zip(read(*arrays).values(), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)


DIRECTIONS = (Direction("forward"), Direction("reverse"))  # the other is no loop to OpenVINO
SEQUENCES = [(kind, direction, lens) for kind in CELLS for direction in DIRECTIONS for lens in ((), (T, 1, 4))]


@pytest.mark.parametrize(("kind", "direction", "lens"), SEQUENCES, ids=lambda one: str(getattr(one, "value", one)))
def test_sequences_as_loops(kind: str, direction: Direction, lens: tuple[int, ...], tmp_path: Path) -> None:
    """With lengths, a loop holds the states of rows that are over; the sequence before it is the witness."""
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
    expected = run_there(model, given)
    transformations = pytest.importorskip("openvino._offline_transformations")
    transformations.convert_sequence_to_tensor_iterator_transformation(model)
    path = save(model, tmp_path)
    assert ("TensorIterator", "opset1") in types_in(path)
    read = check(path, given, expected=expected)
    assert len(read.layers) == op.num_directions
