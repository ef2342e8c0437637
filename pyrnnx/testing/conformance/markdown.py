"""Report as a Markdown page: tables, faults by runtime, and their cases."""

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
This page counts the cases that each runtime computes correctly. A case is one call of a recurrent operator of ONNX or
OpenVINO: its attributes, optional inputs, sizes, dtype and opset. A named case tests one feature; random cases combine
them. `pyrnnx.testing.cases` has all of them, and makes their arrays. Each runtime, pyrnnx too, is called through its
public functions.

- **right**: within the tolerance of the dtype (`pyrnnx.testing.numbers`) from the float64 implementation
  `pyrnnx.reference`. In the tables, a number without a word counts these.
- **wrong**: no error, but a result beyond the tolerance.
- **refused**: an error, which is no failure. `--refused` lists these with their reasons.
- **crashed**, **timed out**: no answer.
- **not expr.**: the runtime cannot express the case, which is no failure either.

ONNX Runtime reads uninitialized memory if T or I is 0, so its counts may differ by a few cases from run to run.
`help(pyrnnx.testing.runtimes)` says how to test a program or function of your own."""
WORDS = {status: f"**{status}**" for status in FAILURES} | {"refused": "refused", "not expressible": "not expr."}


def to_markdown(report: Report) -> str:
    """Return a page that begins with the command and versions; equal reports give equal pages."""
    return (
        "\n\n".join(["# Conformance of recurrent operators", *_head(report), *_suites(report), *_cases(report)]) + "\n"
    )


def _head(report: Report) -> Iterable[str]:
    yield INTRODUCTION
    if report.command:
        yield f"This command writes the page:\n\n```bash\n{report.command}\n```"
    versions = [f"{key} {value}" for key, value in report.environment.items()]
    versions += [named(name, version) for name, version in report.runtimes.items() if name not in report.environment]
    yield f"Versions{' on ' + report.date if report.date else ''}: {escaped(', '.join(versions))}."


def _suites(report: Report) -> Iterable[str]:
    for suite in report.suites:
        yield f"## {escaped(suite.title)}"
        yield "\n".join(f"- {escaped(line)}" for line in summaries(report, suite))
        yield table(suite)
        yield (
            "A random case counts for each feature that it uses. Failing cases are reduced, so the lists name "
            "only features that matter."
            if suite.shrunk
            else "A case counts for the feature that it tests, even if another feature makes it fail. The lists assign "
            "each failure to the simplest case that fails."
        )
        for name, version in report.runtimes.items():
            if faults := suite.faults_of(name):
                yield f"### {escaped(named(name, version))}"
                yield "\n".join(_fault_lines(faults))


def table(suite: Suite) -> str:
    """Return a table of features by runtimes."""
    names = suite.runtimes
    rows = [["feature", *(escaped(name) for name in names)], ["---"] * (len(names) + 1)]
    rows += [
        [
            f"{escaped(feature)}: {escaped(FEATURES[feature].meaning)}",
            *(_cell(suite.counts(name, feature)) for name in names),
        ]
        for feature in suite.features
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(counts: Mapping[str, int]) -> str:
    parts = [str(counts["right"])] if counts["right"] else []
    parts += [f"{counts[status]} {WORDS[status]}" for status in STATUSES[1:] if counts[status]]
    return ", ".join(parts) or "-"


def _fault_lines(faults: Iterable[Fault]) -> Iterable[str]:
    """Yield a line for each status and set of features, with the cases of all operators."""
    groups: dict[tuple[str, tuple[str, ...]], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.status, fault.features), []).append(fault)
    for (status, features), group in groups.items():
        links = ", ".join(f"[{escaped(fault.case.operator)}](#{anchor(fault)})" for fault in group)
        reasons = dict.fromkeys(fault.case.tells for fault in group if fault.case.tells)
        count = sum(len(fault.found) for fault in group)
        seen = f" ({count} cases)" if count > len(group) else ""
        yield " ".join([f"- {status}, {escaped(', '.join(features))}: {links}{seen}.", *map(escaped, reasons)])


def _cases(report: Report) -> Iterable[str]:
    """Yield each case that shows a fault once, with the results of every runtime that fails it."""
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
        lines += [
            f"- {escaped(fault.runtime)}: {escaped(f'{fault.status}. {fault.verdict.detail}')}" for fault in faults
        ]
        yield "\n".join(line for line in lines if line)


def anchor(fault: Fault) -> str:
    """Return the anchor of a fault's case; a shrunk case belongs to one fault, so it contains all its keys."""
    own = (fault.runtime, fault.status, *fault.features) if fault.shrunk else ()
    return slug("-".join(["case", fault.case.name, *own]))


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def escaped(text: str) -> str:
    """Return text in one line that Markdown shows unchanged, also in a table."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", printable(text))
