"""Report as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from pyrnnx.errors import printable
from pyrnnx.testing.conformance.faults import Fault
from pyrnnx.testing.conformance.plain import describe
from pyrnnx.testing.conformance.report import Report, Suite

LETTERS = {"wrong": "w", "refused": "r", "crashed": "c", "timed out": "t", "not expressible": "n"}
LEGEND = "A number without a letter: right; w: wrong, r: refused, c: crashed, t: timed out, n: not expressible."


def to_text(report: Report, *, width: int = 80) -> str:
    """Return counts by runtime and by feature, then each fault with the case that shows it.

    Parameters
    ----------
    report : Report
    width : int
        Columns; a wider table is split.

    Returns
    -------
    str
        Lines of at most `width` characters, except longer names.
    """
    parts = [textwrap.fill(", ".join(f"{key} {value}" for key, value in report.environment.items()), width)]
    for suite in report.suites:
        counts = (_filled(f"  {printable(line)}", width, "    ") for line in summaries(report, suite))
        parts.append("\n".join([_filled(f"{suite.title}:", width, "  "), *counts]))
        if suite.runtimes:
            parts += ["\n\n".join(_tables(suite, width)), textwrap.fill(LEGEND, width)]
        parts += [text for name in report.runtimes if (text := _faults(name, suite, width))]
    return "\n\n".join(parts)


def summaries(report: Report, suite: Suite) -> list[str]:
    """Return the counts of each runtime: "tract 0.21: 186 right, 3 wrong"."""
    lines, unable = [], []
    for name, version in report.runtimes.items():
        if name not in suite.runtimes:
            unable.append(named(name, version))
            continue
        counts = suite.counts(name)
        parts = [f"{counts['right']} right", *(f"{counts[status]} {status}" for status in LETTERS if counts[status])]
        lines.append(f"{named(name, version)}: {', '.join(parts)}")
    return lines + ([f"not expressible in {', '.join(unable)}"] if unable else [])


def named(name: str, version: str) -> str:
    return f"{name} {version}".rstrip()


def short_counts(counts: Mapping[str, int]) -> str:
    """Return counts such as "12 3w 1r"; "-" if there are none."""
    parts = [str(counts["right"])] if counts["right"] else []
    parts += [f"{counts[status]}{letter}" for status, letter in LETTERS.items() if counts[status]]
    return " ".join(parts) or "-"


def _tables(suite: Suite, width: int) -> list[str]:
    """Return features by runtimes, split into as few tables as the width allows."""
    columns = {
        name: [printable(name), *(short_counts(suite.counts(name, feature)) for feature in suite.features)]
        for name in suite.runtimes
    }
    labels = ["", *suite.features]
    first = max(map(len, labels))
    tables: list[list[str]] = []
    room = 0
    for column in columns.values():
        wide = max(map(len, column))
        if wide + 2 > room:
            tables.append([label.ljust(first) for label in labels])
            room = width - first
        tables[-1] = [f"{line}  {cell.ljust(wide)}" for line, cell in zip(tables[-1], column, strict=True)]
        room -= wide + 2
    return ["\n".join(line.rstrip() for line in table) for table in tables]


def _faults(name: str, suite: Suite, width: int) -> str:
    faults = suite.faults_of(name)
    return "\n".join([f"{printable(name)}:", *(_fault(fault, width) for fault in faults)]) if faults else ""


def _fault(fault: Fault, width: int) -> str:
    seen = f" ({len(fault.found)} cases)" if len(fault.found) > 1 else ""
    lines = [f"- {fault.status}, {fault.title}{seen}", f"case {fault.case.name} ({describe(fault.case)})"]
    lines += [text for text in (fault.case.tells, fault.verdict.detail) if text]
    return "\n".join(wrapped(lines, width))


def _filled(text: str, width: int, indent: str) -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def wrapped(lines: Sequence[str], width: int) -> list[str]:
    """Wrap lines to that width; all except the first are indented further."""
    return [
        textwrap.fill(
            printable(line),
            width,
            initial_indent="    " if place else "  ",
            subsequent_indent="      " if place else "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for place, line in enumerate(lines)
    ]
