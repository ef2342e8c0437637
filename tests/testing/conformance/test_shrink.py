"""Shrinking: what is left of a case is what its failure needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from planted import WHOLE

from pyrnnx.testing import reference
from pyrnnx.testing.cases import OUTPUTS, Case, expected_outputs, make_arrays, random_cases
from pyrnnx.testing.conformance import shrink
from pyrnnx.testing.conformance.shrink import cost

OF_ALL: dict[str, Any] = {
    "direction": "bidirectional",
    "clip": 0.25,
    "hidden_size": 5,
    "activations": ["LeakyRelu", "HardSigmoid", "Tanh", "Sigmoid", "ScaledTanh", "Elu"],
    "activation_alpha": [0.125, 0.25, 1.5, 0.5],
    "activation_beta": [0.375, 0.625],
    "input_forget": 1,
    "output_sequence": 1,
}
ALL = Case(
    "all",
    "LSTM",
    OF_ALL,
    ("B", "initial_h", "initial_c", "P"),
    (3, 0, 4),
    opset=3,
    dtype="float16",
    scale=4.0,
    nan="row",
)
SMALL: dict[str, Any] = {"T": 1, "N": 1, "I": 1, "H": 1}


def is_reverse(case: Case) -> bool:
    return case.attributes.get("direction") in ("reverse", "bidirectional")


FAILS: dict[str, tuple[Case, Callable[[Case], bool], Case]] = {
    "always": (ALL, lambda case: True, Case("all", "LSTM", {"hidden_size": 1}, **SMALL)),
    "never": (ALL, lambda case: False, ALL),
    "clip of 3 steps": (
        ALL,
        lambda case: "clip" in case.attributes and case.T > 2,
        Case("all", "LSTM", {"clip": 0.25, "hidden_size": 1}, **{**SMALL, "T": 3}),
    ),
    "rows of unequal lengths": (
        ALL,
        lambda case: case.lens is not None and len(set(case.lens)) > 1,
        Case("all", "LSTM", {"hidden_size": 1}, (), (1, 0), **{**SMALL, "N": 2}),
    ),
    "a row of no steps, reverse": (
        ALL,
        lambda case: is_reverse(case) and 0 in (case.lens or ()),
        Case("all", "LSTM", {"direction": "reverse", "hidden_size": 1}, (), (0,), **SMALL),
    ),
    "both directions": (
        ALL,
        lambda case: case.num_directions == 2,
        Case("all", "LSTM", {"direction": "bidirectional", "hidden_size": 1}, **SMALL),
    ),
    "P and initial_c": (
        ALL,
        lambda case: {"P", "initial_c"} <= {*case.inputs},
        Case("all", "LSTM", {"hidden_size": 1}, ("initial_c", "P"), **SMALL),
    ),
    "Elu, which the second direction has": (
        ALL,
        lambda case: "Elu" in case.attributes.get("activations", ()),
        Case("all", "LSTM", {"hidden_size": 1, "activations": ["Sigmoid", "Tanh", "Elu"]}, **SMALL),
    ),
    "HardSigmoid of 0.25 and 0.375": (
        ALL,
        lambda case: (
            0.25 in case.attributes.get("activation_alpha", ()) and "HardSigmoid" in case.attributes["activations"]
        ),
        Case(
            "all",
            "LSTM",
            {
                "hidden_size": 1,
                "activations": ["Sigmoid", "HardSigmoid", "Tanh"],
                "activation_alpha": [0.25],
                "activation_beta": [0.375],
            },
            **SMALL,
        ),
    ),
    "opset below 7": (
        ALL,
        lambda case: case.opset < 7,
        Case("all", "LSTM", {"hidden_size": 1}, opset=3, **SMALL),
    ),
    "float16": (
        ALL,
        lambda case: case.dtype == "float16",
        Case("all", "LSTM", {"hidden_size": 1}, dtype="float16", **SMALL),
    ),
    "NaN": (ALL, lambda case: case.nan == "row", Case("all", "LSTM", {"hidden_size": 1}, nan="row", **SMALL)),
    "no hidden_size": (
        Case("bare", "GRU"),
        lambda case: "hidden_size" not in case.attributes,
        Case("bare", "GRU", {}, **SMALL),
    ),
    "an empty batch": (
        replace(ALL, N=0, lens=()),
        lambda case: case.N == 0,
        Case("all", "LSTM", {"hidden_size": 1}, **{**SMALL, "N": 0}),
    ),
    "empty, but that does not matter": (
        replace(ALL, I=0),
        lambda case: True,
        Case("all", "LSTM", {"hidden_size": 1}, **SMALL),
    ),
    "five units": (WHOLE, lambda case: case.H > 4, Case("whole", "LSTM", {"hidden_size": 5}, **{**SMALL, "H": 5})),
    "OpenVINO's clip": (
        Case(
            "c", "GRUSequence-5", {"clip": 0.5, "hidden_size": 5, "direction": "bidirectional"}, (), (1, 4, 2), opset=5
        ),
        lambda case: "clip" in case.attributes,
        Case("c", "GRUSequence-5", {"clip": 0.5, "hidden_size": 1}, opset=5, **SMALL),
    ),
    "Softsign in any letters": (
        Case("s", "RNN", {"activations": ["softsign", "SOFTSIGN"], "direction": "bidirectional"}),
        lambda case: "softsign" in (name.lower() for name in case.attributes.get("activations", ())),
        Case("s", "RNN", {"activations": ["Softsign"], "hidden_size": 1}, **SMALL),
    ),
    "an upper-case direction": (
        Case("d", "RNNSequence-5", {"direction": "REVERSE", "hidden_size": 5}, opset=5),
        lambda case: case.attributes.get("direction", "").lower() == "reverse",
        Case("d", "RNNSequence-5", {"direction": "reverse", "hidden_size": 1}, opset=5, **SMALL),
    ),
    "relu of an LSTMCell": (
        Case("r", "LSTMCell-4", {"activations": ["relu", "relu", "tanh"], "hidden_size": 5}, T=1, opset=4),
        lambda case: "relu" in case.attributes.get("activations", ())[1:],
        Case("r", "LSTMCell-4", {"activations": ["sigmoid", "relu", "tanh"], "hidden_size": 1}, opset=4, **SMALL),
    ),
}


@pytest.mark.parametrize("name", FAILS)
def test_what_is_left(name: str) -> None:
    case, fails, smallest = FAILS[name]
    left = shrink(case, fails)
    assert left == smallest
    assert left is case or cost(left) < cost(case)


def test_every_candidate_is_a_case() -> None:
    """Each of them can be computed, and has no more parameters than its functions take."""
    tried = 0

    def fails(case: Case) -> bool:
        nonlocal tried
        tried += 1
        shapes = case.shapes()
        for name, output in zip(OUTPUTS[case.operator], expected_outputs(case, make_arrays(case)), strict=True):
            assert output.shape == shapes[name]
        names = [name.lower() for name in case.attributes.get("activations", ())]
        for key, takers in (("activation_alpha", reference.ALPHA), ("activation_beta", reference.BETA)):
            taken = sum(name.lower() in names for name in takers for _ in range(names.count(name.lower())))
            assert len(case.attributes.get(key, ())) <= taken
        return tried % 3 == 0

    for case in (
        *random_cases(5, 60),
        *random_cases(6, 40, operators=("LSTMSequence-5", "GRUSequence-5", "RNNCell-1")),
    ):
        shrink(case, fails)
    assert tried > 1000


def test_tries_are_bounded_and_none_is_made_twice() -> None:
    asked: list[str] = []

    def fails(case: Case) -> bool:
        asked.append(repr(case))
        return False

    assert shrink(ALL, fails, tries=7) is ALL
    assert len(asked) == 7
    asked.clear()
    shrink(ALL, fails)
    assert len(asked) == len(set(asked)) > 20
