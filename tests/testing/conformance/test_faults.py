"""Faults planted in functions: found, folded, and shrunk to the case that one expects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import planted
import pytest
from planted import WHOLE

from pyrnnx.testing.cases import CASES, FEATURES, NAMED, Case, random_cases
from pyrnnx.testing.conformance import Verdict, find_faults, run_suite, shrunk_faults
from pyrnnx.testing.conformance.faults import needed_features
from pyrnnx.testing.runtimes import FunctionRuntime

SMALL: dict[str, Any] = {"T": 1, "N": 1, "I": 1, "H": 1}


def small(attributes: dict[str, Any], *arguments: Any, **fields: Any) -> Case:
    sizes = {**SMALL, **fields}
    return Case("whole", "LSTM", {**attributes, "hidden_size": sizes["H"]}, *arguments, **sizes)


# function, a case in which it fails with all that has nothing to do with it, what is left, its features
PLANTED: dict[str, tuple[Callable[..., Any], Case, Case, tuple[str, ...]]] = {
    "clip": (planted.clip_ignored_from_3_steps_on, WHOLE, small({"clip": 0.25}, T=3), ("clip",)),
    "lens": (
        planted.lens_ignored_in_reverse,
        WHOLE,
        small({"direction": "reverse"}, (), (1,), T=2),
        ("sequence_lens", "sequence_lens with reverse", "reverse"),
    ),
    "relu": (
        planted.relu_is_sigmoid,
        WHOLE,
        small({"activations": ["Sigmoid", "Relu", "Tanh"]}),
        ("activations",),
    ),
    "float16": (
        planted.float16_without_bias,
        replace(WHOLE, dtype="float16"),
        small({}, ("B",), dtype="float16"),
        ("B", "float16"),
    ),
    "second direction": (
        planted.second_direction_forwards,
        replace(WHOLE, lens=None),
        small({"direction": "bidirectional"}, T=2),
        ("bidirectional",),
    ),
    "units": (planted.four_wide, WHOLE, small({}, H=5), ("defaults",)),
    "crash": (
        planted.dies_without_rows,
        Case("whole", "LSTM", {"hidden_size": 1}, ("B",), (), N=0, H=1),
        small({}, N=0),
        ("empty batch",),
    ),
    "refusal": (
        planted.refuses_peepholes,
        replace(WHOLE, inputs=("B", "initial_h", "P")),
        small({}, ("P",)),
        ("P",),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_shrunk_to_what_was_planted(name: str) -> None:
    function, case, smallest, features = PLANTED[name]
    runtime = FunctionRuntime(function)
    status = {"crash": "crashed", "refusal": "refused"}.get(name, "wrong")
    suite = run_suite([runtime], [case], shrink=True, statuses=("wrong", "crashed", "timed out", "refused"))
    (fault,) = suite.faults
    assert fault.status == status
    assert fault.case == smallest
    assert fault.features == features
    assert fault.title == f"LSTM: {', '.join(features)}"
    assert fault.found == ("whole",)
    assert fault.shrunk
    assert fault.verdict.detail


def test_what_hangs_is_shrunk_in_few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrnnx.testing.conformance.faults._SLOW_TRIES", 6)
    runtime = FunctionRuntime(planted.hangs_with_layout)
    case = replace(WHOLE, attributes={"layout": 1, "clip": 0.5, "hidden_size": 5}, inputs=())
    (fault,) = run_suite([runtime], [case], timeout=0.3, shrink=True).faults
    assert fault.status == "timed out"
    assert fault.case.layout == 1
    assert fault.case.lens is None


def test_random_cases_fold_into_the_faults_there_are() -> None:
    runtime = FunctionRuntime(planted.clip_ignored_from_3_steps_on)
    cases = random_cases(3, 48)
    suite = run_suite([runtime], cases, shrink=True)
    wrong = {one.case.name for one in suite.verdicts[runtime.name] if one.status == "wrong"}
    assert len(wrong) > 5
    assert {*wrong} == {name for fault in suite.faults for name in fault.found}
    assert sum(len(fault.found) for fault in suite.faults) == len(wrong)
    assert sorted(fault.title for fault in suite.faults) == ["GRU: clip", "LSTM: clip", "RNN: clip"]
    for fault in suite.faults:
        assert (fault.case.T, fault.case.N) == (3, 1)
        assert fault.case.attributes.keys() == {"clip", "hidden_size"}
    again = run_suite([runtime], cases, shrink=True)
    assert [one.to_dict() for one in again.faults] == [one.to_dict() for one in suite.faults]


def failing(cases: list[Case], status: str = "wrong") -> list[Verdict]:
    return [Verdict(case, status, "because") for case in cases]


def test_named_cases_stand_as_they_are_with_the_simplest_of_each_kind() -> None:
    names = (
        "LSTM-only-P",
        "LSTM-opset6",
        "RNN-only-clip",
        "GRU-only-clip",
        "GRU-linear_before_reset=0-clip",
        "RNN-N=0",
    )
    cases = [NAMED[name] for name in reversed(names)]
    faults = find_faults("fake", [*failing(cases[1:]), *failing(cases[:1], "crashed")])
    assert [(fault.status, fault.case.name, fault.found) for fault in faults] == [
        ("wrong", "LSTM-only-P", ("LSTM-only-P", "LSTM-opset6")),  # which has P, too
        ("wrong", "RNN-only-clip", ("RNN-only-clip",)),
        ("wrong", "GRU-only-clip", ("GRU-only-clip", "GRU-linear_before_reset=0-clip")),
        ("crashed", "RNN-N=0", ("RNN-N=0",)),
    ]
    assert not any(fault.shrunk for fault in faults)
    assert find_faults("fake", failing(list(CASES), "refused")) == ()


def test_functions_tell_faults_apart() -> None:
    """Another function than that of a simpler case is something else, though both are activations."""
    softsign = Case("a", "RNN", {"activations": ["Softsign"], "hidden_size": 5}, feature="activations")
    elu = Case("b", "RNN", {"activations": ["Elu"], "clip": 0.5, "hidden_size": 5}, feature="clip")
    elus = Case("c", "RNN", {"activations": ["Elu"], "clip": 0.5, "hidden_size": 5}, ("B",), feature="B")
    faults = find_faults("fake", failing([softsign, elu, elus]))
    assert [(fault.features, fault.found) for fault in faults] == [(("clip",), ("b", "c")), (("activations",), ("a",))]


def test_a_simpler_fault_that_is_found_later_explains_the_first() -> None:
    """A small case with two attributes comes before a large one with one."""
    both = Case("both", "GRU", {"clip": 0.5, "linear_before_reset": 1, "hidden_size": 5}, feature="linear_before_reset")
    large = Case("large", "GRU", {"clip": 0.5, "hidden_size": 5, "direction": "forward"}, N=9, feature="clip")
    (fault,) = find_faults("fake", failing([both, large]))
    assert (fault.features, fault.found) == (("clip",), ("large", "both"))


def test_a_case_that_no_longer_uses_its_feature_says_nothing_of_it() -> None:
    runtime = FunctionRuntime(planted.clip_ignored_from_3_steps_on)
    clip, both = NAMED["LSTM-only-clip"], replace(NAMED["LSTM-only-P"], attributes={"clip": 0.25, "hidden_size": 5})
    verdicts = run_suite([runtime], [replace(clip, name="clip")]).verdicts[runtime.name]
    (fault,) = shrunk_faults(runtime, verdicts)
    assert (fault.case.feature, fault.case.tells, fault.case.source) == ("clip", clip.tells, clip.source)
    verdicts = run_suite([runtime], [both]).verdicts[runtime.name]
    (fault,) = shrunk_faults(runtime, verdicts)
    assert (fault.case.feature, fault.case.tells, fault.case.source) == ("", "", "")


def test_needed_features_are_of_the_table() -> None:
    for case in CASES:
        needed = needed_features(case)
        assert {*needed} <= FEATURES.keys()
        assert needed
    assert needed_features(NAMED["RNN-defaults"]) == ("defaults",)
