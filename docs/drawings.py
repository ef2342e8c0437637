"""Drawings of the conventions as SVG from `pyrnnx.operator.conventions`: axes, gate orders, biases.

Pages include them inline, so that text has the colour of the page (light or dark) and can be selected. They are at most
340 units wide, for telephones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from pyrnnx.operator.conventions import (
    AXIS_NAMES,
    KERAS,
    KERAS_RESET_AFTER,
    ONNX_LAYOUTS,
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    OPENVINO_SEQUENCE_1,
    TORCH,
    TORCH_BATCH_FIRST,
    Convention,
    bias_blocks,
    weight_axes,
)
from pyrnnx.operator.op import CELLS, RecurrentOp

CONVENTIONS = (*ONNX_LAYOUTS, OPENVINO_SEQUENCE, OPENVINO_CELL)
# Palette of Okabe and Ito, for readers with colour blindness; every box has its letter too.
AXIS_COLOURS = {"T": "#0072b2", "N": "#e69f00", "D": "#cc79a7", "I": "#009e73", "H": "#d55e00"}
GATE_COLOURS = {"i": "#0072b2", "o": "#e69f00", "f": "#cc79a7", "c": "#009e73"}
GATE_COLOURS |= {"z": "#0072b2", "r": "#e69f00", "h": "#009e73"}
WIDTH, ROW, BOX, LABEL = 340, 30, 24, 110
FONT = "font-family='ui-sans-serif, system-ui, sans-serif' font-size='13'"


def _svg(height: float, title: str, parts: Iterable[str]) -> str:
    """Return a drawing with its description for screen readers."""
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:g}' role='img' "
        f"aria-label={quoteattr(title)} {FONT} fill='currentColor'>"
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, *, anchor: str = "start", style: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' {style}>{escape(text)}</text>"


def _box(x: float, y: float, width: float, text: str, colour: str, *, faint: bool = False, size: int = 13) -> str:
    """Return a block with a coloured frame and a light filling, readable in both themes."""
    opacity = 0.12 if faint else 0.35
    rectangle = (
        f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{BOX}' rx='3' fill='{colour}' "
        f"fill-opacity='{opacity}' stroke='{colour}' stroke-width='1.5'/>"
    )
    return rectangle + _text(x + width / 2, y + 17, text, anchor="middle", style=f"font-size='{size}'")


def axes_drawing(convention: Convention) -> str:
    """Draw the axes of the arguments and results of a call, outermost first."""
    parts, words = [], []
    arguments = ("X", "initial_h", "Y", "Y_h")
    for k, argument in enumerate(arguments):
        y, name = k * ROW + 4, convention.name_of(argument)
        axes = convention.axes_of(argument)
        if argument == "Y" and convention.axes["sequence_lens"] == "":
            parts.append(_text(0, y + 17, "no Y: a cell is one step", style="opacity='0.75'"))
            continue
        words.append(f"{name} is [{', '.join(axes)}]")
        parts.append(_text(0, y + 17, name))
        parts += [_box(LABEL + j * (BOX + 12), y, BOX + 6, axis, AXIS_COLOURS[axis]) for j, axis in enumerate(axes)]
    return _svg(len(arguments) * ROW + 4, f"{convention.name}: {'; '.join(words)}", parts)


def gates_drawing(cell: str, sides: Sequence[tuple[str, Convention]]) -> str:
    """Draw the blocks of rows of W and R in several conventions, with lines between equal gates."""
    count = len(CELLS[cell].gates)
    column, top = WIDTH / len(sides), 24
    width = min(column - 50, 110)
    parts, words = [], []
    for k, (name, convention) in enumerate(sides):
        x, order = k * column + (column - width) / 2, convention.gate_order(cell)
        words.append(f"{name}: {', '.join(order)}")
        parts.append(_text(x + width / 2, 14, name, anchor="middle", style="font-weight='600'"))
        for row, gate in enumerate(order):
            y = top + row * ROW
            parts.append(_box(x, y, width, gate, GATE_COLOURS[gate]))
            if k + 1 < len(sides):
                other = sides[k + 1][1].gate_order(cell).index(gate)
                x1, x2 = x + width + 3, x + column - 3
                y1, y2 = y + BOX / 2, top + other * ROW + BOX / 2
                parts.append(
                    f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{GATE_COLOURS[gate]}' "
                    "stroke-width='2'/>"
                )
    rows = "one block" if count == 1 else f"{count} blocks of hidden_size rows"
    return _svg(top + count * ROW, f"W and R of {cell}, {rows}. {'; '.join(words)}", parts)


def bias_drawing(op: RecurrentOp, sides: Sequence[tuple[str, Convention]]) -> str:
    """Draw the blocks of B in each convention."""
    parts, words = [], []
    longest = max(len(bias_blocks(op, convention)) for _, convention in sides)
    width = min((WIDTH - 2) / longest, 60)
    size = 13 if width > 45 else 11
    for k, (name, convention) in enumerate(sides):
        blocks, y = bias_blocks(op, convention), k * 54 + 20
        (*_, length) = weight_axes(op, convention)["B"]
        words.append(f"{name}: {', '.join(blocks)}")
        parts.append(_text(0, y - 7, f"{name}: {length}", style="font-weight='600'"))
        parts += [
            _box(1 + j * width, y, width - 3, block, GATE_COLOURS[block[-1]], faint=block.startswith("Rb"), size=size)
            for j, block in enumerate(blocks)
        ]
    return _svg(len(sides) * 54 - 6, f"Blocks of B of {op.cell}. {'; '.join(words)}", parts)


def peepholes_drawing(sides: Sequence[tuple[str, Convention]]) -> str:
    """Draw P of an LSTM, or "no P"."""
    parts, words = [], []
    for k, (name, convention) in enumerate(sides):
        y = k * 54 + 20
        parts.append(_text(0, y - 7, name, style="font-weight='600'"))
        words.append(f"{name}: {', '.join(convention.peepholes) or 'none'}")
        if not convention.peepholes:
            parts.append(_text(0, y + 17, "no P", style="opacity='0.75'"))
        parts += [
            _box(1 + j * 60, y, 57, f"P_{gate}", GATE_COLOURS[gate]) for j, gate in enumerate(convention.peepholes)
        ]
    return _svg(len(sides) * 54 - 6, f"Blocks of P of LSTM. {'; '.join(words)}", parts)


def legend() -> str:
    """Draw the meaning of the letters of axes."""
    parts = []
    for k, (axis, name) in enumerate(AXIS_NAMES.items()):
        x, y = (k % 2) * WIDTH / 2, (k // 2) * ROW + 2
        parts += [_box(x + 1, y, BOX + 6, axis, AXIS_COLOURS[axis]), _text(x + BOX + 16, y + 17, name)]
    rows = -(-len(AXIS_NAMES) // 2)
    return _svg(rows * ROW, "; ".join(f"{axis} is {name}" for axis, name in AXIS_NAMES.items()), parts)


def groups() -> dict[str, dict[str, str]]:
    """Return {file name without suffix: {caption: SVG}}; a page shows the drawings of a file in a row."""
    onnx, ir = ("ONNX", ONNX_LAYOUTS[0]), ("OpenVINO", OPENVINO_SEQUENCE)
    torch, keras = ("PyTorch", TORCH), ("Keras", KERAS)
    reset_after = RecurrentOp("GRU", 1, linear_before_reset=True)
    return {
        "axes_legend": {"Axes": legend()},
        "axes": {convention.name: axes_drawing(convention) for convention in CONVENTIONS},
        "axes_weights": {convention.name: axes_drawing(convention) for convention in (TORCH, TORCH_BATCH_FIRST, KERAS)},
        "gates": {cell: gates_drawing(cell, [onnx, ir]) for cell in CELLS},
        "gates_weights": {cell: gates_drawing(cell, [torch, onnx, keras]) for cell in ("LSTM", "GRU")},
        "bias": {
            **{name: bias_drawing(RecurrentOp(row.name, 1), [onnx, ir]) for name, row in CELLS.items()},
            "GRU with linear_before_reset": bias_drawing(reset_after, [onnx, ir]),
        },
        "bias_weights": {
            "LSTM": bias_drawing(RecurrentOp("LSTM", 1), [torch, keras]),
            "GRU with linear_before_reset": bias_drawing(
                reset_after, [torch, ("Keras, reset_after", KERAS_RESET_AFTER)]
            ),
        },
        "peepholes": {"LSTM": peepholes_drawing([onnx, ir, ("OpenVINO, version 1", OPENVINO_SEQUENCE_1)])},
    }


def write(folder: Path) -> None:
    """Write each group to an .html file, which a page includes."""
    for name, drawings in groups().items():
        figures = (
            f"<figure><figcaption>{escape(caption)}</figcaption>\n{drawing}</figure>\n"
            for caption, drawing in drawings.items()
        )
        text = f'<div class="drawings">\n{"".join(figures)}</div>\n'
        (folder / f"drawing_{name}.html").write_text(text, encoding="utf-8")
