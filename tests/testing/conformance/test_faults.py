"""Faults planted in functions: found, grouped, and reduced to the expected case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import planted
import pytest
from planted import WHOLE

from pyrnnx.testing.cases import CASES, NAMED, Case
from pyrnnx.testing.conformance import Verdict, find_faults, run_suite
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
    "relu": (planted.relu_is_sigmoid, WHOLE, small({"activations": ["Sigmoid", "Relu", "Tanh"]}), ("activations",)),
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
    "refusal": (planted.refuses_peepholes, replace(WHOLE, inputs=("B", "initial_h", "P")), small({}, ("P",)), ("P",)),
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
