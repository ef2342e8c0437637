"""The memory limit of a call: every result counts while it exists."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model

import pyrnnx
from pyrnnx import ArgumentError, PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.runtime.memory import grown, is_metered, metered
from pyrnnx.testing.numbers import Array

pytestmark = pytest.mark.usefixtures("small_limit")
node = helper.make_node
X = np.ones((2, 3), np.float32)
ONE = np.ones(1, np.float32)
MEGABYTE = 2**20


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def test_limit_of_a_call_can_be_raised() -> None:
    model = read_model(simple_model([node("Neg", ["x"], ["y"])], {"x": ONE}, ["y"]))
    big = np.ones(2**20, np.float32)
    pyrnnx.set_memory_limit(4 * MEGABYTE - 1)
    message = r"^ONNX model: .*output 'y'\)? would take 4194304 bytes; a call may take 4194303 "
    with pytest.raises(ArgumentError, match=message):
        model(big)
    pyrnnx.set_memory_limit(4 * MEGABYTE)
    assert model(big)["y"].shape == (2**20,)


def test_results_of_a_call_add_up() -> None:
    nodes = [node("Neg", ["x"], [f"v{k}"]) for k in range(8)]
    model = read_model(simple_model(nodes, {"x": X}, [f"v{k}" for k in range(8)]))
    big = np.ones((1024, 256), np.float32)
    pyrnnx.set_memory_limit(7 * MEGABYTE)
    with pytest.raises(ArgumentError, match=r"output 'v7'\)? would take 1048576 bytes on top of 7340032"):
        model(big)
    pyrnnx.set_memory_limit(8 * MEGABYTE)
    model(big)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "-1", "4 gigs", None])
def test_limits_that_are_none(limit: Any) -> None:
    with pytest.raises(ArgumentError, match=r"set_memory_limit: n is .*; expected a number of bytes, 0 or above, or a"):
        pyrnnx.set_memory_limit(limit)


@pytest.mark.parametrize(("text", "count"), [("0", 0), ("512MiB", 2**29), ("4GB", 4 * 10**9), ("2 GiB", 2**31)])
def test_limits_with_units(text: str, count: int) -> None:
    pyrnnx.set_memory_limit(text)
    assert pyrnnx.get_memory_limit() == count


def looped(steps: int) -> onnx.ModelProto:
    """Computes 1 MB in each step and collects one number."""
    body = make_graph(
        [
            node("Expand", ["one", "size"], ["wide"]),
            node("ReduceSum", ["wide"], ["sum"], keepdims=0),
            node("Identity", ["c"], ["d"]),
        ],
        {"i": np.array(0), "c": np.array(True)},
        ["d", "sum"],
    )
    constants = {"one": ONE, "size": integers(2**18), "steps": np.array(steps)}
    nodes = [node("Loop", ["steps", "", "x"][:2], ["y"], body=body)]
    return simple_model(nodes, {"x": ONE}, ["y"], constants)


def test_what_a_body_computes_is_forgotten() -> None:
    pyrnnx.set_memory_limit(3 * MEGABYTE)
    assert read_model(looped(20))(ONE)["y"].shape == (20,)


def test_what_a_loop_collects_counts() -> None:
    model = looped(20)
    model.graph.node[0].attribute[0].g.output[1].name = "wide"
    pyrnnx.set_memory_limit(8 * MEGABYTE)
    with pytest.raises(ArgumentError, match="would take"):
        read_model(model)(ONE)


def test_a_call_within_a_call() -> None:
    """The outer one goes on counting behind it."""
    with metered("outer", ()) as outer:
        with metered("inner", ()):
            pass
        grown("kept", X)
    assert outer.used == X.nbytes
    assert not is_metered()


def test_recurrent_results_count() -> None:
    W, R = np.ones((1, 8, 3), np.float32), np.ones((1, 8, 8), np.float32)
    nodes = [node("RNN", ["x", "W", "R"], ["y"], name="rnn", hidden_size=8)]
    model = read_model(simple_model(nodes, {"x": np.ones((1, 1, 3), np.float32)}, ["y"], {"W": W, "R": R}))
    long = np.broadcast_to(np.float32(1), (2**22, 1, 3))
    with pytest.raises(ArgumentError, match=r"RNN 'rnn' would take 134217760 bytes"):
        model(long)


def test_a_limit_holds_for_one_call_and_not_for_those_after_it() -> None:
    model = read_model(simple_model([node("Neg", ["x"], ["y"])], {"x": X}, ["y"]))
    pyrnnx.set_memory_limit(X.nbytes)
    for _ in range(3):
        model(X)
    pyrnnx.set_memory_limit(X.nbytes - 1)
    with pytest.raises(PyrnnxError, match=r"output 'y'\)? would take"):
        model(X)


@pytest.mark.parametrize("runtime", ["auto", "reference"])
def test_weights_that_a_call_computes_are_counted_as_they_are_packed(runtime: str) -> None:
    """One unit has the space of 16."""
    W, R = np.ones((1, 1, 2**18), np.float32), np.ones((1, 1, 1), np.float32)
    nodes = [node("Mul", ["w", "scale"], ["W"]), node("RNN", ["x", "W", "R"], ["y"], name="rnn", hidden_size=1)]
    given = {"x": np.ones((1, 1, 2**18), np.float32), "scale": ONE}
    model = read_model(simple_model(nodes, given, ["y"], {"w": W, "R": R}), runtime=runtime)
    pyrnnx.set_memory_limit(16 * MEGABYTE)
    with pytest.raises(ArgumentError, match=r"RNN 'rnn' would take 16777280 bytes"):
        model(given)
    pyrnnx.set_memory_limit(20 * MEGABYTE)
    assert model(given)["y"].shape == (1, 1, 1, 1)
