"""Models with variables: values of ReadValue and Assign between calls, compared with OpenVINO's infer request."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import openvino_bodies as bodies
import openvino_states as states
import pytest
from openvino_irs import TOLERANCE, Array, assert_same, onnxruntime, save
from peers import compile_openvino
from rows import each_row

from pyrnnx import ArgumentError
from pyrnnx.frontends.openvino import Model, read_model, to_onnx
from pyrnnx.operator.op import CellName

Stateful = tuple[Any, list[list[Array]]]
CASES: dict[str, Callable[[], Stateful]] = {
    "without first values": lambda: states.read_and_assign(initial=False),
    "with first values of an open size": lambda: states.read_and_assign(initial=True, dynamic=True),
    "MakeStateful": states.made_stateful,
    **{
        f"LowLatency2, {kind}": partial(states.low_latency, partial(bodies.looped, kind), 2)
        for kind in get_args(CellName)
    },
}


@each_row("make", CASES.values(), ids=CASES)
def test_calls_go_on_as_inferences_do(make: Callable[[], Stateful], tmp_path: Path) -> None:
    """Two rounds with a reset between, and a call from states that are written; in an export they are inputs."""
    made, calls = make()
    path = save(made, tmp_path)
    there, here = compile_openvino(path).create_infer_request(), read_model(path)
    proto = to_onnx(here)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs, names = ([info.name for info in infos] for infos in (proto.graph.input, proto.graph.output))
    own, count = len(here.inputs), len(here.outputs)
    assert {variable.name for variable in here.variables} == {state.name for state in there.query_state()}
    for _ in range(2):
        for k, arrays in enumerate(calls):
            wanted = states.infer(there, arrays)
            if k > 0:
                values = [here.state[variable.name] for variable in here.variables]
                results = session.run(names, dict(zip(inputs, [*arrays, *values], strict=True)))
                assert_same(results[:count], wanted, TOLERANCE, f"exported, call {k}")
            assert_same(list(here(*arrays).values()), wanted, TOLERANCE, f"call {k}")
            for state in there.query_state():
                assert_same([here.state[state.name]], [np.array(state.state.data)], TOLERANCE, state.name)
            if k > 0:
                after = [here.state[variable.name] for variable in here.variables]
                assert_same(results[count:], after, TOLERANCE, "variables of the export")
        there.reset_state()
        here.reset_state()
    assert (len(inputs) - own, len(names) - count) == (len(here.variables),) * 2
    written: dict[str, Array] = {}
    for state in there.query_state():
        declared: Any = next(v.shape for v in here.variables if v.name == state.name)
        written[state.name] = np.ones([3 if size is None else size for size in declared], state.state.data.dtype)
        state.state = states.openvino.Tensor(written[state.name])
    here.state = written
    assert_same(list(here(*calls[0]).values()), states.infer(there, calls[0]), TOLERANCE, "written")


# Variables in bodies. OpenVINO's CPU plugin forgets theirs, so that sums are the witness.


@pytest.mark.parametrize("initial", [None, 0.5], ids=["zeros", "computed"])
def test_variables_of_every_iteration(initial: float | None, tmp_path: Path) -> None:
    model = read_model(save(states.in_a_body("TensorIterator", initial=initial), tmp_path))
    total = np.full(bodies.N, initial or 0, np.float32)
    steps = np.random.default_rng(5).uniform(-1, 1, (bodies.T, bodies.N)).astype(np.float32)
    for _ in range(3):
        (rows,) = model(steps).values()
        np.testing.assert_allclose(rows, total + np.cumsum(steps, 0), atol=TOLERANCE)
        total = rows[-1]
        np.testing.assert_array_equal(model.state["sum"], total)
    proto = to_onnx(model)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [info.name for info in proto.graph.input]
    rows, last = session.run(None, dict(zip(names, (steps, np.full(bodies.N, 7, np.float32)), strict=True)))
    np.testing.assert_allclose(rows, 7 + np.cumsum(steps, 0), atol=TOLERANCE)
    np.testing.assert_array_equal(last, rows[-1])


@pytest.mark.parametrize("initial", [None, 0.5], ids=["zeros", "computed"])
@pytest.mark.parametrize("kind", ["Loop", "If"])
def test_variables_that_are_not_always_reached(kind: str, initial: float | None, tmp_path: Path) -> None:
    model = read_model(save(states.in_a_body(kind, initial=initial), tmp_path))
    steps = np.ones((bodies.T, bodies.N), np.float32)
    never, often = (
        (np.array(0, np.int32), np.array(3, np.int32)) if kind == "Loop" else (np.array(False), np.array(True))
    )
    added = 3 if kind == "Loop" else 1
    for _ in range(2):
        model(steps, never)
        assert model.state["sum"].tolist() == [initial or 0] * bodies.N
        for number in range(1, 4):
            model(steps, often)
            model(steps, never)
            assert model.state["sum"].tolist() == [(initial or 0) + number * added] * bodies.N
        model.reset_state()


@pytest.fixture
def counting(tmp_path: Path) -> Model:
    """Its second output is how many calls there were since the beginning."""
    made, _ = states.read_and_assign(initial=True)
    return read_model(save(made, tmp_path))


X = np.ones((bodies.N, bodies.I), np.float32)


def count(model: Any) -> int:
    return int(list((model.push if hasattr(model, "push") else model)(X).values())[1][0])


def test_state_is_assigned_as_a_whole(counting: Model) -> None:
    assert counting.state == {"count": 0}
    assert [count(counting) for _ in range(3)] == [0, 1, 2]
    counting.state["count"][:] = 7  # of a copy
    with pytest.raises(TypeError):
        counting.state["count"] = [7]  # type: ignore[index]
    held = counting.state
    assert counting.state["count"] == 3
    first = next(iter(counting(X).values()))
    counting.state = held
    np.testing.assert_array_equal(next(iter(counting(X).values())), first)
    assert counting.state["count"] == 4
    counting.state = {"count": [5]}
    assert counting.state.keys() == {"count"}
    assert count(counting) == 5
    counting.reset_state()
    assert counting.state == {"count": 0}


def test_what_does_not_fit_leaves_the_states(counting: Model) -> None:
    count(counting)
    before = dict(counting.state)
    for values, words in (
        ({"count": np.ones(2, np.int32)}, "count"),
        ({"count": np.ones(1, np.float32)}, "count"),
        ({"state/h": np.ones((1, 2), np.float32)}, "state/h"),
        ({"nothing": np.ones(1)}, "'nothing' is unknown"),
        ({7: np.ones(1)}, "7"),
        (3, "expected a mapping"),
    ):
        with pytest.raises(ArgumentError, match=words):
            counting.state = values  # type: ignore[assignment]
    with pytest.raises(ArgumentError):
        counting(X[:2])  # nor does a call that fails change them
    for name, value in before.items():
        np.testing.assert_array_equal(counting.state[name], value)


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
