"""Programs: one session for the current settings, the evaluator without one, and guarantees of calls."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import LSTM, make_graph, simple_model, weights_of
from whole_models import check_calls, check_each, varied

import pyrnnx
from pyrnnx import ArgumentError, PyrnnxError, reference
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import read_model as read_ir
from pyrnnx.frontends.openvino import write_model as write_ir
from pyrnnx.testing.numbers import Array

onnxruntime = pytest.importorskip("onnxruntime")
node = helper.make_node
WEIGHTS = weights_of(LSTM)
DOUBLE = onnx.TensorProto.DOUBLE
MEGABYTE = 2**20
TOLERANCE = 1e-5  # float32, some steps


def drawn(T: int = LSTM.T, N: int = LSTM.N, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, (T, N, LSTM.I)).astype(np.float32)


X = drawn()


def lstm(source: str, *results: str, name: str = "lstm") -> onnx.NodeProto:
    return node("LSTM", [source, "W", "R", "B"], results, hidden_size=LSTM.H, name=name)


def around() -> onnx.ModelProto:
    nodes = [node("Tanh", ["x"], ["a"]), lstm("a", "b"), node("Neg", ["b"], ["y"])]
    return simple_model(nodes, {"x": X}, ["y"], WEIGHTS)


def expected(given: Any) -> list[Array]:
    return [-reference.run("LSTM", X=np.tanh(np.asarray(given["x"], np.float64)), **WEIGHTS)[0]]


@pytest.fixture
def settings() -> Iterator[None]:
    threads, limit = pyrnnx.get_num_threads(), pyrnnx.get_memory_limit()
    yield
    pyrnnx.set_num_threads(threads)
    pyrnnx.set_memory_limit(limit)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sessions that are made."""
    made: list[Any] = []
    original = onnxruntime.InferenceSession

    def counted(*arguments: Any, **keywords: Any) -> Any:
        made.append(original(*arguments, **keywords))
        return made[-1]

    monkeypatch.setattr(onnxruntime, "InferenceSession", counted)
    return made


# Sessions


def test_a_whole_model_is_one_session(sessions: list[Any]) -> None:
    model = read_model(around())
    check_calls(model, expected, {"x": X}, {"x": drawn(2, 5)}, {"x": drawn(9, 1)}, atol=TOLERANCE)
    assert len(sessions) == 1


def test_a_session_for_the_settings_of_the_moment(sessions: list[Any], settings: None) -> None:
    model = read_model(around())
    for count, threads in enumerate((1, 2, 3, 1), 1):
        pyrnnx.set_num_threads(threads)
        for _ in range(2):
            check_each(model, expected, [{"x": X}], atol=TOLERANCE)
        assert len(sessions) == count


def test_threads_make_one_session(sessions: list[Any]) -> None:
    """Sixteen threads whose first call finds no session, for its inputs have no types."""
    proto = around()
    proto.graph.input[0].type.Clear()
    model, start = read_model(proto), threading.Barrier(16)

    def work(seed: int) -> None:
        start.wait()
        check_each(model, expected, [{"x": drawn(2 + seed % 3, seed=seed + k)} for k in range(9)], atol=TOLERANCE)

    with ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(work, seed) for seed in range(16)]:
            future.result()
    assert len(sessions) == 1


def test_inputs_of_unknown_type_warn_of_nothing() -> None:
    proto = around()
    proto.graph.input[0].type.Clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = read_model(proto)
        assert model.plan.rows() == read_model(around()).plan.rows()
        check_each(model, expected, [{"x": X}], atol=TOLERANCE)
        assert model.plan.rows() == read_model(around()).plan.rows()


def test_empty_inputs_are_the_evaluators() -> None:
    """ONNX Runtime ends the process on some empty arrays."""
    model = read_model(around())
    calls = [{"x": shaped} for shaped in (X, X[:0], X, X[:, :0], X)]
    check_each(model, lambda given: [expected(given)[0]], calls, atol=TOLERANCE)
    program = model._programs.program()
    assert [program._ready(call) is None for call in calls] == [False, True, False, True, False]


