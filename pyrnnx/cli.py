"""The command `pyrnnx`: models or layers of two files, compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyrnnx._version import __version__
from pyrnnx.compare import compare
from pyrnnx.errors import PyrnnxError
from pyrnnx.load import load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, or 2 for an input that is rejected."""
    options = _parser().parse_args(arguments)
    try:
        print(compare(load(options.a), load(options.b), seed=options.seed))
    except PyrnnxError as error:
        print(f"pyrnnx: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyrnnx", description="Recurrent operators of ONNX and OpenVINO on a CPU.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("compare", help="compare two models or layers: their conventions and their numbers")
    file = "an .onnx model, an OpenVINO .xml model, or an .xml file with one recurrent <layer>"
    command.add_argument("a", help=file)
    command.add_argument("b", help=f"{file}; a layer without weights takes the other's")
    command.add_argument("--seed", type=int, default=0, help="of the random inputs (default: 0)")
    return parser
