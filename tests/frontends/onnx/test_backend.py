"""onnx.backend.test.BackendTest with the backend: recurrent node tests always, all others with `-m slow`."""

from __future__ import annotations

import re
import unittest
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model
from onnx_node_tests import RECURRENT, only
from peers import onnxruntime_session
from rows import each_row

from pyrnnx import ArgumentError, PyrnnxError, reference
from pyrnnx.frontends.onnx import backend
from pyrnnx.testing.cases import NAMED, make_arrays
from pyrnnx.testing.numbers import assert_close

NAMES = re.compile(r"test_(gru|lstm|simple_rnn|rnn)_.*_cpu$")


class PlainRep:
    """Model in a plain session of ONNX Runtime."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._session = onnxruntime_session(model)

    def run(self, inputs: Any, **_: Any) -> Any:
        names = [info.name for info in self._session.get_inputs()]
        return self._session.run(None, dict(zip(names, inputs, strict=False)))


class PlainBackend(backend.Backend):
    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> Any:
        return PlainRep(model)


def suites(tested: Any = backend.Backend) -> dict[str, Any]:
    """Return the test cases of BackendTest by category, without those of downloaded models."""
    import onnx.backend.test

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numerical ones of making the expected values
        cases = onnx.backend.test.BackendTest(tested, __name__).test_cases
    return {category: case for category, case in cases.items() if "Real" not in category}


def names_of(case: type[unittest.TestCase]) -> list[str]:
    return [name for name in dir(case) if name.startswith("test_") and name.endswith("_cpu")]


def failure(case: type[unittest.TestCase], name: str) -> str | None:
    """Return how a test fails; None if it passes or is skipped."""
    try:
        case(name).debug()
    except unittest.SkipTest:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def test_recurrent_nodes() -> None:
    with only(RECURRENT):
        case = suites()["OnnxBackendNodeModelTest"]
    names = [name for name in names_of(case) if NAMES.match(name)]
    assert len(names) == 18
    assert {name: found for name in names if (found := failure(case, name))} == {}


# Random numbers, sums whose rounding varies, and an optional sequence, which BackendTest cannot compare.
VARYING = re.compile(r"test_(bernoulli|training_dropout|stft|loop16_seq_none).*")
# Results that differ, or what ONNX Runtime does not run.
CLEAR = ("ArgumentError: ", "AssertionError: ", "UnsupportedError: ")


@pytest.mark.parametrize("step", [pytest.param(12, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.filterwarnings("ignore")  # of the operators that are not ours
def test_everything(step: int) -> None:
    """Tests that ONNX Runtime passes pass here, and the rest is refused with an error of pyrnnx."""
    ours, theirs = suites(), suites(PlainBackend)
    wrong, passed = {}, 0
    for category, case in ours.items():
        for name in names_of(case)[::step]:
            found = failure(case, name)
            passed += found is None
            if found and not VARYING.match(name):
                expected = failure(theirs[category], name)
                if expected is None or not found.startswith(CLEAR):
                    wrong[name] = found
    assert wrong == {}
    assert passed > 1500 // step


CASE = NAMED["LSTM-defaults"]
LSTM = helper.make_node("LSTM", ["X", "W", "R"], ["Y", "", "Y_c"], hidden_size=CASE.H)


def test_run_node_and_prepare() -> None:
    arrays = make_arrays(CASE)
    inputs: dict[str, Any] = {name: arrays[name] for name in ("X", "W", "R")}
    expected = reference.run("LSTM", **inputs)
    for form in (list(inputs.values()), inputs):
        assert_close(backend.run_node(LSTM, form, opset_version=14), (expected[0], expected[2]), 1e-5)
    X = inputs.pop("X")
    prepared = backend.prepare(simple_model([LSTM], {"X": X}, ["Y"], inputs), "CPU:0")
    for run in (prepared.run([X]), prepared.run(X), prepared.run({"X": X})):
        assert_close(run, expected[:1], 1e-5)


def test_devices_and_what_is_no_model() -> None:
    assert backend.supports_device("CPU")
    model = simple_model([helper.make_node("Identity", ["x"], ["y"])], {"x": np.ones(1, np.float32)}, ["y"])
    assert backend.is_compatible(model)
    wrong: list[tuple[Any, str]] = [(model, "CUDA:1"), (None, "CPU"), (b"", "CPU")]
    for source, device in wrong:
        assert not backend.is_compatible(source, device)
        with pytest.raises(PyrnnxError):
            backend.prepare(source, device)
    for inputs in (None, 3, [], [np.ones(1, np.float32)] * 3, {"w": np.ones(1, np.float32)}):
        with pytest.raises(ArgumentError):
            backend.prepare(model).run(inputs)


NODE = helper.make_node("Add", ["x", "z"], ["y"])
ONE = np.ones(1, np.float32)
WRONG_CALLS: list[tuple[Any, Any, dict[str, Any], str]] = [
    (None, [ONE], {}, "run_node: node is NoneType"),
    (onnx.GraphProto(), [ONE], {}, "run_node: node is GraphProto"),
    (NODE, None, {}, r"Add \(output 'y'\): inputs is NoneType"),
    (NODE, [ONE], {}, r"Add \(output 'y'\): 1 inputs were given; expected 2: \['x', 'z'\]"),
    (NODE, {"x": ONE, "w": ONE}, {}, "2 inputs were given; expected 2: .'x', 'z'"),
    (NODE, [[[1.0], [1.0, 2.0]], ONE], {}, "'x' cannot be converted to an array"),
    (NODE, [ONE, np.zeros(1, "M8[s]")], {}, "'z' has dtype datetime64"),
    (NODE, [ONE, ONE], {"opset_version": "a"}, "opset_version is 'a'; expected an integer"),
    (NODE, [ONE, ONE], {"device": None}, "backend: device is None"),
]


@each_row(("node", "inputs", "options", "message"), WRONG_CALLS, ids=[row[-1] for row in WRONG_CALLS])
def test_wrong_calls_of_run_node(node: Any, inputs: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        backend.run_node(node, inputs, **options)
