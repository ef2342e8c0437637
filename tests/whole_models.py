"""Repeated calls of whole models and of a witness, to detect state that leaks from call to call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from peers import onnxruntime_session

from pyrnnx.testing.numbers import Array

CALLS = 3
Arrays = Mapping[str, Any]
# The values of a model's outputs, by name or in order.
Results = Mapping[str, Any] | Sequence[Any]


def onnxruntime_witness(model: Any) -> Callable[[Arrays], list[Array]]:
    """Return a function that runs an onnx.ModelProto with ONNX Runtime.

    Optimizations are disabled because some change results.
    """
    session = onnxruntime_session(model, optimize=False)

    def run(inputs: Arrays) -> list[Array]:
        results: list[Array] = session.run(None, dict(inputs))
        return results

    return run


def varied(inputs: Arrays, count: int = CALLS, *, permute: bool = True) -> list[dict[str, Array]]:
    """Return `inputs`, then inputs for more calls with the same shapes, dtypes and ranges.

    Values are permuted within their arrays, so that lengths, indices and choices stay valid, and floats are scaled.
    `permute=False` only scales floats, for models that depend on the order of values or have axes as inputs.
    """
    calls = []
    for number in range(count):
        rng = np.random.default_rng(number)
        call = {}
        for name, value in inputs.items():
            array = np.asarray(value)
            if number and permute:
                array = rng.permutation(array.ravel()).reshape(array.shape)
            if number and array.dtype.kind in "fV":  # V: bfloat16
                array = (array * (1 - number / (2 * count))).astype(array.dtype)
            call[name] = array
        calls.append(call)
    return calls


def check_calls(
    model: Callable[[Any], Results],
    witness: Callable[[Any], Results],
    inputs: Arrays,
    *others: Arrays,
    atol: float = 1e-5,
    rtol: float = 0.0,
    label: str = "",
) -> None:
    """Call a model and its witness several times, and compare each call.

    The inputs are `inputs`, variations of them, `others`, which should have other shapes, and `inputs` again.
    """
    calls = varied(inputs)
    check_each(model, witness, [*calls, *others, calls[0]], atol=atol, rtol=rtol, label=label)


def check_each(
    model: Callable[[Any], Results],
    witness: Callable[[Any], Results],
    calls: Iterable[Arrays],
    *,
    atol: float = 1e-5,
    rtol: float = 0.0,
    label: str = "",
) -> None:
    """Call a model and its witness with each of the inputs, and compare the results."""
    for number, inputs in enumerate(calls):
        expected = _listed(witness(dict(inputs)))
        results = _listed(model(dict(inputs)))
        assert len(results) == len(expected), f"{label} call {number}"
        for index, (result, reference) in enumerate(zip(results, expected, strict=True)):
            where = f"{label} call {number}, output {index}"
            assert np.shape(result) == np.shape(reference), where
            assert_allclose(result, reference, rtol, atol, where)


def assert_allclose(actual: Any, expected: Any, rtol: float, atol: float, message: str) -> None:
    """Assert what NumPy's function of this name asserts, which takes ten times as long for small arrays."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape == expected.shape and actual.dtype == expected.dtype and actual.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            difference = np.abs(actual - expected)
            if np.all((difference <= atol + rtol * np.abs(expected)) & (difference < np.inf)):
                return
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, err_msg=message)


def _listed(results: Results) -> list[Any]:
    return list(results.values() if isinstance(results, Mapping) else results)
