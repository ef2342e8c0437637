"""DynamicQuantizeLSTM step by step in float64, from the previous h of the layer.

Two ways to compute h differ in the last bits, and where h is that near to a tie, rounding it to 8 bits makes much of
that. Here both round the same h, so that each step is within some roundings of sums, whatever the seed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from quantized_models import STATES, Case, layer_of
from rows import each_row, few_rows

from pyrnnx import config, reference, set_num_threads
from pyrnnx._kernels import engines
from pyrnnx.frontends.onnx.operators.layers import QuantizedLayer
from pyrnnx.testing.numbers import Array

ENGINES = (*engines.supported(), "blas")
F32 = np.float32


@pytest.fixture(params=ENGINES, autouse=True)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(config, "ISA", request.param)
    return str(request.param)


def rounded(values: Array, counted: Array) -> Array:
    """float32 values as 8 bits hold them; scale and zero point are for those that count, and are finite."""
    range_of = values[counted]
    range_of = np.append(range_of[np.isfinite(range_of)], F32(0))
    scale = (range_of.max() - range_of.min()) / F32(255) or F32(1)
    zero_point = np.rint(-range_of.min() / scale)
    codes = np.clip(np.rint(values / scale), -zero_point, 255 - zero_point)
    return np.asarray(codes.astype(np.float64) * np.float64(scale))


def steps(layer: QuantizedLayer, attributes: dict[str, Any], given: dict[str, Array], Y: Array) -> tuple[Array, ...]:
    """Y, Y_h and Y_c in float64; each step's h is that of Y, in float32, rounded."""
    T, D, N, H = Y.shape
    lengths = given.get("sequence_lens", np.full(N, T))
    X = rounded(given["X"], np.arange(T)[:, np.newaxis] < lengths)
    results = tuple(np.zeros(shape) for shape in ((T, D, N, H), (D, N, H), (D, N, H)))
    weights: dict[str, Any] = {name: array.astype(np.float64) for name, array in layer.weights.items()}
    options = {key: value for key, value in attributes.items() if key != "direction"}
    if "activations" in options:
        options["activations"] = options["activations"][:3]
    for d in range(D):
        h = np.array(given[STATES[0]][d] if STATES[0] in given else np.zeros((N, H), F32))
        c = np.array(given[STATES[1]][d] if STATES[1] in given else np.zeros((N, H)), np.float64)
        ran = np.full(N, True)
        for step in range(max(lengths, default=0)):
            seen, ran = rounded(h, ran), lengths > step
            times = (lengths - 1 - step if layer.op.direction.reversed[d] else np.full(N, step))[ran]
            one: dict[str, Any] = {name: array[d : d + 1] for name, array in weights.items()}
            one |= {"initial_h": seen[np.newaxis, ran], "initial_c": c[np.newaxis, ran]}
            _, new, new_c = reference.lstm(X[times, ran][np.newaxis], **one, **options)
            h[ran], c[ran] = Y[times, d, ran], new_c[0]
            results[0][times, d, ran] = results[1][d, ran] = new[0]
            results[2][d, ran] = c[ran]
    return results


def check(case: Case, given: dict[str, Array] | None = None, layer: QuantizedLayer | None = None) -> None:
    made, arrays = layer_of(case)
    layer, given = layer or made, arrays | (given or {})
    results = layer(**given)
    # A sum of K products w h is some sqrt(K) of 2^-24 of it off where floats are added, and one 2^-24 where integers
    # are; C adds up, over T steps, what is off in f and i.
    tolerance = 1e-6 * max(case.I, case.H) ** 0.5
    for name, result, wanted in zip(
        ("Y", "Y_h", "Y_c"), results, steps(layer, case.attributes, given, results[0]), strict=True
    ):
        np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=tolerance, err_msg=name)


