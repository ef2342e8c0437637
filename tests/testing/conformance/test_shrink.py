"""Shrinking: a case keeps only what its failure needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from planted import WHOLE
from rows import each_row

from pyrnnx import reference
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
INPUTS = ("B", "initial_h", "initial_c", "P")
ALL = Case("all", "LSTM", OF_ALL, INPUTS, (3, 0, 4), opset=3, dtype="float16", scale=4.0, nan="row")
DIRECTED = {"clip": 0.5, "hidden_size": 5, "direction": "bidirectional"}
Fails = Callable[[Case], bool]


def small(
    case: Case, *arguments: Any, hidden_size: bool = True, attributes: dict[str, Any] | None = None, **fields: Any
) -> Case:
    """Return a case of one step, row, input and unit, with the name and operator of another."""
    sizes = {"T": 1, "N": 1, "I": 1, "H": 1, **fields}
    own = {"hidden_size": sizes["H"]} if hidden_size else {}
    return Case(case.name, case.operator, own | (attributes or {}), *arguments, **sizes)


def uses(case: Case, key: str, value: Any) -> bool:
    return value in case.attributes.get(key, ())


def is_reverse(case: Case) -> bool:
    return str(case.attributes.get("direction")).lower() in ("reverse", "bidirectional")


BARE = Case("bare", "GRU")
CLIPPED = Case("c", "GRUSequence-5", DIRECTED, (), (1, 4, 2), opset=5)
SPELLED = Case("s", "RNN", {"activations": ["softsign", "SOFTSIGN"], "direction": "bidirectional"})
UPPER = Case("d", "RNNSequence-5", {"direction": "REVERSE", "hidden_size": 5}, opset=5)
RELU = Case("r", "LSTMCell-4", {"activations": ["relu", "relu", "tanh"], "hidden_size": 5}, T=1, opset=4)
HARD = {"activations": ["Sigmoid", "HardSigmoid", "Tanh"], "activation_alpha": [0.25], "activation_beta": [0.375]}
# A case, when it fails, and what is left of it.
FAILS: dict[str, tuple[Case, Fails, Case]] = {
    "always": (ALL, lambda case: True, small(ALL)),
    "never": (ALL, lambda case: False, ALL),
    "clip of 3 steps": (
        ALL,
        lambda case: "clip" in case.attributes and case.T > 2,
        small(ALL, attributes={"clip": 0.25}, T=3),
    ),
    "rows of unequal lengths": (ALL, lambda case: len(set(case.lens or ())) > 1, small(ALL, (), (1, 0), N=2)),
    "a row of no steps, reverse": (
        ALL,
        lambda case: is_reverse(case) and 0 in (case.lens or ()),
        small(ALL, (), (0,), attributes={"direction": "reverse"}),
    ),
    "both directions": (
        ALL,
        lambda case: case.num_directions == 2,
        small(ALL, attributes={"direction": "bidirectional"}),
    ),
    "P and initial_c": (ALL, lambda case: {"P", "initial_c"} <= {*case.inputs}, small(ALL, ("initial_c", "P"))),
    "Elu, which the second direction has": (
        ALL,
        lambda case: uses(case, "activations", "Elu"),
        small(ALL, attributes={"activations": ["Sigmoid", "Tanh", "Elu"]}),
    ),
    "HardSigmoid of 0.25 and 0.375": (
        ALL,
        lambda case: uses(case, "activation_alpha", 0.25) and uses(case, "activations", "HardSigmoid"),
        small(ALL, attributes=HARD),
    ),
    "opset below 7": (ALL, lambda case: case.opset < 7, small(ALL, opset=3)),
    "float16": (ALL, lambda case: case.dtype == "float16", small(ALL, dtype="float16")),
    "NaN": (ALL, lambda case: case.nan == "row", small(ALL, nan="row")),
    "no hidden_size": (BARE, lambda case: "hidden_size" not in case.attributes, small(BARE, hidden_size=False)),
    "an empty batch": (replace(ALL, N=0, lens=()), lambda case: case.N == 0, small(ALL, N=0)),
    "empty, but that does not matter": (replace(ALL, I=0), lambda case: True, small(ALL)),
    "five units": (WHOLE, lambda case: case.H > 4, small(WHOLE, H=5)),
    "OpenVINO's clip": (
        CLIPPED,
        lambda case: "clip" in case.attributes,
        small(CLIPPED, attributes={"clip": 0.5}, opset=5),
    ),
    "Softsign in any letters": (
        SPELLED,
        lambda case: "softsign" in (name.lower() for name in case.attributes.get("activations", ())),
        small(SPELLED, attributes={"activations": ["Softsign"]}),
    ),
    "an upper-case direction": (UPPER, is_reverse, small(UPPER, attributes={"direction": "reverse"}, opset=5)),
    "relu of an LSTMCell": (
        RELU,
        lambda case: "relu" in case.attributes.get("activations", ())[1:],
        small(RELU, attributes={"activations": ["sigmoid", "relu", "tanh"]}, opset=4),
    ),
}


@each_row("name", FAILS)
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
        *random_cases(5, 15),
        *random_cases(6, 10, operators=("LSTMSequence-5", "GRUSequence-5", "RNNCell-1")),
    ):
        shrink(case, fails)
    assert tried > 200


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
