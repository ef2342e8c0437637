"""Streams of IRs: written from ONNX models, by OpenVINO, and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_stacks
import openvino_bodies as bodies
import openvino_nets as nets
import pytest
from onnx_stacks import Stack
from openvino_bodies import H, I, N
from openvino_irs import from_onnx, openvino, save
from rows import each_row

from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model as read_onnx
from pyrnnx.frontends.openvino import Model, read_model, write_model

TOLERANCE = 2e-6  # float32: sums of some tens of terms, in another order where there are more rows
rng = np.random.default_rng(0)


def converted(stack: Stack, folder: Path, length: int) -> Model:
    return read_model(save(from_onnx(stack.model(), folder, {"x": (length, N, onnx_stacks.I)}), folder))


@each_row("length", [-1, 3, None], ids=["open", "fixed", "written here"])
@each_row("stack", [Stack("LSTM", 2), Stack("GRU", 1), Stack("RNN", 1)], ids=str)
def test_pushes_give_the_whole(stack: Stack, length: int | None, tmp_path: Path) -> None:
    if length is None:
        model = read_model(write_model(stack.model(), tmp_path / "model.xml"))
    else:
        model = converted(stack, tmp_path, length)
    X = stack.arrays(9, N)["x"]
    whole, *_ = read_onnx(stack.model())(X).values()
    stream = model.stream()
    cuts = [(0, 3), (3, 6), (6, 9)] if length == 3 else [(0, 1), (1, 2), (2, 6), (6, 9)]
    for _ in range(2):
        parts = [next(iter(stream.push(X[begin:end]).values())) for begin, end in cuts]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=TOLERANCE)
        assert len(stream.state) == stack.layers * (2 if stack.cell == "LSTM" else 1)
        assert {value.shape for value in stream.state.values()} == {(N, 1, onnx_stacks.H)}
        stream.reset()


@each_row("zeros", [False, True], ids=["Parameter", "Const"])
def test_cells(zeros: bool, tmp_path: Path) -> None:
    x, h = bodies.parameter([N, I]), bodies.parameter([N, H])
    (new,) = bodies.cell("RNN", x, [bodies.const(np.zeros((N, H)), np.float32) if zeros else h])
    h.output(0).set_names({"h"})
    new.set_names({"hN"})
    model = read_model(save(openvino.Model([bodies.ops.result(new)], [x] if zeros else [x, h], "cell"), tmp_path))
    stream, state = model.stream(), np.zeros((N, H), np.float32)
    assert dict(stream.states) == ({} if zeros else {"hN": "h"})
    for step in rng.uniform(-1, 1, (7, N, I)).astype(np.float32):
        (pushed,) = stream.push(step).values()
        (state,) = next(iter(model.layers.values()))(step, state)
        assert pushed.tobytes() == state.tobytes()
    assert len(stream.state) == 1


def test_parameters_that_are_fed_back() -> None:
    """An IR with H and C as inputs, open in their batch: their beginning has to be given."""
    model = read_model(*nets.lstm_net())
    X = rng.uniform(-1, 1, (2, 5, nets.I)).astype(np.float32)
    zeros = {name: np.zeros((2, 1, nets.H), np.float32) for name in "HC"}
    stream = model.stream()
    assert dict(stream.states) == {"Ho": "H", "Co": "C"}
    with pytest.raises(ArgumentError, match=r"the state 'H' .* has no initial value"):
        stream.push(X, lengths=np.array([5, 5], np.int32))
    stream.state = zeros
    parts = [stream.push(X[:, t : t + 1], lengths=np.ones(2, np.int32)) for t in range(5)]
    whole = model(X, zeros["H"], zeros["C"], np.array([5, 5], np.int32))
    np.testing.assert_allclose(
        np.concatenate([part["Y"] for part in parts], axis=2), whole["Y"], rtol=0, atol=TOLERANCE
    )
    np.testing.assert_allclose(stream.state["C"], whole["Co"], rtol=0, atol=TOLERANCE)
