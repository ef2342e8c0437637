"""From the arguments of the process to its exit status."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrnnx.cli import streams
from pyrnnx.cli.result import render
from pyrnnx.cli.status import Status
from pyrnnx.errors import PyrnnxError, shortened, shown

if TYPE_CHECKING:
    from pyrnnx.cli.app import Call

_NEEDED = ("typer", "rich")  # of the extra `cli`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        The exit status, as `pyrnnx.cli.status.MEANINGS` has them. What is wrong stands in one line on standard error,
        after a traceback with ``--debug``.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given[: given.index("--") if "--" in given else None]
    try:
        return int(_run(given))
    except KeyboardInterrupt:
        return int(Status.INTERRUPTED)
    except Exception as error:
        if debug and not callable(getattr(error, "format_message", None)):  # which says what was mistyped
            streams.write_error("".join(traceback.format_exception(error)))
        streams.complain(_told(error))
        return int(Status.REJECTED)


def _run(given: list[str]) -> Status:
    with warnings.catch_warnings(record=True) as caught:
        call = parse(given)
        if isinstance(call, Status):
            return call
        result = call.run()
        text = render(result, as_json=call.as_json)
    for warning in caught:
        streams.complain(f"warning: {warning.message}")
    written = streams.written(text)
    if result.problem:
        streams.complain(result.problem)
        return written or Status.REJECTED
    return written or result.status


def parse(arguments: Sequence[str]) -> Call | Status:
    """The call that is asked for; where Typer does all of it (a help, the version, completion), the status.

    Raises
    ------
    Exception
        Of Typer or of the click below it, with `format_message`: arguments that no command takes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of an older Typer about the click below it
        import typer

        import pyrnnx.cli.commands  # noqa: F401  # puts them into the application
        from pyrnnx.cli.app import Call, app

    words = [one for one in arguments if one != "--debug"]
    try:
        with streams.captured() as texts, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            answer = typer.main.get_command(app).main(words or ["--help"], "pyrnnx", standalone_mode=False)
    except SystemExit as ended:  # completion, which takes no words
        return streams.written(texts[0]) or (Status.REJECTED if ended.code else Status.SUCCESS)
    except typer.Abort:
        raise KeyboardInterrupt from None
    if isinstance(answer, Call):
        return answer
    if answer == Status.INTERRUPTED:  # Typer's answer to Ctrl-C, in some versions and places
        raise KeyboardInterrupt
    status = Status.SUCCESS if words and not answer else Status.REJECTED  # no command is none that ran
    return streams.written(texts[0]) or status


def _told(error: Exception) -> str:
    """An error in one line."""
    usage = getattr(error, "format_message", None)  # an error of Typer, or of the click below it
    if callable(usage):
        text = shortened(" ".join(usage().split()))
        return f"{text.removesuffix('.')}; expected one of {', '.join(_commands())}" if _is_no_command(text) else text
    if isinstance(error, PyrnnxError):
        return str(error)
    if isinstance(error, ImportError):
        needed = (error.name or "").partition(".")[0] in _NEEDED
        return f'the command needs the package {error.name}; install "pyrnnx[cli]"' if needed else str(error)
    if isinstance(error, OSError):
        return f"{shown(error.filename)}: {error.strerror}" if error.filename is not None else str(error)
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    return f"an error in pyrnnx itself ({type(error).__name__}: {error}); --debug shows where"


def _is_no_command(text: str) -> bool:
    return text.startswith("No such command") and "Did you mean" not in text


def _commands() -> list[str]:
    from pyrnnx.cli.app import app

    return sorted(str(one.name) for one in app.registered_commands)
