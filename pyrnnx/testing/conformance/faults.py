"""Faults of a runtime: cases that fail alike, with the simplest case that shows the fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases import FEATURES, INPUTS, Case, hangs_on_rounding
from pyrnnx.testing.conformance.judge import FAILURES, Verdict, judge
from pyrnnx.testing.conformance.plain import case_to_dict
from pyrnnx.testing.conformance.shrink import cost, shrink
from pyrnnx.testing.runtimes import Runtime, execute

_SLOW_TRIES = 20  # of cases that time out: each takes the whole time


@dataclass(frozen=True, eq=False)
class Fault:
    """Mistake of a runtime in one operator with one set of features.

    Attributes
    ----------
    runtime : str
    verdict : Verdict
        Verdict on the simplest case that shows the fault.
    features : tuple of str
        Features that the fault needs; rows of `pyrnnx.testing.cases.FEATURES`.
    found : tuple of str
        Names of the cases that show the fault.
    shrunk : bool
        True if the case was reduced, and so differs from the one of that name.
    """

    runtime: str
    verdict: Verdict
    features: tuple[str, ...]
    found: tuple[str, ...]
    shrunk: bool = False

    @property
    def case(self) -> Case:
        return self.verdict.case

    @property
    def status(self) -> str:
        return self.verdict.status

    @property
    def kind(self) -> tuple[str, str, tuple[str, ...]]:
        """Identity among the faults of the runtime: status, operator, features."""
        return self.status, self.case.operator, self.features

    @property
    def title(self) -> str:
        """Operator and features: "LSTM: reverse, clip"."""
        return f"{self.case.operator}: {', '.join(self.features)}"

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON, with the full case, because a shrunk case is in no table."""
        return {
            "features": list(self.features),
            "case": case_to_dict(self.case),
            **self.verdict.to_dict(),
            "found": list(self.found),
        }


def find_faults(name: str, verdicts: Sequence[Verdict], *, statuses: Sequence[str] = FAILURES) -> tuple[Fault, ...]:
    """Return the faults that unshrunk cases show, each with its simplest case.

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
    return _folded(
        verdicts, statuses, lambda verdict: Fault(name, verdict, verdict.case.features, (verdict.case.name,))
    )


def shrunk_faults(
    runtime: Runtime,
    verdicts: Sequence[Verdict],
    *,
    statuses: Sequence[str] = FAILURES,
    timeout: float = 60.0,
    tries: int = 200,
) -> tuple[Fault, ...]:
    """Return faults with cases shrunk while the status stays the same, and the features they need.

    Parameters
    ----------
    runtime : Runtime
        Runtime for the smaller cases.
    verdicts : sequence of Verdict
        Verdicts on cases that it ran, named or random.
    statuses : sequence of str
    timeout : float
        Seconds for each run.
    tries : int
        Maximum number of runs for each fault.
    """

    def simplest(verdict: Verdict) -> Fault:
        simplest = _shrunk(runtime, verdict, timeout, tries)
        shrunk = simplest.case is not verdict.case
        return Fault(runtime.name, simplest, needed_features(simplest.case), (verdict.case.name,), shrunk)

    return _folded(verdicts, statuses, simplest)


def _folded(
    verdicts: Sequence[Verdict], statuses: Sequence[str], simplest: Callable[[Verdict], Fault]
) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    for verdict in sorted(
        (judged for judged in verdicts if judged.status in statuses), key=lambda judged: cost(judged.case)
    ):
        known = next((fault for fault in faults if _explains(fault, verdict)), None)
        if known is None:
            fault = simplest(verdict)
            known = next((other for other in faults if other.kind == fault.kind), None)
            if known is None:
                faults.append(fault)
                continue
        faults[faults.index(known)] = replace(known, found=(*known.found, verdict.case.name))
    faults = _without_explained(faults)
    return tuple(sorted(faults, key=lambda other: _place(other, statuses)))


def _without_explained(faults: Sequence[Fault]) -> list[Fault]:
    """Drop faults that need everything that a simpler one needs, which may have been found later."""
    simplest: list[Fault] = []
    for fault in sorted(faults, key=lambda other: (len(needed_features(other.case)), cost(other.case))):
        simpler = next((other for other in simplest if _explains(other, fault.verdict)), None)
        if simpler is None:
            simplest.append(fault)
        else:
            simplest[simplest.index(simpler)] = replace(simpler, found=(*simpler.found, *fault.found))
    return simplest


def _place(fault: Fault, statuses: Sequence[str]) -> tuple[Any, ...]:
    """Return a sort key: status, then the tables of features and operators."""
    features, operators = list(FEATURES), list(INPUTS)
    places = [features.index(name) for name in fault.features]
    return statuses.index(fault.status), places, operators.index(fault.case.operator)


def _explains(fault: Fault, verdict: Verdict) -> bool:
    """Return whether the case uses all that the fault's case needs, with the same activations."""
    if (fault.status, fault.case.operator) != (verdict.status, verdict.case.operator):
        return False
    needed, functions = {*needed_features(fault.case)} - {"defaults"}, _special_functions(fault.case)
    if functions:
        needed.discard("activations")
    used = {*replace(verdict.case, feature="").features}
    return needed <= used and functions <= _special_functions(verdict.case)


def _special_functions(case: Case) -> set[str]:
    defaults = {name.lower() for name in reference.DEFAULT_ACTIVATIONS[case.cell]}
    return {name.lower() for name in case.attributes.get("activations", ())} - defaults


def needed_features(case: Case) -> tuple[str, ...]:
    """Return the features that a case uses beyond the plainest of its sizes; else "defaults"."""
    sizes = {name: max(getattr(case, name), 1) for name in "TNIH"}
    plain = Case("plain", case.operator, {"hidden_size": case.H}, **sizes)
    used = replace(case, feature="").features
    return tuple(feature for feature in used if feature not in plain.features) or ("defaults",)


def _shrunk(runtime: Runtime, verdict: Verdict, timeout: float, tries: int) -> Verdict:
    """Return the verdict of the simplest case of the same status."""
    last, asked = verdict, verdict.case

    def candidates() -> Iterator[Case]:
        while True:
            yield asked

    # The next case depends on the last verdict; one process runs all cases unless one ends it.
    with closing(execute(runtime, candidates(), timeout=timeout)) as executions:

        def fails(case: Case) -> bool:
            nonlocal last, asked
            if hangs_on_rounding(case):  # a right runtime may differ there
                return False
            asked = case
            result = judge(next(executions))
            if result.status == verdict.status:
                last = result
            return result.status == verdict.status

        shrink(verdict.case, fails, tries=min(tries, _SLOW_TRIES) if verdict.status == "timed out" else tries)
    return last if last is verdict else replace(last, case=_without_lost_feature(last.case))


def _without_lost_feature(case: Case) -> Case:
    """Return the case without its table's description if it no longer uses that feature."""
    feature = FEATURES.get(case.feature)
    if feature is None or case.feature in needed_features(case):
        return case
    return replace(case, feature="", tells="", source="")
