"""Drawing of the recurrent layers of a model, with their states and the values around them, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple
from unicodedata import east_asian_width

from pyrnnx._internal import html
from pyrnnx._internal.facts import Facts
from pyrnnx.models.model import LayerValue
from pyrnnx.operator.conventions import AXIS_NAMES, CALL_ARGUMENTS, OUTPUTS

WIDTH, ROW = 960, 46  # of the drawing; height of a value
BOX = (350, 260)  # left side and width of a layer
TOP = 74  # above the values of a layer: its name and its states
MOST = 34  # columns of a name; a page shows the rest when the pointer rests on it
STYLE = """
.layer{fill:var(--layer);stroke:var(--line);stroke-width:1.5}
.value{fill:none;stroke:var(--line)}.port{fill:var(--port);stroke:var(--line)}
.arrow{fill:none;stroke:var(--line);stroke-width:1.5;marker-end:url(#head)}.state{stroke-dasharray:5 4}
text{fill:var(--text);font:13px system-ui,sans-serif}.title{font-weight:600}.small{font-size:11.5px;fill:var(--dim)}
.middle{text-anchor:middle}
"""


class Value(NamedTuple):
    """Value that a layer reads or computes: its argument, name in the model, and shape as text."""

    argument: str
    name: str
    shape: str
    note: str  # what it is besides the layer's: "model input", "from LAYER"; or empty
    is_port: bool  # an input or output of the model


def drawing(facts: Facts, layers: Mapping[str, Any], values: Mapping[str, Mapping[str, LayerValue]]) -> str:
    """Return an SVG of all layers of a model, one below the other in the order of the model.

    Parameters
    ----------
    facts : dict
        Those of the model, with the keys of ``pyrnnx inspect --json``.
    layers : mapping
        The layers by name.
    values : mapping
        {layer: {argument: value}}; a layer inside a body has none.
    """
    if not layers:
        return ""
    parts, y = [], 0
    for layer in facts["layers"]:
        name = layer["name"]
        sides = _sides(facts, layers[name], layer, values)
        part, height = _layer(layer, *sides)
        parts.append(f'<g transform="translate(0 {y})">{part}</g>')
        y += height
    head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    head += '<path d="M0 0L8 4L0 8z" fill="var(--line)"/></marker>'
    words = f"{len(layers)} recurrent layers with their inputs, states and outputs"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 0 {WIDTH + 4} {y}" role="img" aria-label="{words}">'
        f"<defs>{head}</defs>{''.join(parts)}</svg>"
    )


def _sides(
    facts: Facts, layer: Any, described: Facts, values: Mapping[str, Mapping[str, LayerValue]]
) -> tuple[list[Value], list[Value]]:
    """Return the values that a layer reads, and those that it computes."""
    own, convention = values.get(described["name"], {}), layer.convention
    inputs = ["X", *(name for name in CALL_ARGUMENTS if name != "X" and _is_read(name, own, described, convention))]
    all_outputs = OUTPUTS if "LSTM" in described["operator"] else OUTPUTS[:2]
    computed = [*own] if own else getattr(layer, "output_names", all_outputs)
    outputs = [name for name in OUTPUTS if name in computed]
    sides = []
    for names, side, others in ((inputs, "input", OUTPUTS), (outputs, "output", CALL_ARGUMENTS)):
        ports = {port["name"] for port in facts.get(f"{side}s", ())}
        linked = {
            value: ("from " if side == "input" else "to ") + other
            for other, arguments in values.items()
            for argument in others
            if other != described["name"]
            for value in (arguments[argument].names if argument in arguments else ())
        }
        sides.append([_value(name, own, described, convention, ports, linked, side) for name in names])
    return sides[0], sides[1]


def _is_read(name: str, own: Mapping[str, LayerValue], described: Facts, convention: Any) -> bool:
    return name in own or name in described["constants"] or convention.name_of(name) in described["inputs"]


def _value(
    argument: str,
    own: Mapping[str, LayerValue],
    described: Facts,
    convention: Any,
    ports: Iterable[str],
    linked: Mapping[str, str],
    side: str,
) -> Value:
    names = own[argument].names if argument in own else ()
    port = next((name for name in names if name in ports), "")
    name = port or (names[0] if names else "")
    neighbours = ", ".join(dict.fromkeys(own[argument].neighbours if argument in own else ()))
    note = next((linked[name] for name in names if name in linked), "")
    if not note and neighbours:
        note = f"{'from' if side == 'input' else 'to'} {neighbours}"
    elif not note and side == "output" and argument in own:
        note = "not read"
    if port:
        note = f"model {side}"
    if argument in described["constants"]:
        note = "constant"
    sizes = {"I": described["input_size"], "H": described["hidden_size"]}
    sizes["D"] = {None: None, "bidirectional": 2}.get(described["direction"], 1)
    letters = own[argument].axes if argument in own else convention.axes_of(argument)
    shape = ", ".join(str(sizes.get(axis) or AXIS_NAMES[axis]) for axis in letters)
    return Value(convention.name_of(argument), name, f"[{shape}]", note, bool(port))


def _layer(layer: Facts, inputs: Sequence[Value], outputs: Sequence[Value]) -> tuple[str, int]:
    """Return the drawing of a layer, and its height."""
    left, width = BOX
    right, rows = left + width, max(len(inputs), len(outputs), 2)
    height, middle = rows * ROW, left + width / 2
    box = f'<rect class="layer" x="{left}" y="{TOP}" width="{width}" height="{height}" rx="8"/>'
    sizes = " → ".join("?" if layer[size] is None else f"{layer[size]:,}" for size in ("input_size", "hidden_size"))
    lines = [layer["operator"], sizes, ", ".join(filter(None, (layer["direction"], layer["dtype"])))]
    if layer["parameters"] is not None:
        lines.append(f"{layer['parameters']:,} parameters")
    first = TOP + height / 2 - 9 * (len(lines) - 1) + 4
    words = [
        _text(middle, first + 18 * k, line, "title middle" if k == 0 else "small middle")
        for k, line in enumerate(lines)
    ]
    parts = [_text(0, 16, layer["name"], "title", most=110), box, *words, _states(layer, left, right)]
    for values, at, side in ((inputs, 0, "input"), (outputs, right + 50, "output")):
        start = TOP + (height - len(values) * ROW) / 2
        parts += [_drawn(value, at, start + k * ROW, side) for k, value in enumerate(values)]
    return "".join(parts), TOP + height + 30


def _states(layer: Facts, left: float, right: float) -> str:
    """Return the arc from a layer back to itself: the states that a step hands to the next one."""
    letters = "h, c" if "LSTM" in layer["operator"] else "h"
    arc = f"M{right - 40} {TOP}v-18q0 -10 -10 -10H{left + 50}q-10 0 -10 10v16"
    words = f"{letters}: {layer['hidden_size'] or '?'} per row, from step to step"
    return f'<path class="arrow state" d="{arc}"/>' + _text((left + right) / 2, TOP - 34, words, "small middle")


def _drawn(value: Value, x: float, y: float, side: str) -> str:
    """Return a value as a box with two lines, and its arrow."""
    width, (left, _), middle = 300, BOX, y + ROW / 2
    start, end = (x + width, left - 2) if side == "input" else (x - 50, x - 2)
    css = "port" if value.is_port else "value"
    rect = f'<rect class="{css}" x="{x}" y="{y + 3}" width="{width}" height="{ROW - 6}" rx="6"/>'
    name = f"{value.argument}: {value.name}" if value.name not in ("", value.argument) else value.argument
    second = " · ".join(filter(None, (value.shape, value.note)))
    arrow = f'<path class="arrow" d="M{start} {middle}H{end}"/>'
    lines = _text(x + 10, y + 20, name, "", most=MOST) + _text(x + 10, y + 36, second, "small", most=50)
    return rect + lines + arrow


def _text(x: float, y: float, words: str, css: str, most: int = 60) -> str:
    """Return text; of a long name its start and end, of small text its start, and the whole of it as a tooltip."""
    shown, is_small = words, "small" in css
    if _columns(words) > most:
        start = _start(words, most - 1 if is_small else most // 3)
        end = "" if is_small else _start(words[::-1], most - 1 - _columns(start))[::-1]
        shown = f"{start}…{end}"
    title = "" if shown == words else f"<title>{html.text(words)}</title>"
    return f'<text class="{css}" x="{x:g}" y="{y:g}">{title}{html.text(shown)}</text>'


def _start(words: str, most: float) -> str:
    """Return the first characters, at most so many columns."""
    columns = accumulate(map(_width, words))
    return words[: sum(column <= most for column in columns)]


def _columns(words: str) -> float:
    """Return the width of a text in columns, each as wide as a digit."""
    return sum(map(_width, words))


def _width(character: str) -> float:
    if character in "MW@%mw" or east_asian_width(character) in "WF":
        return 2
    return 1.25 if character.isupper() else 1
