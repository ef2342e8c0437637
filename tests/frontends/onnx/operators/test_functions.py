"""All cases compared with the oracle, in every dtype and from every kind of array; NaN stays in its row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from layers import DTYPES, bfloat16, float16, float32, float64
from rows import each_row, few_rows

import pyrnnx.frontends.onnx as frontend
from pyrnnx import Direction
from pyrnnx.testing.cases import (
    CASES,
    OPERATORS,
    OPTIONAL,
    OUTPUTS,
    Case,
    expected_outputs,
    make_arrays,
    opset_dtypes,
    random_cases,
)
from pyrnnx.testing.numbers import Array, assert_close, numpy_dtype, tolerance_of

each_operator = each_row("operator", OPERATORS)
BOTH = {"direction": "bidirectional"}


def ids(value: object) -> str:
    return value.name if isinstance(value, Case | np.dtype) else str(value)


def run(case: Case, arrays: dict[str, Any], **changes: Any) -> tuple[Array, ...]:
    function: Callable[..., tuple[Array, ...]] = getattr(frontend, case.operator.lower())
    return function(**arrays, **{**case.attributes, **changes}, opset=case.opset)


def everything(operator: str, **sizes: Any) -> Case:
    """All inputs, both directions, uneven lengths with a row of length 0."""
    return Case(f"{operator}-everything", operator, BOTH, OPTIONAL[operator], (4, 0, 2), **sizes)


def assert_same(actual: tuple[Array, ...], expected: tuple[Array, ...]) -> None:
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e, strict=True)


# One case for each feature of each operator in the dtypes that are not its own; each eighth row runs by default.
OF_A_FEATURE = {(case.operator, case.feature): case for case in CASES}.values()
OTHERS = [(case, dtype) for case in OF_A_FEATURE for dtype in opset_dtypes(case.opset) if dtype != case.dtype]


@few_rows(
    ("case", "dtype"),
    [*((case, case.dtype) for case in CASES), *OTHERS[::8]],
    [row for k, row in enumerate(OTHERS) if k % 8],
    ids=ids,
)
def test_case_agrees_with_the_oracle(case: Case, dtype: str) -> None:
    arrays = make_arrays(case, dtype)
    outputs = run(case, arrays)
    assert isinstance(outputs, tuple)
    shapes = case.shapes()
    assert [y.shape for y in outputs] == [shapes[name] for name in OUTPUTS[case.operator]]
    assert {y.dtype for y in outputs} == {numpy_dtype(dtype)}
    assert_close(outputs, expected_outputs(case, arrays), tolerance_of(dtype))


@each_operator
def test_lists_of_numbers(operator: str) -> None:
    case = everything(operator)
    arrays = make_arrays(case, float64)
    outputs = run(case, {name: array.tolist() for name, array in arrays.items()})
    assert_same(outputs, run(case, arrays))


def test_direction_of_an_op() -> None:
    """A Direction is a string, but str() of it is its name."""
    X, W, R = (np.ones(shape, np.float32) for shape in ((4, 2, 3), (2, 5, 3), (2, 5, 5)))
    assert_same(
        frontend.rnn(X, W, R, direction=Direction.BIDIRECTIONAL), frontend.rnn(X, W, R, direction="bidirectional")
    )


@each_row("dtype", [float16, bfloat16], ids=ids)
def test_every_value_of_a_narrow_type(dtype: np.dtype[Any]) -> None:
    """All 65536, through the identity and through a product that must be rounded, also to subnormals and infinity."""
    values = np.arange(2**16, dtype=np.uint16).view(dtype).reshape(1, -1, 1)
    for weight in (1.0, 0.75, 1.5):
        w = np.full((1, 1, 1), weight, dtype)
        (Y, _), (wide, _) = (
            frontend.rnn(x, w.astype(x.dtype), np.zeros((1, 1, 1), x.dtype), activations=["Affine"])
            for x in (values, values.astype(float32))
        )
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = wide.astype(dtype).astype(float32)  # NumPy knows NaNs of float32
            np.testing.assert_array_equal(Y.astype(float32), rounded)
            exact = values.astype(float32).ravel() * np.float32(weight)
        normal = np.abs(exact) > np.finfo(np.float32).tiny  # a kernel may flush the others
        np.testing.assert_array_equal(wide.ravel()[normal], exact[normal])


def unaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


MEMORY: dict[str, Callable[[Array], Array]] = {
    "every second element": lambda array: array.repeat(2, axis=-1)[..., ::2],
    "every second row": lambda array: array.repeat(2, axis=-2)[..., ::2, :],
    "every third step": lambda array: array.repeat(3, axis=0)[::3],
    "part of a wider array": lambda array: np.pad(array, [(1, 2)] * array.ndim)[(slice(1, -2),) * array.ndim],
    "reversed": lambda array: np.flip(np.flip(array).copy()),
    "Fortran": np.asfortranarray,
    "first and last axis swapped": lambda array: array.swapaxes(-1, 0).copy().swapaxes(-1, 0),
    "unaligned": unaligned,
    "read-only": read_only,
    "subclass": lambda array: array.view(np.memmap),
    "one value": lambda array: np.broadcast_to(array[(0,) * array.ndim], array.shape),
    "other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
}


# bfloat16 has no byte order.
FORMS = [
    row
    for row in product(OPERATORS, MEMORY, DTYPES, ((0, (4, 0, 2)), (1, (4, 0, 2)), (0, None)))
    if row[1] != "other byte order" or row[2] != bfloat16
]


# Each fifth row: every memory order in every dtype, layout and operator.
@few_rows(("operator", "memory", "dtype", "form"), FORMS[::5], [row for k, row in enumerate(FORMS) if k % 5], ids=ids)
def test_any_memory_order_and_inputs_are_left_alone(
    operator: str, memory: str, dtype: np.dtype[Any], form: Any
) -> None:
    layout, lens = form
    inputs = [name for name in OPTIONAL[operator] if lens or name != "sequence_lens"]
    case = Case(f"{operator}-memory", operator, BOTH | {"layout": layout}, tuple(inputs), lens, H=17)
    arrays = {
        name: array if memory == "every second row" and array.ndim == 1 else MEMORY[memory](array)
        for name, array in make_arrays(case, dtype).items()
    }
    plain = {name: array.astype(array.dtype.newbyteorder("="), order="C") for name, array in arrays.items()}
    outputs = run(case, arrays)
    assert_close(outputs, expected_outputs(case, plain), tolerance_of(dtype))
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, plain[name], err_msg=name)
        assert not any(np.shares_memory(array, y) for y in outputs)
    assert all(type(y) is np.ndarray and y.flags.writeable for y in outputs)


PADDED = [case for case in CASES if case.lens is not None and case.opset == 22 and case.N and case.T]


@each_row("case", PADDED, ids=lambda case: case.name)
def test_padding_and_states_of_empty_rows_are_never_read(case: Case) -> None:
    arrays = make_arrays(case)
    expected = run(case, arrays)
    assert case.lens is not None
    for row, length in enumerate(case.lens):
        X = arrays["X"].swapaxes(0, 1) if case.layout else arrays["X"]
        X[length:, row] = np.nan
        if length == 0:
            for state in (arrays[name] for name in arrays if name.startswith("initial")):
                (state if case.layout else state.swapaxes(0, 1))[row] = np.nan
    outputs = run(case, arrays)
    assert_same(outputs, expected)
    Y, *states = (y if case.layout else y.swapaxes(0, -2) for y in outputs)  # rows first
    for row, length in enumerate(case.lens):
        after = Y[row, length:] if case.layout else Y[row, ..., length:, :]
        assert not after.any()
        assert length or not any(state[row].any() for state in states)


@each_row("bad", [np.nan, np.inf, -np.inf])
@each_row("dtype", DTYPES, ids=ids)
@each_row("where", ["X", "initial_h"])
@each_operator
def test_not_a_number_stays_in_its_row(operator: str, where: str, dtype: np.dtype[Any], bad: float) -> None:
    for inputs in ((), OPTIONAL[operator]):
        case = Case("a-bad-row", operator, BOTH, (*inputs, "initial_h"), T=5, N=7, H=17)
        arrays = make_arrays(case, dtype)
        good = run(case, arrays)
        arrays[where][1, 3 if where == "X" else 1, 0] = bad
        outputs = run(case, arrays)
        row = 3 if where == "X" else 1
        assert_same(*(tuple(np.delete(y, row, axis=-2) for y in ys) for ys in (outputs, good)))
        if np.isnan(bad):  # with an infinity, 0 * inf depends on how an equation is written
            with np.errstate(invalid="ignore", over="ignore"):
                assert_close(outputs, expected_outputs(case, arrays), tolerance_of(dtype))
            assert np.isnan(outputs[1][..., row, :]).any()


def test_unused_forget_gate_is_not_read() -> None:
    """If input_forget is 1, weights, bias and peephole of the forget gate have no effect, even as NaN."""
    case = Case("coupled", "LSTM", {"input_forget": 1}, OPTIONAL["LSTM"], H=17)
    arrays = make_arrays(case)
    expected = run(case, arrays)
    for name, blocks in (("W", (2,)), ("R", (2,)), ("B", (2, 6)), ("P", (2,))):
        for block in blocks:
            arrays[name][:, block * 17 : (block + 1) * 17] = np.nan
    assert_same(run(case, arrays), expected)


@few_rows("case", random_cases(1, 60), random_cases(2, 600))
def test_random_case_agrees_with_the_oracle(case: Case) -> None:
    arrays = make_arrays(case)
    outputs = getattr(frontend, case.operator.lower())(**arrays, **case.attributes, opset=case.opset)
    assert [y.dtype for y in outputs] == [numpy_dtype(case.dtype)] * len(OUTPUTS[case.operator])
    assert_close(outputs, expected_outputs(case, arrays), tolerance_of(case.dtype), case)
