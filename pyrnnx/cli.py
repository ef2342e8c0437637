"""The command `pyrnnx`: models or layers of two files compared, runtimes checked against the oracle."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from pyrnnx._version import __version__
from pyrnnx.comparison import compare
from pyrnnx.errors import PyrnnxError, printable, shown

REJECTED, NOT_WRITTEN, INTERRUPTED, CLOSED_PIPE = 2, 1, 130, 141  # the last two: what a shell says of a signal's victim
FAILED = 1  # of conformance: a runtime is wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Its exit status: 0; 1 if the result cannot be written, or if a runtime fails cases; 2 for an input that is
        rejected; 130 after an interrupt; 141 if nobody reads the result any more. What is wrong stands in one line on
        standard error.
    """
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as caught:
            text, problem, status = options.run(options)
        for warning in caught:
            _complain(f"warning: {warning.message}")
        if problem:
            if text:
                _written(f"{text}\n")
            _complain(problem)
            return REJECTED
        return _written(f"{text}\n") or status
    except KeyboardInterrupt:
        return INTERRUPTED


def _compared(options: argparse.Namespace) -> tuple[str, str, int]:
    """The text of the comparison and "", or "" and why there is none; and the exit status."""
    try:
        return str(compare(options.a, options.b, seed=options.seed)), "", 0
    except PyrnnxError as error:
        return "", str(error), REJECTED
    except MemoryError:
        message = f"compare: {shown(options.a)} and {shown(options.b)} need more memory than there is"
        return "", message, REJECTED


def _conformance(options: argparse.Namespace) -> tuple[str, str, int]:
    """The same of runtimes."""
    try:
        from pyrnnx.testing.conformance import command

        width = shutil.get_terminal_size().columns if _is_terminal(sys.stdout) else 80
        text, failed, problem = command.run(options, _show_progress, width)
    except PyrnnxError as error:
        return "", str(error), REJECTED
    except ImportError as error:
        return "", f"conformance: {error}; install pyrnnx[testing]", REJECTED
    finally:
        _show_progress("")
    return text, problem, FAILED if failed else 0


def _show_progress(text: str) -> None:
    """In one line of a terminal, over what was there."""
    if _is_terminal(sys.stderr):
        with suppress(OSError):
            _write(f"\r{printable(text)[: shutil.get_terminal_size().columns - 1]}\x1b[K", sys.stderr)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _written(text: str) -> int:
    """Write the result; the exit status."""
    try:
        _write(text, sys.stdout)
    except OSError as error:
        # Python writes what is left in the stream once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return CLOSED_PIPE
        _complain(f"the result cannot be written ({error})")
        return NOT_WRITTEN
    return 0


def _complain(message: str) -> None:
    with suppress(OSError):  # there is nobody left to tell
        _write(f"pyrnnx: {printable(message)}\n", sys.stderr)


def _write(text: str, stream: TextIO | None) -> None:
    """To a stream, which is None where it was closed, with what its encoding lacks as escapes."""
    if stream is not None:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyrnnx", description="Recurrent operators of ONNX and OpenVINO on a CPU.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("compare", help="compare two models or layers: their conventions and their numbers")
    file = "an .onnx model, an OpenVINO .xml model, or an .xml file with one recurrent <layer>"
    command.add_argument("a", help=file)
    command.add_argument("b", help=f"{file}; a layer without weights takes the other's")
    command.add_argument("--seed", type=_integer, default=0, help="of the random inputs (default: 0)")
    command.set_defaults(run=_compared)
    _add_conformance(commands)
    return parser


def _add_conformance(commands: Any) -> None:
    """Its options alone: `pyrnnx.testing` is imported by those who ask for it."""
    command = commands.add_parser(
        "conformance",
        help="check runtimes against the oracle, case by case",
        description="Run cases of the recurrent operators in runtimes, each in a process that may die or hang, and "
        "tell what each does right, wrong, or not at all.",
        epilog="Exit status: 0 if no runtime gave a wrong result, crashed or timed out; 1 if one did; 2 for options "
        "that mean nothing. A refusal is no failure.",
    )
    add = command.add_argument
    add(
        "runtimes", nargs="*", metavar="RUNTIME", help="pyrnnx, onnxruntime and so on (default: all that are installed)"
    )
    add("--cases", action="append", metavar="named|random:SEED:N", help="may be given again (default: named)")
    text = "a program as a runtime: it reads the models and inputs of {folder}, and writes the outputs there"
    add("--command", action="append", dest="own_command", metavar="COMMAND", help=text)
    text = "package.module:name, a function of a case and its arrays, as a runtime"
    add("--function", action="append", metavar="FUNCTION", help=text)
    add("--timeout", type=_seconds, metavar="SECONDS", help="for each case (default: 60)")
    add("--refused", action="store_true", help="tell refusals with the faults, and write them, too")
    for kind in ("json", "html", "markdown"):
        add(f"--{kind}", metavar="FILE", help=f"write the results as {kind.upper() if len(kind) < 5 else kind.title()}")
    text = "write each fault with its smallest case: an ONNX backend test or an IR, and a text for a bug report"
    add("--write", metavar="DIR", help=text)
    add("--date", action="store_true", help="note today's date in the results")
    command.set_defaults(run=_conformance)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{shown(text)} is no number of seconds above 0")
    return value


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shown(text)} is no integer") from None
