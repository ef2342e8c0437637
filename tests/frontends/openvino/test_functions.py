"""The six operations against the oracle, through axis orders, gate orders and bias sums written out here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import reference
from cases import DTYPES, PARAMETERS, TOLERANCES, Array, assert_close, float32, float64
from layers import random_arrays

import pyrnnx.frontends.openvino as frontend
from pyrnnx import ACTIVATIONS, OPENVINO_CELL, OPENVINO_SEQUENCE, Direction, PyrnnxError, RecurrentOp
from pyrnnx.conventions import OPENVINO_CELL_1, OPENVINO_SEQUENCE_1

T, N, I, H = 5, 4, 3, 6
CELLS = ("RNN", "GRU", "LSTM")
ORDERS = {"RNN": "i", "GRU": "zrh", "LSTM": "fico"}  # of gates
DEFAULTS = {"RNN": ("tanh",), "GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh")}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class Case:
    name: str
    cell: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    lens: tuple[int, ...] = (T, 0, 2, 1)
    step: bool = False  # RNNCell and so on, instead of RNNSequence and so on
    peepholes: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(frontend, f"{self.cell.lower()}_{'cell' if self.step else 'sequence'}")
        return function

    @property
    def num_directions(self) -> int:
        return 2 if str(self.attributes.get("direction", "")).lower() == "bidirectional" else 1


def make_arrays(case: Case, dtype: np.dtype[Any] = float32) -> dict[str, Any]:
    """Inputs in port order, by OpenVINO's names."""
    direction = (Direction.FORWARD, Direction.BIDIRECTIONAL)[case.num_directions - 1]
    lbr = bool(case.attributes.get("linear_before_reset"))
    conventions = (OPENVINO_CELL, OPENVINO_CELL_1) if case.step else (OPENVINO_SEQUENCE, OPENVINO_SEQUENCE_1)
    arrays = random_arrays(
        RecurrentOp(case.cell, H, direction, linear_before_reset=lbr),
        (1 if case.step else T, N, I),
        dtype,
        convention=conventions[case.peepholes],
        peepholes=case.peepholes,
        lens=case.lens,
        seed=case.name,
    )
    if not case.step:
        arrays["sequence_lengths"] = arrays["sequence_lengths"].astype(np.int64)
    return arrays


def run(case: Case, arrays: Mapping[str, Any], **changes: Any) -> tuple[Array, ...]:
    outputs = case.function(*arrays.values(), **{**case.attributes, **changes})
    return outputs if isinstance(outputs, tuple) else (outputs,)


# From OpenVINO's arrangement to the oracle's (ONNX, layout 0), and back.


def gate(a: Array, cell: str, letter: str) -> Array:
    """[D, H, ...]: the block of a gate in W, R or a summed B."""
    k = ORDERS[cell].index(letter)
    return a[:, k * H : (k + 1) * H]


def onnx_weights(case: Case, arrays: Mapping[str, Any]) -> dict[str, Any]:
    W, R, B = (arrays[name][np.newaxis] if case.step else arrays[name] for name in "WRB")
    if case.cell == "LSTM":
        W, R, B = (np.concatenate([gate(a, "LSTM", g) for g in "iofc"], axis=1) for a in (W, R, B))
    if case.attributes.get("linear_before_reset"):
        z, r, Wb_h, Rb_h = (B[:, k * H : (k + 1) * H] for k in range(4))
        zero = np.zeros_like(z)
        B = np.concatenate([z, r, Wb_h, zero, zero, Rb_h], axis=1)
    else:
        B = np.concatenate([B, np.zeros_like(B)], axis=1)
    weights = {"W": W, "R": R, "B": B}
    if case.peepholes:
        P = arrays["P"][np.newaxis] if case.step else arrays["P"]
        f, i, o = (P[:, k * H : (k + 1) * H] for k in range(3))
        weights["P"] = np.concatenate([i, o, f], axis=1)
    return weights


def onnx_attributes(case: Case) -> dict[str, Any]:
    """Parameters stand at their function's place; ONNX takes them one after the other, for each direction anew."""
    given = {key: value for key, value in case.attributes.items() if key not in ("hidden_size", "clip", "opset")}
    attributes: dict[str, Any] = {}
    if case.attributes.get("clip") not in (None, 0, np.inf):
        attributes["clip"] = case.attributes["clip"]
    attributes["direction"] = str(given.pop("direction", "forward")).lower()
    attributes["input_forget"] = int(given.pop("input_forget", False))
    attributes["linear_before_reset"] = int(given.pop("linear_before_reset", False))
    canonical = {name.lower(): name for name in ACTIVATIONS}
    names = [canonical[name.lower()] for name in given.pop("activations", None) or DEFAULTS[case.cell]]
    attributes["activations"] = names * case.num_directions
    for key, takers in (("alpha", reference.ALPHA), ("beta", reference.BETA)):
        values = list(given.pop(f"activations_{key}", ()))
        values = [values[k] if k < len(values) else takers[name] for k, name in enumerate(names) if name in takers]
        attributes[f"activation_{key}"] = values * case.num_directions
    assert not given
    return attributes


