"""Cases of OpenVINO's operations as IRs."""

from __future__ import annotations

import numpy as np
import pytest
from rows import each_row

import pyrnnx
from pyrnnx.testing.cases import INPUTS, OPERATIONS, OUTPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.ir_models import make_ir
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of

BOTH = {"direction": "bidirectional"}
CASES = {
    **{f"{name} of one step": Case(name, name, {}, ("B",), T=1) for name in OPERATIONS},
    "list attributes": Case(
        "<&\"'>",
        "GRUSequence-5",
        BOTH
        | {"activations": ["hardsigmoid", "elu"], "activations_alpha": [0.25, 0.5], "activations_beta": [0.375, 0.0]},
        lens=(4, 1, 2),
    ),
    "flags": Case("flags", "GRUSequence-5", {"linear_before_reset": True, "clip": 0.25}, lens=(4, 0, 2)),
    "version 1": Case("version 1", "LSTMSequence-1", BOTH | {"input_forget": True}, ("P",), (3, 4, 1)),
    "float64": Case("float64", "LSTMSequence-5", {"direction": "reverse"}, dtype="float64"),
}


@each_row("name", CASES)
def test_is_read_and_run(name: str) -> None:
    pytest.importorskip("onnx")
    case = CASES[name]
    arrays: dict[str, Array] = make_arrays(case)
    model = pyrnnx.load(make_ir(case, arrays).encode())
    assert [one.name for one in model.inputs] == [name for name in INPUTS[case.operator] if name in arrays]
    assert [one.name for one in model.outputs] == [*OUTPUTS[case.operator]]
    outputs = [np.asarray(output) for output in model(arrays).values()]
    assert_close(outputs, expected_outputs(case, arrays), tolerance_of(case.dtype))
