"""A report as a page of Markdown: tables, then what each runtime does wrong, then the cases that show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pyrnnx.errors import printable
from pyrnnx.testing.cases import FEATURES
from pyrnnx.testing.conformance.faults import Fault
from pyrnnx.testing.conformance.judge import FAILURES, STATUSES
from pyrnnx.testing.conformance.plain import describe
from pyrnnx.testing.conformance.report import Report, Suite
from pyrnnx.testing.conformance.text import named, summaries

INTRODUCTION = """\
Which cases of the recurrent operators of ONNX and OpenVINO each runtime computes as the oracle,
`pyrnnx.testing.reference`, does. Each is run through its public functions, pyrnnx like the others.

- **right**: within the tolerance of the dtype (`pyrnnx.testing.numbers`). A number without a word is a number of these.
- **wrong**: a result that is not right, without an error. **refused**: an error. **crashed**, **timed out**: no answer.
- **not expr.**: the runtime has no words for the case, so that it is no fault of it.

Refusals are no failures; `--refused` tells them with their reasons. A runtime that reads memory which nobody has
written (ONNX Runtime where T or I is 0) may be right and wrong in turn: its counts then differ by some cases from run
to run. How a program or a function of your own is judged beside these is told by `help(pyrnnx.testing.runtimes)`."""
WORDS = {status: f"**{status}**" for status in FAILURES} | {"refused": "refused", "not expressible": "not expr."}


def to_markdown(report: Report) -> str:
    """A page that begins with the command and versions; the same for the same report."""
    return (
        "\n\n".join(["# Conformance of recurrent operators", *_head(report), *_suites(report), *_cases(report)]) + "\n"
    )


def _head(report: Report) -> Iterable[str]:
    if report.command:
        yield f"Made by\n\n```bash\n{report.command}\n```"
    versions = [f"{key} {value}" for key, value in report.environment.items()]
    versions += [named(name, version) for name, version in report.runtimes.items() if name not in report.environment]
    yield f"{'On ' + report.date + ', with' if report.date else 'With'} {escaped(', '.join(versions))}."
    yield INTRODUCTION


def _suites(report: Report) -> Iterable[str]:
    for suite in report.suites:
        yield f"## {escaped(suite.title)}"
        yield "\n".join(f"- {escaped(line)}." for line in summaries(report, suite))
        yield table(suite)
        yield (
            "A random case counts with every feature that it uses. What fails was shrunk, to name what it takes."
            if suite.shrunk
            else "A case counts with what it is for, even where it fails for something else that it uses: below, it is "
            "counted with the simplest case that fails."
        )
        for name, version in report.runtimes.items():
            faults = [fault for fault in suite.faults if fault.runtime == name]
            if faults:
                yield f"### {escaped(named(name, version))}"
                yield "\n".join(_fault_lines(faults))


def table(suite: Suite) -> str:
    """Features by runtimes."""
    names = suite.runtimes
    rows = [["feature", *(escaped(name) for name in names)], ["---"] * (len(names) + 1)]
    rows += [
        [f"{escaped(one)}: {escaped(FEATURES[one].meaning)}", *(_cell(suite.counts(name, one)) for name in names)]
        for one in suite.features
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(counts: Mapping[str, int]) -> str:
    parts = [str(counts["right"])] if counts["right"] else []
    parts += [f"{counts[status]} {WORDS[status]}" for status in STATUSES[1:] if counts[status]]
    return ", ".join(parts) or "-"


def _fault_lines(faults: Iterable[Fault]) -> Iterable[str]:
    """A line for each status and set of features, with the cases of all operators."""
    groups: dict[tuple[str, tuple[str, ...]], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.status, fault.features), []).append(fault)
    for (status, features), group in groups.items():
        links = ", ".join(f"[{escaped(one.case.operator)}](#{anchor(one)})" for one in group)
        tells = dict.fromkeys(one.case.tells for one in group if one.case.tells)
        more = sum(len(one.found) for one in group)
        seen = f" ({more} cases)" if more > len(group) else ""
        yield " ".join([f"- {status}, {escaped(', '.join(features))}: {links}{seen}.", *map(escaped, tells)])


def _cases(report: Report) -> Iterable[str]:
    """Each case that shows a fault once, with what every runtime made of it that fails it."""
    shown: dict[str, list[Fault]] = {}
    for fault in (fault for suite in report.suites for fault in suite.faults):
        shown.setdefault(anchor(fault), []).append(fault)
    if shown:
        yield "## Cases"
    for name, faults in sorted(shown.items()):
        case = faults[0].case
        lines = [f'<a id="{name}"></a>**{escaped(case.name)}**: {escaped(describe(case))}.']
        lines += [
            " ".join(filter(None, (escaped(case.tells), f"Source: {escaped(case.source)}." if case.source else "")))
        ]
        lines += [f"- {escaped(one.runtime)}: {escaped(f'{one.status}. {one.verdict.detail}')}" for one in faults]
        yield "\n".join(line for line in lines if line)


def anchor(fault: Fault) -> str:
    """Of a fault's case in the page; of a shrunk case, which is the fault's own, with all that tells faults apart."""
    own = (fault.runtime, fault.status, *fault.features) if fault.shrunk else ()
    return slug("-".join(["case", fault.case.name, *own]))


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def escaped(text: str) -> str:
    """Text in one line that Markdown takes as it is, in a table, too."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", printable(text))
