"""Report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from pyrnnx.errors import printable
from pyrnnx.testing.cases import FEATURES
from pyrnnx.testing.conformance.faults import Fault
from pyrnnx.testing.conformance.judge import FAILURES, STATUSES
from pyrnnx.testing.conformance.plain import describe
from pyrnnx.testing.conformance.report import Report, Suite
from pyrnnx.testing.conformance.text import named, summaries

_STYLE = """
:root { color-scheme: light dark; --line: #ccc; --right: #dff3e0; --failed: #f8d7da; --refused: #f2ecd5; }
@media (prefers-color-scheme: dark) {
  :root { --line: #555; --right: #1d3b22; --failed: #5a2127; --refused: #443c1c; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: .2em .6em; text-align: left; vertical-align: top; }
td.right { background: var(--right); }
td.failed { background: var(--failed); }
td.refused { background: var(--refused); }
code, pre { font-size: .9em; }
pre { overflow-x: auto; }
li, p { overflow-wrap: anywhere; }
"""


def to_html(report: Report) -> str:
    """Return the page, for light and dark mode; names and messages are escaped."""
    title = "Conformance of recurrent operators"
    body = [f"<h1>{title}</h1>", *_head(report)]
    for suite in report.suites:
        body += _suite(report, suite)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>\n</head>\n'
        "<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _head(report: Report) -> Iterable[str]:
    if report.command:
        yield f"<pre>{_text(report.command)}</pre>"
    facts = [
        *([report.date] if report.date else []),
        *(f"{key} {version}" for key, version in report.environment.items()),
    ]
    yield f"<p>{_text(', '.join(facts))}</p>"


def _suite(report: Report, suite: Suite) -> Iterable[str]:
    yield f"<h2>{_text(suite.title)}</h2>"
    yield _list(_text(line) for line in summaries(report, suite))
    names = suite.runtimes
    yield '<div class="wide"><table>'
    yield f"<tr><th>feature</th>{''.join(f'<th>{_text(name)}</th>' for name in names)}</tr>"
    for feature in suite.features:
        label = f'<th title="{_text(FEATURES[feature].meaning)}">{_text(feature)}</th>'
        yield f"<tr>{label}{''.join(_cell(suite.counts(name, feature)) for name in names)}</tr>"
    yield "</table></div>"
    for name, version in report.runtimes.items():
        if faults := suite.faults_of(name):
            yield f"<h3>{_text(named(name, version))}</h3>"
            yield _list(_fault(fault) for fault in faults)


def _cell(counts: Mapping[str, int]) -> str:
    kind = "failed" if any(counts[status] for status in FAILURES) else "refused" if counts["refused"] else ""
    kind = kind or ("right" if counts["right"] else "none")
    parts = [f"{counts[status]} {status}" for status in STATUSES if counts[status]]
    return f'<td class="{kind}">{"<br>".join(parts)}</td>'


def _fault(fault: Fault) -> str:
    case = fault.case
    seen = f" ({len(fault.found)} cases)" if len(fault.found) > 1 else ""
    lines = [f"<strong>{_text(fault.status)}</strong>: {_text(fault.title)}{seen}"]
    lines += [f"<code>{_text(case.name)}</code>: {_text(describe(case))}"]
    lines += [
        _text(text) for text in (case.tells, case.source and f"Source: {case.source}", fault.verdict.detail) if text
    ]
    return "<br>".join(lines)


def _list(items: Iterable[str]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{item}</li>" for item in items) + "\n</ul>"


def _text(text: str) -> str:
    return escape(printable(text))
