"""Cases as onnx.backend.test loads them."""

from __future__ import annotations

import importlib
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from pyrnnx.testing.cases import INPUTS, OUTPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import assert_close, numpy_dtype, tolerance_of

onnx = pytest.importorskip("onnx")
numpy_helper = pytest.importorskip("onnx.numpy_helper")
models: Any = importlib.import_module("pyrnnx.testing.onnx_models")

STATES = ("initial_h", "initial_c")
CASES = {
    "test_lstm": Case("lstm", "LSTM", {"direction": "bidirectional", "clip": 0.5}, ("B", *STATES, "P"), (4, 0, 2)),
    "test_lstm_absent_inputs": Case("lstm", "LSTM", {"layout": 1}, ("initial_c",)),
    "test_gru": Case("gru", "GRU", {"direction": "reverse", "linear_before_reset": 1}, ("B", "initial_h"), (1, 4, 2)),
    "test_gru_float64": Case(
        "gru", "GRU", {"activations": ["Elu", "Tanh"], "activation_alpha": [0.5]}, dtype="float64"
    ),
    "test_rnn_float16": Case("rnn", "RNN", {"activations": ["Relu"]}, ("B",), dtype="float16"),
    "test_rnn_opset1": Case("rnn", "RNN", {"output_sequence": 1}, ("B", "initial_h"), opset=1),
    "test_rnn_bfloat16": Case("rnn", "RNN", {}, ("B", "initial_h"), dtype="bfloat16"),
    "test_rnn_no_rows": Case("rnn", "RNN", {}, ("B",), N=0),
}


def run_backend_tests(folder: Path) -> unittest.TestResult:
    """What onnx's runner makes of the folders in `folder`/simple, with pyrnnx as the backend."""
    runner = importlib.import_module("onnx.backend.test.runner")
    backend = importlib.import_module("pyrnnx.frontends.onnx.backend").Backend
    load = runner.load_model_tests
    with mock.patch.object(  # in place of onnx's own tests
        runner, "load_model_tests", lambda kind: load(str(folder), kind) if kind == "simple" else []
    ):
        suite = runner.Runner(backend, __name__).test_suite
    result = unittest.TestResult()
    suite.run(result)
    return result


def test_backend_tests_load_and_pass(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    # older runners cannot compare arrays of bfloat16
    runs_bfloat16 = tuple(map(int, onnx.__version__.split(".")[:2])) >= (1, 23)
    cases = {name: case for name, case in CASES.items() if case.dtype != "bfloat16" or runs_bfloat16}
    for name, case in cases.items():
        models.write_backend_test(case, tmp_path / "simple" / name)
    result = run_backend_tests(tmp_path)
    assert result.errors == result.failures == []
    on_devices = 2  # each test is there for the CPU and for CUDA, which the backend has not
    assert (result.testsRun, len(result.skipped)) == (on_devices * len(cases), len(cases))


def test_wrong_outputs_fail(tmp_path: Path) -> None:
    case = CASES["test_gru"]
    wrong = [output.astype(np.float32) for output in expected_outputs(case, make_arrays(case))]
    wrong[1][0, 0, 0] += np.float32(1e-2)
    models.write_backend_test(case, tmp_path / "simple" / "test_gru", outputs=wrong)
    result = run_backend_tests(tmp_path)
    assert (result.errors, len(result.failures)) == ([], 1)


@pytest.mark.parametrize("name", CASES)
def test_files(name: str, tmp_path: Path) -> None:
    if "bfloat16" in name:
        pytest.importorskip("ml_dtypes")
    case = CASES[name]
    data = models.write_backend_test(case, tmp_path / "new" / "folder")
    assert data == tmp_path / "new" / "folder" / "test_data_set_0"
    model = onnx.load(tmp_path / "new" / "folder" / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    arrays = make_arrays(case)
    assert [info.name for info in model.graph.input] == [name for name in INPUTS[case.operator] if name in arrays]
    for k, (given, array) in enumerate(arrays.items()):
        tensor = onnx.TensorProto.FromString((data / f"input_{k}.pb").read_bytes())
        assert tensor.name == given
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), array)
    outputs = [models.read_tensor(data / f"output_{k}.pb") for k in range(len(OUTPUTS[case.operator]))]
    assert [output.dtype for output in outputs] == [numpy_dtype(case.dtype)] * len(outputs)
    assert_close(outputs, expected_outputs(case, arrays), tolerance_of(case.dtype))
    assert len([*data.iterdir()]) == len(arrays) + len(outputs)


def test_arrays_and_outputs_of_the_caller(tmp_path: Path) -> None:
    case = CASES["test_lstm"]
    arrays = make_arrays(case, seed=5)
    data = models.write_backend_test(case, tmp_path, arrays)
    first = expected_outputs(case, arrays)[0].astype(np.float32)
    np.testing.assert_array_equal(models.read_tensor(data / "output_0.pb"), first)
    models.write_backend_test(case, tmp_path / "bare", arrays, outputs=())
    assert not [*(tmp_path / "bare").glob("**/output_*")]
