"""Page of `pyrnnx inspect --html`: a drawing of the recurrent layers, and the tables of the command below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyrnnx._internal import html
from pyrnnx._internal.facts import Facts
from pyrnnx.cli.output import console
from pyrnnx.models.model import LayerValue
from pyrnnx.operator.conventions import AXIS_NAMES, CALL_ARGUMENTS, OUTPUTS

if TYPE_CHECKING:
    from rich.console import RenderableType

COLUMNS = 110  # of the tables
WIDTH, ROW, TOP = 960, 46, 74  # of the drawing; height of a value; height of a layer's name and states
BOX, VALUE = (350, 260), 300  # left side and width of a layer; width of a value
MOST = 34  # characters of a name; a page shows the rest when the pointer rests on it
_STYLE = """
:root{color-scheme:light dark;
--text:#1b1f24;--dim:#57606a;--line:#6e7781;--layer:#ddf4e4;--port:#def;--page:#fff}
@media (prefers-color-scheme:dark){
:root{--text:#e6edf3;--dim:#9da7b1;--line:#8b949e;--layer:#17402b;--port:#15304d;--page:#0d1117}}
body{margin:0 auto;max-width:1000px;padding:16px;background:var(--page);color:var(--text);
font:15px system-ui,sans-serif}
h1{font-size:20px;overflow-wrap:anywhere}div{overflow-x:auto}svg{display:block;width:100%;min-width:900px}
pre{font:12.5px ui-monospace,monospace;line-height:1.35}
.layer{fill:var(--layer);stroke:var(--line);stroke-width:1.5}
.value{fill:none;stroke:var(--line)}.port{fill:var(--port);stroke:var(--line)}
path{fill:none;stroke:var(--line);stroke-width:1.5}.state{stroke-dasharray:5 4}
text{fill:var(--text);font:13px system-ui,sans-serif}.title{font-weight:600}.small{font-size:11.5px;fill:var(--dim)}
.middle{text-anchor:middle}
"""


def page(
    title: str,
    facts: Facts,
    layers: Mapping[str, Any],
    values: Mapping[str, Mapping[str, LayerValue]],
    shown: Iterable[RenderableType],
) -> str:
    """Return a page of HTML that loads nothing from elsewhere.

    The facts have the keys of ``pyrnnx inspect --json``; values are {layer: {argument: value}}, and a layer inside a
    body has none. `shown` are the tables.
    """
    parts, y = [], 0
    for described in facts["layers"] if layers else ():
        part, height = _layer(facts, layers[described["name"]], described, values.get(described["name"], {}))
        parts.append(f'<g transform="translate(0 {y})">{part}</g>')
        y += height
    view = f'viewBox="-2 0 {WIDTH + 4} {y}" role="img" aria-label="recurrent layers with their inputs and outputs"'
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {view}>{"".join(parts)}</svg>' if parts else ""
    out = console(width=COLUMNS, color_system=None)
    with out.capture() as captured:
        out.print(*shown, sep="\n")
    text = "\n".join(html.text(line.rstrip()) for line in captured.get().splitlines())
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.text(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.text(title)}</h1>\n<div>{drawing}</div>\n<div><pre>{text}</pre></div></body></html>\n"
    )


def _layer(facts: Facts, layer: Any, described: Facts, own: Mapping[str, LayerValue]) -> tuple[str, int]:
    """Return the drawing of a layer with its values, and its height."""
    left, width = BOX
    right, middle = left + width, left + width / 2
    inputs = ["X", *(name for name in CALL_ARGUMENTS if name != "X" and _is_read(name, layer, described, own))]
    is_lstm = "LSTM" in described["operator"]
    computed: Any = own or getattr(layer, "output_names", OUTPUTS if is_lstm else OUTPUTS[:2])
    outputs = [name for name in OUTPUTS if name in computed]
    height = max(len(inputs), len(outputs), 2) * ROW
    sizes = " → ".join(
        "?" if described[size] is None else f"{described[size]:,}" for size in ("input_size", "hidden_size")
    )
    lines = [described["operator"], sizes, ", ".join(filter(None, (described["direction"], described["dtype"])))]
    if described["parameters"] is not None:
        lines.append(f"{described['parameters']:,} parameters")
    states = f"{'h, c' if is_lstm else 'h'}: {described['hidden_size'] or '?'} per row, from step to step"
    parts = [
        _text(0, 16, described["name"], "title", 110),
        f'<rect class="layer" x="{left}" y="{TOP}" width="{width}" height="{height}" rx="8"/>',
        f'<path class="state" d="M{right - 40} {TOP}v-18q0 -10 -10 -10H{left + 50}q-10 0 -10 10v16"/>',
        _text(middle, TOP - 34, states, "small middle"),
    ]
    first = TOP + height / 2 - 9 * (len(lines) - 1) + 4
    for i, line in enumerate(lines):
        parts.append(_text(middle, first + 18 * i, line, "small middle" if i else "title middle"))
    for side, names, x in (("input", inputs, 0), ("output", outputs, right + 50)):
        ports = {port["name"] for port in facts.get(f"{side}s", ())}
        for i, name in enumerate(names):
            y = TOP + (height - len(names) * ROW) / 2 + i * ROW
            parts.append(_value(x, y, side, *_words(name, side, ports, layer, described, own.get(name))))
    return "".join(parts), TOP + height + 30


def _is_read(name: str, layer: Any, described: Facts, own: Mapping[str, LayerValue]) -> bool:
    return name in own or name in described["constants"] or layer.convention.name_of(name) in described["inputs"]


def _words(
    argument: str, side: str, ports: set[str], layer: Any, described: Facts, value: LayerValue | None
) -> tuple[str, str, bool]:
    """Return the name of a value, its shape with its neighbours, and whether it is an input or output of the model."""
    names = () if value is None else value.names
    port = next((name for name in names if name in ports), "")
    if argument in described["constants"]:
        note = "constant"
    elif port:
        note = f"model {side}"
    elif value is not None and value.neighbours:
        note = f"{'from' if side == 'input' else 'to'} {', '.join(dict.fromkeys(value.neighbours))}"
    else:
        note = "not read" if side == "output" and value is not None else ""
    sizes = {"I": described["input_size"], "H": described["hidden_size"]}
    sizes["D"] = {None: None, "bidirectional": 2}.get(described["direction"], 1)
    axes = layer.convention.axes_of(argument) if value is None else value.axes
    shape = ", ".join(str(sizes.get(axis) or AXIS_NAMES[axis]) for axis in axes)
    own, name = layer.convention.name_of(argument), port or next(iter(names), "")
    title = own if name in ("", own) else f"{own}: {name}"
    return title, " · ".join(filter(None, (f"[{shape}]", note))), bool(port)


def _value(x: float, y: float, side: str, title: str, note: str, is_port: bool) -> str:
    """Return a value as a box with two lines, and its arrow."""
    middle = y + ROW / 2
    start, end = (x + VALUE, BOX[0] - 2) if side == "input" else (x - 50, x - 2)
    css = "port" if is_port else "value"
    return (
        f'<rect class="{css}" x="{x}" y="{y + 3}" width="{VALUE}" height="{ROW - 6}" rx="6"/>'
        f'<path d="M{start} {middle}H{end}m-7 -4l7 4l-7 4"/>'
        + _text(x + 10, y + 20, title, "", MOST)
        + _text(x + 10, y + 36, note, "small", 50)
    )


def _text(x: float, y: float, words: str, css: str, most: int = 60) -> str:
    """Return text; of a long one its start and end, and the whole of it as a tooltip."""
    title, shown = "", words
    if len(words) > most:
        title, shown = f"<title>{html.text(words)}</title>", f"{words[: most // 3]}…{words[most // 3 - most + 1 :]}"
    return f'<text class="{css}" x="{x:g}" y="{y:g}">{title}{html.text(shown)}</text>'
