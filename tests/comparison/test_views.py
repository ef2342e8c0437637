"""Comparisons as text and as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import random_inputs, random_layer, random_weights
from onnx import helper
from onnx_models import simple_model
from rows import each_row

from pyrnnx import Comparison, Layer, ModelComparison, RecurrentOp, compare
from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.distances import Deviation
from pyrnnx.comparison.result import Result
from pyrnnx.comparison.views.text import layer_lines, model_lines
from pyrnnx.frontends.onnx import read_model

T, N, I, H = 7, 3, 4, 6
BOTH = RecurrentOp("LSTM", H, "bidirectional")
BAD_NAME = "<script>alert(1)</script> & 'x' \x1b[31m"


def pair() -> Comparison:
    """Return a comparison of two LSTMs, of which the first has another weight of f, in reverse."""
    weights: dict[str, Any] = random_weights(BOTH, I)
    changed = {**weights, "W": weights["W"].copy()}
    changed["W"][1, 2 * H + 3] += 0.5
    inputs = random_inputs(BOTH, (T, N, I), lens=[T, 5, 0])
    return compare(Layer(BOTH, **changed, name=BAD_NAME), Layer(BOTH, **weights), inputs)


def relu(value: float) -> Layer:
    return Layer(RecurrentOp("RNN", 1), np.array([[[value]]]), np.zeros((1, 1, 1)))


def models(name: str = "scaled") -> ModelComparison:
    weights, protos = random_weights(RecurrentOp("GRU", H), I), []
    for factor in (2, 1):
        nodes = [
            helper.make_node("Mul", ["X", "factor"], [name]),
            helper.make_node("GRU", [name, "W", "R", "B"], ["all", "last"], "<b>gru</b>", hidden_size=H),
            helper.make_node("Neg", ["last"], ["y"]),
        ]
        constants = {**weights, "factor": np.array(factor, np.float32)}
        protos.append(simple_model(nodes, {"X": np.zeros((T, N, I), np.float32)}, ["y"], constants))
    inputs = {"X": random_inputs(RecurrentOp("GRU", H), (T, N, I))["X"]}
    a, b = map(read_model, protos)
    return compare(a, b, inputs)


def nothing() -> Comparison:
    return Comparison("a", "b", (), (), {}, not_compared="P (peepholes)")


COMPARISONS: dict[str, Callable[[], Result]] = {
    "layers": pair,
    "the same": lambda: compare(random_layer(BOTH, I), random_layer(BOTH, I)),
    "not finite": lambda: compare(relu(math.nan), relu(1.0), {"X": np.ones((2, 1, 1)), "sequence_lens": [2]}),
    "no rows": lambda: compare(relu(1.0), relu(2.0), {"X": np.ones((2, 0, 1))}),
    "not compared": nothing,
    "models": models,
    "models, with a strange name": lambda: models(BAD_NAME),
    "models without numbers": lambda: ModelComparison("a", "b", {"l": nothing()}, ("GRU",), (), {}, "two conventions"),
}


@each_row("name", COMPARISONS)
def test_every_form_of_every_comparison(name: str) -> None:
    """One line, and JSON without NaN."""
    comparison: Any = COMPARISONS[name]()
    line = repr(comparison)
    assert line.startswith(f"<{type(comparison).__name__} of ")
    assert line.isprintable()
    assert len(line) < 200
    plain = comparison.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["equal"] is comparison.equal()


def test_what_reprs_say() -> None:
    assert repr(models()).startswith("<ModelComparison of 'ONNX model' and 'ONNX model': 1 pair of layers, largest di")
    assert repr(models()).endswith(f" difference {models().largest_difference:.3g}>")
    assert repr(nothing()) == "<Comparison of a and b, nothing was compared>"


def test_what_the_dict_of_layers_has() -> None:
    comparison = pair()
    plain = comparison.to_dict()
    assert plain["outputs"]["Y"]["largest"] == comparison.numbers["Y"]
    assert plain["outputs"]["Y"]["largest_relative"] == comparison.deviations["Y"].largest_relative
    np.testing.assert_array_equal(plain["outputs"]["Y"]["by_step"], comparison.profiles["Y"].by_step)
    first = comparison.first_difference
    assert first is not None
    assert plain["outputs"]["Y"]["first"] == vars(first)
    assert (first.name, first.direction, first.row) == ("Y", "reverse", 0)
    apart = [one for one in plain["weights"] if one["largest"] > 0]
    assert [(one["name"], one["direction"], one["gate"]) for one in apart] == [("W", "reverse", "f")]
    assert plain["first_gate"]["name"] == "f_in"
    assert list(plain["gates"]) == list(comparison.gates)
    bad = COMPARISONS["not finite"]().to_dict()
    assert bad["largest_difference"] == bad["outputs"]["Y"]["largest_relative"] == "inf"
    assert bad["outputs"]["Y"]["first"]["a"] == "nan"
    assert COMPARISONS["no rows"]().to_dict()["largest_difference"] == "nan"


def test_relative_numbers() -> None:
    def found(*pairs: tuple[float, float]) -> float:
        size, distance = np.array([[abs(b), abs(a - b)] for a, b in pairs]).T
        return Deviation(distance.max(), np.stack([size, distance])).largest_relative

    assert found((1.5, 1.0), (11, 10)) == 0.5
    assert found((1.0, 0.0), (11, 10)) == math.inf
    assert found((0.0, 1e-300)) == 1
    assert Deviation(0.0).largest_relative == 0
    assert math.isnan(Deviation(math.nan).largest_relative)
    assert Deviation(math.inf).largest_relative == math.inf
    comparison = pair()
    for name, deviation in comparison.deviations.items():  # the least rtol that is enough
        relative = deviation.largest_relative
        assert comparison.deviations[name].within(0, relative * (1 + 1e-12))
        assert not comparison.deviations[name].within(0, relative * (1 - 1e-12))
        assert f"largest difference of {name}: {comparison.numbers[name]:.3g} (relative {relative:.3g})" in str(
            comparison
        )


# Text


def long_names(count: int) -> Comparison:
    """Return a comparison of layers with names as long as those of exporters, and differences in all gates."""
    comparison = pair()
    name = "LSTM 'If_0_else_branch__Inline_0__/decoder/rnn/LSTM' (ONNX, layout 0)"
    return dataclasses.replace(comparison, a=name, b="/".join([name] * count))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_text_has_a_width(width: int) -> None:
    for comparison in (long_names(1), long_names(4)):
        for rows in ([Difference("axes of X", "[T, N, I]", "[N, T, I]")], []):
            shown = dataclasses.replace(comparison, conventions=tuple(rows))
            lines = layer_lines(shown, width=width)
            assert max(map(len, lines)) <= width
    whole = dataclasses.replace(models(), a="folder/" * 30, b=BAD_NAME)
    assert max(map(len, model_lines(whole, width=width))) <= width
    unlimited = "\n".join(model_lines(whole))
    assert "\n".join(model_lines(whole, width=1000)) == unlimited


def test_layers_that_are_alike_have_no_empty_table() -> None:
    """Their names are in a sentence then."""
    comparison = COMPARISONS["the same"]()
    head, *rest = str(comparison).splitlines()
    assert head == f"{comparison.a} and {comparison.b}"  # type: ignore[attr-defined]
    assert not any(line.startswith("--") for line in rest)
