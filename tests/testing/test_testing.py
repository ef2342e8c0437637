"""Public names of pyrnnx.testing: all exist, and none is imported before its first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pyrnnx.testing

CODE = """
import sys
import numpy as np
import pyrnnx

def others():
    names = {"onnx", "google", "onnxruntime", "lxml", "openvino", "torch", "keras", "h5py", "pytest"}
    return sorted((names | {"ml_dtypes", "scipy"}) & {name.partition(".")[0] for name in sys.modules})

before = set(sys.modules)
import pyrnnx.testing
assert set(sys.modules) - before == {"pyrnnx.testing"}
assert set(pyrnnx.testing.__all__) <= set(dir(pyrnnx.testing))
from pyrnnx.testing.cases import CASES, expected_outputs, make_arrays
for case in (*CASES[::20], *pyrnnx.testing.random_cases(0, 3)):
    if case.dtype != "bfloat16":
        expected_outputs(case, make_arrays(case))
assert not others(), others()

import pyrnnx.frontends.onnx, pyrnnx.frontends.keras, pyrnnx.frontends.torch
ones = np.ones((1, 1, 1), np.float32)
pyrnnx.frontends.onnx.rnn(ones, ones, ones, opset=14)
pyrnnx.frontends.torch.from_state_dict({"weight_ih_l0": np.ones((3, 2)), "weight_hh_l0": np.ones((3, 3))})
pyrnnx.frontends.keras.from_weights([np.ones((2, 3)), np.ones((3, 3))])
layer = pyrnnx.Layer(pyrnnx.RecurrentOp("RNN", 1), ones, ones)
pyrnnx.testing.assert_same(layer, layer.run)
assert not {"pyrnnx.frontends.openvino", "pyrnnx.frontends.onnx.backend"} & {*sys.modules}
from pyrnnx.testing.runtimes import RUNTIMES
for runtime in RUNTIMES.values():
    runtime.installed(), runtime.version(), runtime.supports(pyrnnx.testing.Case("", "LSTM"))
assert not others(), others()
"""


def test_the_names_are_there() -> None:
    for name in pyrnnx.testing.__all__:
        assert getattr(pyrnnx.testing, name) is not None
        assert name in dir(pyrnnx.testing)
    assert pyrnnx.testing.CASES is pyrnnx.testing.cases.CASES
    with pytest.raises(AttributeError, match=r"module 'pyrnnx\.testing' has no attribute 'missing'"):
        pyrnnx.testing.missing  # noqa: B018


@pytest.mark.e2e
def test_nothing_is_imported_early() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
