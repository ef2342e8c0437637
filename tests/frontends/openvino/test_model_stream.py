"""Streams of IRs, as OpenVINO writes them for ONNX models, and by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino_nets as nets
import pytest
from layers import random_weights
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from openvino_nets import edges, layer, net, parameter, result

from pyrnnx import CANONICAL, OPENVINO_CELL, ArgumentError, Direction, RecurrentOp, UnsupportedError
from pyrnnx.frontends.openvino import Model, read_model

Array = NDArray[Any]
N, I, H = 2, 4, 6
TOLERANCE = 2e-6  # float32: sums of some tens of terms, in another order where there are more rows
rng = np.random.default_rng(0)


def source(cells: Sequence[str], direction: str = "forward") -> onnx.ModelProto:
    """An ONNX model of layers without initial states: [T, N, I] -> [T, N, H]."""
    nodes, tensors = [], [numpy_helper.from_array(np.array([1]), "axis")]
    for k, cell in enumerate(cells):
        weights = random_weights(
            RecurrentOp(cell, H, Direction(direction)), I if k == 0 else H, convention=CANONICAL, seed=k
        )
        tensors += [numpy_helper.from_array(a, f"{name}{k}") for name, a in weights.items()]
        names = [f"{name}{k}" for name in weights]
        attributes: dict[str, Any] = {"hidden_size": H, "direction": direction}
        nodes.append(helper.make_node(cell, [f"x{k}", *names], [f"Y{k}"], name=f"layer{k}", **attributes))
        nodes.append(helper.make_node("Squeeze", [f"Y{k}", "axis"], [f"x{k + 1}"]))
    element, last = onnx.TensorProto.FLOAT, f"x{len(cells)}"
    if direction == "bidirectional":
        nodes.pop()
        last = "Y0"
    graph = helper.make_graph(
        nodes,
        "source",
        [helper.make_tensor_value_info("x0", element, ["T", "N", I])],
        [helper.make_tensor_value_info(last, element, None)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def converted(proto: onnx.ModelProto, folder: Path, shape: Sequence[int]) -> Model:
    irs = pytest.importorskip("openvino_irs")
    return read_model(irs.save(irs.from_onnx(proto, folder, {"x0": shape}), folder))


STACKS: dict[str, Sequence[str]] = {
    "LSTM": ["LSTM"],
    "GRU": ["GRU"],
    "RNN": ["RNN"],
    "several": ["LSTM", "GRU", "LSTM"],
}


@pytest.mark.parametrize("shape", [(-1, N, I), (-1, -1, I), (3, N, I)], ids=["length open", "both open", "fixed"])
@pytest.mark.parametrize("name", STACKS)
def test_pushes_give_the_whole(name: str, shape: tuple[int, int, int], tmp_path: Path) -> None:
    proto = source(STACKS[name])
    model = converted(proto, tmp_path, shape)
    X = rng.uniform(-1, 1, (9, N, I)).astype(np.float32)
    from pyrnnx.frontends.onnx import read_model as read_onnx

    (whole,) = read_onnx(proto)(X).values()
    stream = model.stream()
    cuts = [(0, 3), (3, 6), (6, 9)] if shape[0] > 0 else [(0, 1), (1, 2), (2, 6), (6, 9)]
    for _ in range(2):
        parts = [next(iter(stream.push(X[begin:end]).values())) for begin, end in cuts]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=TOLERANCE)
        assert len(stream.state) == sum(2 if cell == "LSTM" else 1 for cell in STACKS[name])
        assert {value.shape for value in stream.state.values()} == {(N, 1, H)}
        stream.reset()


def test_layers_that_cannot_go_on(tmp_path: Path) -> None:
    model = converted(source(["GRU"], "bidirectional"), tmp_path, (-1, N, I))
    with pytest.raises(UnsupportedError, match=r"GRUSequence .*: stream: direction is bidirectional; expected forward"):
        model.stream()
    (name,) = model.layers
    with pytest.raises(UnsupportedError, match="direction is bidirectional"):
        model.stream(layers=[name])
    with pytest.raises(ArgumentError, match="nothing is kept"):
        model.stream(layers=False)


def test_chosen_layers(tmp_path: Path) -> None:
    model = converted(source(["GRU", "LSTM"]), tmp_path, (-1, N, I))
    first, second = model.layers
    stream = model.stream(layers=[second])
    stream.push(np.ones((2, N, I), np.float32))
    assert list(stream.state) == [f"{second}.H", f"{second}.C"]
    with pytest.raises(ArgumentError, match="layers has 'third'; expected of"):
        model.stream(layers=[first, "third"])


def test_parameters_that_are_fed_back() -> None:
    """An IR with H and C as inputs, open in their batch: their beginning has to be given."""
    model = read_model(*nets.lstm_net())
    X = rng.uniform(-1, 1, (2, 5, nets.I)).astype(np.float32)
    zeros = {name: np.zeros((2, 1, nets.H), np.float32) for name in "HC"}
    stream = model.stream()
    assert dict(stream.states) == {"Ho": "H", "Co": "C"}
    with pytest.raises(ArgumentError, match=r"the state 'H' .* has no beginning"):
        stream.push(X, lengths=np.array([5, 5], np.int32))
    stream.state = zeros
    parts = [stream.push(X[:, t : t + 1], lengths=np.ones(2, np.int32)) for t in range(5)]
    whole = model(X, zeros["H"], zeros["C"], np.array([5, 5], np.int32))
    np.testing.assert_allclose(np.concatenate([one["Y"] for one in parts], axis=2), whole["Y"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(stream.state["C"], whole["Co"], rtol=0, atol=TOLERANCE)


def test_lengths_of_the_caller() -> None:
    model = read_model(*nets.lstm_net())
    with pytest.raises(UnsupportedError, match=r"LSTMSequence 'lstm' .*: sequence_lengths is computed from the"):
        model.stream({"Ho": "H"}, initial={"H": np.zeros((2, 1, nets.H), np.float32)}, layers=["lstm"])


def cell_net(zeros: bool) -> tuple[str, bytes]:
    """x -> RNNCell -> Ho, from a Parameter h or from a constant of zeros."""
    store = nets.Bin()
    weights = random_weights(RecurrentOp("RNN", H), I, convention=OPENVINO_CELL)
    state = ("FP32", (N, H))
    cell = layer(
        9,
        "cell",
        "RNNCell",
        {"hidden_size": H, "activations": "tanh"},
        [("FP32", (N, I)), state, *(("FP32", a.shape) for a in weights.values())],
        [(*state, "hN")],
        "opset1",
    )
    begin = (
        store.constant(1, "begin", np.zeros((N, H), np.float32), "f32", "FP32")
        if zeros
        else parameter(1, "h", f"{N},{H}", (N, H), names="h")
    )
    layers = [
        parameter(0, "x", f"{N},{I}", (N, I), names="x"),
        begin,
        *(store.constant(2 + k, name, a, "f32", "FP32") for k, (name, a) in enumerate(weights.items())),
        cell,
        result(10, "hN/sink_port_0", (N, H)),
    ]
    joined = edges("0.0 9.0", "1.0 9.1", *(f"{2 + k}.0 9.{2 + k}" for k in range(3)), "9.5 10.0")
    return net(layers, joined), store.data


@pytest.mark.parametrize("zeros", [False, True], ids=["Parameter", "Const"])
def test_cells(zeros: bool) -> None:
    model = read_model(*cell_net(zeros))
    x = rng.uniform(-1, 1, (7, N, I)).astype(np.float32)
    stream, h = model.stream(), np.zeros((N, H), np.float32)
    assert dict(stream.states) == ({} if zeros else {"hN": "h"})
    for step in x:
        pushed = stream.push(step)["hN"]
        (h,) = model.layers["cell"](step, h)
        assert pushed.tobytes() == h.tobytes()
    assert list(stream.state) == ["cell.H" if zeros else "h"]