def test_a_session_that_fails_once() -> None:
    """The evaluator runs that call; the session the next ones."""
    nodes = [node("Split", ["x", "k"], ["a", "z"], axis=2), lstm("a", "y")]
    model = read_model(simple_model(nodes, {"x": X, "k": np.array([5, 0])}, ["y", "z"], WEIGHTS))
    x = np.concatenate([X, X], axis=2)
    good, bad = model(x, np.array([5, 5])), np.array([5, 6])
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(model(x, bad)["y"], good["y"], atol=TOLERANCE)
        np.testing.assert_array_equal(model(x, np.array([5, 5]))["y"], good["y"])


# Inputs and outputs


def test_outputs_that_are_inputs_or_constants() -> None:
    nodes = [node("Neg", ["x"], ["y"]), node("Identity", ["y"], ["z"])]
    k = np.arange(3, dtype=np.float32)
    model = read_model(simple_model(nodes, {"x": X}, ["x", "k", "y", "z"], {"k": k}))
    for _ in range(3):
        given = X.copy()
        results = model(given)
        for result, wanted in zip(results.values(), (X, k, -X, -X), strict=True):
            np.testing.assert_array_equal(result, wanted)
        for result in results.values():
            result.fill(9)
        np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize("runtime", ["auto", "reference"])
def test_defaults_of_inputs(runtime: str) -> None:
    """Weights and others: constants in calls without them, inputs in those that replace one."""
    nodes = [node("Mul", ["x", "scale"], ["a"]), lstm("a", "b"), node("Add", ["b", "more"], ["y"])]
    defaults = {**WEIGHTS, "scale": np.array(0.5, np.float32), "more": np.array(2, np.float32)}
    proto = simple_model(nodes, {"x": X, **defaults}, ["y", "scale"], defaults)
    model = read_model(proto, runtime=runtime)

    def whole(given: Any) -> list[Array]:
        values = {**defaults, **given}
        x = np.asarray(values["x"], np.float64) * values["scale"]
        return [
            reference.run("LSTM", X=x, **{name: values[name] for name in WEIGHTS})[0] + values["more"],
            values["scale"],
        ]

    calls = [
        {"x": X},
        {"x": X, "scale": np.array(-1, np.float32)},
        {"x": X, "W": WEIGHTS["W"] / 2},
        {"x": X, "W": WEIGHTS["W"] / 3, "more": np.array(1, np.float32)},
        {"x": X},
    ]
    check_each(model, whole, calls, atol=TOLERANCE)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_dtypes_around_layers(dtype: Any) -> None:
    """A layer between, before and after other nodes; with states, whose constants a session may widen."""
    weights = {name: array.astype(dtype) for name, array in WEIGHTS.items()}
    states = {name: np.full((1, LSTM.N, LSTM.H), 0.25, dtype) for name in ("h0", "c0")}
    first = node("LSTM", ["a", "W", "R", "B", "", "h0", "c0"], ["b", "h"], hidden_size=LSTM.H)
    nodes = [
        node("Neg", ["x"], ["a"]),
        first,
        node("Squeeze", ["b", "one"], ["s"]),
        node("Relu", ["s"], ["r"]),
        lstm("r", "m"),
        node("Abs", ["m"], ["y"]),
        lstm("x", "z", name="alone"),
    ]
    outputs = ["y", "z", "h"]
    constants = {**weights, **states, "one": np.array([1])}
    proto = simple_model(nodes, {"x": X.astype(dtype)}, outputs, constants, opset=22)
    witness = read_model(proto, runtime="reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = read_model(proto)
        model(X.astype(dtype))
    # Rounded once less or more where ONNX Runtime runs float16 in float32: some units in the last place.
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2}.get(np.dtype(dtype).name, 1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no session fails
        for given in varied({"x": X.astype(dtype)}):
            wanted = witness(given)
            for name, result in model(given).items():
                assert result.dtype == dtype
                assert result.flags.writeable
                difference = np.abs(result.astype(np.float64) - wanted[name].astype(np.float64))
                assert difference.max() <= tolerance, name


def test_functions_of_float16_between_nodes_that_are_widened() -> None:
    """A function gets what it would get without casts: tanh of large numbers, of which few differ in float16."""
    nodes = [node("Tanh", ["x"], ["a"]), node("Unique", ["a"], ["u"]), node("Neg", ["u"], ["y"])]
    x = np.linspace(3, 5, 60, dtype=np.float16)
    model = read_model(simple_model(nodes, {"x": x}, ["y"]))
    with pytest.warns(pyrnnx.SlowRuntimeWarning, match="Unique"):
        model(x)
    assert model.plan.rows()[0][1] == "Tanh, Neg"

    def expected(given: Any) -> list[Array]:
        return [-np.unique(np.tanh(given["x"].astype(np.float32)).astype(np.float16))]

    check_each(model, expected, [{"x": x}, {"x": x[:40]}, {"x": x}], atol=1e-3)


def test_pickled() -> None:
    model = read_model(around())
    wanted = model(X)["y"]
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy(X)["y"], wanted)


