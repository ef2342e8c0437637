"""The command `pyrnnx convert`: a model, a layer or weights, from one format to another."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import RenderableType

from pyrnnx.cli import conversion, tables, verification
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Dims, Inputs, Json, integer, sizes
from pyrnnx.cli.arrays import given_inputs
from pyrnnx.cli.output import DIFFERENT, REJECTED, SUCCESS, Result, complain
from pyrnnx.errors import PyrnnxError, warn
from pyrnnx.models.model import Model

SOURCES = "An .onnx or OpenVINO .xml model; weights of PyTorch, .pt or .safetensors; a .keras model."


@command(
    "convert",
    "pyrnnx convert model.xml model.onnx",
    "pyrnnx convert weights.safetensors gru.xml --prefix encoder.gru.",
    "pyrnnx convert model.onnx lstm.onnx --layer /rnn/LSTM --optional-input sequence_lens",
    notes=(
        "If the format cannot express a node or layer, an error names it and nothing is written. Existing files are "
        "replaced only with --force. The result is read again, and its outputs are compared with those of SOURCE in "
        "several calls, on random inputs or those of --input.",
        "From weights or a .keras model, only one recurrent module or layer is written.",
        "Exit status: 0 if both compute the same, or with --no-verify; 1 if they do not, or if that is not decided, "
        "because an output is empty or constant in every call, or an integer input could not be varied; 2 for errors, "
        "also if the two cannot be compared. TARGET may have been written even then. If the two cannot be compared "
        "because TARGET has inputs for variables of an IR, that is only a warning.",
    ),
)
def convert(
    a: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCES)],
    b: Annotated[str, typer.Argument(metavar="TARGET", help="A name in .onnx, or in .xml: its weights go to .bin.")],
    layer: Annotated[
        str | None, typer.Option("--layer", metavar="NAME", help="One recurrent layer of SOURCE, with its weights.")
    ] = None,
    optional_inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--optional-input",
            metavar="NAME",
            help="For weights, or a layer as .onnx: an input besides X: sequence_lens, initial_h or initial_c; "
            "repeatable.",
        ),
    ] = None,
    opset: Annotated[
        int | None,
        typer.Option("--opset", metavar="NUMBER", parser=integer(1), help="For weights, or a layer, as .onnx."),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix", metavar="TEXT", help="For PyTorch: prefix of the module's names, such as encoder.lstm."
        ),
    ] = None,
    nonlinearity: Annotated[
        str | None,
        typer.Option("--nonlinearity", metavar="NAME", help="For an RNN of PyTorch: tanh (default) or relu."),
    ] = None,
    batch_first: Annotated[
        bool, typer.Option("--batch-first", help="For PyTorch: the first axis of X and Y is the batch.")
    ] = False,
    inputs: Inputs = None,
    dims: Dims = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not read and run the result.")] = False,
    as_json: Json = False,
) -> Result:
    """Write a model, a recurrent layer of one, or weights as ONNX or as OpenVINO IR."""
    options: dict[str, Any] = {
        "layer": layer,
        "optional-input": optional_inputs,
        "opset": opset,
        "prefix": prefix,
    }
    options |= {"nonlinearity": nonlinearity, "batch-first": batch_first, "input": inputs, "dim": dims}
    files = conversion.check_target(a, b, force=force)
    target, open_sizes = files[0], sizes("convert: --dim", dims)
    source = conversion.read_source(a, options)
    conversion.check_options(source, a, target, options)
    arrays = given_inputs("convert: --input", inputs, source.inputs) if isinstance(source, Model) else {}
    conversion.write_target(source, target, options)
    losses = conversion.losses(source, a, target, options)
    for text in losses:
        warn(f"convert: {text}")
    facts: dict[str, Any] = {
        "from": a,
        "what": source.label,
        "files": {str(file): file.stat().st_size for file in files},
        "warnings": losses,
        "verified": None,
    }
    status = SUCCESS
    if not no_verify:
        try:
            facts |= verification.verify(source, target, arrays, open_sizes)
            status = SUCCESS if facts["verified"] else DIFFERENT
        except PyrnnxError as error:
            problem = f"convert: {b!r} was written but not compared with the source ({error})"
            facts["not_verified"] = str(error)
            if getattr(source, "variables", ()):  # the target has inputs instead
                warn(problem)
            else:
                complain(problem)
                status = REJECTED
    return Result(facts, _shown(facts), status)


def _shown(facts: dict[str, Any]) -> list[RenderableType]:
    files = ((name, f"{size:,} bytes") for name, size in facts["files"].items())
    shown: list[RenderableType] = [tables.heading("Converted", facts["what"]), tables.pairs(files)]
    if facts["verified"] is None:
        return shown
    words = "not the same as the source" if facts["different"] else "the same as the source"
    if facts["not_decided"] and not facts["different"]:
        words = f"not decided whether the same as the source: {'; '.join(facts['not_decided'])}"
    rows = [(name, f"{value:.2g}") for name, value in facts["differences"].items()]
    inputs = ", ".join(
        f"{name} {tables.shape(array['shape'])}{' (random)' if array['random'] else ''}"
        for name, array in facts["checked"]["inputs"].items()
    )
    return [
        *shown,
        tables.heading("Read back and run", words),
        tables.pairs([("inputs", inputs or "none"), *tables.calls(facts["checked"]["calls"])]),
        tables.table(("Output", "Difference"), rows, right=(1,)),
    ]
