"""Faults of a runtime: cases that fail alike, with the simplest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases import FEATURES, INPUTS, Case
from pyrnnx.testing.conformance.judge import FAILURES, Verdict


@dataclass(frozen=True, eq=False)
class Fault:
    """Mistake of a runtime in one operator with one set of features.

    Attributes
    ----------
    runtime : str
    verdict : Verdict
        Verdict on the simplest case that shows the fault.
    found : tuple of str
        Names of the cases that show the fault.
    """

    runtime: str
    verdict: Verdict
    found: tuple[str, ...]

    @property
    def case(self) -> Case:
        return self.verdict.case

    @property
    def status(self) -> str:
        return self.verdict.status

    @property
    def features(self) -> tuple[str, ...]:
        """Features of the case: rows of `pyrnnx.testing.cases.FEATURES`."""
        return self.case.features

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON, with the name of the case."""
        return {
            "case": self.case.name,
            "operator": self.case.operator,
            "features": list(self.features),
            **self.verdict.to_dict(),
            "found": list(self.found),
        }


def find_faults(name: str, verdicts: Sequence[Verdict], *, statuses: Sequence[str] = FAILURES) -> tuple[Fault, ...]:
    """Return the faults that verdicts show, each with its simplest case.

    There is one fault per status, operator and feature. A case that uses everything a simpler failing case needs counts
    as the same fault: if an input is ignored, every case with that input fails.

    Parameters
    ----------
    name : str
        Name of the runtime.
    verdicts : sequence of Verdict
    statuses : sequence of str
        Statuses that are faults, in their order.
    """
    faults: list[Fault] = []
    failed = (verdict for verdict in verdicts if verdict.status in statuses)
    for verdict in sorted(failed, key=lambda verdict: _complexity(verdict.case)):
        known = next((place for place, fault in enumerate(faults) if _explains(fault, verdict)), None)
        if known is None:
            faults.append(Fault(name, verdict, (verdict.case.name,)))
        else:
            faults[known] = replace(faults[known], found=(*faults[known].found, verdict.case.name))
    features, operators = list(FEATURES), list(INPUTS)

    def place(fault: Fault) -> tuple[Any, ...]:
        places = [features.index(feature) for feature in fault.features]
        return statuses.index(fault.status), places, operators.index(fault.case.operator)

    return tuple(sorted(faults, key=place))


def _complexity(case: Case) -> tuple[int, ...]:
    """Return a sort key: the features that a case needs, what is set, then its sizes."""
    is_set = len(case.attributes) + len(case.inputs) + (case.lens is not None)
    numbers = case.num_directions * case.N * max(case.T, 1) * (case.I + case.H)
    return len(_needed(case)), is_set, numbers, case.T, case.N, case.I, case.H


def _explains(fault: Fault, verdict: Verdict) -> bool:
    """Return whether the case has the fault's features, or uses all that its case needs with the same activations."""
    simple, case = fault.case, verdict.case
    if (fault.status, simple.operator) != (verdict.status, case.operator):
        return False
    if fault.features == case.features:
        return True
    needed, functions = _needed(simple), _special_functions(simple)
    if functions:
        needed -= {"activations"}
    return needed <= {*replace(case, feature="").features} and functions <= _special_functions(case)


def _needed(case: Case) -> set[str]:
    """Return the features that a case uses beyond the plainest of its sizes."""
    sizes = {name: max(getattr(case, name), 1) for name in "TNIH"}
    plain = Case("plain", case.operator, {"hidden_size": case.H}, **sizes)
    return {*replace(case, feature="").features} - {*plain.features, "defaults"}


def _special_functions(case: Case) -> set[str]:
    defaults = {name.lower() for name in reference.DEFAULT_ACTIVATIONS[case.cell]}
    return {name.lower() for name in case.attributes.get("activations", ())} - defaults
