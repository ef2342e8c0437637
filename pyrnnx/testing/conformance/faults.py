"""What a runtime does wrong: cases that fail alike, folded into one fault with the simplest case that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrnnx.testing import reference
from pyrnnx.testing.cases import FEATURES, INPUTS, Case, hangs_on_rounding
from pyrnnx.testing.conformance.judge import FAILURES, Verdict, executing, judge
from pyrnnx.testing.conformance.plain import case_to_dict
from pyrnnx.testing.conformance.shrink import cost, shrink
from pyrnnx.testing.runtimes import Runtime

_SLOW_TRIES = 20  # of cases that time out: each takes the whole time


@dataclass(frozen=True, eq=False)
class Fault:
    """Something that a runtime does wrong, of one operator and one set of features.

    Attributes
    ----------
    runtime : str
    verdict : Verdict
        Of the case that shows it: the simplest there is.
    features : tuple of str
        What it takes; rows of `pyrnnx.testing.cases.FEATURES`.
    found : tuple of str
        Names of the cases that it was found in.
    shrunk : bool
        Whether its case is another than the one of that name.
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
        """What tells it from other faults of the runtime: status, operator, features."""
        return self.status, self.case.operator, self.features

    @property
    def title(self) -> str:
        """ "LSTM: reverse, clip"."""
        return f"{self.case.operator}: {', '.join(self.features)}"

    def to_dict(self) -> dict[str, Any]:
        """What JSON holds; the case in full, for a shrunk one stands nowhere else."""
        return {
            "features": list(self.features),
            "case": case_to_dict(self.case),
            **self.verdict.to_dict(),
            "found": list(self.found),
        }


def find_faults(name: str, verdicts: Sequence[Verdict], *, statuses: Sequence[str] = FAILURES) -> tuple[Fault, ...]:
    """The faults that cases show as they are, each with its simplest case.

    One of each status, operator and feature. A case that uses all that a simpler one fails for is counted with that:
    where an input is ignored, every case that has it fails.

    Parameters
    ----------
    name : str
        Of the runtime.
    verdicts : sequence of Verdict
    statuses : sequence of str
        What is a fault; also their order.
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
    """The same, each with a case shrunk as far as it fails with the same status, and the features that it needs.

    Parameters
    ----------
    runtime : Runtime
        It runs the smaller cases.
    verdicts : sequence of Verdict
        Of cases that it ran, named or random.
    statuses : sequence of str
    timeout : float
        Of each run.
    tries : int
        Runs for each fault at most.
    """

    def simplest(verdict: Verdict) -> Fault:
        found = _shrunk(runtime, verdict, timeout, tries)
        shrunk = found.case is not verdict.case
        return Fault(runtime.name, found, needed_features(found.case), (verdict.case.name,), shrunk)

    return _folded(verdicts, statuses, simplest)


def _folded(
    verdicts: Sequence[Verdict], statuses: Sequence[str], simplest: Callable[[Verdict], Fault]
) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    for verdict in sorted((one for one in verdicts if one.status in statuses), key=lambda one: cost(one.case)):
        known = next((fault for fault in faults if _explains(fault, verdict)), None)
        if known is None:
            fault = simplest(verdict)
            known = next((one for one in faults if one.kind == fault.kind), None)
            if known is None:
                faults.append(fault)
                continue
        faults[faults.index(known)] = replace(known, found=(*known.found, verdict.case.name))
    faults = _without_explained(faults)
    return tuple(sorted(faults, key=lambda one: _place(one, statuses)))


def _without_explained(faults: Sequence[Fault]) -> list[Fault]:
    """Without the faults that need all that a simpler one does, which may have been found later."""
    kept: list[Fault] = []
    for fault in sorted(faults, key=lambda one: (len(needed_features(one.case)), cost(one.case))):
        simpler = next((one for one in kept if _explains(one, fault.verdict)), None)
        if simpler is None:
            kept.append(fault)
        else:
            kept[kept.index(simpler)] = replace(simpler, found=(*simpler.found, *fault.found))
    return kept


def _place(fault: Fault, statuses: Sequence[str]) -> tuple[Any, ...]:
    """To sort by status, then by the tables of features and operators."""
    features, operators = list(FEATURES), list(INPUTS)
    places = [features.index(name) for name in fault.features]
    return statuses.index(fault.status), places, operators.index(fault.case.operator)


def _explains(fault: Fault, verdict: Verdict) -> bool:
    """Whether the case uses all that the fault's case needs: of activations, the same functions."""
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
    """The features that a case uses and the plainest one of its sizes does not; "defaults" if there is none."""
    sizes = {name: max(getattr(case, name), 1) for name in "TNIH"}
    plain = Case("plain", case.operator, {"hidden_size": case.H}, **sizes)
    used = replace(case, feature="").features
    return tuple(one for one in used if one not in plain.features) or ("defaults",)


def _shrunk(runtime: Runtime, verdict: Verdict, timeout: float, tries: int) -> Verdict:
    """The verdict of the simplest case of the same status."""
    last, asked = verdict, verdict.case

    def candidates() -> Iterator[Case]:
        while True:
            yield asked

    # The next case is known when the last is judged; one process runs them all, but for those that end it.
    with executing(runtime, candidates(), timeout) as executions:

        def fails(case: Case) -> bool:
            nonlocal last, asked
            if hangs_on_rounding(case):  # a right runtime may differ there
                return False
            asked = case
            found = judge(next(executions))
            if found.status == verdict.status:
                last = found
            return found.status == verdict.status

        shrink(verdict.case, fails, tries=min(tries, _SLOW_TRIES) if verdict.status == "timed out" else tries)
    return last if last is verdict else replace(last, case=_told(last.case))


def _told(case: Case) -> Case:
    """A case with what its table says of it only while it still uses that."""
    feature = FEATURES.get(case.feature)
    if feature is None or case.feature in needed_features(case):
        return case
    return replace(case, feature="", tells="", source="")
