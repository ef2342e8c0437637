"""Every runtime of the table on named cases that it computes rightly, and on others that it refuses."""

from __future__ import annotations

import pickle

import pytest
from kinds import kinds
from rows import each_row

from pyrnnx.testing.cases import CASES, NAMED, OPENVINO_CASES
from pyrnnx.testing.conformance import judge
from pyrnnx.testing.runtimes import RUNTIMES, execute

PLAIN = ("RNN-only-B", "GRU-linear_before_reset=1-bias", "LSTM-only-bidirectional")
LENGTHS = ("RNN-only-bidirectional-sequence_lens", "LSTM-only-sequence_lens")
SEQUENCES = ("RNNSequence-5-bfloat16", "GRUSequence-5-linear_before_reset", "LSTMSequence-5-reverse-sequence_lengths")
CELLS = ("RNNCell-1-f=relu", "GRUCell-3-clip", "LSTMCell-4-defaults", "LSTMCell-1-defaults")
EVERYTHING = [case.name for case in (*kinds(CASES), *kinds(OPENVINO_CASES))]
RIGHT: dict[str, tuple[str, ...]] = {
    "pyrnnx": tuple(EVERYTHING),
    "pyrnnx.load": tuple(EVERYTHING),
    "onnxruntime": (*PLAIN, *LENGTHS, "LSTM-only-P", "GRU-only-clip", "LSTM-float16", "RNN-f=Relu"),
    "openvino": (*PLAIN, *LENGTHS, *SEQUENCES, *CELLS, "GRU-float16", "RNN-bfloat16", "RNN-f=Relu"),
    "onnx": (*PLAIN, "LSTM-only-P", "RNN-only-layout"),
    "torch": (*PLAIN, *LENGTHS, "RNN-f=Relu", "RNN-only-layout", "RNN-float16", "RNN-bfloat16", "RNN-float64"),
}
# Cases that a runtime does not implement: it is asked to run them, and refuses.
REFUSED = {
    "onnxruntime": ("LSTM-bfloat16", "GRU-float64", "LSTM-only-layout"),
    "openvino": ("LSTMSequence-1-defaults", "RNN-only-layout"),
    "onnx": ("RNN-f=Relu",),
}


@pytest.mark.e2e
@pytest.mark.parametrize("key", RIGHT)
def test_right_or_refused(key: str) -> None:
    assert [*RIGHT] == [*RUNTIMES]
    runtime, refused = RUNTIMES[key], REFUSED.get(key, ())
    if not runtime.installed():
        pytest.skip(f"{runtime.name} is not installed")
    for execution in execute(runtime, [NAMED[name] for name in (*refused, *RIGHT[key])], timeout=120.0):
        verdict = judge(execution)
        status = "refused" if verdict.case.name in refused else "right"
        assert (verdict.case.name, verdict.status) == (verdict.case.name, status), verdict.detail
        assert verdict.detail == "" if status == "right" else ": " in verdict.detail


TORCH_HAS_NO = (
    *("LSTM-only-reverse", "LSTM-only-clip", "LSTM-only-P", "LSTM-input_forget=1-bias", "GRU-defaults"),
    *("GRU-linear_before_reset=0-bias", "RNN-length-0", "LSTM-h=Relu", "RNN-f=Sigmoid", "RNN-activations-mixed-0"),
    *("RNN-alphas-in-order", "RNNSequence-5-defaults"),
)
TORCH_HAS = ("RNN-lower-case", "LSTM-lower-case", "RNN-schema-default-activations", *RIGHT["torch"])


def test_what_pytorch_has_words_for() -> None:
    supported = [name for name in (*TORCH_HAS_NO, *TORCH_HAS) if RUNTIMES["torch"].supports(NAMED[name])]
    assert supported == [*TORCH_HAS]


@each_row("key", RUNTIMES)
def test_words(key: str) -> None:
    runtime = RUNTIMES[key]
    is_both = key in ("pyrnnx", "pyrnnx.load", "openvino")
    assert all(runtime.supports(NAMED[name]) is is_both for name in (*SEQUENCES, *CELLS))
    if key != "torch":
        assert all(runtime.supports(case) for case in CASES)
    assert pickle.loads(pickle.dumps(runtime)).name == runtime.name
    assert bool(runtime.version()) is runtime.installed()
