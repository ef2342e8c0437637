"""Streams of models of any format: fed-back values, initial states, and states set by a caller."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx import ArgumentError, Layers, Model, TensorInfo, set_memory_limit


class Sums(Model):
    """total + x as the next total, and the number of the call."""

    label, plan = "sums", None

    def __init__(self, total: TensorInfo, output: str = "totalN", y: str = "float32", counts: bool = True) -> None:
        count = (TensorInfo("count", "int64", (), optional=True),) if counts else ()
        self.inputs = (TensorInfo("x", "float32", ("N", 2)), total, *count)
        self.outputs = (TensorInfo("y", y), TensorInfo(output, "float32"), TensorInfo("countN", "int64", ()))

    @property
    def layers(self) -> Layers[Any]:
        return Layers(self.label, {}, str)

    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        new = inputs["total"] + inputs["x"]
        results = {"y": 2 * new, self.outputs[1].name: new, "countN": np.asarray(inputs["count"] + 1)}
        return {name: results[name] for name in outputs}


def sums(shape: Any = (3, 2), **others: Any) -> Sums:
    return Sums(TensorInfo("total", "float32", shape, **others))


X = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_pushes() -> None:
    stream = sums().stream()
    assert dict(stream.states) == {"totalN": "total", "countN": "count"}
    for arrays, named in (((X,), {}), (({"x": X},), {}), ((), {"x": X})):
        results = stream.push(*arrays, **named)
        assert list(results) == ["y", "totalN", "countN"]  # as of a call
    np.testing.assert_array_equal(results["y"], 6 * X)
    np.testing.assert_array_equal(results["totalN"], 3 * X)
    assert results["countN"] == 3


def test_results_and_states_are_not_the_stream_s() -> None:
    stream = sums().stream()
    stream.push(X)["totalN"][:] = np.nan
    for value in stream.state.values():
        value[...] = 99
    np.testing.assert_array_equal(stream.push(X)["y"], 4 * X)


def test_state_reset_and_other_streams() -> None:
    model = sums()
    stream, other = model.stream(), model.stream({"totalN": "total", "countN": "count"})
    saved = stream.state
    assert {name: (value.shape, value.dtype.name) for name, value in saved.items()} == {
        "total": ((3, 2), "float32"),
        "count": ((), "int64"),
    }
    stream.push(X)
    middle = stream.state
    stream.push(X)
    stream.state = middle
    np.testing.assert_array_equal(stream.push(X)["y"], 4 * X)
    stream.state = {"total": 10 * np.ones((3, 2), np.float32)}  # count: from its beginning
    results = stream.push(X)
    np.testing.assert_array_equal(results["y"], 20 + 2 * X)
    assert results["countN"] == 1
    stream.reset()
    np.testing.assert_array_equal(stream.push(X)["y"], 2 * X)
    np.testing.assert_array_equal(other.push(X)["y"], 2 * X)


def test_a_state_that_lacks_some() -> None:
    stream = sums().stream()
    stream.push(X)
    before = stream.state
    for state in ({}, {"count": np.array(7)}):
        with pytest.raises(
            ArgumentError, match=r"stream: state lacks total; expected total, count \(reset\(\) restores"
        ):
            stream.state = state
    assert stream.state["count"] == before["count"]
    opened = sums((None, 2), optional=True).stream({"totalN": "total"})
    opened.state = {}  # that of its beginning, and total has a default


def test_the_state_of_the_beginning() -> None:
    """Nothing, where the first push tells all sizes: to a stream that goes on, that is what `reset` is for."""
    stream = Sums(TensorInfo("total", "float32", ("N", 2))).stream({"totalN": "total"})
    beginning = stream.state
    stream.state = beginning
    stream.push(X, np.array(0))
    assert beginning == {}
    with pytest.raises(ArgumentError, match="state lacks total"):
        stream.state = beginning


def test_initial() -> None:
    ones = np.ones((3, 2), np.float32)
    stream = sums((None, 2)).stream(initial={"total": ones})
    ones[:] = np.nan
    np.testing.assert_array_equal(stream.push(X)["y"], 2 * X + 2)
    stream.reset()
    np.testing.assert_array_equal(stream.push(X)["y"], 2 * X + 2)


def test_sizes_from_the_first_push() -> None:
    stream = sums(("N", 2)).stream()
    assert list(stream.state) == ["count"]
    beginning = stream.state
    np.testing.assert_array_equal(stream.push(X)["y"], 2 * X)
    assert stream.state["total"].shape == (3, 2)
    stream.state = beginning
    np.testing.assert_array_equal(stream.push(X[:1])["y"], 2 * X[:1])  # another batch
    stream.reset()
    np.testing.assert_array_equal(stream.push(X)["y"], 2 * X)


@each_row("shape", [(None, 2), ("M", 2), None], ids=repr)
def test_sizes_that_nothing_tells(shape: Any) -> None:
    stream = sums(shape).stream()
    with pytest.raises(
        ArgumentError, match=r"sums: stream: the state 'total' \(float32.* no initial value.*initial={'total': array}"
    ):
        stream.push(X)
    stream.state = {"total": np.zeros((3, 2), np.float32)}
    np.testing.assert_array_equal(stream.push(X)["y"], 2 * X)


@each_row("shape", [(3, 2), ("N", 2)], ids=["declared", "told by a push"])
def test_zeros_beyond_the_memory_limit(shape: Any) -> None:
    """24 bytes for the total and 8 for the count."""
    set_memory_limit(23)
    with pytest.raises(ArgumentError, match=r"zeros for the state 'total' .* cannot be allocated .*set_memory_limit"):
        sums(shape).stream({"totalN": "total"}).push(X, np.array(1))
    set_memory_limit(31)
    with pytest.raises(ArgumentError, match=r"zeros for the state 'count' .* cannot be allocated"):
        sums((3, 2)).stream()


@each_row("copied", [copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(stream))])
def test_copies_go_on_by_themselves(copied: Any) -> None:
    stream = sums(("N", 2)).stream({"totalN": "total"}, initial={})
    stream.push(X, np.array(1))
    branch = copied(stream)
    np.testing.assert_array_equal(branch.push(X, np.array(1))["y"], 4 * X)
    np.testing.assert_array_equal(stream.push(X, np.array(1))["y"], 4 * X)


BAD_PUSHES: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "fed back by name": ((X,), {"total": X}, "input 'total' is fed back; expected x"),
    "fed back in a mapping": (({"x": X, "total": X},), {}, "input 'total' is fed back; expected x"),
    "too many": ((X, X), {}, "2 arrays were given; expected at most 1: x"),
    "missing": ((), {}, "input 'x' is missing"),
    "unknown": ((X,), {"z": X}, "input 'z' is unknown; expected x"),
    "dtype": ((X.astype(float),), {}, "input 'x' has dtype float64"),
}


@each_row("name", BAD_PUSHES)
def test_push_that_does_not_fit_changes_nothing(name: str) -> None:
    arrays, named, message = BAD_PUSHES[name]
    stream = sums().stream()
    stream.push(X)
    before = stream.state
    with pytest.raises(ArgumentError) as caught:
        stream.push(*arrays, **named)
    assert str(caught.value).startswith(f"sums: stream: {message}")
    assert stream.state.keys() == before.keys()
    for key, value in stream.state.items():
        np.testing.assert_array_equal(value, before[key])


BAD_STATES: dict[str, tuple[Any, str]] = {
    "no mapping": ((X,), "state is (?s:.*); expected a mapping of arrays: total, count"),
    "unknown": ({"totalN": X}, "state: input 'totalN' is unknown; expected total, count"),
    "an input that is pushed": ({"x": X}, "state: input 'x' is unknown"),
    "dtype": ({"total": X.astype(float)}, "state: input 'total' has dtype float64; expected float32"),
    "shape": ({"total": X[:2]}, r"state: input 'total' has shape \(2, 2\); expected \[3, 2\]"),
    "None": ({"total": None}, "state: input 'total' is missing"),
}


@each_row("name", BAD_STATES)
def test_state_that_does_not_fit(name: str) -> None:
    state, message = BAD_STATES[name]
    stream = sums().stream()
    with pytest.raises(ArgumentError, match=f"sums: stream: {message}"):
        stream.state = state
    with pytest.raises(ArgumentError, match=f"sums: stream: {message.replace('state', 'initial', 1)}"):
        sums().stream(initial=state)


def test_call_that_fails_changes_nothing() -> None:
    stream = sums(("N", 2)).stream()
    stream.push(X)
    with pytest.raises(ValueError, match="broadcast"):  # of NumPy, which this model is made of
        stream.push(np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(stream.push(X)["y"], 4 * X)


def test_nothing_to_keep() -> None:
    model = Sums(TensorInfo("total", "float32", (3, 2)), "next", counts=False)
    with pytest.raises(
        ArgumentError, match=r"sums: stream: there are no states: .* 'y' .* -> 'x' .*'next' .* -> 'total'"
    ):
        model.stream()
    with pytest.raises(ArgumentError, match="sums: stream: there are no states"):
        model.stream({})


LAYERS: dict[str, tuple[Any, str]] = {
    "unknown": (["lstm"], "layers contains 'lstm'; expected names of none"),
    "a name": ("lstm", "layers is 'lstm'; expected a sequence of names"),
    "a number": (1, "layers is 1; expected a sequence of names"),
}


@each_row("name", LAYERS)
def test_layers_that_are_none(name: str) -> None:
    layers, message = LAYERS[name]
    with pytest.raises(ArgumentError, match=f"sums: stream: {message}"):
        sums().stream(layers=layers)