# Errors


def in_branch(*nodes: onnx.NodeProto) -> list[onnx.NodeProto]:
    bodies: dict[str, Any] = {f"{name}_branch": make_graph(nodes, {}, ["y"]) for name in ("then", "else")}
    return [node("If", ["go"], ["y"], **bodies)]


def in_loop(*nodes: onnx.NodeProto) -> list[onnx.NodeProto]:
    body = make_graph([node("Identity", ["c"], ["on"]), *nodes], {"i": np.array(0), "c": np.array(True)}, ["on", "y"])
    return [node("Loop", ["", "go"], ["ys"], body=body)]


PLACES: dict[str, Callable[..., list[onnx.NodeProto]]] = {
    "in the graph": lambda *nodes: list(nodes),
    "in a branch": in_branch,
    "in a loop": in_loop,
}


@pytest.mark.parametrize("place", PLACES)
def test_errors_of_layers_are_raised_as_they_were(place: str) -> None:
    lengths = node("LSTM", ["x", "W", "R", "B", "lens"], ["y"], hidden_size=LSTM.H, name="lstm")
    nodes = PLACES[place](lengths)
    given = {"x": X, "lens": np.full(LSTM.N, 2, np.int32), "go": np.array(True)}
    if place == "in a loop":
        given["go"] = np.array(False)
    output = nodes[-1].output[0]
    model = read_model(simple_model(nodes, given, [output], WEIGHTS))
    wanted = model(given)[output]
    wrong = {**given, "lens": np.full(LSTM.N, LSTM.T + 1, np.int32), "go": np.array(True)}
    for _ in range(2):
        with pytest.raises(
            ArgumentError, match=r"^LSTM '.*': sequence_lens\[0\] is 5; expected 0 <= length <= "
        ) as caught:
            model(wrong)
        assert caught.value.__cause__ is None
        np.testing.assert_array_equal(model(given)[output], wanted)


