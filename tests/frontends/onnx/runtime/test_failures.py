"""Sessions that fail in a call: the evaluator continues with one warning, and its own error is reported."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import LSTM, make_graph, simple_model, weights_of

from pyrnnx import ArgumentError, SlowRuntimeWarning
from pyrnnx.frontends.onnx import Model, read_model
from pyrnnx.testing.numbers import Array

onnxruntime = pytest.importorskip("onnxruntime")
node = helper.make_node
DEEP = np.arange(8, dtype=np.float32).reshape(1, 1, 1, 2, 2, 2)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls of sessions."""
    found: list[Any] = []
    for name in ("run", "run_with_iobinding"):
        original = getattr(onnxruntime.InferenceSession, name)

        def counted(self: Any, *arguments: Any, original: Any = original) -> Any:
            found.append(arguments)
            return original(self, *arguments)

        monkeypatch.setattr(onnxruntime.InferenceSession, name, counted)
    return found


def called(model: Model, *arrays: Array, times: int) -> tuple[list[Array], list[str]]:
    """The first outputs of that many calls, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [next(iter(model(*arrays).values())) for _ in range(times)]
    return results, [str(one.message) for one in caught if issubclass(one.category, SlowRuntimeWarning)]


def test_what_a_kernel_lacks_is_remembered(runs: list[Any]) -> None:
    """Pooling over four axes; over two the session goes on."""
    pool = node("MaxPool", ["x"], ["y"], kernel_shape=[1] * 4)
    model = read_model(simple_model([pool], {"x": DEEP}, ["y"], opset=12))
    results, said = called(model, DEEP, times=6)
    assert len(said) == 1
    assert "reference evaluator runs from now on" in said[0]
    assert len(runs) == 1
    for result in results:
        np.testing.assert_array_equal(result, DEEP)


def test_other_types_are_run_by_the_session(runs: list[Any]) -> None:
    """An input that declares no type: the session is made for that of the first call."""
    proto = simple_model([node("Neg", ["x"], ["y"])], {"x": DEEP}, ["y"])
    proto.graph.input[0].type.Clear()
    model = read_model(proto)
    for dtype, warned, count in [(np.float32, 0, 3), (np.float64, 1, 1), (np.float32, 0, 3), (np.float64, 0, 0)]:
        runs.clear()
        results, said = called(model, DEEP.astype(dtype), times=3)
        assert (len(said), len(runs) >= count) == (warned, True)
        assert len(runs) <= 2 * count
        for result in results:
            np.testing.assert_array_equal(result, -DEEP.astype(dtype))


def test_values_that_fail_do_not_switch(runs: list[Any]) -> None:
    """Parts that are longer than the whole: ONNX Runtime refuses them, and takes others of the same shape."""
    x, good, bad = DEEP.ravel(), np.array([2, 6]), np.array([2, 7])
    model = read_model(simple_model([node("Split", ["x", "k"], ["y", "z"])], {"x": x, "k": good}, ["y"]))
    results, said = called(model, x, bad, times=4)
    assert len(said) == 1
    assert "reference evaluator ran" in said[0]
    for k, count in ((good, 3), (bad, 1), (good, 3)):
        runs.clear()
        more, said = called(model, x, k, times=3)
        assert not said
        assert len(runs) >= count
        results += more
    for result in results:
        np.testing.assert_array_equal(result, x[:2])


# The evaluator fails, too
RECURRENT = node("LSTM", ["t", "W", "R", "B"], ["y"], hidden_size=LSTM.H, name="lstm")


def convolved() -> tuple[onnx.ModelProto, tuple[Array, ...]]:
    """A frame shorter than a filter: of no step, the evaluator makes a row of no values, which no layer takes."""
    constants = weights_of(LSTM) | {"K": np.ones((3, 2, 5), np.float32)}
    nodes = [node("Conv", ["x", "K"], ["t"], name="short"), RECURRENT]
    x = np.ones((1, 2, 4), np.float32)
    return simple_model(nodes, {"x": x}, ["y"], constants), (x,)


def looked_up() -> tuple[onnx.ModelProto, tuple[Array, ...]]:
    constants = weights_of(LSTM) | {"table": np.ones((10, LSTM.I), np.float32)}
    nodes = [node("Gather", ["table", "x"], ["t"], name="embedding"), RECURRENT]
    x = np.array([[3], [10]])
    return simple_model(nodes, {"x": x}, ["y"], constants), (x,)


def added() -> tuple[onnx.ModelProto, tuple[Array, ...]]:
    a, b = (np.ones((size, 1, LSTM.I), np.float32) for size in (3, 2))
    nodes = [node("Add", ["a", "b"], ["t"], name="sum"), RECURRENT]
    return simple_model(nodes, {"a": a, "b": b}, ["y"], weights_of(LSTM)), (a, b)


def in_a_loop() -> tuple[onnx.ModelProto, tuple[Array, ...]]:
    """A node of the body, in its second iteration."""
    nodes = [
        node("Gather", ["table", "k"], ["row"], name="embedding"),
        node("Expand", ["row", "shape"], ["t"]),
        RECURRENT,
        node("Identity", ["go"], ["on"]),
    ]
    constants = weights_of(LSTM) | {"shape": np.array([1, 1, LSTM.I]), "three": np.array(3)}
    body = make_graph(nodes, {"k": np.array(0), "go": np.array(True)}, ["on", "y"])
    table = np.ones((1, LSTM.I), np.float32)
    loop = node("Loop", ["three", ""], ["z"], body=body)
    return simple_model([loop], {"table": table}, ["z"], constants), (table,)


# The model and wrong inputs; what ONNX Runtime says; what else.
MODELS: dict[str, tuple[Any, str, str]] = {
    "no such row": (looked_up, "Gather node. Name:'embedding'.* idx=10", "Gather 'embedding' failed: it rejects"),
    "no broadcast": (added, "Add node. Name:'sum'.* Attempting to broadcast an axis", "Add 'sum' failed: it rejects"),
    "in a loop": (in_a_loop, "Gather node. Name:'embedding'.* idx=1", "Gather 'embedding' failed: it rejects"),
    "behind it": (
        convolved,
        "Conv node. Name:'short'.* Invalid input shape",
        "LSTM 'lstm': X has shape .*input_size=5",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_cause_is_named(name: str) -> None:
    """The cause comes first if another node fails in the evaluator. No warning is about slowness."""
    make, cause, more = MODELS[name]
    said = f"ONNX Runtime failed in .*{cause}.*"
    message = f"{said}; .*{more}" if name == "behind it" else f"{more}.*; before, {said}"
    proto, given = make()
    model = read_model(proto, runtime="auto")
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ArgumentError, match=f"^ONNX model: {message}"):
                model(*given)


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_alone(name: str) -> None:
    make, cause, _ = MODELS[name]
    proto, given = make()
    with pytest.raises(ArgumentError, match=f"^ONNX model: ONNX Runtime failed in .*{cause}"):
        read_model(proto, runtime="onnxruntime")(*given)


def kernels() -> tuple[onnx.ModelProto, Array]:
    """A zero point for each channel of the weights, which ONNX Runtime's ConvInteger refuses and the text allows."""
    x = np.full((1, 1, 2, 2), 3, np.uint8)
    constants = {"w": np.ones((2, 1, 2, 2), np.uint8), "xz": np.array(2, np.uint8), "wz": np.array([0, 2], np.uint8)}
    return simple_model([node("ConvInteger", ["x", "w", "xz", "wz"], ["y"])], {"x": x}, ["y"], constants, opset=10), x


def test_what_the_evaluator_could_run_is_an_error_too() -> None:
    proto, x = kernels()
    model = read_model(proto, runtime="onnxruntime")
    with pytest.raises(ArgumentError, match=r"ONNX model: ONNX Runtime failed in a session of 1 nodes: .*ConvInteger"):
        model(x)
