"""The six operations against the oracle."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
import pytest
from layers import DTYPES, float64
from openvino_functions import CASES, CELLS, DEFAULTS, Case, H, I, N, T, expected, make_arrays, run
from openvino_layers import assert_same

from pyrnnx import PyrnnxError
from pyrnnx.frontends.openvino import (
    OPERATIONS,
    gru_cell,
    gru_sequence,
    lstm_cell,
    lstm_sequence,
    rnn_cell,
    rnn_sequence,
)
from pyrnnx.frontends.openvino.schemas import find_operation
from pyrnnx.testing.cases import PARAMETERS
from pyrnnx.testing.numbers import assert_close, tolerance_of

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
EVERYTHING = [Case(f"{cell}-all", cell, {"direction": "bidirectional", "clip": 0.75}) for cell in CELLS]
EVERYTHING += [Case("GRU-lbr", "GRU", {"direction": "bidirectional", "linear_before_reset": True})]
STEPS = [Case(f"{case.name}-cell", case.cell, {"clip": 0.75}, step=True) for case in EVERYTHING]
each_operation = pytest.mark.parametrize("case", EVERYTHING + STEPS, ids=lambda case: case.name)
each_sequence = pytest.mark.parametrize("case", EVERYTHING, ids=lambda case: case.name)


@each_sequence
def test_activations_may_be_given_for_each_direction(case: Case) -> None:
    """As OpenVINO writes them for an operation from ONNX; the two halves must be equal."""
    names = list(DEFAULTS[case.cell])
    once = Case(case.name, case.cell, {**case.attributes, "activations": names})
    twice = Case(case.name, case.cell, {**case.attributes, "activations": names * 2})
    arrays = make_arrays(once)
    assert_same(run(twice, arrays), run(once, arrays))
    other = Case(case.name, case.cell, {**case.attributes, "activations": [*names, *names[:-1], "relu"]})
    with pytest.raises(PyrnnxError, match=r"activations differ by direction, .*; expected"):
        run(other, arrays)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_agrees_with_the_oracle(case: Case, dtype: np.dtype[Any]) -> None:
    arrays = make_arrays(case, dtype)
    outputs = run(case, arrays)
    states = 2 if case.cell == "LSTM" else 1
    D = case.num_directions
    shapes = [(N, H)] * states if case.step else [(N, D, T, H), *[(N, D, H)] * states]
    assert [y.shape for y in outputs] == shapes
    assert {y.dtype for y in outputs} == {dtype}
    assert_close(outputs, expected(case, arrays), tolerance_of(dtype), case.name)


def test_help_says_what_a_call_costs() -> None:
    for function in (rnn_sequence, gru_sequence, lstm_sequence, rnn_cell, gru_cell, lstm_cell):
        assert "prepared anew in every call" in (function.__doc__ or "")


def test_table_reaches_every_operation() -> None:
    kinds = [(f"{case.cell}{'Cell' if case.step else 'Sequence'}", case.attributes.get("opset")) for case in CASES]
    rows = [find_operation(*kind) for kind in kinds]
    assert {row.versioned_name for row in rows if row is not None} == set(OPERATIONS)


def test_table_reaches_every_function_of_the_text_in_every_place() -> None:
    for cell in CELLS:
        for place in range(len(DEFAULTS[cell])):
            used = {
                c.attributes["activations"][place] for c in CASES if c.cell == cell and "activations" in c.attributes
            }
            assert {"relu", "sigmoid", "tanh", *PARAMETERS} <= used


@pytest.mark.parametrize("dtype", INTEGERS)
@each_sequence
def test_any_integer_lengths(case: Case, dtype: str) -> None:
    arrays = make_arrays(case)
    wanted = run(case, arrays)
    arrays["sequence_lengths"] = arrays["sequence_lengths"].astype(dtype)
    assert_same(run(case, arrays), wanted)


@each_sequence
def test_lengths_as_a_list(case: Case) -> None:
    arrays: dict[str, Any] = make_arrays(case)
    wanted = run(case, arrays)
    assert_same(run(case, arrays | {"sequence_lengths": [T, 0, 2, 1]}), wanted)
    assert_same(run(case, arrays | {"sequence_lengths": (T, 0, 2, 1)}), wanted)


@each_operation
def test_hidden_size_may_be_said(case: Case) -> None:
    arrays = make_arrays(case)
    assert_same(run(case, arrays, hidden_size=H), run(case, arrays))


@pytest.mark.parametrize("clip", [None, 0, 0.0, np.inf])
@each_operation
def test_no_clip(case: Case, clip: float | None) -> None:
    arrays = make_arrays(case)
    wanted = run(case, arrays, clip=1e9)
    assert_same(run(case, arrays, clip=clip), wanted)
    assert not np.array_equal(run(case, arrays, clip=0.25)[0], wanted[0])


@each_operation
def test_names_in_any_case(case: Case) -> None:
    arrays = make_arrays(case)
    names = DEFAULTS[case.cell]
    wanted = run(case, arrays, activations=names)
    assert_same(run(case, arrays), wanted)
    assert_same(run(case, arrays, activations=[name.upper() for name in names]), wanted)
    assert_same(run(case, arrays, activations=[name.title() for name in names]), wanted)
    if not case.step:
        for text in ("BIDIRECTIONAL", "Bidirectional"):
            assert_same(run(case, arrays, activations=names, direction=text), wanted)


@each_operation
def test_inputs_by_name_are_those_by_place(case: Case) -> None:
    arrays = make_arrays(case)
    outputs = case.function(**arrays, **case.attributes)
    assert_same(outputs if isinstance(outputs, tuple) else (outputs,), run(case, arrays))


@pytest.mark.parametrize("case", STEPS, ids=lambda case: case.name)
def test_cell_is_a_sequence_of_one_step(case: Case) -> None:
    arrays = make_arrays(case, float64)
    longer = {name: a[:, np.newaxis] if name in "XHC" else a[np.newaxis] for name, a in arrays.items()}
    weights = [longer.pop(name) for name in "WRB"]
    sequence = Case("one step", case.cell, case.attributes)
    Y, *states = sequence.function(*longer.values(), [1] * N, *weights, **case.attributes)
    assert_same(run(case, arrays), tuple(state[:, 0] for state in states))
    np.testing.assert_array_equal(Y[:, :, 0], states[0])


@each_sequence
def test_padding_never_reaches_a_result(case: Case) -> None:
    arrays = make_arrays(case)
    wanted = run(case, arrays)
    for row, length in enumerate(case.lens):
        arrays["X"][row, length:] = np.nan
        if length == 0:
            arrays["H"][row] = np.nan
    outputs = run(case, arrays)
    assert_same(outputs, wanted)
    for row, length in enumerate(case.lens):
        assert not outputs[0][row, :, length:].any()
        assert outputs[0][row, :, :length].all()


@each_operation
def test_nan_stays_in_its_row(case: Case) -> None:
    arrays = make_arrays(case)
    wanted = run(case, arrays)
    arrays["X"][2] = np.nan
    for a, w in zip(run(case, arrays), wanted, strict=True):
        np.testing.assert_array_equal(np.delete(a, 2, axis=0), np.delete(w, 2, axis=0))
        assert np.isnan(a[2, :, : case.lens[2]] if a.ndim == 4 else a[2]).all()


@pytest.mark.parametrize("sizes", [(0, T, I), (N, 0, I), (N, T, 0), (0, 0, 0)], ids=["N=0", "T=0", "I=0", "none"])
@each_sequence
def test_nothing_in_some_dimension(case: Case, sizes: tuple[int, int, int]) -> None:
    n, t, i = sizes
    arrays = make_arrays(case, float64)
    arrays["X"] = arrays["X"][:n, :t, :i]
    arrays["W"] = arrays["W"][..., :i]
    for name in ("H", "C", "sequence_lengths"):
        if name in arrays:
            arrays[name] = np.minimum(arrays[name][:n], t) if name == "sequence_lengths" else arrays[name][:n]
    outputs = run(case, arrays)
    assert [y.shape for y in outputs] == [(n, 2, t, H), *[(n, 2, H)] * (len(outputs) - 1)]
    assert_close(outputs, expected(case, arrays), tolerance_of(float64))


# Versions of the LSTMs


def test_version_1_is_felt() -> None:
    for step in (False, True):
        case = Case("LSTM-1", "LSTM", {"opset": 1}, step=step, peepholes=True)
        arrays = make_arrays(case, float64)
        outputs = run(case, arrays)
        assert not np.allclose(run(case, arrays, input_forget=True)[0], outputs[0], atol=0.01)
        P = arrays.pop("P")
        assert not np.allclose(run(case, arrays)[0], outputs[0], atol=0.01)
        zero = run(case, arrays | {"P": np.zeros_like(P)})
        assert_same(run(case, arrays), zero)
        assert_same(run(case, arrays, opset=13), zero)  # without P and input_forget both versions are the same


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize("step", [False, True], ids=["sequence", "cell"])
def test_unused_input_gate_is_not_read(step: bool, activation: str) -> None:
    """With input_forget the weights, bias and peephole of the input gate do not matter, not even as NaN."""
    attributes = {"opset": 1, "input_forget": True, "activations": [activation, "tanh", "tanh"]}
    case = Case("coupled", "LSTM", attributes, step=step, peepholes=True)
    arrays = make_arrays(case)
    outputs = run(case, arrays)
    for name in ("W", "R", "B", "P"):
        arrays[name] = arrays[name].copy()
        arrays[name][(..., slice(H, 2 * H), *[slice(None)] * (name in "WR"))] = np.nan
    assert_same(run(case, arrays), outputs)


def test_bias_of_lstm_cell_1_is_optional() -> None:
    case = Case("LSTM-1 without B", "LSTM", {"opset": 3}, step=True)
    arrays = make_arrays(case)
    zero = run(case, arrays | {"B": np.zeros_like(arrays["B"])})
    del arrays["B"]
    assert_same(run(case, arrays), zero)
    with pytest.raises(PyrnnxError, match="B is missing"):
        run(case, arrays, opset=4)


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


@pytest.mark.parametrize(
    ("more", "attributes", "message"), NOT_IN_LATER_VERSIONS.values(), ids=NOT_IN_LATER_VERSIONS.keys()
)
def test_bad_arguments_of_versions(more: dict[str, Any], attributes: dict[str, Any], message: str) -> None:
    case = Case("LSTM-all", "LSTM", {"direction": "bidirectional"})
    with pytest.raises(PyrnnxError, match=f"LSTMSequence: .*{message}"):
        run(case, make_arrays(case) | more, **attributes)


ALL = {"hidden_size": None, "activations_alpha": (), "activations_beta": (), "clip": None}
SIGNATURES: dict[Callable[..., Any], dict[str, Any]] = {
    rnn_sequence: {"direction": "forward", "activations": ("tanh",)},
    gru_sequence: {"direction": "forward", "activations": ("sigmoid", "tanh"), "linear_before_reset": False},
    lstm_sequence: {
        "direction": "forward", "activations": ("sigmoid", "tanh", "tanh"), "input_forget": None, "opset": 16
    },
    rnn_cell: {"activations": ("tanh",)},
    gru_cell: {"activations": ("sigmoid", "tanh"), "linear_before_reset": False},
    lstm_cell: {"activations": ("sigmoid", "tanh", "tanh"), "input_forget": None, "opset": 16},
}  # fmt: skip


@pytest.mark.parametrize(("operation", "defaults"), SIGNATURES.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_signatures_show_the_attributes(operation: Callable[..., Any], defaults: dict[str, Any]) -> None:
    parameters = signature(operation).parameters.values()
    assert {one.name: one.default for one in parameters if one.kind is Parameter.KEYWORD_ONLY} == ALL | defaults
    assert all(one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY) for one in parameters)
