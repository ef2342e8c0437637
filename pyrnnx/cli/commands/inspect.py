"""The command `pyrnnx inspect`: inputs, outputs, plan and recurrent layers of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from pyrnnx._internal.writing import check_report, write_files
from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Json, ModelFile
from pyrnnx.cli.output import Result
from pyrnnx.errors import PyrnnxError
from pyrnnx.layers.facts import NO_WEIGHTS, Facts, layer_facts, rows
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.tensor_info import Interval, TensorInfo


@command(
    "inspect",
    "pyrnnx inspect model.onnx",
    "pyrnnx inspect model.xml --json",
    "pyrnnx inspect model.onnx --html model.html",
)
def inspect(
    model: ModelFile,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page with a drawing of the layers, and the same tables."),
    ] = None,
    as_json: Json = False,
) -> Result:
    """Show the inputs, outputs and recurrent layers of a model, and which engine runs each part, and why."""
    if html is not None:
        check_report("inspect: --html", html)
    read: Any = read_model_or_layer(model)
    facts, shown = _inspected(read)
    if html is not None:
        from pyrnnx.cli.page import page

        if isinstance(read, Model):
            values = layer_values(read) if facts["layers"] else {}
            layers = [(read.layers[layer["name"]], layer, values.get(layer["name"], {})) for layer in facts["layers"]]
        else:
            layers = [(read, facts["layer"], {})]
        write_files("inspect: --html", {Path(html): [page(read.label, layers, shown).encode()]})
    return Result(facts, shown)


def _inspected(read: Any) -> tuple[Facts, list[RenderableType]]:
    if isinstance(read, Model):
        facts = model_facts(read)
        return facts, _shown_model(facts)
    described = {"name": read.name, **layer_facts(read)}
    described["unusual"].remove(NO_WEIGHTS)  # no single layer has them
    ports = {
        side: [{"name": port.name, "dtype": port.dtype, "shape": list(port.shape)} for port in getattr(read, side)]
        for side in ("inputs", "outputs")
    }
    facts = {"layer": described, "ports": ports}
    return facts, _shown_layer(read.label, facts)


def model_facts(model: Any) -> Facts:
    proto = getattr(model, "proto", None)  # an IR has none
    try:
        values = layer_values(model)
        layers = [{"name": name, **layer_facts(layer, values.get(name, {}))} for name, layer in model.layers.items()]
        problem, why_none = "", model.layers.why_none
    except PyrnnxError as error:
        layers, problem, why_none = [], str(error), ""
    plan: list[Facts] = []
    try:
        plan = [{"runner": runner, "what": what, "why": why} for runner, what, why in model.plan.rows()]
    except PyrnnxError as error:
        problem = problem or str(error)
    return {
        "model": model.label,
        "format": "OpenVINO IR" if proto is None else "ONNX",
        "ir_version": int(model.net.version if proto is None else proto.ir_version),
        "opsets": {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import}
        if proto is not None
        else {},
        "inputs": [_tensor_facts(info) for info in model.inputs],
        "outputs": [_tensor_facts(info) for info in model.outputs],
        "variables": [_tensor_facts(info) for info in getattr(model, "variables", ())],
        "layers": layers,
        "why_no_layers": why_none,
        "plan": plan,
        "cannot_run": problem,
    }


def _tensor_facts(info: TensorInfo) -> Facts:
    """Return the facts of an input, output or variable; an open dimension is None, an interval a text "1..8"."""
    sizes = None if info.shape is None else [str(size) if isinstance(size, Interval) else size for size in info.shape]
    facts = {"name": info.name, "dtype": info.dtype, "shape": sizes}
    return {**facts, "aliases": list(info.aliases), "optional": info.optional}


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
        shown += [tables.pairs([("none", facts["why_no_layers"] or "the model has no recurrent layers")])]
    if facts["plan"]:
        used = 3 if any(part["why"] for part in facts["plan"]) else 2
        plan = [(part["runner"], part["what"], part["why"])[:used] for part in facts["plan"]]
        shown += [tables.heading("Plan"), tables.table(("Runs on", "What", "Why")[:used], plan)]
    if facts["cannot_run"]:
        shown += [tables.heading("It cannot run"), tables.pairs([("why", tables.text(facts["cannot_run"], "red"))])]
    return shown


def _tensors(facts: list[Facts]) -> RenderableType:
    names = [f"{tensor['name']}{' (optional)' if tensor.get('optional') else ''}" for tensor in facts]
    types = [tensor["dtype"] or "any" for tensor in facts]
    shapes = [tables.shape(tensor["shape"]) for tensor in facts]
    return tables.table(("Name", "Type", "Shape"), zip(names, types, shapes, strict=True))


def _alike(layers: list[Facts]) -> list[tuple[list[str], Facts]]:
    """Return groups of layers that differ only in their names: the names, and the facts of one layer."""
    groups: dict[str, tuple[list[str], Facts]] = {}
    for layer in layers:
        names, _ = groups.setdefault(repr({**layer, "name": ""}), ([], layer))
        names.append(layer["name"])
    return list(groups.values())


def _layer(names: list[str], layer: Facts) -> list[RenderableType]:
    shown = tables.pairs(
        (key, tables.text(value, "yellow") if key == "unusual" else value) for key, value in rows(layer)
    )
    return [*(tables.indented(name, "bold green") for name in names), shown]
