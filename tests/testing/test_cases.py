"""The tables of cases: complete for the operators' tables, and consistent with their descriptions."""

from __future__ import annotations

import functools
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kinds import kinds
from rows import each_row

import pyrnnx
from pyrnnx import ArgumentError, reference
from pyrnnx.frontends.onnx.operators.schemas import SCHEMAS
from pyrnnx.frontends.openvino import OPERATIONS
from pyrnnx.testing import cases as kit
from pyrnnx.testing.cases import FEATURES, NAMED, OPENVINO_CASES, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import DTYPES, assert_close, tolerance_of
from pyrnnx.testing.runtimes.models import make_ir

OPERATORS = (*kit.OPERATORS, *kit.OPERATIONS)
each_operator = each_row("operator", OPERATORS)
# Attributes without which a case computes the same; that they are taken is told by cases of their own.
WITHOUT_EFFECT = {"hidden_size", "output_sequence"}


def of(operator: str) -> list[Case]:
    return [case for case in NAMED.values() if case.operator == operator]


def attributes_of(operator: str) -> set[str]:
    """By the tables of the front-ends; weights_format of OpenVINO has one value only."""
    if operator in SCHEMAS:
        return {name for one in SCHEMAS[operator].values() for name in one.attributes}
    return set(OPERATIONS[operator].attributes) - {"weights_format"}


# Against the tables of the operators


def test_versions() -> None:
    assert {operator: tuple(SCHEMAS[operator]) for operator in kit.OPERATORS} == kit.VERSIONS
    assert set(kit.OPERATIONS) == set(OPERATIONS)


@each_operator
def test_inputs_and_outputs(operator: str) -> None:
    if operator in SCHEMAS:
        versions = list(SCHEMAS[operator].values())
        found = {(one.inputs, one.outputs) for one in versions}
        required: tuple[str, ...] = ("X", "W", "R")
    else:
        row = OPERATIONS[operator]
        found = {(row.input_names, row.output_names)}
        required = row.input_names[: len(row.input_names) - row.optional]
    assert found == {(kit.INPUTS[operator], kit.OUTPUTS[operator])}
    assert {*kit.INPUTS[operator]} - {*required, "sequence_lens"} == {*kit.OPTIONAL[operator]}


@functools.cache
def computed(case: Case) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return the arrays of a case and the oracle's outputs, all of them read-only."""
    arrays = make_arrays(case)
    outputs = expected_outputs(case, arrays)
    for array in (*arrays.values(), *outputs):
        array.setflags(write=False)
    return arrays, outputs


def changed(case: Case, arrays: dict[str, Any], attributes: dict[str, Any]) -> bool:
    """Return whether results differ by more than the dtype explains."""
    outputs = reference.run(case.operator, **arrays, **attributes)
    try:
        assert_close(outputs, computed(case)[1], tolerance_of(case.dtype))
    except AssertionError:
        return True
    return False


@each_row(
    ("operator", "name"), [(one, name) for one in OPERATORS for name in sorted(attributes_of(one) - WITHOUT_EFFECT)]
)
def test_a_case_fails_without_each_attribute(operator: str, name: str) -> None:
    """And so does every case whose feature has the attribute's name."""
    mine = [case for case in of(operator) if name in case.attributes]

    def ignored(case: Case) -> bool:
        attributes = {key: value for key, value in case.attributes.items() if key != name}
        try:
            return changed(case, computed(case)[0], attributes)
        except reference.OracleError:  # two directions of weights, or parameters of no function
            return True

    assert any(ignored(case) for case in mine)
    if name != "activations":  # some of whose cases name the default functions
        assert all(ignored(case) for case in mine if case.feature == name and case.attributes[name])


@each_row(("operator", "name"), [(one, name) for one in OPERATORS for name in kit.INPUTS[one] if name not in "XWR"])
def test_a_case_fails_without_each_input(operator: str, name: str) -> None:
    def ignored(case: Case) -> bool:
        arrays, _ = computed(case)
        whole = {name: np.full_like(arrays[name], case.T)} if name in ("sequence_lens", "sequence_lengths") else {}
        return changed(case, arrays | (whole or {name: np.zeros_like(arrays[name])}), dict(case.attributes))

    assert any(ignored(case) for case in of(operator) if name in case.given)


@each_row(("operator", "is_random"), [(one, is_random) for one in OPERATORS for is_random in (False, True)])
def test_every_attribute_dtype_and_boundary_has_a_case(operator: str, is_random: bool) -> None:
    mine, is_cell = kit.random_cases(0, 300, operators=[operator]) if is_random else of(operator), operator in kit.STEPS
    # Random activations of OpenVINO are those of its specification, which have no parameters.
    without = {"activations_alpha", "activations_beta"} if is_random else set()
    assert {name for case in mine for name in case.attributes} == attributes_of(operator) - without
    assert {case.dtype for case in mine} == set(DTYPES)
    assert {name for case in mine for name in case.given} == set(kit.INPUTS[operator])
    for size in ("T", "N", "I", "H"):
        wanted = {1} if size == "H" or (size == "T" and is_cell) else {0, 1}
        assert {getattr(case, size) for case in mine} >= wanted
    if not is_cell:
        lengths = [case.lens for case in mine if case.lens and case.T > 1]
        assert any(0 in lens for lens in lengths)
        assert any(case.T in (case.lens or ()) and {*(case.lens or ())} != {case.T} for case in mine if case.T > 1)
        assert {case.nan for case in mine} == {"", "row", "padding"}
        directions = {case.attributes.get("direction", "none").lower() for case in mine}
        assert directions >= {"none", "reverse", "bidirectional"}


