"""`pyrnnx inspect`: what a model is made of, who runs it, and what is unusual about its recurrent layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import MODEL_FILE, Json, model_suffixes
from pyrnnx.cli.result import Result

if TYPE_CHECKING:
    from rich.console import RenderableType


@command("inspect", "pyrnnx inspect model.onnx", "pyrnnx inspect model.xml --json")
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.", autocompletion=model_suffixes)],
    as_json: Json = False,
) -> Result:
    """Show inputs, outputs, recurrent layers, and who runs what of a model, and why."""
    import warnings

    from pyrnnx.cli.facts import NO_WEIGHTS, layer_facts, model_facts
    from pyrnnx.errors import SlowRuntimeWarning
    from pyrnnx.load import load
    from pyrnnx.model import Model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowRuntimeWarning)  # the plan says it
        read = load(model)
        if not isinstance(read, Model):
            facts: dict[str, Any] = {"layer": layer_facts(read.name, read), "ports": _ports(read)}
            facts["layer"]["unusual"].remove(NO_WEIGHTS)  # as of all that stand alone
            return Result(facts, _shown_layer(read.label, facts))
        facts = model_facts(read)
    return Result(facts, _shown_model(facts))


def _ports(layer: Any) -> dict[str, list[dict[str, Any]]]:
    """Of a single layer of an .xml file."""
    return {
        side: [{"name": port.name, "dtype": port.dtype, "shape": list(port.shape)} for port in getattr(layer, side)]
        for side in ("inputs", "outputs")
    }


def _shown_layer(label: str, facts: dict[str, Any]) -> list[RenderableType]:
    from pyrnnx.cli import tables

    shown: list[RenderableType] = [tables.heading("Layer", label), *_layer([], facts["layer"])]
    for side, ports in facts["ports"].items():
        shown += [tables.heading(side.capitalize()), _tensors(ports)]
    return shown


def _shown_model(facts: dict[str, Any]) -> list[RenderableType]:
    from pyrnnx.cli import tables

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
        rows = [(_runner(one["runner"]), one["what"], one["why"]) for one in facts["plan"]]
        has_why = any(one["why"] for one in facts["plan"])
        columns = ("Runs on", "What", "Why")[: 3 if has_why else 2]
        shown += [tables.heading("Plan"), tables.table(columns, [row[: len(columns)] for row in rows])]
    if facts["cannot_run"]:
        shown += [tables.heading("It cannot run"), tables.pairs([("why", tables.text(facts["cannot_run"], "red"))])]
    return shown


def _tensors(facts: list[dict[str, Any]]) -> RenderableType:
    from pyrnnx.cli import tables

    def name(one: dict[str, Any]) -> str:
        return f"{one['name']}{' (optional)' if one.get('optional') else ''}"

    rows = [(name(one), one["dtype"] or "any", tables.shape(one["shape"])) for one in facts]
    return tables.table(("Name", "Type", "Shape"), rows)


def _alike(layers: list[dict[str, Any]]) -> list[tuple[list[str], dict[str, Any]]]:
    """Layers that differ in their names alone are shown together."""
    found: list[tuple[list[str], dict[str, Any]]] = []
    for one in layers:
        same = next((names for names, other in found if {**other, "name": one["name"]} == one), None)
        if same is None:
            found.append(([one["name"]], one))
        else:
            same.append(one["name"])
    return found


def _layer(names: list[str], one: dict[str, Any]) -> list[RenderableType]:
    from pyrnnx.cli import tables

    directions = [", ".join(each) for each in one["activations"]]
    constants = ", ".join(f"{name} {tables.shape(sizes)}" for name, sizes in one["constants"].items())
    mflop = one["mflop_per_step"]
    rows = [
        ("operator", f"{one['operator']}, {one['convention']}"),
        ("direction", one["direction"]),
        ("input, hidden size", f"{tables.count(one['input_size'])}, {tables.count(one['hidden_size'])}"),
        ("activations", "; ".join(dict.fromkeys(directions))),
        ("type", one["dtype"] or "any"),
        ("parameters", None if one["parameters"] is None else tables.count(one["parameters"])),
        ("work", None if mflop is None else f"{mflop:.3g} MFLOP a time step and row"),
        ("inputs beside X", ", ".join(name for name in one["inputs"] if name != "X")),
        ("constants", constants),
        ("unusual", tables.text(", ".join(one["unusual"]), "yellow") if one["unusual"] else None),
    ]
    shown = tables.pairs([(name, value) for name, value in rows if value])
    return [*(tables.indented(tables.text(name, "bold green")) for name in names), shown]


def _runner(name: str) -> RenderableType:
    from rich.text import Text

    styles = {"pyrnnx": "green", "reference evaluator": "yellow"}
    return Text(name, styles.get(name.strip(), ""))