def test_errors_of_functions_name_the_node() -> None:
    """Raised inside onnx's evaluator, inside a session."""
    attributes: Any = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    nodes = [node("Resize", ["x", "", "scales"], ["a"], name="wide", **attributes), lstm("a", "y")]
    scales = np.array([1.5, 1, 1], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = read_model(simple_model(nodes, {"x": X, "scales": scales}, ["y"], WEIGHTS))
        wanted = model(X, scales)["y"]
    for _ in range(2):
        with pytest.raises(PyrnnxError, match=r"^ONNX model: Resize 'wide' failed"):
            model(X, scales[:2])
        np.testing.assert_array_equal(model(X, scales)["y"], wanted)


# Memory


def test_the_limit_ends_in_an_error_that_names_the_node(small_limit: None) -> None:
    """Values inside a session are bounded, too."""
    nodes = [node("Expand", ["x", "shape"], ["a"], name="wide"), node("ReduceSum", ["a"], ["y"], keepdims=0)]
    model = read_model(simple_model(nodes, {"x": X[:1, :1, 0], "shape": np.array([3, 1])}, ["y"]))
    assert model(X[:1, :1, 0], np.array([3, 1]))["y"].shape == ()
    for _ in range(3):
        with pytest.raises(
            ArgumentError, match=r"Expand 'wide' would take 8796093022208 bytes; a call may take 67108864"
        ):
            model(X[:1, :1, 0], np.array([2**40, 1]))
    assert model(X[:1, :1, 0], np.array([3, 1]))["y"].shape == ()


def test_what_functions_return_in_a_loop_does_not_add_up(settings: None) -> None:
    """A megabyte in each iteration, which the session frees."""
    body = make_graph(
        [
            node("Identity", ["c"], ["d"]),
            node("Cast", ["i"], ["k"], to=DOUBLE),
            node("Mul", ["x", "k"], ["z"]),
            node("Selu", ["z"], ["w"], name="slow"),
            node("ReduceSum", ["w"], ["sum"], keepdims=0),
        ],
        {"i": np.array(0), "c": np.array(True)},
        ["d", "sum"],
    )
    x = np.ones(MEGABYTE // 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = read_model(simple_model([node("Loop", ["n", ""], ["y"], body=body)], {"x": x, "n": np.array(3)}, ["y"]))
        assert any("Selu 'slow', in body of Loop" in row[1] for row in model.plan.rows())
    pyrnnx.set_memory_limit(8 * MEGABYTE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model(x, np.array(20))["y"].shape == (20,)


def test_states_of_a_stream_after_a_push_that_failed() -> None:
    model = read_model(around())
    whole, stream = expected({"x": X})[0], model.stream()
    results: list[Any] = [stream.push(X[:1])["y"]]
    for wrong in (X[:1, :, :3], X[:1].astype(np.float64), X[:1, :2]):
        with pytest.raises(PyrnnxError):
            stream.push(wrong)
    results += [stream.push(piece)["y"] for piece in (X[1:1], X[1:3], X[3:])]
    np.testing.assert_allclose(np.concatenate(results), whole, rtol=0, atol=TOLERANCE)


def make_dynamic() -> onnx.ModelProto:
    """DynamicQuantizeLSTM, with its weights constant, in a branch."""
    rng = np.random.default_rng(1)
    constants: dict[str, Any] = {
        "W": rng.integers(-100, 100, (1, LSTM.I, 4 * LSTM.H)).astype(np.int8),
        "R": rng.integers(-100, 100, (1, LSTM.H, 4 * LSTM.H)).astype(np.int8),
        **{f"{name}s": np.array([0.01], np.float32) for name in "WR"},
        **{f"{name}z": np.array([0], np.int8) for name in "WR"},
    }
    names = ["x", "W", "R", "", "", "", "", "", "Ws", "Wz", "Rs", "Rz"]
    made = node("DynamicQuantizeLSTM", names, ["y"], hidden_size=LSTM.H, domain="com.microsoft", name="lstm")
    given = {"x": X, "go": np.array(True)}
    return simple_model(in_branch(made), given, ["y"], constants, domains={"com.microsoft": 1})


def test_dynamic_quantize_lstm_in_a_branch() -> None:
    proto = make_dynamic()
    model = read_model(proto)
    assert next(row[:2] for row in model.plan.rows()) == ("ONNX Runtime", "If (2 Recurrent)")
    check_calls(model, read_model(proto, runtime="reference"), {"x": X, "go": np.array(True)}, atol=1e-6)


def test_an_ir_is_a_session_of_its_layers(tmp_path: Path) -> None:
    model = read_ir(write_ir(around(), tmp_path / "model.xml"))
    assert [runner for runner, _, _ in model.plan.rows()] == ["ONNX Runtime", "pyrnnx"]
    check_calls(model, expected, {"x": X}, {"x": drawn(2, 5)}, atol=TOLERANCE)


def test_scalars_of_bfloat16_stay_scalars() -> None:
    """They enter and leave a session by their bits."""
    bf16 = onnx.TensorProto.BFLOAT16
    inputs = [helper.make_tensor_value_info(name, bf16, shape) for name, shape in (("x", [3]), ("s", []))]
    outputs = [helper.make_tensor_value_info(name, bf16, None) for name in ("y", "t")]
    nodes = [helper.make_node("Mul", ["x", "s"], ["y"]), helper.make_node("Neg", ["s"], ["t"])]
    proto = helper.make_model(
        helper.make_graph(nodes, "scalars", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    model, x = read_model(proto), np.arange(3).astype(ml_dtypes.bfloat16)
    for s in (np.array(2, ml_dtypes.bfloat16), np.array(3, ml_dtypes.bfloat16)):
        results = model(x, s)
        assert results["t"].shape == ()
        np.testing.assert_array_equal(results["y"], x * s)
