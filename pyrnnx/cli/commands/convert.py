"""`pyrnnx convert`: a model, a layer or weights, from one format to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Json, integer
from pyrnnx.cli.result import Result
from pyrnnx.cli.status import Status
from pyrnnx.errors import PyrnnxError, warn

if TYPE_CHECKING:
    from rich.console import RenderableType

SOURCES = "An .onnx or OpenVINO .xml model; weights of PyTorch, .pt or .safetensors; a .keras model."


@command(
    "convert",
    "pyrnnx convert model.xml model.onnx",
    "pyrnnx convert weights.safetensors gru.xml --prefix encoder.gru.",
    "pyrnnx convert model.onnx lstm.onnx --layer /rnn/LSTM --input sequence_lens",
    notes=(
        "What the format cannot express is an error that names the node or layer, and nothing is written then. Files "
        "that are there stay as they are, unless --force is given. What was written is read again and run beside A.",
        "Of weights, and of a .keras model, only recurrent layers are written: a warning names what is left out.",
        "Exit status: 0 if both compute the same, or --no-verify was given; 1 if they do not; 2 for errors, such as "
        "that both cannot be run side by side. B is there in the last two cases, too. One case of those is no error "
        "but a warning: an IR whose variables begin with values that it computes, for which B has inputs instead.",
    ),
)
def convert(
    a: Annotated[str, typer.Argument(metavar="A", help=SOURCES)],
    b: Annotated[str, typer.Argument(metavar="B", help="Ends in .onnx, or in .xml: its weights go to .bin.")],
    layer: Annotated[
        str | None, typer.Option("--layer", metavar="NAME", help="One recurrent layer of A, with its weights.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME",
            help="Of weights, or a layer as .onnx: what B asks for besides X: sequence_lens, initial_h, initial_c; "
            "may be given again.",
        ),
    ] = None,
    opset: Annotated[
        str | None, typer.Option("--opset", metavar="NUMBER", help="Of weights, or a layer, as .onnx.")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", metavar="TEXT", help="Of PyTorch: of the module's names, such as encoder.lstm."),
    ] = None,
    operator: Annotated[
        str | None,
        typer.Option("--operator", metavar="CELL", help="Of PyTorch: RNN, GRU or LSTM (default: as shapes say)."),
    ] = None,
    nonlinearity: Annotated[
        str | None, typer.Option("--nonlinearity", metavar="NAME", help="Of an RNN of PyTorch: tanh (default) or relu.")
    ] = None,
    batch_first: Annotated[
        bool, typer.Option("--batch-first", help="Of PyTorch: X and Y begin with the batch.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not read and run what was written.")] = False,
    as_json: Json = False,
) -> Result:
    """Write a model, a recurrent layer of one, or weights as ONNX or as OpenVINO IR."""
    from pyrnnx.cli import conversion
    from pyrnnx.cli.remarks import left_out, remarks
    from pyrnnx.stack import Stack

    options = conversion.Options(
        layer,
        prefix,
        operator,
        nonlinearity,
        batch_first,
        None if opset is None else integer("convert: --opset", opset),
        tuple(inputs or ()),
    )
    target = conversion.check_target(a, b, force=force)
    source = conversion.read_source(a, options)
    conversion.write_target(source, a, target, options)
    losses = conversion.losses(source, target, options)
    others: list[str] = []
    if isinstance(source, Stack):
        others = left_out(a, layer, source)
        losses = [*remarks(a, source, others, nonlinearity), *losses]
    for text in losses:
        warn(f"convert: {text}")
    files = [target, *([target.with_suffix(".bin")] if target.suffix == ".xml" else [])]
    facts: dict[str, Any] = {
        "from": a,
        "what": source.label,
        "files": {str(one): one.stat().st_size for one in files},
        "left_out": others,
        "warnings": losses,
        "verified": None,
    }
    if no_verify:
        return Result(facts, _shown(facts))
    try:
        found = conversion.verify(source, target)
    except PyrnnxError as error:
        problem = f"convert: {b!r} was written; both were not run side by side ({error})"
        facts["not_verified"] = str(error)
        if getattr(source, "variables", ()):  # what B asks for instead of them is not in A
            warn(problem)
            problem = ""
        return Result(facts, _shown(facts), problem=problem)
    facts |= {"verified": found.same, "differences": dict(found.differences)}
    return Result(facts, _shown(facts), status=Status.SUCCESS if found.same else Status.DIFFERENT)


def _shown(facts: dict[str, Any]) -> list[RenderableType]:
    from pyrnnx.cli import tables

    sizes = ((name, f"{tables.count(size)} bytes") for name, size in facts["files"].items())
    shown: list[RenderableType] = [tables.heading("Written", facts["what"]), tables.pairs(sizes)]
    if facts["verified"] is None:
        return shown
    of = "this part of the source" if facts["left_out"] else "the source"
    words = f"{'' if facts['verified'] else 'not '}the same as {of}"
    rows = [(name, f"{value:.2g}") for name, value in facts["differences"].items()]
    return [
        *shown,
        tables.heading("Read back and run", words),
        tables.table(("Output", "Difference"), rows, right=(1,)),
    ]
