"""onnx.backend.test.BackendTest over the backend: the recurrent node tests always, all others with `-m slow`."""

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

from pyrnnx import ArgumentError, PyrnnxError
from pyrnnx.frontends.onnx import backend
from pyrnnx.testing import reference
from pyrnnx.testing.cases import NAMED, make_arrays

NAMES = re.compile(r"test_(gru|lstm|simple_rnn|rnn)_.*_cpu$")

# What onnx's own evaluator does not pass either, in onnx 1.23: by the reason.
EXCLUDED: Mapping[str, str] = {
    r"test_bernoulli.*": "random numbers, which no two evaluators share",
    r"test_if_opt": "a branch whose result is an optional sequence: 1 item instead of 5",
    r"test_loop16_seq_none": "BackendTest cannot compare what it results in",
    r"test_scan_sum": "Scan-8, which has a batch axis",
    r"test_gradient_of_.*": "Gradient, which it does not have",
}
# What ONNX Runtime does not pass beside those, in 1.31; what else it would not is left to onnx's evaluator.
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


def test_run_node() -> None:
    arrays = make_arrays(CASE)
    given: dict[str, Any] = {name: arrays[name] for name in ("X", "W", "R")}
    expected = reference.run("LSTM", **given)
    for inputs in (list(given.values()), given):
        Y, Y_c = backend.run_node(LSTM, inputs, opset_version=14)
        np.testing.assert_allclose(Y, expected[0], atol=1e-5)  # float32, some steps
        np.testing.assert_allclose(Y_c, expected[2], atol=1e-5)


def test_prepare_runs_again() -> None:
    arrays = make_arrays(CASE)
    given: dict[str, Any] = {name: arrays[name] for name in ("X", "W", "R")}
    model = simple_model([LSTM], {"X": given["X"]}, ["Y"], {name: given[name] for name in ("W", "R")})
    prepared = backend.prepare(model, "CPU:0")
    for run in (prepared.run([given["X"]]), prepared.run(given["X"]), prepared.run({"X": given["X"]})):
        np.testing.assert_allclose(run[0], reference.run("LSTM", **given)[0], atol=1e-5)


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
WRONG_CALLS: Mapping[str, tuple[Any, Any, dict[str, Any], str]] = {
    "no node": (None, [ONE], {}, "run_node: node is NoneType"),
    "a graph": (onnx.GraphProto(), [ONE], {}, "run_node: node is GraphProto"),
    "no inputs": (NODE, None, {}, r"Add \(output 'y'\): inputs is NoneType"),
    "too few": (NODE, [ONE], {}, r"Add \(output 'y'\): 1 inputs were given; expected 2: \['x', 'z'\]"),
    "other names": (NODE, {"x": ONE, "w": ONE}, {}, r"those of \['x', 'w'\] were given; expected 2"),
    "ragged": (NODE, [[[1.0], [1.0, 2.0]], ONE], {}, "'x' cannot be taken as an array"),
    "an unknown dtype": (NODE, [ONE, np.zeros(1, "M8[s]")], {}, "'z' has dtype datetime64"),
    "opset": (NODE, [ONE, ONE], {"opset_version": "a"}, "opset_version is 'a'; expected an integer"),
    "opset 0": (NODE, [ONE, ONE], {"opset_version": 0}, "opset_version is 0"),
    "device": (NODE, [ONE, ONE], {"device": None}, "backend: device is None"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_calls_of_run_node(name: str) -> None:
    one, inputs, keywords, message = WRONG_CALLS[name]
    with pytest.raises(ArgumentError, match=message):
        backend.run_node(one, inputs, **keywords)


@pytest.mark.parametrize("model", [None, 3, NODE, b""])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(PyrnnxError):
        backend.prepare(model)
    assert not backend.is_compatible(model)


@pytest.mark.parametrize("inputs", [None, 3, "x", [], [ONE, ONE, ONE], {"w": ONE}])
def test_wrong_inputs_of_a_prepared_model(inputs: Any) -> None:
    prepared = backend.prepare(simple_model([NODE], {"x": ONE, "z": ONE}, ["y"]))
    with pytest.raises(ArgumentError):
        prepared.run(inputs)
