"""Entry point of the command: from the arguments of the process to its exit status."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from pyrnnx._internal.extras import needs
from pyrnnx._version import __version__
from pyrnnx.cli import output
from pyrnnx.cli.output import INTERRUPTED, REJECTED, SUCCESS
from pyrnnx.errors import PyrnnxError, shortened, shown

_NEEDED = ("typer", "rich")  # packages of the extra `cli`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command on arguments, by default those of the process, and return its exit status.

    An error is one line on standard error, after a traceback with ``--debug``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    output.escape_what_streams_lack()
    try:
        return _run([word for word in words if word != "--debug"])
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if "--debug" in words and not _is_usage_error(error):
            output.write_error("".join(traceback.format_exception(error)))
        output.complain(_in_one_line(error))
        return REJECTED


def _run(words: Sequence[str]) -> int:
    if words == ["--version"]:  # without Typer's time
        return output.write(f"{__version__}\n")
    with warnings.catch_warnings(record=True) as caught:
        from pyrnnx.cli.app import group

        answer = group.main(words or ["--help"], "pyrnnx", standalone_mode=False)
        if not isinstance(answer, tuple):  # Typer has done everything: help, or an interrupt
            return answer or (SUCCESS if words else REJECTED)  # a missing command is an error
        result, as_json = answer
        text = result.as_json() if as_json else result.as_text()
    for warning in caught:
        output.complain(f"warning: {warning.message}")
    return output.write(text) or result.status


def _is_usage_error(error: Any) -> bool:
    """Return whether an error is one of Typer, or of the click below older versions."""
    return hasattr(error, "format_message")


def _in_one_line(error: Any) -> str:
    if _is_usage_error(error):
        return _usage(error)
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


def _usage(error: Any) -> str:
    """Return the message of a usage error, with its command and what that expects."""
    from pyrnnx.cli.app import COMMANDS

    text = error.format_message().replace("Value error, ", "")  # words of a library of Typer
    text, context = shortened(" ".join(text.split())), error.ctx
    if context is None or context.parent is None:
        return f"{text} (commands: {', '.join(COMMANDS)})"
    is_value = text.startswith("Invalid value")  # the message says what is expected
    usage = "" if is_value else f" ({' '.join(context.get_usage().split())})"
    return f"{context.info_name}: {text}{usage}"
