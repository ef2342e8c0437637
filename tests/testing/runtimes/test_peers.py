"""Every runtime of the table on cases that it supports, compared with the oracle."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rows import each_row

from pyrnnx.testing.cases import Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import assert_close, tolerance_of
from pyrnnx.testing.runtimes import RUNTIMES, execute

BOTH = {"direction": "bidirectional"}
STATES = ("initial_h", "initial_c")
LENS = (4, 2, 1)

RNN = [
    Case("rnn", "RNN", {}, ("B", "initial_h")),
    Case("rnn relu", "RNN", BOTH | {"activations": ["Relu", "Relu"]}, ("initial_h",), LENS),
]
GRU = [Case("gru", "GRU", {"linear_before_reset": 1}, ("B", "initial_h"))]
LSTM = [Case("lstm", "LSTM", {}, ("B", *STATES))]
MORE = [
    Case("gru with lengths", "GRU", BOTH | {"linear_before_reset": 1}, ("B", "initial_h"), LENS),
    Case("lstm with lengths", "LSTM", BOTH, ("B", *STATES), LENS),
]
LAYOUT = [
    Case("gru batchwise", "GRU", {"layout": 1, "linear_before_reset": 1}, ("initial_h",), LENS),
    Case("lstm batchwise", "LSTM", BOTH | {"layout": 1}, ("B", "initial_h"), LENS),
    Case("rnn batchwise", "RNN", BOTH | {"layout": 1}, ("B",)),
]
CLIPPED = [
    Case("gru clipped", "GRU", BOTH | {"clip": 0.25, "linear_before_reset": 0}, ("B",), LENS),
    Case("lstm reverse", "LSTM", {"direction": "reverse"}, ("B",), LENS),
]
PEEPHOLES = [
    Case("peepholes", "LSTM", {"input_forget": 1}, ("B", "P")),
    Case("activations", "LSTM", {"activations": ["HardSigmoid", "Elu", "Affine"], "activation_alpha": [0.5, 1.0, 2.0],
                                 "activation_beta": [0.25, 0.5]}, ("B", "initial_c")),
]  # fmt: skip
SEQUENCES = [
    Case("RNNSequence", "RNNSequence-5", BOTH, (), LENS),
    Case("GRUSequence", "GRUSequence-5", {"linear_before_reset": True}, (), LENS),
    Case("LSTMSequence", "LSTMSequence-5", {"direction": "reverse", "clip": 0.5}, (), LENS),
    Case("RNNCell", "RNNCell-1", {"activations": ["relu"]}, T=1),
    Case("GRUCell", "GRUCell-3", {"activations": ["sigmoid", "relu"]}, T=1),
    Case("LSTMCell", "LSTMCell-4", {"clip": 0.5}, T=1),
]
FIRST_VERSIONS = [
    Case("LSTMSequence-1", "LSTMSequence-1", BOTH | {"input_forget": True}, ("P",), LENS),
    Case("LSTMCell-1", "LSTMCell-1", {"input_forget": True}, ("B", "P"), T=1),
    Case("LSTMCell-1 bare", "LSTMCell-1", T=1),
]


def in_dtypes(cases: Sequence[Case], *dtypes: str) -> list[Case]:
    return [
        Case(f"{case.name} in {dtype}", case.operator, case.attributes, case.inputs, case.lens, dtype=dtype)
        for case in cases
        for dtype in dtypes
    ]


EVERYTHING = [
    *RNN, *GRU, *LSTM, *MORE, *LAYOUT, *CLIPPED, *PEEPHOLES, *SEQUENCES, *FIRST_VERSIONS,
    *in_dtypes([*RNN, *MORE, *SEQUENCES[:3]], "float64", "float16", "bfloat16"),
    Case("opset 1", "LSTM", {"output_sequence": 1}, ("B", "P"), opset=1),
]  # fmt: skip
RUN = {
    "pyrnnx": EVERYTHING,
    "pyrnnx.load": EVERYTHING,
    "onnxruntime": [*RNN, *GRU, *LSTM, *MORE, *CLIPPED, *PEEPHOLES, *in_dtypes(LSTM, "float16")],
    "openvino": [*RNN, *GRU, *LSTM, *MORE, CLIPPED[1], *SEQUENCES, *in_dtypes(LSTM, "float16", "bfloat16")],
    "onnx": [RNN[0], *GRU, *in_dtypes([RNN[0], *GRU], "float64")],
    "torch": [*RNN, *GRU, *LSTM, *MORE, *LAYOUT, *in_dtypes([*RNN, *MORE], "float64", "float16", "bfloat16")],
    "opencv": [*GRU, *LSTM],
    "tract": [RNN[0], *GRU, *LSTM, *in_dtypes(LSTM, "float16")],
}


def sized(case: Case) -> Case:
    """The case with hidden_size, which ONNX leaves to be told by R, and without which some runtimes refuse it."""
    return replace(case, attributes={"hidden_size": case.H, **case.attributes})


def test_the_table() -> None:
    assert [*RUN] == [*RUNTIMES]


SMOKE = ("onnxruntime",)  # of the default run
OTHERS = [pytest.param(key, marks=pytest.mark.e2e) for key in RUNTIMES if key not in SMOKE]


@pytest.mark.parametrize("key", [*SMOKE, *OTHERS])
def test_runs(key: str) -> None:
    runtime = RUNTIMES[key]
    if not runtime.installed():
        pytest.skip(f"{runtime.name} is not installed")
    pytest.importorskip("onnx")
    pytest.importorskip("ml_dtypes")
    cases = RUN[key] if key.startswith("pyrnnx") else [sized(case) for case in RUN[key]]
    for execution in execute(runtime, cases, timeout=120.0):
        case = execution.case
        assert (case.name, execution.status, execution.detail) == (case.name, "ran", "")
        outputs = [output for output in execution.outputs if output is not None]
        assert [output.dtype.name for output in outputs] == [case.dtype] * len(execution.outputs)
        expected = expected_outputs(case, make_arrays(case))
        assert_close(outputs, expected, tolerance_of(case.dtype), f"{key}, {case.name}")


# Cases that a runtime does not implement: it is asked to run them, and refuses.
REFUSED = {
    "onnxruntime": [*in_dtypes(LSTM, "bfloat16", "float64"), LAYOUT[1]],
    "openvino": [FIRST_VERSIONS[0]],
    "onnx": [RNN[1]],
    "opencv": [RNN[0], *in_dtypes(LSTM, "bfloat16")],
    "tract": [MORE[0], *in_dtypes(LSTM, "bfloat16")],
}


@pytest.mark.e2e
@each_row("key", REFUSED)
def test_refuses(key: str) -> None:
    runtime = RUNTIMES[key]
    if not runtime.installed():
        pytest.skip(f"{runtime.name} is not installed")
    pytest.importorskip("ml_dtypes")
    for execution in execute(runtime, [sized(case) for case in REFUSED[key]], timeout=120.0):
        assert (execution.case.name, execution.status) == (execution.case.name, "refused")
        assert ": " in execution.detail


TORCH_HAS_NO = [
    Case("reverse alone", "LSTM", {"direction": "reverse"}),
    Case("clip", "LSTM", {"clip": 1.0}),
    Case("peepholes", "LSTM", {}, ("P",)),
    Case("input_forget", "LSTM", {"input_forget": 1}),
    Case("linear_before_reset=0", "GRU", {"linear_before_reset": 0}),
    Case("linear_before_reset by default", "GRU"),
    Case("lengths of 0", "RNN", lens=(4, 0, 1)),
    Case("other activations", "LSTM", {"activations": ["Sigmoid", "Tanh", "Relu"]}),
    Case("other activations of an RNN", "RNN", {"activations": ["Sigmoid"]}),
    Case("two activations", "RNN", BOTH | {"activations": ["Tanh", "Relu"]}),
    Case("parameters", "RNN", {"activations": ["Tanh"], "activation_alpha": [0.5]}),
    SEQUENCES[0],
]
TORCH_HAS = [
    Case("lower case", "RNN", {"activations": ["relu"]}),
    Case("written defaults", "LSTM", BOTH | {"activations": ["Sigmoid", "Tanh", "Tanh"] * 2, "input_forget": 0}),
]


def test_what_pytorch_has_words_for() -> None:
    supported = [case.name for case in (*TORCH_HAS_NO, *TORCH_HAS) if RUNTIMES["torch"].supports(case)]
    assert supported == [case.name for case in TORCH_HAS]


@each_row("key", RUNTIMES)
def test_words(key: str) -> None:
    runtime = RUNTIMES[key]
    both = key in ("pyrnnx", "pyrnnx.load", "openvino")
    assert all(runtime.supports(case) is both for case in SEQUENCES + FIRST_VERSIONS)
    if key != "torch":
        assert all(runtime.supports(case) for case in RNN + MORE + CLIPPED + PEEPHOLES)
    assert pickle.loads(pickle.dumps(runtime)).name == runtime.name
    assert bool(runtime.version()) is runtime.installed()


def test_a_folder_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(RUNTIMES["tract"]), "package", "no_such_package")
    assert (RUNTIMES["tract"].installed(), RUNTIMES["tract"].version()) == (False, "")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "no_such_package").mkdir()
    assert not RUNTIMES["tract"].installed()
