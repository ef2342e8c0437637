"""onnx.backend.test.BackendTest with the backend: recurrent node tests always, all others with `-m slow`."""

from __future__ import annotations

import re
import unittest
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model
from onnx_node_tests import RECURRENT, only
from rows import each_row

from pyrnnx import ArgumentError, PyrnnxError, reference
from pyrnnx.frontends.onnx import backend
from pyrnnx.testing.cases import NAMED, make_arrays
from pyrnnx.testing.numbers import assert_close

NAMES = re.compile(r"test_(gru|lstm|simple_rnn|rnn)_.*_cpu$")

# Tests that onnx's own evaluator does not pass either, in onnx 1.23 -> reason.
EXCLUDED: Mapping[str, str] = {
    r"test_bernoulli.*": "random numbers, which no two evaluators share",
    r"test_if_opt": "a branch whose result is an optional sequence: 1 item instead of 5",
    r"test_loop16_seq_none": "BackendTest cannot compare what it results in",
    r"test_gradient_of_.*": "Gradient, which it does not have",
}
# More tests that fail with ONNX Runtime 1.31 -> reason. Others that it would fail are run by onnx's evaluator.
EXCLUDED_OF_ONNXRUNTIME: Mapping[str, str] = {
    r"test_training_dropout(_default|_mask|_default_mask)?": "random numbers, which no two runtimes share",
    r"test_stft(_with_window)?": "6e-6 where zero is expected, in sums of 16 terms up to 5: rounding",
}
if find_spec("PIL") is None:
    EXCLUDED = {**EXCLUDED, r"test_image_decoder_.*": "Pillow, which it decodes images with, is not installed"}


def suites() -> dict[str, Any]:
    """The test cases of BackendTest by category; those with downloaded models are left out."""
    import onnx.backend.test

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numerical ones of making the expected values
        cases = onnx.backend.test.BackendTest(backend.Backend, __name__).test_cases
    return {category: case for category, case in cases.items() if "Real" not in category}


def names_of(case: type[unittest.TestCase]) -> list[str]:
    return [name for name in dir(case) if name.startswith("test_") and name.endswith("_cpu")]


def failure(case: type[unittest.TestCase], name: str) -> str | None:
    try:
        case(name).debug()
    except (Exception, unittest.SkipTest) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def test_recurrent_nodes() -> None:
    with only(RECURRENT):
        case = suites()["OnnxBackendNodeModelTest"]
    names = [name for name in names_of(case) if NAMES.match(name)]
    assert len(names) == 18
    assert {name: found for name in names if (found := failure(case, name))} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the operators that are not ours
@pytest.mark.parametrize("runtime", ["auto", "reference"])
def test_everything(monkeypatch: pytest.MonkeyPatch, runtime: str) -> None:
    monkeypatch.setenv("PYRNNX_RUNTIME", runtime)
    patterns = {**EXCLUDED, **(EXCLUDED_OF_ONNXRUNTIME if runtime == "auto" else {})}
    excluded, cases = re.compile("|".join(f"{pattern}_cpu$" for pattern in patterns)), suites()
    names = {(category, name) for category, case in cases.items() for name in names_of(case)}
    found = {key: what for key in sorted(names) if (what := failure(cases[key[0]], key[1]))}
    assert {key: what for key, what in found.items() if not excluded.match(key[1])} == {}
    assert len(names) - len(found) > 1900


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


def test_devices() -> None:
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
    model = simple_model([helper.make_node("Identity", ["x"], ["y"])], {"x": np.ones(1, np.float32)}, ["y"])
    assert backend.is_compatible(model)
    assert not backend.is_compatible(model, "CUDA:1")
    with pytest.raises(ArgumentError, match="device is 'CUDA'"):
        backend.prepare(model, "CUDA")


def test_unknown_operator() -> None:
    unknown = helper.make_node("Nonsense", ["x"], ["y"], name="it", domain="test")
    model = simple_model([unknown], {"x": np.ones(1, np.float32)}, ["y"], domains={"test": 1})
    assert not backend.is_compatible(model)
    with pytest.raises(PyrnnxError, match=r"test\.Nonsense 'it'"):
        backend.run_model(model, [np.ones(1, np.float32)])
    assert not backend.is_compatible(onnx.ModelProto())


NODE = helper.make_node("Add", ["x", "z"], ["y"])
ONE = np.ones(1, np.float32)
WRONG_CALLS: list[tuple[Any, Any, dict[str, Any], str]] = [
    (None, [ONE], {}, "run_node: node is NoneType"),
    (onnx.GraphProto(), [ONE], {}, "run_node: node is GraphProto"),
    (NODE, None, {}, r"Add \(output 'y'\): inputs is NoneType"),
    (NODE, [ONE], {}, r"Add \(output 'y'\): 1 inputs were given; expected 2: \['x', 'z'\]"),
    (NODE, {"x": ONE, "w": ONE}, {}, r"those of \['x', 'w'\] were given; expected 2"),
    (NODE, [[[1.0], [1.0, 2.0]], ONE], {}, "'x' cannot be converted to an array"),
    (NODE, [ONE, np.zeros(1, "M8[s]")], {}, "'z' has dtype datetime64"),
    (NODE, [ONE, ONE], {"opset_version": "a"}, "opset_version is 'a'; expected an integer"),
    (NODE, [ONE, ONE], {"opset_version": 0}, "opset_version is 0"),
    (NODE, [ONE, ONE], {"device": None}, "backend: device is None"),
]


@each_row(("node", "inputs", "options", "message"), WRONG_CALLS, ids=[row[-1] for row in WRONG_CALLS])
def test_wrong_calls_of_run_node(node: Any, inputs: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        backend.run_node(node, inputs, **options)


def test_what_is_no_model_and_no_input() -> None:
    wrong: list[Any] = [None, 3, NODE, b""]
    for model in wrong:
        with pytest.raises(PyrnnxError):
            backend.prepare(model)
        assert not backend.is_compatible(model)
    prepared = backend.prepare(simple_model([NODE], {"x": ONE, "z": ONE}, ["y"]))
    for inputs in (None, 3, "x", [], [ONE, ONE, ONE], {"w": ONE}):
        with pytest.raises(ArgumentError):
            prepared.run(inputs)
