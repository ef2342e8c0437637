"""Entry point of the command: from the arguments of the process to its exit status."""

from __future__ import annotations

import functools
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.extras import needs
from pyrnnx._version import __version__
from pyrnnx.cli import streams
from pyrnnx.cli.commands import COMMANDS
from pyrnnx.cli.options import with_options
from pyrnnx.cli.result import render
from pyrnnx.cli.status import Status
from pyrnnx.errors import PyrnnxError, shortened, shown

if TYPE_CHECKING:
    from pyrnnx.cli.app import Call

_NEEDED = ("typer", "rich")  # packages of the extra `cli`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: the arguments of the process.

    Returns
    -------
    int
        A status of `pyrnnx.cli.status.MEANINGS`. An error is one line on standard error, after a traceback with
        ``--debug``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words[: words.index("--") if "--" in words else None]
    try:
        return int(_run(words))
    except KeyboardInterrupt:
        return int(Status.INTERRUPTED)
    except Exception as error:
        if debug and not callable(getattr(error, "format_message", None)):  # a usage error needs no traceback
            streams.write_error("".join(traceback.format_exception(error)))
        streams.complain(_in_one_line(error))
        return int(Status.REJECTED)


def _run(words: list[str]) -> Status:
    with warnings.catch_warnings(record=True) as caught:
        if words == ["--version"]:  # without Typer's time
            return streams.written(f"{__version__}\n")
        call = parse(words)
        if isinstance(call, Status):
            return call
        result = call.run()
        text = render(result, as_json=call.as_json)
    for warning in caught:
        streams.complain(f"warning: {with_options(str(warning.message), call.options)}")
    written = streams.written(text)
    if result.problem:
        streams.complain(result.problem)
        return written or Status.REJECTED
    return written or result.status


def parse(arguments: Sequence[str]) -> Call | Status:
    """Return the requested call; if Typer has done everything (help, version, completion), return the status.

    Raises
    ------
    Exception
        A usage error of Typer or click, with `format_message`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # older versions of Typer warn about click
        import typer

        from pyrnnx.cli.app import Call

    words = [argument for argument in arguments if argument != "--debug"]
    try:
        with streams.captured() as texts, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            answer = _command(*_needed(words)).main(words or ["--help"], "pyrnnx", standalone_mode=False)
    except SystemExit as stop:  # completion, which has no command
        return streams.written(texts[0]) or (Status.REJECTED if stop.code else Status.SUCCESS)
    except typer.Abort:
        raise KeyboardInterrupt from None
    if isinstance(answer, Call):
        return answer
    if answer == Status.INTERRUPTED:  # some versions of Typer return this after Ctrl-C
        raise KeyboardInterrupt
    status = Status.SUCCESS if words and not answer else Status.REJECTED  # a missing command is an error
    return streams.written(texts[0]) or status


def _needed(words: Sequence[str]) -> Sequence[str]:
    """Return the command of these words, no command if it is missing or unknown, or all for shell completion."""
    if "_PYRNNX_COMPLETE" in os.environ:
        return list(COMMANDS)
    first = next((word for word in words if not word.startswith("-")), "")
    return [first] if first in COMMANDS else []


@functools.cache
def _command(*needed: str) -> Any:
    """Return Typer's group of all commands, of which only those that are `needed` are imported and can run."""
    import typer
    from typer.core import TyperCommand

    from pyrnnx.cli.app import app

    for name in needed:
        import_module(f"pyrnnx.cli.commands.{name}")
    group: Any = typer.main.get_command(app)
    imported = dict(group.commands)
    group.commands = {name: imported.get(name) or TyperCommand(name, help=line) for name, line in COMMANDS.items()}
    return group


def _in_one_line(error: Exception) -> str:
    """Return the message of an error in one line."""
    usage = getattr(error, "format_message", None)  # a usage error of Typer or click
    if callable(usage):
        text = shortened(" ".join(usage().split()))
        return (
            f"{text.removesuffix('.')}; expected one of {', '.join(sorted(COMMANDS))}" if _is_no_command(text) else text
        )
    if isinstance(error, PyrnnxError):
        return str(error)
    if isinstance(error, ImportError):
        needed = (error.name or "").partition(".")[0] in _NEEDED
        return needs("the command", str(error.name), "cli") if needed else str(error)
    if isinstance(error, OSError):
        return f"{shown(error.filename)}: {error.strerror}" if error.filename is not None else str(error)
    if isinstance(error, MemoryError):
        return "not enough memory"
    return f"an error in pyrnnx itself ({type(error).__name__}: {error}); --debug shows where"


def _is_no_command(text: str) -> bool:
    return text.startswith("No such command") and "Did you mean" not in text
