"""Report as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from pyrnnx.errors import printable
from pyrnnx.testing.cases import Case
from pyrnnx.testing.conformance.judge import Verdict
from pyrnnx.testing.conformance.report import Report, Suite, case_to_dict

_LETTERS = {"wrong": "w", "refused": "r", "crashed": "c", "timed out": "t", "not expressible": "n"}
_LEGEND = "A number without a letter: right; w: wrong, r: refused, c: crashed, t: timed out, n: not expressible."
_TEXTS = ("name", "operator", "feature", "tells")  # fields of a case that are shown elsewhere
_MOST_FAULTS = 30  # of a runtime; random cases may fail in a hundred ways


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
    parts = [_filled(", ".join(f"{key} {value}" for key, value in report.environment.items()), width)]
    for suite in report.suites:
        counts = (_filled(line, width, "  ", "    ") for line in _summaries(report, suite))
        parts.append("\n".join([_filled(f"{len(suite.cases)} {suite.kind}:", width, "", "  "), *counts]))
        if suite.runtimes and suite.features:
            parts += ["\n\n".join(_tables(suite, width)), _filled(_LEGEND, width)]
        for name in report.runtimes:
            if faults := suite.faults(name):
                lines = [f"{printable(name)}:", *(_fault(fault, width) for fault in faults[:_MOST_FAULTS])]
                more = len(faults) - _MOST_FAULTS
                parts.append("\n".join(lines + [f"  - and {more} more, which --json lists"] * (more > 0)))
    return "\n\n".join(parts)


def _summaries(report: Report, suite: Suite) -> list[str]:
    """Return the counts of each runtime: "OpenVINO 2026.4.1: 186 right, 3 wrong"."""
    lines, unable = [], []
    for name, version in report.runtimes.items():
        label = f"{name} {version}".rstrip()
        if name not in suite.runtimes:
            unable.append(label)
            continue
        counts = suite.counts(name)
        parts = [f"{counts['right']} right", *(f"{counts[status]} {status}" for status in _LETTERS if counts[status])]
        lines.append(f"{label}: {', '.join(parts)}")
    return lines + ([f"not expressible in {', '.join(unable)}"] if unable else [])


def _tables(suite: Suite, width: int) -> list[str]:
    """Return features by runtimes, split into as few tables as the width allows."""
    labels = ["", *suite.features]
    first = max(map(len, labels))
    tables: list[list[str]] = []
    room = 0
    for name in suite.runtimes:
        column = [printable(name), *(_short_counts(suite.counts(name, feature)) for feature in suite.features)]
        wide = max(map(len, column))
        if wide + 2 > room:
            tables.append([label.ljust(first) for label in labels])
            room = width - first
        tables[-1] = [f"{line}  {cell.ljust(wide)}" for line, cell in zip(tables[-1], column, strict=True)]
        room -= wide + 2
    return ["\n".join(line.rstrip() for line in table) for table in tables]


def _short_counts(counts: Mapping[str, int]) -> str:
    """Return counts such as "12 3w 1r"; "-" if there are none."""
    parts = [str(counts["right"])] if counts["right"] else []
    parts += [f"{counts[status]}{letter}" for status, letter in _LETTERS.items() if counts[status]]
    return " ".join(parts) or "-"


def _fault(fault: Sequence[Verdict], width: int) -> str:
    verdict, case = fault[0], fault[0].case
    feature = f": {case.feature}" if case.feature else ""
    seen = f" ({len(fault)} cases)" if len(fault) > 1 else ""
    lines = [_filled(f"- {verdict.status}, {case.operator}{feature}{seen}", width, "  ", "    ")]
    texts = (f"case {case.name} ({_describe(case)})", case.tells, verdict.detail)
    return "\n".join([*lines, *(_filled(text, width, "    ", "      ") for text in texts if text)])


def _describe(case: Case) -> str:
    """Describe a case in one line, such as "T=4, N=3, I=3, H=5, opset=22, dtype=float32, attributes={'clip': 0.25}"."""
    fields = case_to_dict(case)
    return ", ".join(f"{name}={value}" for name, value in fields.items() if name not in _TEXTS)


def _filled(text: str, width: int, indent: str = "", further: str = "") -> str:
    """Wrap a printable text between words, not at hyphens, which names contain."""
    wrapper = textwrap.TextWrapper(
        width, initial_indent=indent, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.fill(printable(text))
