"""Conformance of runtimes: verdicts on cases, and reports; cases as tests of onnx."""

from pyrnnx.testing.conformance.judge import FAILURES, STATUSES, Verdict, judge
from pyrnnx.testing.conformance.report import (
    Report,
    Suite,
    environment,
    run_suite,
    select_cases,
    write_cases,
)
from pyrnnx.testing.conformance.text import to_text

__all__ = [
    # running
    "run_suite",
    "select_cases",
    "judge",
    "environment",
    # results
    "Report",
    "Suite",
    "Verdict",
    "FAILURES",
    "STATUSES",
    "to_text",
    # cases as files
    "write_cases",
]
