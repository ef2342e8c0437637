"""Models with variables: what ReadValue and Assign keep from call to call. OpenVINO's infer request is the witness."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino_bodies as bodies
import openvino_states as states
import pytest
from openvino_irs import TOLERANCE, Array, assert_same, onnxruntime, save

from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model as read_onnx
from pyrnnx.frontends.openvino import Model, read_model, to_onnx, write_model

Stateful = tuple[Any, list[list[Array]]]
CASES: dict[str, Callable[[], Stateful]] = {
    "without first values": lambda: states.read_and_assign(initial=False),
    "with first values": lambda: states.read_and_assign(initial=True),
    "with first values of an open size": lambda: states.read_and_assign(initial=True, dynamic=True),
    "MakeStateful": states.made_stateful,
    **{
        f"LowLatency2, {kind}, {steps} steps": partial(states.low_latency, partial(bodies.looped, kind), steps)
        for kind in ("RNN", "GRU", "LSTM")
        for steps in (1, 2)
    },
}


def ids(model: Any) -> set[str]:
    return {one.name for one in model.query_state()}


@pytest.mark.parametrize("name", CASES)
def test_calls_go_on_as_inferences_do(name: str, tmp_path: Path) -> None:
    """Twice, with a reset between, and from states that are written in the middle."""
    made, calls = CASES[name]()
    path = save(made, tmp_path)
    there, here = states.request(path), read_model(path)
    assert {one.name for one in here.variables} == ids(there)
    for round_ in range(2):
        for k, arrays in enumerate(calls):
            assert_same(list(here(*arrays).values()), states.infer(there, arrays), TOLERANCE, f"{name}: {round_}, {k}")
            for one in there.query_state():
                assert_same([here.state[one.name]], [np.array(one.state.data)], TOLERANCE, one.name)
        there.reset_state()
        here.reset_state()
    for one in there.query_state():
        value = here.state.get(one.name)
        declared: Any = next(v.shape for v in here.variables if v.name == one.name)
        value = np.ones([3 if size is None else size for size in declared], one.state.data.dtype)
        one.state = states.openvino.Tensor(value)
        here.state[one.name] = value
    assert_same(list(here(*calls[0]).values()), states.infer(there, calls[0]), TOLERANCE, f"{name}: written")


@pytest.mark.parametrize("name", CASES)
def test_exported_variables_are_inputs_and_outputs(name: str, tmp_path: Path) -> None:
    made, calls = CASES[name]()
    model = read_model(save(made, tmp_path))
    expected = [model(*arrays) for arrays in calls]
    proto = to_onnx(model)
    own, variables = len(model.inputs), len(model.variables)
    assert len(proto.graph.input) == own + variables
    assert len(proto.graph.output) == len(model.outputs) + variables
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    model.reset_state()
    model(*calls[0])
    values = {
        info.name: model.state[one.name] for info, one in zip(proto.graph.input[own:], model.variables, strict=True)
    }
    names = [one.name for one in proto.graph.output]
    for arrays, results in zip(calls[1:], expected[1:], strict=True):
        feed = {info.name: a for info, a in zip(proto.graph.input[:own], arrays, strict=True)} | values
        found = session.run(names, feed)
        assert_same(found[: len(results)], list(results.values()), TOLERANCE, name)
        values = dict(zip(values, found[len(results) :], strict=True))


def test_an_exported_model_begins_as_the_ir_does(tmp_path: Path) -> None:
    """Where what a variable begins with is known, it is the default of its input; and a stream finds the pairs."""
    made, calls = states.read_and_assign(initial=False)
    model = read_model(save(made, tmp_path))
    stream = read_onnx(to_onnx(model)).stream()
    assert stream.states == {"state/h_out": "state/h", "count_out": "count"}
    for arrays in calls:
        found = stream.push(*arrays)
        for name, value in model(*arrays).items():
            np.testing.assert_allclose(found[name], value, atol=TOLERANCE)


# Variables in bodies. OpenVINO's CPU plugin forgets theirs, so that sums are the witness.


@pytest.mark.parametrize("initial", [None, 0.5], ids=["zeros", "computed"])
def test_variables_of_every_iteration(initial: float | None, tmp_path: Path) -> None:
    model = read_model(save(states.in_a_body("TensorIterator", initial=initial), tmp_path))
    rng = np.random.default_rng(5)
    total = np.full(bodies.N, initial or 0, np.float32)
    for _ in range(3):
        steps = rng.uniform(-1, 1, (bodies.T, bodies.N)).astype(np.float32)
        (found,) = model(steps).values()
        np.testing.assert_allclose(found, total + np.cumsum(steps, 0), atol=TOLERANCE)
        total = found[-1]
        np.testing.assert_array_equal(model.state["sum"], total)
    model.reset_state()
    (found,) = model(steps).values()
    np.testing.assert_allclose(found, (initial or 0) + np.cumsum(steps, 0), atol=TOLERANCE)
    proto = to_onnx(model)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    first = np.full(bodies.N, 7, np.float32)
    names = [one.name for one in proto.graph.input]
    rows, last = session.run(None, dict(zip(names, (steps, first), strict=True)))
    np.testing.assert_allclose(rows, 7 + np.cumsum(steps, 0), atol=TOLERANCE)
    np.testing.assert_array_equal(last, rows[-1])


@pytest.mark.parametrize("runtime", ["auto", "reference"])
@pytest.mark.parametrize("initial", [None, 0.5], ids=["zeros", "computed"])
@pytest.mark.parametrize("kind", ["Loop", "If"])
def test_variables_that_are_not_always_reached(kind: str, initial: float | None, runtime: str, tmp_path: Path) -> None:
    """A variable has no value before a body has run that computes its first one."""
    model = read_model(save(states.in_a_body(kind, initial=initial), tmp_path), runtime=runtime)
    steps = np.ones((bodies.T, bodies.N), np.float32)
    never, often = (
        (np.array(0, np.int32), np.array(3, np.int32)) if kind == "Loop" else (np.array(False), np.array(True))
    )
    added = 3 if kind == "Loop" else 1
    for _ in range(2):
        model(steps, never)
        assert ("sum" in model.state) == (initial is None)
        for number in range(1, 4):
            model(steps, often)
            model(steps, never)
            assert model.state["sum"].tolist() == [(initial or 0) + number * added] * bodies.N
        model.reset_state()


# State as an object


@pytest.fixture
def counting(tmp_path: Path) -> Model:
    """Its second output is how many calls there were since the beginning."""
    made, _ = states.read_and_assign(initial=True)
    return read_model(save(made, tmp_path))


X = np.ones((bodies.N, bodies.I), np.float32)


def count(model: Any) -> int:
    return int(list((model.push if hasattr(model, "push") else model)(X).values())[1][0])


def test_state_is_a_mapping(counting: Model) -> None:
    assert dict(counting.state) == {"count": 0}
    assert [count(counting) for _ in range(3)] == [0, 1, 2]
    assert set(counting.state) == {"count", "state/h"}
    counting.state["count"] = [7]
    counting.state["count"][:] = 0  # of a copy
    assert count(counting) == 7
    held = counting.state
    assert pickle.loads(pickle.dumps(held)).keys() == copy.deepcopy(held).keys() == held.keys()
    first = next(iter(counting(X).values()))
    counting.state = held
    np.testing.assert_array_equal(next(iter(counting(X).values())), first)
    del counting.state["count"]
    assert count(counting) == 0
    assert "state/h" in counting.state
    counting.reset_state()
    assert "state/h" not in counting.state
    with pytest.raises(KeyError):
        del counting.state["state/h"]
    assert "count" in repr(counting.state)


def test_states_that_do_not_fit(counting: Model) -> None:
    count(counting)
    before = dict(counting.state)
    for values, words in (
        ({"count": np.ones(2, np.int32)}, "count"),
        ({"count": np.ones(1, np.float32)}, "count"),
        ({"nothing": np.ones(1)}, "'nothing' is unknown"),
        ({7: np.ones(1)}, "7"),
        (3, "expected a mapping"),
    ):
        with pytest.raises(ArgumentError, match=words):
            counting.state = values  # type: ignore[assignment]
    with pytest.raises(ArgumentError, match="state/h"):
        counting.state["state/h"] = np.ones((1, 2), np.float32)
    for name, value in before.items():
        np.testing.assert_array_equal(counting.state[name], value)


def test_a_call_that_fails_leaves_the_state(counting: Model) -> None:
    count(counting)
    with pytest.raises(ArgumentError):
        counting(X[:2])
    assert count(counting) == 1


def test_other_values_of_a_call_keep_the_state_too(counting: Model) -> None:
    names = [info.name for info in counting.outputs]
    assert list(counting(X, outputs=names[:1])) == names[:1]
    assert list(counting(X, outputs=[])) == []
    assert count(counting) == 2


def test_streams_are_sessions_of_their_own(counting: Model) -> None:
    count(counting)
    one, other = counting.stream(), counting.stream(initial={"count": [5]})
    assert [count(one), count(other), count(one), count(counting)] == [0, 5, 1, 1]
    one.reset()
    assert count(one) == 0
    assert set(one.state) == {"count", "state/h"}


def test_copies_go_on_from_the_same_state(counting: Model) -> None:
    count(counting)
    count(counting)
    for other in (copy.copy(counting), copy.deepcopy(counting), pickle.loads(pickle.dumps(counting))):
        assert [count(other), count(other)] == [2, 3]
    assert count(counting) == 2


def test_calls_from_several_threads_follow_each_other(counting: Model) -> None:
    """No call is lost, and none sees the state of another half done."""
    expected = copy.copy(counting)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: count(counting), range(64)))
    assert sorted(found) == list(range(64))
    for _ in range(64):
        count(expected)
    np.testing.assert_array_equal(counting.state["state/h"], expected.state["state/h"])


def test_streams_run_beside_each_other(counting: Model) -> None:
    streams = [counting.stream() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: [count(one) for _ in range(16)], streams))
    assert found == [list(range(16))] * 4


def test_what_a_stream_s_state_may_lack(counting: Model) -> None:
    """A variable that the model computes a first value of, but not one that only begins with zeros."""
    stream = counting.stream()
    count(stream)
    count(stream)
    state = stream.state
    (computed,) = (name for name in state if name.startswith("state"))
    (counted,) = state.keys() - {computed}
    stream.state = {counted: state[counted]}
    assert list(stream.state) == [counted]
    assert count(stream) == 2
    with pytest.raises(ArgumentError, match=f"state lacks {counted}; expected"):
        stream.state = {computed: state[computed]}


def test_a_model_without_variables_has_no_state(tmp_path: Path) -> None:
    made, arrays = bodies.looped("GRU")
    model = read_model(save(made, tmp_path))
    assert dict(model.state) == {}
    assert model.variables == ()
    model.reset_state()
    model.state = {}
    with pytest.raises(ArgumentError, match="unknown; expected of none"):
        model.state["h"] = 1
    assert len(model(*arrays)) == 2


def test_written_variables_are_inputs_and_outputs(tmp_path: Path) -> None:
    made, calls = states.made_stateful()
    model = read_model(save(made, tmp_path))
    written = read_model(write_model(model, tmp_path / "written.xml"))
    fed = [info.name for info in written.inputs[len(model.inputs) :]]
    state = dict(zip(fed, (model.state[one.name] for one in model.variables), strict=True))
    for arrays in calls:
        results = written(dict(zip([info.name for info in model.inputs], arrays, strict=True)) | state)
        expected = model(*arrays)
        assert_same([results[key] for key in expected], list(expected.values()), TOLERANCE, "written")
        state = {one: results[f"{one}_out"] for one in fed}
