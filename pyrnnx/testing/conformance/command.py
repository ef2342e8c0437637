"""Command `pyrnnx conformance`: execution of its options."""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyrnnx._internal.writing import check_report, write_files
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.testing.conformance.faults import Fault, shrunk_faults
from pyrnnx.testing.conformance.html import to_html
from pyrnnx.testing.conformance.judge import FAILURES
from pyrnnx.testing.conformance.markdown import to_markdown
from pyrnnx.testing.conformance.report import Report, Suite, run_suites, select_cases
from pyrnnx.testing.conformance.shrink import cost
from pyrnnx.testing.conformance.text import to_text
from pyrnnx.testing.conformance.write import write_cases, write_faults
from pyrnnx.testing.runtimes import RUNTIMES, CommandRuntime, FunctionRuntime, Runtime

TIMEOUT = 60.0  # seconds for each case
_PAGES: dict[str, Callable[[Report], str]] = {
    "json": lambda report: f"{json.dumps(report.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)}\n",
    "html": to_html,
    "markdown": to_markdown,
}


def run(
    options: argparse.Namespace, progress: Callable[[str], None] = lambda text: None, width: int = 80
) -> tuple[str, bool, str]:
    """Run cases in runtimes, and write the files that the options name.

    `options` are those of `pyrnnx.cli.commands.conformance`. Return the report as text of so many columns, whether a
    runtime gave a wrong answer, died or hung, and which file could not be written after the cases have run, and why.

    Raises
    ------
    PyrnnxError
        An option that means nothing, before any case is run.
    """
    runtimes = _runtimes(options)
    timeout = TIMEOUT if options.timeout is None else options.timeout
    specs = list(dict.fromkeys(options.cases or ["named"]))
    for spec in specs:
        select_cases(spec)
    files = {kind: Path(path) for kind in _PAGES if (path := getattr(options, kind)) is not None}
    if len({path.absolute() for path in files.values()}) < len(files):
        raise ArgumentError(f"conformance: {', '.join(f'--{kind}' for kind in files)}: expected a file for each")
    for kind, path in files.items():
        check_report(f"conformance: --{kind}", path)
    if options.write is not None:
        _make_folder(Path(options.write))
    statuses = (*FAILURES, "refused") if options.refused else FAILURES
    suites: list[Suite] = []
    for spec in specs:
        suites += run_suites(runtimes, spec, timeout=timeout, statuses=statuses, progress=progress)
    report = Report(
        {runtime.name: runtime.version() for runtime in runtimes},
        tuple(suites),
        command=_command_line(options),
        date=datetime.date.today().isoformat() if options.date else "",
    )
    problem = ""
    try:
        for kind, path in files.items():
            page = _PAGES[kind](report).encode("utf-8", "backslashreplace")
            write_files(f"conformance: --{kind}", {path: [page]})
        if options.write is not None:
            shrunk = _shrunk(report, runtimes, {"statuses": statuses, "timeout": timeout}, progress)
            write_faults(shrunk, runtimes, options.write, versions=report.environment)
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
        "--refused": options.refused,
        "--date": options.date,
        **{f"--{kind}": getattr(options, kind) for kind in (*_PAGES, "write")},
    }
    if given := [name for name, value in runs.items() if value]:
        raise ArgumentError(f"conformance: --export runs nothing; expected it without {', '.join(given)}")
    specs = dict.fromkeys(options.cases or ["named"])
    cases = {case.name: case for spec in specs for suite in select_cases(spec).values() for case in suite}
    _make_folder(Path(options.export))
    written = write_cases(cases.values(), options.export)
    left_out = len(cases) - len(written)
    others = f"; {left_out} of OpenVINO's operations are no ONNX models" if left_out else ""
    return f"{len(written)} cases of ONNX's operators: {Path(options.export, 'onnx')}{others}"


def _shrunk(
    report: Report, runtimes: Sequence[Runtime], limits: dict[str, Any], progress: Callable[[str], None]
) -> list[Fault]:
    """Return the shrunk faults of all suites, each once with its simplest case."""
    simplest: dict[tuple[Any, ...], Fault] = {}
    for runtime in runtimes:
        for suite in report.suites:
            faults = suite.faults_of(runtime.name)
            if not suite.shrunk:
                progress(f"{runtime.name}: shrinking what fails of {suite.kind}")
                faults = shrunk_faults(runtime, suite.verdicts[runtime.name], **limits)
            for fault in faults:
                key = (runtime.name, fault.kind)
                simplest[key] = min(simplest.get(key, fault), fault, key=lambda candidate: cost(candidate.case))
    return list(simplest.values())


def _runtimes(options: argparse.Namespace) -> list[Runtime]:
    """Return the named runtimes, then commands and functions; all installed ones by default."""
    known = ", ".join(RUNTIMES)
    chosen: list[Runtime] = []
    for name in dict.fromkeys(options.runtimes):
        runtime = RUNTIMES.get(name)
        if runtime is None:
            raise ArgumentError(f"conformance: RUNTIME is {shown(name)}; expected one of {known}")
        if not runtime.installed():
            raise ArgumentError(
                f"conformance: RUNTIME is {shown(name)}, which is not installed; expected an installed one"
            )
        chosen.append(runtime)
    texts = list(dict.fromkeys(options.own_command or ()))
    own: list[Runtime] = [CommandRuntime(text, text if len(texts) > 1 else None) for text in texts]
    for runtime in own:
        if not runtime.installed():
            raise ArgumentError(f"conformance: --command is {shown(runtime.name)}; expected an installed program")
    own += [FunctionRuntime(_function(text), text) for text in dict.fromkeys(options.function or ())]
    chosen += own
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


def _command_line(options: argparse.Namespace) -> str:
    """Return the command that reproduces the results, without the date."""
    words = ["python", "-m", "pyrnnx", "conformance", *options.runtimes]
    lists = {"--cases": options.cases, "--command": options.own_command, "--function": options.function}
    for flag, values in lists.items():
        for value in values or ():
            words += [flag, value]
    words += ["--timeout", f"{options.timeout:g}"] if options.timeout is not None else []
    words += ["--refused"] if options.refused else []
    for kind in ("json", "html", "markdown", "write"):
        path = getattr(options, kind)
        words += [f"--{kind}", path] if path is not None else []
    return shlex.join(words)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"conformance: {shown(str(path))} cannot be created as a folder ({error})") from None
