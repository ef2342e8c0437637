"""Page of `pyrnnx inspect --html`: the recurrent layers as boxes between their inputs and outputs, and the tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from pyrnnx.cli.output import console
from pyrnnx.errors import printable
from pyrnnx.layers.facts import Facts
from pyrnnx.models.model import LayerValue
from pyrnnx.operator.conventions import AXIS_NAMES, CALL_ARGUMENTS, OUTPUTS

if TYPE_CHECKING:
    from rich.console import RenderableType

COLUMNS = 110  # of the tables
_TEMPLATE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root{{color-scheme:light dark}}
body{{margin:0 auto;max-width:1000px;padding:16px;font:15px system-ui,sans-serif}}
h1{{font-size:20px;overflow-wrap:anywhere}}pre{{font:12.5px ui-monospace,monospace;line-height:1.35;overflow-x:auto}}
section{{display:grid;grid-template-columns:2fr auto 1fr auto 2fr;gap:8px;align-items:center;margin:24px 0}}
p{{margin:4px 0;padding:6px 10px;border:1px solid #8b949e;border-radius:8px;overflow-wrap:anywhere}}
p.layer{{border-width:2px;text-align:center}}small{{opacity:.75}}
</style></head>
<body><h1>{title}</h1>
{layers}<pre>{tables}</pre></body></html>
"""


def page(
    title: str,
    layers: Iterable[tuple[Any, Facts, Mapping[str, LayerValue]]],
    shown: Iterable[RenderableType],
) -> str:
    """Return a page of HTML that loads nothing from elsewhere.

    `layers` are layers with their facts and values, `shown` are the tables of the command.
    """
    out = console(width=COLUMNS, color_system=None)
    with out.capture() as captured:
        out.print(*shown, sep="\n")
    tables = "\n".join(_text(line.rstrip()) for line in captured.get().splitlines())
    return _TEMPLATE.format(title=_text(title), layers="".join(_layer(*parts) for parts in layers), tables=tables)


def _layer(layer: Any, facts: Facts, values: Mapping[str, LayerValue]) -> str:
    read = {*values, *facts["constants"], *facts["inputs"]}
    inputs = [name for name in CALL_ARGUMENTS if {name, layer.convention.name_of(name)} & read]
    written: Collection[str] = values or getattr(layer, "output_names", OUTPUTS)
    outputs = [name for name in OUTPUTS if name in written]
    sizes = " → ".join("?" if facts[size] is None else str(facts[size]) for size in ("input_size", "hidden_size"))
    box = _box(facts["operator"], facts["name"], sizes, facts["direction"] or "", facts["dtype"] or "", css="layer")
    left, right = ("".join(_value(name, layer, facts, values) for name in names) for names in (inputs, outputs))
    return f"<section><div>{left}</div>→{box}→<div>{right}</div></section>\n"


def _value(argument: str, layer: Any, facts: Facts, values: Mapping[str, LayerValue]) -> str:
    sizes = {"I": facts["input_size"], "H": facts["hidden_size"]}
    sizes["D"] = {None: None, "bidirectional": 2}.get(facts["direction"], 1)
    value = values.get(argument)
    axes = layer.convention.axes_of(argument) if value is None else value.axes
    shape = ", ".join(str(sizes.get(axis) or AXIS_NAMES[axis]) for axis in axes)
    names = () if value is None else value.names
    note = "constant" if argument in facts["constants"] else ", ".join(names)
    return _box(layer.convention.name_of(argument), f"[{shape}]", note)


def _box(title: str, *notes: str, css: str = "value") -> str:
    lines = "".join(f"<br><small>{_text(note)}</small>" for note in notes if note)
    return f'<p class="{css}"><b>{_text(title)}</b>{lines}</p>'


def _text(value: str) -> str:
    return escape(printable(value))
