"""The command `pyrnnx`: recurrent layers of two files, compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pyrnnx._version import __version__
from pyrnnx.compare import AnyLayer, compare
from pyrnnx.errors import FormatError, PyrnnxError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, or 2 for an input that is rejected."""
    options = _parser().parse_args(arguments)
    try:
        print(compare(_read(options.a), _read(options.b), seed=options.seed))
    except PyrnnxError as error:
        print(f"pyrnnx: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyrnnx", description="Recurrent operators of ONNX and OpenVINO on a CPU.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("compare", help="compare two recurrent layers: their conventions and their numbers")
    layer = "an .onnx model with one recurrent node, or an .xml file with one recurrent <layer>"
    command.add_argument("a", help=layer)
    command.add_argument("b", help=f"{layer}; a layer without weights takes the other's")
    command.add_argument("--seed", type=int, default=0, help="of the random inputs (default: 0)")
    return parser


def _read(path: str) -> AnyLayer:
    # A front-end is imported only for a file of its format: the core does not need them.
    suffix = Path(path).suffix.lower()
    if suffix == ".onnx":
        from pyrnnx.frontends.onnx import read_node

        return read_node(path)
    if suffix == ".xml":
        from pyrnnx.frontends.openvino import read_layer

        return read_layer(Path(path))
    raise FormatError(f"{path}: the file name ends in {suffix!r}; expected .onnx or .xml")
