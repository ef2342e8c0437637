"""The command `pyrnnx`: models or layers of two files, compared."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from pyrnnx._version import __version__
from pyrnnx.comparison import compare
from pyrnnx.errors import PyrnnxError, printable, shown

REJECTED, NOT_WRITTEN, INTERRUPTED, CLOSED_PIPE = 2, 1, 130, 141  # the last two: what a shell says of a signal's victim


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Its exit status: 0; 1 if the result cannot be written; 2 for an input that is rejected; 130 after an interrupt;
        141 if nobody reads the result any more. What is wrong stands in one line on standard error.
    """
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as caught:
            text, problem = _compared(options)
        for warning in caught:
            _complain(f"warning: {warning.message}")
        if problem:
            _complain(problem)
            return REJECTED
        return _written(f"{text}\n")
    except KeyboardInterrupt:
        return INTERRUPTED


def _compared(options: argparse.Namespace) -> tuple[str, str]:
    """The text of the comparison and "", or "" and why there is none."""
    try:
        return str(compare(options.a, options.b, seed=options.seed)), ""
    except PyrnnxError as error:
        return "", str(error)
    except MemoryError:
        return "", f"compare: {shown(options.a)} and {shown(options.b)} need more memory than there is"


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
    return parser


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shown(text)} is no integer") from None
