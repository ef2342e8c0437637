"""Runtimes by cases: verdicts, how many of which, and what was found wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases import CASES, FEATURES, OPENVINO_CASES, Case, random_cases
from pyrnnx.testing.conformance.environment import environment
from pyrnnx.testing.conformance.faults import Fault, find_faults, shrunk_faults
from pyrnnx.testing.conformance.judge import FAILURES, STATUSES, Verdict, executing, expectation, judge
from pyrnnx.testing.conformance.plain import case_to_dict
from pyrnnx.testing.runtimes import Runtime

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Suite:
    """The verdicts of all runtimes on one list of cases.

    Attributes
    ----------
    kind : str
        What the cases are: "named cases of ONNX's operators".
    verdicts : mapping of str to tuple of Verdict
        By the name of the runtime, in the order of the cases.
    faults : tuple of Fault
        By runtime, status and feature.
    shrunk : bool
        Whether their cases are shrunk.
    """

    kind: str
    verdicts: Mapping[str, tuple[Verdict, ...]]
    faults: tuple[Fault, ...] = ()
    shrunk: bool = False

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(verdict.case for verdict in next(iter(self.verdicts.values()), ()))

    @property
    def title(self) -> str:
        """ "539 named cases of ONNX's operators"."""
        return f"{len(self.cases)} {self.kind}"

    @property
    def runtimes(self) -> tuple[str, ...]:
        """Those that have words for any of the cases."""
        return tuple(name for name in self.verdicts if self.counts(name)["not expressible"] < len(self.cases))

    @property
    def features(self) -> tuple[str, ...]:
        """Those that occur, in the order of their table."""
        used = {feature for case in self.cases for feature in case.features}
        return tuple(name for name in FEATURES if name in used)

    def counts(self, runtime: str, feature: str | None = None) -> dict[str, int]:
        """How many cases of a feature (default: of all) have which status; all statuses, in their order."""
        counted = dict.fromkeys(STATUSES, 0)
        for verdict in self.verdicts[runtime]:
            if feature is None or feature in verdict.case.features:
                counted[verdict.status] += 1
        return counted

    def to_dict(self) -> dict[str, Any]:
        return {
            "cases": self.kind,
            "counts": {name: self.counts(name) for name in self.verdicts},
            "features": {one: {name: self.counts(name, one) for name in self.verdicts} for one in self.features},
            "faults": {
                name: [fault.to_dict() for fault in self.faults if fault.runtime == name] for name in self.verdicts
            },
            "verdicts": [
                case_to_dict(case)
                | {"verdicts": {name: self.verdicts[name][place].to_dict() for name in self.verdicts}}
                for place, case in enumerate(self.cases)
            ],
        }


@dataclass(frozen=True, eq=False)
class Report:
    """What a run of the kit found.

    Attributes
    ----------
    runtimes : mapping of str to str
        Names and versions.
    suites : tuple of Suite
    environment : mapping of str to str
        Versions of what else results depend on.
    command : str
        That made it, "" if none did.
    date : str
        "" unless asked for, so that the same run gives the same report.
    """

    runtimes: Mapping[str, str]
    suites: tuple[Suite, ...]
    environment: Mapping[str, str] = field(default_factory=environment)
    command: str = ""
    date: str = ""

    @property
    def failed(self) -> bool:
        """Whether a runtime gave a wrong answer, died or hung."""
        return any(one.failed for suite in self.suites for verdicts in suite.verdicts.values() for one in verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        head = {"command": self.command, "date": self.date}
        return {key: value for key, value in head.items() if value} | {
            "environment": dict(self.environment),
            "runtimes": dict(self.runtimes),
            "suites": [suite.to_dict() for suite in self.suites],
        }


def run_suites(runtimes: Sequence[Runtime], spec: str = "named", **options: Any) -> tuple[Suite, ...]:
    """Run the cases that `spec` stands for; `options` are those of `run_suite`.

    Parameters
    ----------
    runtimes : sequence of Runtime
    spec : str
        "named" or "random:SEED:N". The cases of random suites are shrunk, unless `options` say otherwise; named ones
        show one thing each as they are.

    Returns
    -------
    tuple of Suite
        One for the operators of ONNX, and of named cases one for the operations of OpenVINO.

    Raises
    ------
    ArgumentError
        As of `select_cases` and `run_suite`.
    """
    options = {"shrink": spec != "named"} | options
    return tuple(run_suite(runtimes, cases, kind, **options) for kind, cases in select_cases(spec).items())


def run_suite(
    runtimes: Sequence[Runtime],
    cases: Sequence[Case],
    kind: str = "cases",
    *,
    timeout: float = 60.0,
    shrink: bool = False,
    statuses: Sequence[str] = FAILURES,
    progress: Progress = lambda text: None,
) -> Suite:
    """Run cases in runtimes, judge them, and fold what fails into faults.

    Parameters
    ----------
    runtimes : sequence of Runtime
        With different names.
    cases : sequence of Case
        With different names.
    kind : str
        What they are, in the plural.
    timeout : float
        Seconds for each case.
    shrink : bool
        Whether the cases of faults are shrunk, which runs many more.
    statuses : sequence of str
        What is a fault; refusals are none unless they are asked for here.
    progress : callable
        Is told, in a short line, what is done now.

    Returns
    -------
    Suite

    Raises
    ------
    ArgumentError
        Names that occur twice, or a `timeout` of no length.
    """
    for what, names in (("runtimes", [one.name for one in runtimes]), ("cases", [case.name for case in cases])):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ArgumentError(f"conformance: {what} has the name {shown(twice)} twice; expected different names")
    expected: dict[int, Any] = {}
    verdicts: dict[str, tuple[Verdict, ...]] = {}
    faults: list[Fault] = []
    for runtime in runtimes:
        found = []
        with executing(runtime, cases, timeout) as executions:
            for place, execution in enumerate(executions):
                progress(f"{runtime.name}: {place + 1} of {len(cases)} {kind}")
                if execution.status == "ran" and place not in expected:
                    expected[place] = expectation(execution.case)
                found.append(judge(execution, expected.get(place)))
        verdicts[runtime.name] = tuple(found)
        if shrink:
            progress(f"{runtime.name}: shrinking what fails of {kind}")
            faults += shrunk_faults(runtime, found, statuses=statuses, timeout=timeout)
        else:
            faults += find_faults(runtime.name, found, statuses=statuses)
    return Suite(kind, verdicts, tuple(faults), shrink)


def select_cases(spec: str) -> dict[str, tuple[Case, ...]]:
    """The cases that "named" or "random:SEED:N" stands for, by what they are.

    Raises
    ------
    ArgumentError
        Anything else.
    """
    if spec == "named":
        return {"named cases of ONNX's operators": CASES, "named cases of OpenVINO's operations": OPENVINO_CASES}
    match = re.fullmatch(r"random:([0-9]{1,18}):([0-9]{1,7})", spec, re.ASCII)
    if match is None or int(match[2]) == 0:
        raise ArgumentError(
            f"conformance: cases is {shown(spec)}; expected 'named' or 'random:SEED:N', SEED an integer of 0 or above "
            "and N one of 1 to 9999999"
        )
    seed, count = int(match[1]), int(match[2])
    return {f"random cases of ONNX's operators (seed {seed})": tuple(random_cases(seed, count))}