# Texts of the cases


@each_operator
def test_cases_say_what_they_are(operator: str) -> None:
    for case in of(operator):
        assert case.name.startswith(operator)
        assert case.tells.startswith("Fails if "), case.name
        assert case.tells.endswith("."), case.name
        assert case.feature in FEATURES, case.name


@each_operator
def test_oracle_gives_numbers_of_the_shapes(operator: str) -> None:
    for case in of(operator):
        (arrays, outputs), shapes = computed(case), case.shapes()
        assert tuple(arrays) == case.given
        assert all(array.shape == shapes[name] for name, array in arrays.items()), case.name
        assert [y.shape for y in outputs] == [shapes[name] for name in kit.OUTPUTS[operator]]
        assert all(np.isfinite(y).all() for y in outputs) == (case.nan != "row"), case.name


@each_row("case", [*kinds(OPENVINO_CASES), replace(NAMED["GRUSequence-5-clip"], name="<&\"'>")])
def test_cases_of_openvino_are_irs(case: Case) -> None:
    arrays = make_arrays(case)
    model = pyrnnx.load(make_ir(case, arrays).encode())
    assert [info.name for info in model.inputs] == [*case.given]
    outputs = [np.asarray(output) for output in model(arrays).values()]
    assert_close(outputs, expected_outputs(case, arrays), tolerance_of(case.dtype))


# Arrays


def test_arrays_are_a_function_of_the_case() -> None:
    for case in (*[*NAMED.values()][::10], *kit.random_cases(0, 20)):
        copied = pickle.loads(pickle.dumps(case))
        assert {copied: 1}[case] == 1
        first, second = make_arrays(case), make_arrays(copied)
        assert first.keys() == second.keys()
        for name, array in first.items():
            np.testing.assert_array_equal(array, second[name], strict=True)
    case = NAMED["LSTM-only-P"]
    other = replace(case, name="another")
    assert not np.array_equal(make_arrays(case)["X"], make_arrays(other)["X"])
    np.testing.assert_array_equal(make_arrays(case, seed=7)["X"], make_arrays(other, seed=7)["X"])
    seeds: list[Any] = [-1, 1.5, [[]]]
    for seed in seeds:
        with pytest.raises(ArgumentError, match="make_arrays: seed is"):
            make_arrays(case, seed=seed)


@pytest.mark.parametrize("layout", [0, 1])
def test_where_nan_lies(layout: int) -> None:
    base = Case("a", "RNN", {"layout": layout}, lens=(2, 0, 4), nan="padding")
    both = [make_arrays(one)["X"] for one in (base, replace(base, nan="row"))]
    padding, row = (np.isnan(X if layout else X.swapaxes(0, 1)).any(axis=-1) for X in both)
    np.testing.assert_array_equal(padding, np.arange(4) >= np.array([[2], [0], [4]]))
    np.testing.assert_array_equal(np.argwhere(row), [[1, 2]])
    assert not np.isnan(make_arrays(Case("a", "LSTMCell-4", nan="row", T=1))["X"][[0, 2]]).any()


# Random cases


@pytest.mark.parametrize("operators", [kit.OPERATORS, kit.OPERATIONS], ids=["ONNX", "OpenVINO"])
def test_random_cases_are_a_function_of_the_seed(operators: tuple[str, ...]) -> None:
    many = kit.random_cases(3, 100, operators=operators)
    assert kit.random_cases(3, 10, operators=operators) == many[:10]
    assert kit.random_cases(4, 10, operators=operators) != many[:10]
    assert len({case.name for case in many}) == 100
    assert {case.operator for case in many} == set(operators)


def test_random_cases_stay_as_they_are() -> None:
    """A seed has the same cases with every version of Python and NumPy."""
    case = kit.random_cases(0, 2)[1]
    assert (case.name, case.T, case.N, case.I, case.H) == ("GRU-random-0-1", 1, 2, 5, 15)
    assert case.attributes == {
        "direction": "bidirectional",
        "hidden_size": 15,
        "activation_alpha": [0.25],
        "activation_beta": [0.25],
        "activations": ["scaledtanh", "sigmoid", "relu", "elu"],
    }


@each_row(
    ("arguments", "message"),
    [
        ({"seed": 1.5, "count": 1}, "seed is 1.5; expected an integer"),
        ({"seed": 1, "count": -1}, "count is -1; expected an integer, 0 or above"),
        ({"seed": 1, "count": True}, "count is True"),
        ({"seed": 1, "count": 1, "operators": ()}, r"operators is \(\); expected some of RNN, GRU"),
        ({"seed": 1, "count": 1, "operators": "RNN"}, "operators is 'RNN'"),
        ({"seed": 1, "count": 1, "operators": ["QRNN"]}, r"operators is \['QRNN'\]"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=f"random_cases: {message}"):
        kit.random_cases(**arguments)