EVERYTHING = Case(
    "everything",
    {"direction": "bidirectional"},
    ("B", "P", "sequence_lens", *STATES),
    per_channel=True,
    all_codes=True,
    T=6,
    N=5,
    I=35,
    H=19,
)
BOTH = {"direction": "bidirectional"}
OPTIONS: dict[str, dict[str, Any]] = {
    "forward": {"direction": "forward"},
    "reverse": {"direction": "reverse"},
    "both": BOTH,
    "clip": BOTH | {"clip": 0.75},
    "input_forget": BOTH | {"input_forget": 1},
    "functions": BOTH | {"activations": ["HardSigmoid", "Softsign", "Tanh"] * 2},
}
CASES = [
    replace(EVERYTHING, name=f"{dtype} {name}", dtype=dtype, per_channel=per_channel, attributes=attributes)
    for dtype, per_channel in (("uint8", False), ("int8", True))
    for name, attributes in OPTIONS.items()
]


@each_row("case", CASES, ids=lambda case: case.name)
def test_options(case: Case) -> None:
    check(case)


@each_row(("I", "H"), [(1, 129), (3, 1), (4, 8), (5, 3), (15, 33), (17, 9), (65, 65)])
def test_sizes(I: int, H: int) -> None:
    """Quads of codes, vectors and unit blocks that are not full."""
    check(replace(EVERYTHING, name=f"{I} {H}", N=3, T=3, I=I, H=H))


@few_rows("N", [*range(1, 10), 15, 16, 17, 33, 70], [*range(10, 15), 31, 32])
def test_rows(N: int) -> None:
    """Each way to cut rows into tiles."""
    check(replace(EVERYTHING, name=f"{N}", N=N, T=2))


def test_lengths_of_zero_and_empty_inputs() -> None:
    lengths = np.array([0, 6, 0, 1, 3], np.int32)
    check(EVERYTHING, {"sequence_lens": lengths})
    check(EVERYTHING, {"sequence_lens": np.zeros(5, np.int32)})
    check(replace(EVERYTHING, I=0))


STRANGE: dict[str, tuple[str, Any]] = {
    "NaN in X": ("X", np.nan),
    "infinity in X": ("X", np.inf),
    "minus infinity in X": ("X", -np.inf),
    "a huge value in X": ("X", 3e38),
    "a huge negative value in X": ("X", -3e38),
    "NaN in initial_h": ("initial_h", np.nan),
    "infinity in initial_h": ("initial_h", np.inf),
    "NaN in initial_c": ("initial_c", np.nan),
}


@each_row("name", STRANGE)
def test_strange_values(name: str) -> None:
    _, given = layer_of(EVERYTHING)
    argument, value = STRANGE[name]
    array = given[argument].copy()
    array[0, 3, 2] = value
    check(EVERYTHING, {argument: array, "sequence_lens": np.array([6, 2, 5, 4, 6], np.int32)})
    results = layer_of(EVERYTHING)[0](**{**given, argument: array})
    others = np.delete(results[0], 3, axis=2)
    assert np.isfinite(others).all()
    assert np.isnan(results[0]).any() == np.isnan(value)


def test_ranges_at_the_ends_of_float() -> None:
    """A range that is wider than the largest float, one whose scale is below the least, and none."""
    layer, given = layer_of(replace(EVERYTHING, inputs=(), T=1, N=3))
    for low, high in ((-3e38, 3e38), (-1e-44, 1e-44), (0, 0)):
        X = np.zeros_like(given["X"])
        X[:, 0, 1], X[:, 2, 3] = low, high
        assert all(np.isfinite(one).all() for one in layer(X)), (low, high)


@each_row("direction", ["forward", "bidirectional"])
def test_results_do_not_depend_on_the_number_of_threads(direction: str) -> None:
    layer, inputs = layer_of(replace(EVERYTHING, attributes={"direction": direction}, T=60, N=9, I=70, H=130))
    set_num_threads(1)
    expected = layer(**inputs)
    for threads in (2, 7):
        set_num_threads(threads)
        for result, wanted in zip(layer(**inputs), expected, strict=True):
            np.testing.assert_array_equal(result, wanted)
