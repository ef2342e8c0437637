"""The table of cases against the oracle, in every dtype, from every kind of array; NaNs stay where they belong."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from layers import DTYPES, bfloat16, float16, float32, float64

import pyrnnx.frontends.onnx as frontend
from pyrnnx.testing import reference
from pyrnnx.testing.cases import (
    CASES,
    OPERATORS,
    OPTIONAL,
    OUTPUTS,
    RUNTIME_INPUTS,
    Case,
    expected_outputs,
    make_arrays,
    opset_dtypes,
)
from pyrnnx.testing.numbers import Array, assert_close, numpy_dtype, tolerance_of
from pyrnnx.testing.onnx_models import make_node

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_operator = pytest.mark.parametrize("operator", OPERATORS)
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


@pytest.mark.parametrize(
    ("case", "dtype"), [(case, dtype) for case in CASES for dtype in opset_dtypes(case.opset)], ids=ids
)
def test_case_agrees_with_the_oracle(case: Case, dtype: str) -> None:
    arrays = make_arrays(case, dtype)
    outputs = run(case, arrays)
    assert isinstance(outputs, tuple)
    shapes = case.shapes()
    assert [y.shape for y in outputs] == [shapes[name] for name in OUTPUTS[case.operator]]
    assert {y.dtype for y in outputs} == {numpy_dtype(dtype)}
    assert_close(outputs, expected_outputs(case, arrays), tolerance_of(dtype))


@each_case
def test_node_gives_the_same_as_the_function(case: Case) -> None:
    arrays = make_arrays(case)
    inputs = {name: arrays.pop(name) for name in RUNTIME_INPUTS if name in arrays}
    layer = frontend.from_node(make_node(case, [*inputs, *arrays]), dict(arrays), opset=case.opset)
    expected = run(case, inputs | arrays)
    first = layer(**inputs)
    assert_same(first, expected)
    layer(**inputs | {"X": -inputs["X"]})  # a layer remembers nothing, and keeps its hands off what it has given
    assert_same(layer(**inputs), expected)
    assert_same(first, expected)


@pytest.mark.parametrize("with_lens", [True, False])
@each_operator
def test_layer_takes_inputs_by_position_and_any_sizes(operator: str, with_lens: bool) -> None:
    weights = {name: array for name, array in make_arrays(everything(operator)).items() if name not in RUNTIME_INPUTS}
    optional = [name for name in OPTIONAL[operator] if name.startswith("initial")] + ["sequence_lens"] * with_lens
    layer = frontend.from_node(make_node(everything(operator), ["X", *weights, *optional]), weights)
    for T, N in ((4, 3), (1, 1), (9, 5), (0, 2), (4, 0), (4, 3)):
        lens = tuple(min(n, T) for n in range(N)) if with_lens else None
        case = Case(f"{operator}-{T}-{N}", operator, BOTH, OPTIONAL[operator], lens, T, N)
        inputs = {name: array for name, array in make_arrays(case).items() if name in RUNTIME_INPUTS}
        names = RUNTIME_INPUTS if operator == "LSTM" else RUNTIME_INPUTS[:-1]
        outputs = layer(*[inputs.get(name) for name in names])
        assert_close(outputs, expected_outputs(case, inputs | weights), tolerance_of(float32))


@each_operator
def test_constants_of_a_node_may_be_any_inputs_and_are_replaced_by_those_given(operator: str) -> None:
    case = everything(operator)
    constants = make_arrays(case)
    X = constants.pop("X")
    layer = frontend.from_node(make_node(case, ["X", *constants]), dict(constants))
    assert_close(layer(X), expected_outputs(case, {"X": X} | constants), tolerance_of(float32))
    changes = {"sequence_lens": np.array([1, 2, 3], np.int32), "initial_h": -constants["initial_h"]}
    assert_close(layer(X, **changes), expected_outputs(case, {"X": X} | constants | changes), tolerance_of(float32))
    assert_close(layer(X), expected_outputs(case, {"X": X} | constants), tolerance_of(float32))


@each_operator
def test_lists_of_numbers(operator: str) -> None:
    case = everything(operator)
    arrays = make_arrays(case, float64)
    outputs = run(case, {name: array.tolist() for name, array in arrays.items()})
    assert_same(outputs, run(case, arrays))


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=ids)
@each_operator
def test_narrow_types_are_the_float32_result_rounded_once(operator: str, dtype: np.dtype[Any]) -> None:
    case = everything(operator, H=17)
    arrays = make_arrays(case, dtype)
    wide = {name: array if name == "sequence_lens" else array.astype(float32) for name, array in arrays.items()}
    assert_same(run(case, arrays), tuple(y.astype(dtype) for y in run(case, wide)))


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=ids)
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


@pytest.mark.parametrize("dtype", [float16, float32, float64], ids=ids)
@each_operator
def test_other_byte_order(operator: str, dtype: np.dtype[Any]) -> None:
    case = everything(operator)
    arrays = make_arrays(case, dtype)
    swapped = {name: array.astype(array.dtype.newbyteorder()) for name, array in arrays.items()}
    assert_same(run(case, swapped), run(case, arrays))


@each_operator
def test_one_layer_in_many_threads(operator: str) -> None:
    case = Case(f"{operator}-threads", operator, BOTH, OPTIONAL[operator], T=30, N=5, H=33)
    arrays = make_arrays(case)
    inputs = {name: arrays.pop(name) for name in RUNTIME_INPUTS if name in arrays}
    layer = frontend.from_node(make_node(case, [*inputs, *arrays]), arrays)
    given = [{name: array * np.float32(1 - k / 10) for name, array in inputs.items()} for k in range(8)]
    expected = [layer(**one) for one in given]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for outputs, wanted in zip(pool.map(lambda one: layer(**one), given), expected, strict=True):
                assert_same(outputs, wanted)


@pytest.mark.parametrize("case", [case for case in CASES if case.layout], ids=lambda case: case.name)
def test_layouts_agree(case: Case) -> None:
    arrays = make_arrays(case)
    batch_first = run(case, arrays)
    swapped = {
        name: array.swapaxes(0, 1) if name == "X" or name.startswith("initial") else array
        for name, array in arrays.items()
    }
    Y, *states = run(case, swapped, layout=0)
    expected = (Y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in states))
    assert_close(batch_first, expected, 1e-6)  # sums of the same few numbers, perhaps in another order


def strided(array: Array) -> Array:
    spread = np.full([2 * size for size in array.shape], 99, array.dtype)
    view = spread[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def unaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


MEMORY: dict[str, Callable[[Array], Array]] = {
    "strided": strided,
    "reversed": lambda array: np.flip(np.flip(array).copy()),
    "transposed": lambda array: array.T.copy().T,
    "Fortran": np.asfortranarray,
    "last two axes swapped": lambda array: array.swapaxes(-1, 0).copy().swapaxes(-1, 0),
    "unaligned": unaligned,
    "read-only": read_only,
    "subclass": lambda array: array.view(np.memmap),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=ids)
@pytest.mark.parametrize("memory", MEMORY)
@each_operator
def test_any_memory_order_and_inputs_are_left_alone(operator: str, memory: str, dtype: np.dtype[Any]) -> None:
    for layout in (0, 1):
        case = Case(f"{operator}-memory", operator, BOTH | {"layout": layout}, OPTIONAL[operator], (4, 0, 2), H=17)
        plain = make_arrays(case, dtype)
        arrays = {name: MEMORY[memory](array) for name, array in plain.items()}
        outputs = run(case, arrays)
        assert_close(outputs, expected_outputs(case, plain), tolerance_of(dtype))
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, plain[name], err_msg=name)
            assert not any(np.shares_memory(array, y) for y in outputs)
        assert all(type(y) is np.ndarray and y.flags.writeable for y in outputs)


@each_operator
def test_one_value_for_a_whole_array(operator: str) -> None:
    case = everything(operator)
    arrays = make_arrays(case)
    for name in (name for name in arrays if name != "sequence_lens"):
        arrays[name] = np.broadcast_to(np.float32(0.125), arrays[name].shape)  # strides of 0
    assert_close(run(case, arrays), expected_outputs(case, arrays), tolerance_of(float32))


PADDED = [case for case in CASES if case.lens is not None and case.opset == 22 and case.N and case.T]


@pytest.mark.parametrize("case", PADDED, ids=lambda case: case.name)
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


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES, ids=ids)
@pytest.mark.parametrize("where", ["X", "initial_h"])
@each_operator
def test_not_a_number_stays_in_its_row(operator: str, where: str, dtype: np.dtype[Any], bad: float) -> None:
    for inputs in ((), OPTIONAL[operator]):
        case = Case("a-bad-row", operator, BOTH, (*inputs, "initial_h"), T=5, N=7, H=17)
        arrays = make_arrays(case, dtype)
        good = run(case, arrays)
        arrays[where][1, 3 if where == "X" else 1, 0] = bad
        with np.errstate(invalid="ignore", over="ignore"):
            expected = expected_outputs(case, arrays)
        outputs = run(case, arrays)
        row = 3 if where == "X" else 1
        assert_same(*(tuple(np.delete(y, row, axis=-2) for y in ys) for ys in (outputs, good)))
        if np.isnan(bad):  # with an infinity, 0 * inf depends on how an equation is written
            assert_close(outputs, expected, tolerance_of(dtype))
            assert np.isnan(outputs[1][..., row, :]).any()


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("name", reference.ACTIVATIONS)
@each_operator
def test_every_activation_passes_nan_on(operator: str, name: str, clip: float | None) -> None:
    attributes: dict[str, Any] = {"activations": [name] * len(reference.DEFAULT_ACTIVATIONS[operator])}
    if name == "ScaledTanh":
        attributes |= {key: [1.0] * len(attributes["activations"]) for key in ("activation_alpha", "activation_beta")}
    case = Case(f"{operator}-{name}-nan", operator, attributes | {"clip": clip} if clip else attributes, H=9)
    for dtype in (float32, float64):
        arrays = make_arrays(case, dtype)
        arrays["X"][1, 1, 2] = np.nan
        for y in run(case, arrays):
            assert np.isnan(y[..., 1, :][-1]).all()
            assert not np.isnan(np.delete(y, 1, axis=-2)).any()


@each_operator
def test_unused_forget_gate_is_not_read(operator: str) -> None:
    """With input_forget = 1 the weights, bias and peephole of the forget gate do not matter, not even as NaN."""
    if operator != "LSTM":
        return
    case = Case("coupled", operator, {"input_forget": 1}, OPTIONAL[operator], H=17)
    arrays = make_arrays(case)
    expected = run(case, arrays)
    for name, blocks in (("W", (2,)), ("R", (2,)), ("B", (2, 6)), ("P", (2,))):
        for block in blocks:
            arrays[name][:, block * 17 : (block + 1) * 17] = np.nan
    assert_same(run(case, arrays), expected)


# Pre-activations from nothing to everything, and the neighbourhoods of 0 and of the ends of exp.
MAGNITUDES = np.array(
    [0, 1e-40, 1e-30, 1e-12, 1e-7, 1e-4, 0.01, 0.3, 0.5, 1, 1.5, 3, 9, 17, 30, 87, 89, 104, 709, 746, 1e30]
)
# results at the ends: (function, its values at -inf and +inf)
LIMITS = {
    "Relu": (0, np.inf),
    "Tanh": (-1, 1),
    "Sigmoid": (0, 1),
    "LeakyRelu": (-np.inf, np.inf),
    "ThresholdedRelu": (0, np.inf),
    "HardSigmoid": (0, 1),
    "Elu": (-1, np.inf),
    "Softplus": (0, np.inf),
}


@pytest.mark.parametrize("dtype", [float32, float64], ids=ids)
@pytest.mark.parametrize("name", reference.ACTIVATIONS)
def test_activation_over_the_whole_range(name: str, dtype: np.dtype[Any]) -> None:
    """One step of an RNN with weight 1 and no state is the function itself, whose relative accuracy can be seen."""
    values = np.concatenate([MAGNITUDES, -MAGNITUDES]).astype(dtype)
    one = np.ones((1, 1, 1), dtype)
    attributes: dict[str, Any] = {"activations": [name]}
    if name == "ScaledTanh":
        attributes |= {"activation_alpha": [1.25], "activation_beta": [0.75]}
    Y = frontend.rnn(values.reshape(1, -1, 1), one, one, **attributes)[0].ravel()
    with np.errstate(over="ignore", under="ignore"):
        expected = reference.rnn(values.reshape(1, -1, 1), one, one, **attributes)[0].ravel()
        # some units in the last place; below the smallest normal number, which may be flushed, only that much
        relative, absolute = (1e-6, 1.2e-38) if dtype == float32 else (4e-15, 2.3e-308)
    np.testing.assert_allclose(Y, expected, rtol=relative, atol=absolute)


@pytest.mark.parametrize("dtype", [float32, float64], ids=ids)
@pytest.mark.parametrize("name", LIMITS)
def test_activation_at_infinity(name: str, dtype: np.dtype[Any]) -> None:
    one = np.ones((1, 1, 1), dtype)
    values = np.array([-np.inf, np.inf], dtype).reshape(1, 2, 1)
    Y = frontend.rnn(values, one, one, activations=[name])[0].ravel()
    np.testing.assert_array_equal(Y, LIMITS[name])


@each_operator
def test_empty_inputs_still_check_and_give_states(operator: str) -> None:
    """No step means zeros and not the initial state; no input means that bias and state are all there is."""
    case = Case("no-step", operator, BOTH, OPTIONAL[operator], T=0)
    Y, *states = run(case, make_arrays(case))
    assert Y.shape == (0, 2, 3, 5)
    assert all(state.shape == (2, 3, 5) and not state.any() for state in states)
    case = Case("no-input", operator, BOTH, OPTIONAL[operator], I=0)
    arrays = make_arrays(case)
    with_zeros = arrays | {"X": np.zeros((4, 3, 2), float32), "W": np.ones((*arrays["W"].shape[:2], 2), float32)}
    assert_close(run(case, arrays), run(case, with_zeros), 1e-6)
