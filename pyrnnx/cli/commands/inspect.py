"""The command `pyrnnx inspect`: inputs, outputs, plan and recurrent layers of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from pyrnnx._internal import facts
from pyrnnx._internal.facts import Facts
from pyrnnx._internal.writing import check_report, write_files
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Json, model_suffixes
from pyrnnx.cli.facts import model_facts
from pyrnnx.cli.result import Result
from pyrnnx.cli.targets import check_not_read
from pyrnnx.layers.facts import NO_WEIGHTS, layer_facts
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import LayerValue, Model, layer_values
from pyrnnx.operator.conventions import CALL_ARGUMENTS, OUTPUTS


@command(
    "inspect",
    "pyrnnx inspect model.onnx",
    "pyrnnx inspect model.xml --json",
    "pyrnnx inspect model.onnx --html model.html",
)
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page with a drawing of the layers, and the same tables."),
    ] = None,
    as_json: Json = False,
) -> Result:
    """Show the inputs, outputs and recurrent layers of a model, and which engine runs each part, and why."""
    if html is not None:
        check_report("inspect: --html", html)
        check_not_read("inspect: --html", html, [model])
    read = read_model_or_layer(model)
    if not isinstance(read, Model):
        facts: Facts = {"layer": {"name": read.name, **layer_facts(read)}, "ports": _ports(read)}
        facts["layer"]["unusual"].remove(NO_WEIGHTS)  # no single layer has them
        shown = _shown_layer(read.label, facts)
        if html is not None:
            _write(html, read.label, {"layers": [facts["layer"]]}, {read.name: read}, _values(read), shown)
        return Result(facts, shown)
    facts = model_facts(read)
    shown = _shown_model(facts)
    if html is not None:
        layers = dict(read.layers) if facts["layers"] else {}
        _write(html, read.label, facts, layers, layer_values(read) if layers else {}, shown)
    return Result(facts, shown)


def _write(
    path: str,
    label: str,
    facts: Facts,
    layers: Mapping[str, Any],
    values: Mapping[str, Mapping[str, LayerValue]],
    shown: Iterable[RenderableType],
) -> None:
    from pyrnnx.cli.drawing import drawing
    from pyrnnx.cli.page import page

    text = page(label, drawing(facts, layers, values), shown)
    write_files("inspect: --html", {Path(path): [text.encode()]})


def _ports(layer: Any) -> dict[str, list[Facts]]:
    """Return the facts about the inputs and outputs of a single layer of an .xml file."""
    return {
        side: [{"name": port.name, "dtype": port.dtype, "shape": list(port.shape)} for port in getattr(layer, side)]
        for side in ("inputs", "outputs")
    }


def _values(layer: Any) -> dict[str, dict[str, LayerValue]]:
    """Return the arguments and results of a single layer, as values of a model have them."""
    convention, names = layer.convention, {port.name for side in ("inputs", "outputs") for port in getattr(layer, side)}
    own = [name for name in (*CALL_ARGUMENTS, *OUTPUTS) if convention.name_of(name) in names]
    return {layer.name: {name: LayerValue(convention.axes_of(name), (convention.name_of(name),)) for name in own}}


def _shown_layer(label: str, facts: Facts) -> list[RenderableType]:
    shown: list[RenderableType] = [tables.heading("Layer", label), *_layer([], facts["layer"])]
    for side, ports in facts["ports"].items():
        shown += [tables.heading(side.capitalize()), _tensors(ports)]
    return shown


def _shown_model(facts: Facts) -> list[RenderableType]:
    opsets = ", ".join(f"{name} {version}" for name, version in facts["opsets"].items())
    version = f", opset {opsets}" if opsets else f", version {facts['ir_version']}"
    shown: list[RenderableType] = [
        tables.heading("Model", facts["model"]),
        tables.pairs([("format", f"{facts['format']}{version}")]),
    ]
    for side in ("inputs", "outputs", "variables"):
        if facts[side]:
            shown += [tables.heading(side.capitalize()), _tensors(facts[side])]
    shown += [tables.heading("Recurrent layers", str(len(facts["layers"])))]
    for names, layer in _alike(facts["layers"]):
        shown += _layer(names, layer)
    if not facts["layers"]:
        shown += [tables.pairs([("none", facts["why_no_layers"] or "no RNN, GRU or LSTM, nor a cell or sequence")])]
    if facts["plan"]:
        rows = [(_runner(part["runner"]), part["what"], part["why"]) for part in facts["plan"]]
        has_why = any(part["why"] for part in facts["plan"])
        columns = ("Runs on", "What", "Why")[: 3 if has_why else 2]
        shown += [tables.heading("Plan"), tables.table(columns, [row[: len(columns)] for row in rows])]
    if facts["cannot_run"]:
        shown += [tables.heading("It cannot run"), tables.pairs([("why", tables.text(facts["cannot_run"], "red"))])]
    return shown


def _tensors(facts: list[Facts]) -> RenderableType:
    def name(tensor: Facts) -> str:
        return f"{tensor['name']}{' (optional)' if tensor.get('optional') else ''}"

    rows = [(name(tensor), tensor["dtype"] or "any", tables.shape(tensor["shape"])) for tensor in facts]
    return tables.table(("Name", "Type", "Shape"), rows)


def _alike(layers: list[Facts]) -> list[tuple[list[str], Facts]]:
    """Return groups of layers that differ only in their names: the names, and the facts of one layer."""
    groups: list[tuple[list[str], Facts]] = []
    for layer in layers:
        same = next((names for names, other in groups if {**other, "name": layer["name"]} == layer), None)
        if same is None:
            groups.append(([layer["name"]], layer))
        else:
            same.append(layer["name"])
    return groups


def _layer(names: list[str], layer: Facts) -> list[RenderableType]:
    shown = tables.pairs(
        (key, tables.text(value, "yellow") if key == "unusual" else value) for key, value in facts.rows(layer)
    )
    return [*(tables.indented(tables.text(name, "bold green")) for name in names), shown]


def _runner(name: str) -> RenderableType:
    styles = {"pyrnnx": "green", "reference evaluator": "yellow"}
    return Text(name, styles.get(name.strip(), ""))