def expected(case: Case, arrays: Mapping[str, Any]) -> tuple[Array, ...]:
    time_first = {"X": arrays["X"], "initial_h": arrays["H"], "initial_c": arrays.get("C")}
    for name, a in time_first.items():
        if a is not None:
            time_first[name] = (a[np.newaxis] if case.step else a.swapaxes(0, 1)).astype(np.float64)
    outputs = reference.run(
        case.cell,
        **time_first,
        **onnx_weights(case, arrays),
        sequence_lens=None if case.step else arrays["sequence_lengths"],
        **onnx_attributes(case),
        coupled_gate="i",  # as OpenVINO's own reference has it
    )
    Y, *states = outputs
    if case.step:
        return tuple(state[0] for state in states)
    return (Y.transpose(2, 1, 0, 3), *(state.transpose(1, 0, 2) for state in states))


# The table


def table() -> Iterator[Case]:
    lengths = {"mixed": (T, 0, 2, 1), "zero": (0,) * N, "full": (T,) * N, "one": (1,) * N}
    for cell in CELLS:
        flags: list[dict[str, Any]] = [{}, {"linear_before_reset": True}] if cell == "GRU" else [{}]
        for flag in flags:
            tag = "-".join([cell, *flag])
            for direction in ("forward", "reverse", "bidirectional"):
                for clip in (None, 0.375):
                    for name, lens in lengths.items():
                        attributes = {**flag, "direction": direction, "clip": clip}
                        yield Case(f"{tag}-{direction}-clip={clip}-{name}", cell, attributes, lens)
            for clip in (None, 0.375):
                yield Case(f"{tag}-cell-clip={clip}", cell, {**flag, "clip": clip}, step=True)
            for step in (False, True):
                if cell == "LSTM":
                    yield from first_version_cases("-cell" if step else "", step)
                yield from activation_cases(cell, flag, f"{tag}{'-cell' if step else ''}", step)


def first_version_cases(tag: str, step: bool) -> Iterator[Case]:
    """LSTMSequence-1 and LSTMCell-1: P in the order f, i, o, and input_forget."""
    for peepholes in (False, True):
        for forget in (False, True):
            for clip in (None, 0.375):
                attributes: dict[str, Any] = {"opset": 3 if step else 4, "input_forget": forget, "clip": clip}
                name = f"LSTM-1{tag}-peepholes={peepholes}-input_forget={forget}-clip={clip}"
                for direction in () if step else ("reverse", "bidirectional"):
                    more = {**attributes, "direction": direction}
                    yield Case(f"{name}-{direction}", "LSTM", more, step=step, peepholes=peepholes)
                yield Case(name, "LSTM", attributes, step=step, peepholes=peepholes)
    for function in ACTIVATIONS:  # of the gates, and so of the one that is 1 minus the other
        attributes = {"opset": 1, "input_forget": True, "clip": 0.75, "activations": [function, "tanh", "tanh"]}
        for key, value in zip(("alpha", "beta"), PARAMETERS.get(function, ()), strict=False):
            attributes[f"activations_{key}"] = [value]
        yield Case(f"LSTM-1{tag}-input_forget-{function}", "LSTM", attributes, step=step, peepholes=True)


def activation_cases(cell: str, flag: dict[str, Any], tag: str, step: bool) -> Iterator[Case]:
    both = {} if step else {"direction": "bidirectional"}
    for place in range(len(DEFAULTS[cell])):
        for name in ("relu", "sigmoid", "tanh"):  # those of the specification
            names = [*DEFAULTS[cell][:place], name, *DEFAULTS[cell][place + 1 :]]
            yield Case(f"{tag}-{place}={name}", cell, {**flag, **both, "activations": names}, step=step)
        for name in PARAMETERS:  # alpha and beta stand at the function's own place
            names = [*DEFAULTS[cell][:place], name, *DEFAULTS[cell][place + 1 :]]
            attributes: dict[str, Any] = {**flag, **both, "activations": names}
            for key, value in zip(("alpha", "beta"), PARAMETERS[name], strict=False):
                attributes[f"activations_{key}"] = [7.0] * place + [value]  # those of places before it mean nothing
            yield Case(f"{tag}-{place}={name}", cell, attributes, step=step)
    names = ["Elu", "HardSigmoid", "LeakyRelu"][: len(DEFAULTS[cell])]
    yield Case(f"{tag}-default parameters", cell, {**flag, **both, "activations": names}, step=step)
    attributes = {**flag, **both, "activations": names, "activations_alpha": [0.5, 0.25, 0.125][: len(names)]}
    yield Case(f"{tag}-all alphas", cell, attributes, step=step)


CASES = tuple(table())
assert len({case.name for case in CASES}) == len(CASES)
EVERYTHING = [Case(f"{cell}-all", cell, {"direction": "bidirectional", "clip": 0.75}) for cell in CELLS]
EVERYTHING += [Case("GRU-lbr", "GRU", {"direction": "bidirectional", "linear_before_reset": True})]
STEPS = [Case(f"{case.name}-cell", case.cell, {"clip": 0.75}, step=True) for case in EVERYTHING]
each_operation = pytest.mark.parametrize("case", EVERYTHING + STEPS, ids=lambda case: case.name)
each_sequence = pytest.mark.parametrize("case", EVERYTHING, ids=lambda case: case.name)


def assert_same(actual: tuple[Array, ...], wanted: tuple[Array, ...]) -> None:
    assert len(actual) == len(wanted)
    for a, w in zip(actual, wanted, strict=True):
        np.testing.assert_array_equal(a, w, strict=True)


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
    assert_close(outputs, expected(case, arrays), TOLERANCES[dtype], case.name)


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
    assert_close(outputs, expected(case, arrays), TOLERANCES[float64])


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
