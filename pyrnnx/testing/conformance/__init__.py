"""Conformance of runtimes: verdicts on cases, reports, and the smallest failing cases."""

from pyrnnx.testing.conformance.environment import environment
from pyrnnx.testing.conformance.faults import Fault, find_faults, shrunk_faults
from pyrnnx.testing.conformance.html import to_html
from pyrnnx.testing.conformance.judge import FAILURES, STATUSES, Verdict, judge
from pyrnnx.testing.conformance.markdown import to_markdown
from pyrnnx.testing.conformance.report import Report, Suite, run_suite, run_suites, select_cases
from pyrnnx.testing.conformance.shrink import shrink
from pyrnnx.testing.conformance.text import to_text
from pyrnnx.testing.conformance.write import write_cases, write_faults

__all__ = [
    # running
    "run_suite",
    "run_suites",
    "select_cases",
    "judge",
    "environment",
    # what comes of it
    "Report",
    "Suite",
    "Verdict",
    "Fault",
    "FAILURES",
    "STATUSES",
    # faults
    "find_faults",
    "shrunk_faults",
    "shrink",
    "write_cases",
    "write_faults",
    # pages
    "to_html",
    "to_markdown",
    "to_text",
]


def __dir__() -> list[str]:
    return __all__
