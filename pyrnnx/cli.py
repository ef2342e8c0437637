"""The command `pyrnnx`: models or layers of two files, compared."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from pyrnnx._version import __version__
from pyrnnx.compare import compare
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
            text = str(compare(options.a, options.b, seed=options.seed))
        for warning in caught:
            _complain(f"warning: {warning.message}")
        _write(f"{text}\n", sys.stdout)
    except PyrnnxError as error:
        _complain(str(error))
        return REJECTED
    except MemoryError:
        _complain(f"{options.a} and {options.b} need more memory than there is")
        return REJECTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        _discard(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return CLOSED_PIPE
        _complain(f"the result cannot be written ({error})")
        return NOT_WRITTEN
    return 0


def _complain(message: str) -> None:
    _write(f"pyrnnx: {printable(message)}\n", sys.stderr)


def _write(text: str, stream: TextIO | None) -> None:
    """To a stream, which is None where it was closed, with what its encoding lacks as escapes."""
    if stream is not None:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


def _discard(stream: TextIO | None) -> None:
    """Let what is left in a stream that cannot be written go nowhere: Python writes it once more when it ends."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
