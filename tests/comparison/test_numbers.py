"""Numbers of a comparison: the largest difference, and equality within tolerances."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from rows import each_row

from pyrnnx import ArgumentError, Comparison, Difference, ModelComparison
from pyrnnx.comparison.distances import Deviation, deviation
from pyrnnx.comparison.views.text import verdict

NAN, INF = math.nan, math.inf
F = np.float64

# Two values, and the largest difference; None where they cannot be held against each other.
VALUES: dict[str, tuple[Any, Any, float | None]] = {
    "equal": (np.ones((2, 3)), np.ones((2, 3)), 0),
    "one element apart": (np.array([1.0, 5.0, 2.0]), np.array([1.0, 2.0, 2.5]), 3),
    "no axes": (np.array(3.0), np.array(4.0), 1),
    "NumPy scalars": (np.float32(3), np.float32(5), 2),
    "other shape": (np.ones(2), np.ones(3), None),
    "broadcastable": (np.ones((5, 1)), np.ones((1, 1)), None),
    "no elements": (np.ones((0, 3)), np.ones((0, 3)), NAN),
    "NaN in both": (np.array([NAN, 1.0]), np.array([NAN, 1.5]), 0.5),
    "NaN in a": (np.array([NAN, 1.0]), np.array([1.0, 1.0]), INF),
    "NaN in b": (np.array([1.0, 1.0]), np.array([NAN, 1.0]), INF),
    "same infinity": (np.array([INF, -INF, 1.0]), np.array([INF, -INF, 1.25]), 0.25),
    "other infinity": (np.array([INF]), np.array([-INF]), INF),
    "infinity and number": (np.array([1.0]), np.array([INF]), INF),
    "distance beyond float64": (np.array([1e308]), np.array([-1e308]), INF),
    "other dtypes": (np.array([1.5], np.float16), np.array([1.0], F), 0.5),
    "bfloat16": (np.array([1.5], ml_dtypes.bfloat16), np.array([1.0], np.float32), 0.5),
    "bool": (np.array([True, False]), np.array([True, True]), 1),
    "integers beyond 2**53": (np.array([2**60]), np.array([2**60 + 3]), 3),
    "integer and float beyond 2**53": (np.array([2**53 + 1]), np.array([2.0**53]), 1),
    "int64 and uint64": (np.array([-1]), np.array([2**64 - 1], np.uint64), 2.0**64),
    "ends of int64": (np.array([-(2**63)]), np.array([2**63 - 1]), 2.0**64),
    "integer and infinity": (np.array([2**60]), np.array([INF]), INF),
    "complex": (np.array([1 + 1j]), np.array([1 - 1j]), 2),
    "same strings": (np.array(["a", "b"]), np.array(["a", "b"], object), 0),
    "other strings": (np.array(["a", "b"]), np.array(["a", "c"]), INF),
    "string and number": (np.array(["1"]), np.array([1.0]), None),
    "sequences": ([np.ones(2), np.ones(3)], [np.ones(2), np.full(3, 1.5)], 0.5),
    "sequences of other lengths": ([np.ones(2)], [np.ones(2), np.ones(2)], None),
    "sequences of other shapes": ([np.ones(2)], [np.ones(3)], None),
    "empty sequences": ([], [], NAN),
    "sequence and array": ([np.ones(2)], np.ones((1, 2)), None),
    "absent in both": (None, None, NAN),
    "absent in one": (None, np.ones(2), None),
    "records": (np.zeros(2, "V3"), np.zeros(2, "V3"), None),
}


@each_row("name", VALUES)
def test_deviation(name: str) -> None:
    a, b, expected = VALUES[name]
    for one, other in ((a, b), (b, a)):
        found = deviation(one, other)
        if expected is None:
            assert found is None
        else:
            assert found is not None
            np.testing.assert_equal(found.largest, float(expected))
            assert found.within(0, 0) is not (expected > 0)


def test_within_is_what_it_says_of_every_element() -> None:
    """Few elements are kept: they decide as all would."""
    rng = np.random.default_rng(0)
    answers = set()
    for _ in range(300):
        size = rng.integers(1, 60)
        b = rng.normal(size=size) * rng.choice([0, 1e-3, 1, 100], size)
        a = b + rng.normal(size=size) * rng.choice([0, 1e-6, 1e-3], size)
        found = deviation(a, b)
        assert found is not None
        for atol, rtol in 10 ** rng.uniform(-9, 0, (20, 2)):
            expected = bool((np.abs(a - b) <= atol + rtol * np.abs(b)).all())
            assert found.within(atol, rtol) is expected
            answers.add(expected)
    assert answers == {True, False}


# Verdicts


def small() -> Deviation:
    found = deviation(np.array([1 + 2e-7], "f4"), np.array([1.0], "f4"))
    assert found is not None
    return found


def layers(*deviations: Deviation, not_compared: str = "", clip: str = "None") -> Comparison:
    operators = () if clip == "None" else (Difference("clip", "None", clip),)
    return Comparison("a", "b", (), operators, {f"Y{k}": one for k, one in enumerate(deviations)}, "", not_compared)


def models(
    *deviations: Deviation, pairs: tuple[Comparison, ...] = (), unpaired: tuple[str, ...] = (), outputs: int = 0
) -> ModelComparison:
    other = tuple(Difference(f"output {k}", "float32 (2,)", "float32 (3,)") for k in range(outputs))
    numbers = {f"y{k}": one for k, one in enumerate(deviations)}
    return ModelComparison("a", "b", {str(k): one for k, one in enumerate(pairs)}, unpaired, other, numbers)


large = Deviation(0.5, np.array([[1.0], [0.5]]), apart=True)
none = Deviation(NAN)
# The comparison, its largest difference, whether it is equal.
VERDICTS: dict[str, tuple[Comparison | ModelComparison, float, bool]] = {
    "layers": (layers(Deviation(0.0), small()), small().largest, True),
    "other layers": (layers(Deviation(0.0), large), 0.5, False),
    "layers with another operator": (layers(Deviation(0.0), clip="3"), 0, True),
    "one output with no elements": (layers(none, small()), small().largest, False),
    "no elements at all": (layers(none, none), NAN, False),
    "layers not compared": (layers(not_compared="P"), NAN, False),
    "models": (models(small(), pairs=(layers(small()),)), small().largest, True),
    "models without layers": (models(Deviation(0.0)), 0, True),
    "models without anything": (models(), NAN, False),
    "layers count": (models(Deviation(0.0), pairs=(layers(small()), layers(large))), 0.5, False),
    "one pair not compared": (models(Deviation(0.0), pairs=(layers(not_compared="P"),)), 0, False),
    "a layer in one model only": (models(Deviation(0.0), unpaired=("GRU",)), 0, True),
    "an output of another shape": (models(Deviation(0.0), outputs=1), INF, False),
}


@each_row("name", VERDICTS)
def test_verdict(name: str) -> None:
    comparison, largest, equal = VERDICTS[name]
    np.testing.assert_equal(comparison.largest_difference, float(largest))
    assert comparison.equal() is equal
    if not equal:
        never = math.isinf(largest) or math.isnan(largest) or "not compared" in name or "no elements" in name
        assert comparison.equal(atol=10) is not never


WORDS = {
    "layers": "the same (default tolerance): 2 outputs",
    "other layers": "different (default tolerance)",
    "models": "the same (default tolerance): 1 output",
    "models without anything": "not decided (default tolerance): nothing was compared",
    "layers count": "different (default tolerance): 0 of 1 output, 1 of 2 pairs of layers",
    "one pair not compared": "not decided (default tolerance): layers 0 were not compared",
    "a layer in one model only": "the same (default tolerance): 1 output; 1 layer without a counterpart",
    "an output of another shape": "different (default tolerance): 1 of 2 outputs",
}


@each_row("name", WORDS)
def test_verdict_in_words(name: str) -> None:
    assert verdict(VERDICTS[name][0]) == WORDS[name]


def test_tolerances() -> None:
    found = deviation(np.array([100.0, 1.0]), np.array([101.0, 1.0]))
    assert found is not None
    comparison = layers(found)
    assert comparison.equal(1, 0)
    assert comparison.equal(0, 0.01)
    assert not comparison.equal(0.9, 0)
    assert not comparison.equal(0, 0.009)
    scalars: tuple[Any, Any] = (np.float32(1), np.int64(0))
    assert comparison.equal(*scalars)
    wrong: tuple[Any, ...] = (-1, NAN, INF, "1", True)
    for bad in wrong:
        for name in ("atol", "rtol"):
            with pytest.raises(ArgumentError, match=rf"equal: {name} is .*; expected"):
                comparison.equal(**{name: bad})


@pytest.mark.parametrize("name", ["layers", "models"])
def test_a_comparison_is_neither_true_nor_false(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"it is neither true nor false; call equal\(atol, rtol\)"):
        bool(VERDICTS[name][0])


def test_words() -> None:
    assert "largest difference of Y0: nothing to compare" in str(layers(none))
    assert "largest difference of output 'y0': 0.5" in str(models(large))
    assert "not compared: P" in str(layers(not_compared="P"))
