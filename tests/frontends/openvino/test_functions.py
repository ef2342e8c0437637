"""The operations of OpenVINO compared with the oracle, on the kit's cases and beyond them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from layers import DTYPES
from openvino_layers import DEFAULTS, assert_same, function
from rows import each_row, few_rows

from pyrnnx import ACTIVATIONS, PyrnnxError
from pyrnnx.frontends.openvino import lstm_cell, lstm_sequence
from pyrnnx.testing.cases import (
    OPENVINO_CASES,
    OPERATIONS,
    OPTIONAL,
    OUTPUTS,
    PARAMETERS,
    STEPS,
    Case,
    expected_outputs,
    make_arrays,
    random_cases,
)
from pyrnnx.testing.numbers import Array, assert_close, numpy_dtype, tolerance_of

T, N, I, H = 5, 4, 3, 6


def make_case(name: str, operation: str, attributes: dict[str, Any] | None = None, **fields: Any) -> Case:
    """Return a case of an operation with all inputs and uneven lengths."""
    sizes: dict[str, Any] = {"T": 1} if operation in STEPS else {"T": T, "lens": (T, 0, 2, 1)}
    opset = int(operation.rpartition("-")[2])
    fields = {"N": N, "I": I, "H": H, "opset": opset, "inputs": OPTIONAL[operation], **sizes, **fields}
    return Case(name, operation, attributes or {}, **fields)


def all_attributes(operation: str) -> dict[str, Any]:
    return {"clip": 0.75} if operation in STEPS else {"direction": "bidirectional", "clip": 0.75}


NEWEST = ("RNNSequence-5", "GRUSequence-5", "LSTMSequence-5")
EVERYTHING = [make_case(f"{operation}-all", operation, all_attributes(operation)) for operation in NEWEST]
EVERYTHING += [
    replace(EVERYTHING[1], name="GRU-lbr", attributes={**EVERYTHING[1].attributes, "linear_before_reset": True})
]
each_sequence = each_row("case", EVERYTHING)


def run(case: Case, arrays: dict[str, Any], **changes: Any) -> tuple[Array, ...]:
    return function(case.operator, **arrays, **{**case.attributes, **changes})


def check(case: Case, dtype: Any = None) -> None:
    arrays = make_arrays(case, dtype)
    outputs, shapes, dtype = run(case, arrays), case.shapes(), numpy_dtype(dtype or case.dtype)
    assert [y.shape for y in outputs] == [shapes[name] for name in OUTPUTS[case.operator]]
    assert {y.dtype for y in outputs} == {dtype}
    assert_close(outputs, expected_outputs(case, arrays), tolerance_of(dtype), case.name)


def input_forget_cases() -> list[Case]:
    """Return a case for each function of the gates, and so of the gate that is 1 minus the other."""
    cases = []
    for operation in ("LSTMSequence-1", "LSTMCell-1"):
        for name in ACTIVATIONS:
            attributes: dict[str, Any] = {"input_forget": True, "clip": 0.75, "activations": [name, "tanh", "tanh"]}
            for key, value in zip(("alpha", "beta"), PARAMETERS.get(name, ()), strict=False):
                attributes[f"activations_{key}"] = [value]
            cases.append(make_case(f"{operation}-input_forget-{name}", operation, attributes))
    return cases


@each_row("case", [*OPENVINO_CASES, *input_forget_cases()])
def test_case_agrees_with_the_oracle(case: Case) -> None:
    check(case)


# One case for each feature in the dtypes that are not its own; each fourth row is of the next dtype.
OTHERS = [
    (case, dtype)
    for case in {(case.operator, case.feature): case for case in OPENVINO_CASES}.values()
    for dtype in DTYPES
    if dtype.name != case.dtype
]


@few_rows(("case", "dtype"), OTHERS[::4], [row for k, row in enumerate(OTHERS) if k % 4])
def test_each_feature_in_every_other_dtype(case: Case, dtype: np.dtype[Any]) -> None:
    check(case, dtype)


@each_row("case", random_cases(1, 80, operators=OPERATIONS))
def test_random_case(case: Case) -> None:
    check(case)


@each_sequence
def test_activations_may_be_given_for_each_direction(case: Case) -> None:
    """OpenVINO writes them twice for an operation from ONNX; the two halves must be equal."""
    names = list(DEFAULTS[case.cell])
    arrays = make_arrays(case)
    assert_same(run(case, arrays, activations=names * 2), run(case, arrays, activations=names))
    with pytest.raises(PyrnnxError, match=r"activations differ by direction, .*; expected"):
        run(case, arrays, activations=[*names, *names[:-1], "relu"])


@each_row("activation", ["sigmoid", "relu"])
@each_row("operation", ["LSTMSequence-1", "LSTMCell-1"])
def test_unused_input_gate_is_not_read(operation: str, activation: str) -> None:
    """The weights, bias and peephole of the input gate have no effect with input_forget, even as NaN."""
    case = make_case("coupled", operation, {"input_forget": True, "activations": [activation, "tanh", "tanh"]})
    arrays = make_arrays(case)
    outputs = run(case, arrays)
    for name in ("W", "R", "B", "P"):
        arrays[name] = arrays[name].copy()
        last = arrays[name] if name in "BP" else arrays[name].swapaxes(-1, -2)
        last[..., H : 2 * H] = np.nan
    assert_same(run(case, arrays), outputs)


def test_bias_of_lstm_cell_1_is_optional() -> None:
    arrays: dict[str, Any] = make_arrays(make_case("LSTM-1 without B", "LSTMCell-1", inputs=("B",)))
    zero = lstm_cell(**arrays | {"B": np.zeros_like(arrays["B"])}, opset=3)
    del arrays["B"]
    assert_same(lstm_cell(**arrays, opset=3), zero)
    with pytest.raises(PyrnnxError, match="B is missing"):
        lstm_cell(**arrays, opset=4)


NOT_IN_LATER_VERSIONS = {
    "P": ({"P": np.zeros((2, 3 * H), np.float32)}, {}, "P was given"),
    "input_forget": ({}, {"input_forget": True}, "'input_forget' is unknown"),
    "weights_format": ({}, {"weights_format": "fico"}, "'weights_format' is unknown"),
    "opset 0": ({}, {"opset": 0}, "opset is 0"),
    "opset True": ({}, {"opset": True}, "opset is True"),
    "opset as text": ({}, {"opset": "5"}, "opset is '5'"),
    "P of version 1 of another size": ({"P": np.zeros((2, 4 * H), np.float32)}, {"opset": 1}, r"P has shape \(2, 24\)"),
    "P of version 1 of another type": ({"P": np.zeros((2, 3 * H))}, {"opset": 1}, "P has dtype float64"),
    "input_forget 1": ({}, {"opset": 1, "input_forget": 1}, "input_forget is 1"),
}


@each_row(("more", "attributes", "message"), NOT_IN_LATER_VERSIONS.values(), ids=NOT_IN_LATER_VERSIONS.keys())
def test_bad_arguments_of_versions(more: dict[str, Any], attributes: dict[str, Any], message: str) -> None:
    arrays: dict[str, Any] = make_arrays(EVERYTHING[2])
    with pytest.raises(PyrnnxError, match=f"LSTMSequence: .*{message}"):
        lstm_sequence(**arrays | more, direction="bidirectional", **attributes)
