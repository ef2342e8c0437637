"""Report of runtimes and cases: verdicts and counts; cases as folders that onnx's backend tests read."""

from __future__ import annotations

import dataclasses
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.config import get_config
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases import CASES, FEATURES, OPENVINO_CASES, Case, random_cases
from pyrnnx.testing.conformance.judge import FAILURES, STATUSES, Verdict, expectation, judge
from pyrnnx.testing.runtimes import Runtime, execute

_ALWAYS = ("name", "operator", "T", "N", "I", "H", "opset", "dtype")  # fields of a case that a report always has


def environment() -> dict[str, str]:
    """Return versions of pyrnnx, Python and NumPy, the system, and the processor as far as it is known.

    Returns
    -------
    dict of str to str
        Keys "pyrnnx", "Python", "NumPy", "system" and "processor".
    """
    config: Mapping[str, Any] = get_config()
    return {
        "pyrnnx": config["pyrnnx"],
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "system": platform.system(),
        "processor": " ".join([config["machine"], *(name for name in config["supported"] if name != "blas")]),
    }


@dataclass(frozen=True, eq=False)
class Suite:
    """The verdicts of all runtimes on one list of cases.

    Attributes
    ----------
    kind : str
        What the cases are: "named cases of ONNX's operators".
    verdicts : mapping of str to tuple of Verdict
        By the name of the runtime, in the order of the cases.
    """

    kind: str
    verdicts: Mapping[str, tuple[Verdict, ...]]

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(verdict.case for verdict in next(iter(self.verdicts.values()), ()))

    @property
    def runtimes(self) -> tuple[str, ...]:
        """Runtimes that can express at least one of the cases."""
        return tuple(name for name in self.verdicts if self.counts(name)["not expressible"] < len(self.cases))

    @property
    def features(self) -> tuple[str, ...]:
        """Features of named cases, in the order of their table; none of random ones."""
        used = {case.feature for case in self.cases}
        return tuple(name for name in FEATURES if name in used)

    def counts(self, runtime: str, feature: str | None = None) -> dict[str, int]:
        """Return the number of cases of a feature (default: all) by status, for all statuses in order."""
        counted = dict.fromkeys(STATUSES, 0)
        for verdict in self.verdicts[runtime]:
            if feature is None or feature == verdict.case.feature:
                counted[verdict.status] += 1
        return counted

    def faults(self, runtime: str) -> list[list[Verdict]]:
        """Return what fails in a runtime by status, operator and feature; each random case alone."""
        faults: dict[tuple[str, ...], list[Verdict]] = {}
        for verdict in self.verdicts[runtime]:
            if verdict.failed:
                case = verdict.case
                faults.setdefault((verdict.status, case.operator, case.feature or case.name), []).append(verdict)
        return sorted(faults.values(), key=lambda fault: FAILURES.index(fault[0].status))

    def to_dict(self) -> dict[str, Any]:
        return {
            "cases": self.kind,
            "counts": {name: self.counts(name) for name in self.verdicts},
            "features": {
                feature: {name: self.counts(name, feature) for name in self.verdicts} for feature in self.features
            },
            "faults": {
                name: [[verdict.case.name for verdict in fault] for fault in self.faults(name)]
                for name in self.verdicts
            },
            "verdicts": [
                case_to_dict(case)
                | {"verdicts": {name: self.verdicts[name][place].to_dict() for name in self.verdicts}}
                for place, case in enumerate(self.cases)
            ],
        }


@dataclass(frozen=True, eq=False)
class Report:
    """Result of a run of the kit.

    Attributes
    ----------
    runtimes : mapping of str to str
        Names and versions.
    suites : tuple of Suite
    environment : mapping of str to str
        Other versions on which results depend.
    """

    runtimes: Mapping[str, str]
    suites: tuple[Suite, ...]
    environment: Mapping[str, str] = field(default_factory=environment)

    @property
    def failed(self) -> bool:
        """True if a runtime gave a wrong answer, crashed or hung."""
        return any(
            verdict.failed for suite in self.suites for verdicts in suite.verdicts.values() for verdict in verdicts
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the whole report as JSON values."""
        return {
            "environment": dict(self.environment),
            "runtimes": dict(self.runtimes),
            "suites": [suite.to_dict() for suite in self.suites],
        }


def case_to_dict(case: Case) -> dict[str, Any]:
    """Return name, operator, sizes, opset, dtype and all other fields that are set."""
    values = {field.name: (getattr(case, field.name), field.default) for field in dataclasses.fields(case)}
    return {name: value for name, (value, default) in values.items() if name in _ALWAYS or value not in (default, {})}


def run_suite(
    runtimes: Sequence[Runtime],
    cases: Sequence[Case],
    kind: str = "cases",
    *,
    timeout: float = 60.0,
    progress: Callable[[str], None] = lambda text: None,
) -> Suite:
    """Run cases in runtimes, and judge them.

    Parameters
    ----------
    runtimes : sequence of Runtime
        With different names.
    cases : sequence of Case
        With different names.
    kind : str
        Kind of the cases, in the plural.
    timeout : float
        Seconds for each case.
    progress : callable
        Called with a short line about each step.

    Returns
    -------
    Suite

    Raises
    ------
    ArgumentError
        Names that occur twice, or a `timeout` of no length.
    """
    for what, names in (("runtimes", [runtime.name for runtime in runtimes]), ("cases", [case.name for case in cases])):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ArgumentError(f"conformance: {what} has the name {shown(twice)} twice; expected different names")
    expected: dict[int, Any] = {}
    verdicts: dict[str, tuple[Verdict, ...]] = {}
    for runtime in runtimes:
        judged = []
        with closing(execute(runtime, cases, timeout=timeout)) as executions:
            for place, execution in enumerate(executions):
                progress(f"{runtime.name}: {place + 1} of {len(cases)} {kind}")
                if execution.status == "ran" and place not in expected:
                    expected[place] = expectation(execution.case)
                judged.append(judge(execution, expected.get(place)))
        verdicts[runtime.name] = tuple(judged)
    return Suite(kind, verdicts)


def select_cases(spec: str) -> dict[str, tuple[Case, ...]]:
    """Return the cases of "named" or "random:SEED:N", by their kind.

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


def write_cases(cases: Iterable[Case], folder: str | Path) -> list[Path]:
    """Write cases as onnx's own backend tests are stored, with the oracle's results.

    Parameters
    ----------
    cases : iterable of Case
        Cases of ONNX's operators with unique names; those of OpenVINO are left out, because they are no ONNX models.
    folder : str or path
        Created if missing. Folders of the same cases are replaced, others are unchanged.

    Returns
    -------
    list of Path
        The folders onnx/test_NAME with model.onnx, test_data_set_0, and the tolerances in data.json, which
        ``onnx.backend.test.loader.load_model_tests(folder, "onnx")`` loads.

    Raises
    ------
    ArgumentError
        A folder that cannot be written.
    """
    from pyrnnx.testing.onnx_models import write_backend_test

    paths = []
    try:
        for case in cases:
            if case.family == "ONNX":
                name = re.sub(r"[^a-z0-9]+", "_", case.name.lower()).strip("_")
                paths.append(Path(folder, "onnx", f"test_{name}"))
                write_backend_test(case, paths[-1])
    except OSError as error:
        raise ArgumentError(f"conformance: {shown(str(folder))} cannot be written ({error})") from None
    return paths
