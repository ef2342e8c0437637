"""Models called repeatedly with other values, shapes, dtypes, memory layouts, threads and settings."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model

import pyrnnx
from pyrnnx import reference
from pyrnnx.frontends.onnx import Model, read_model, session
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.numbers import Array

node = helper.make_node
CASE = Case("lstm of frames", "LSTM", {}, ("B", "initial_h", "initial_c"), T=1, N=1, I=4, H=6)
ARRAYS = make_arrays(CASE)
WEIGHTS: dict[str, Any] = {name: ARRAYS[name] for name in ("W", "R", "B")}
SCALE = np.array([0.5, -1, 2, 0.25], np.float32)
TOLERANCE = 1e-5  # float32, some steps


def frame_model(opset: int = 17) -> onnx.ModelProto:
    """y = tanh(LSTM(x * scale)), with states that go in and out."""
    nodes = [
        node("Mul", ["x", "scale"], ["a"]),
        node("LSTM", ["a", "W", "R", "B", "", "h", "c"], ["b", "h_n", "c_n"], hidden_size=CASE.H),
        node("Tanh", ["b"], ["y"]),
    ]
    given = {"x": ARRAYS["X"], "h": ARRAYS["initial_h"], "c": ARRAYS["initial_c"]}
    return simple_model(nodes, given, ["y", "h_n", "c_n"], WEIGHTS | {"scale": SCALE}, opset)


def drawn(seed: int, T: int = 1, N: int = 1) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    shapes = {"x": (T, N, CASE.I), "h": (1, N, CASE.H), "c": (1, N, CASE.H)}
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def expected(given: dict[str, Array]) -> dict[str, Array]:
    x = np.asarray(given["x"], np.float64) * SCALE
    Y, h, c = reference.run("LSTM", X=x, **WEIGHTS, initial_h=given["h"], initial_c=given["c"])
    return {"y": np.tanh(Y), "h_n": h, "c_n": c}


def check(results: dict[str, Array], given: dict[str, Array]) -> None:
    assert list(results) == ["y", "h_n", "c_n"]
    for name, wanted in expected(given).items():
        assert results[name].dtype == np.float32
        np.testing.assert_allclose(results[name], wanted, rtol=0, atol=TOLERANCE, err_msg=name)


def warm(model: Model, **sizes: int) -> None:
    for seed in range(3):
        check(model(drawn(seed, **sizes)), drawn(seed, **sizes))


@pytest.fixture
def model() -> Model:
    found = read_model(frame_model())
    warm(found)
    return found


def test_changing_shapes(model: Model) -> None:
    for T, N in [(1, 1), *[(3, 1)] * 3, (1, 1), *[(2, 5)] * 3, *[(1, 1)] * 2, (0, 1), (1, 1), (4, 0)]:
        given = drawn(T + N, T, N)
        check(model(given), given)


def test_results_are_the_callers(model: Model) -> None:
    """No later call changes them, and changing them changes no later call."""
    first = model(drawn(1))
    kept = {name: array.copy() for name, array in first.items()}
    model(drawn(2))
    for name, array in first.items():
        np.testing.assert_array_equal(array, kept[name])
        assert array.flags.writeable
        assert array.flags.owndata or array.base is not None
        array.fill(np.nan)
    check(model(drawn(1)), drawn(1))


def test_threads(model: Model) -> None:
    """Sixteen at once, each with shapes of its own and with the common ones."""
    start = threading.Barrier(16)

    def work(number: int) -> None:
        start.wait()
        for seed in range(30):
            given = drawn(100 * number + seed, T=1 if seed % 3 else 1 + number % 2)
            check(model(given), given)

    with ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(work, number) for number in range(16)]:
            future.result()


def test_settings_in_between(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another number of threads makes another session, with the same results."""
    wanted, sessions, new = model(drawn(1)), list[Any](), session.open_session

    def counted(*arguments: Any) -> Any:
        sessions.append(new(*arguments))
        return sessions[-1]

    monkeypatch.setattr(session, "open_session", counted)
    for number, threads in enumerate((1, 2, 1, 3), start=1):
        pyrnnx.set_num_threads(threads)
        for _ in range(3):
            results = model(drawn(1))
            for name in wanted:
                np.testing.assert_array_equal(results[name], wanted[name])
        assert len(sessions) == number
