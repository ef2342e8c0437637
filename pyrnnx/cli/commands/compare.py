"""`pyrnnx compare`: two models or layers side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Json, Seed, integer
from pyrnnx.cli.result import Result


@command("compare", "pyrnnx compare model.onnx model.xml")
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=MODEL_FILE)],
    b: Annotated[str, typer.Argument(metavar="B", help="The same; a layer without weights takes the other's.")],
    seed: Seed = "0",
    as_json: Json = False,
) -> Result:
    """Compare two models or layers: their conventions and their numbers."""
    from pyrnnx import comparison
    from pyrnnx.errors import ArgumentError, shown

    number = integer("compare: --seed", seed)
    try:
        found = comparison.compare(a, b, seed=number)
    except MemoryError:
        raise ArgumentError(f"compare: {shown(a)} and {shown(b)} need more memory than there is") from None
    return Result(found.to_dict, plain=str(found))
