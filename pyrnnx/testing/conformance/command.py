"""Command `pyrnnx conformance`: execution of its options."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyrnnx._internal.writing import check_report, write_files
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.testing.conformance.report import Report, run_suite, select_cases, write_cases
from pyrnnx.testing.conformance.text import to_text
from pyrnnx.testing.runtimes import RUNTIMES, CommandRuntime, FunctionRuntime, Runtime

TIMEOUT = 60.0  # seconds for each case


def run(
    options: argparse.Namespace, progress: Callable[[str], None] = lambda text: None, width: int = 80
) -> tuple[str, bool, str]:
    """Run cases in runtimes, and write the report as JSON if ``--json`` names a file.

    `options` are those of `pyrnnx.cli.commands.conformance`. Return the report as text of so many columns, whether a
    runtime gave a wrong answer, died or hung, and why the file could not be written after the cases have run.

    Raises
    ------
    PyrnnxError
        An option that means nothing, before any case is run.
    """
    runtimes = _runtimes(options)
    specs = dict.fromkeys(options.cases or ["named"])
    chosen = [suite for spec in specs for suite in select_cases(spec).items()]
    if options.json is not None:
        check_report("conformance: --json", options.json)
    timeout = TIMEOUT if options.timeout is None else options.timeout
    suites = [run_suite(runtimes, cases, kind, progress=progress, timeout=timeout) for kind, cases in chosen]
    report = Report({runtime.name: runtime.version() for runtime in runtimes}, tuple(suites))
    problem = ""
    if options.json is not None:
        page = f"{json.dumps(report.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)}\n"
        try:
            write_files("conformance: --json", {Path(options.json): [page.encode("utf-8", "backslashreplace")]})
        except PyrnnxError as error:
            problem = str(error)
    return to_text(report, width=width), report.failed, problem


def export(options: argparse.Namespace) -> str:
    """Write the selected cases below the folder of ``--export``, run nothing, and return what was written.

    Raises
    ------
    ArgumentError
        Options of runs; cases that cannot be selected or written.
    """
    runs = {
        "RUNTIME": options.runtimes,
        "--command": options.own_command,
        "--function": options.function,
        "--timeout": options.timeout,
        "--json": options.json,
    }
    if given := [name for name, value in runs.items() if value]:
        raise ArgumentError(f"conformance: --export runs nothing; expected it without {', '.join(given)}")
    specs = dict.fromkeys(options.cases or ["named"])
    cases = {case.name: case for spec in specs for suite in select_cases(spec).values() for case in suite}
    written = write_cases(cases.values(), options.export)
    left_out = len(cases) - len(written)
    others = f"; {left_out} of OpenVINO's operations are no ONNX models" if left_out else ""
    return f"{len(written)} cases of ONNX's operators: {Path(options.export, 'onnx')}{others}"


def _runtimes(options: argparse.Namespace) -> list[Runtime]:
    """Return the named runtimes, then commands and functions; all installed ones by default."""
    chosen: list[Runtime] = []
    for name in dict.fromkeys(options.runtimes):
        runtime = RUNTIMES.get(name)
        if runtime is None:
            raise ArgumentError(f"conformance: RUNTIME is {shown(name)}; expected one of {', '.join(RUNTIMES)}")
        if not runtime.installed():
            raise ArgumentError(
                f"conformance: RUNTIME is {shown(name)}, which is not installed; expected an installed one"
            )
        chosen.append(runtime)
    texts = list(dict.fromkeys(options.own_command or ()))
    for text in texts:
        command = CommandRuntime(text, text if len(texts) > 1 else None)
        if not command.installed():
            raise ArgumentError(f"conformance: --command is {shown(command.name)}; expected an installed program")
        chosen.append(command)
    chosen += [FunctionRuntime(_function(text), text) for text in dict.fromkeys(options.function or ())]
    return chosen or [runtime for runtime in RUNTIMES.values() if runtime.installed()]


def _function(text: str) -> Any:
    """Import "package.module:name"; modules in the current folder are found too."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise ArgumentError(f"conformance: --function is {shown(text)}; expected package.module:name")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except Exception as error:  # whatever a user's module raises
        raise ArgumentError(
            f"conformance: --function is {shown(text)}, which cannot be imported ({type(error).__name__}: {error})"
        ) from None
    if not callable(value):
        raise ArgumentError(f"conformance: --function is {shown(text)}, a {type(value).__name__}; expected a function")
    return value
