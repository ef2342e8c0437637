"""The command `pyrnnx conformance`: runtimes checked against the oracle, case by case."""

from __future__ import annotations

import argparse
from typing import Annotated

import typer

from pyrnnx._internal.extras import needs
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import number
from pyrnnx.cli.output import DIFFERENT, REJECTED, SUCCESS, Result, complain, console, progress
from pyrnnx.errors import UnsupportedError


@command(
    "conformance",
    "pyrnnx conformance onnxruntime --cases random:0:100 --json report.json",
    notes=(
        "Exit status: 0 if no runtime returned a wrong result, crashed or timed out; 1 if one did; 2 for errors. A "
        "refusal is no failure.",
    ),
)
def conformance(
    runtimes: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUNTIME", help="pyrnnx, onnxruntime and others (default: all that are installed)."),
    ] = None,
    cases: Annotated[
        list[str] | None,
        typer.Option("--cases", metavar="CASES", help='"named" (default) or random:SEED:N; repeatable.'),
    ] = None,
    own_command: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            metavar="COMMAND",
            help="Program to use as a runtime: it reads models and inputs from {folder} and writes outputs there.",
        ),
    ] = None,
    function: Annotated[
        list[str] | None,
        typer.Option(
            "--function",
            metavar="FUNCTION",
            help="package.module:name, a function of a case and its arrays to use as a runtime.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", parser=number, help="Limit for each case (default: 60)."),
    ] = None,
    json: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON.")] = None,
    export: Annotated[
        str | None,
        typer.Option(
            "--export", metavar="DIR", help="Run nothing; write the cases and their results as ONNX backend tests."
        ),
    ] = None,
) -> Result:
    """Run cases of the recurrent operators in runtimes, and report which results are right, wrong or missing.

    Each runtime has its own process, which may crash or hang.
    """
    options = argparse.Namespace(**locals())
    options.runtimes = runtimes or []
    try:
        from pyrnnx.testing.conformance import command as kit

        if export is not None:
            return Result({}, [tables.line(kit.export(options))])
        with progress() as show:
            text, failed, problem = kit.run(options, show, console().width)
    except ImportError as error:
        raise UnsupportedError(needs("conformance", str(error.name), "testing")) from None
    if problem:
        complain(problem)
    status = REJECTED if problem else DIFFERENT if failed else SUCCESS
    return Result({}, map(tables.line, text.splitlines()), status=status)
