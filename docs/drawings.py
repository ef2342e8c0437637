"""Drawings of the conventions as SVG, made from `pyrnnx.conventions`: axes, gate orders, forms of the bias.

Pages have them inline, so that text takes the colour of the page (light or dark) and can be selected; each is at most
340 units wide and is read on a telephone, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from pyrnnx.conventions import (
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
from pyrnnx.op import CELLS, RecurrentOp

CONVENTIONS = (*ONNX_LAYOUTS, OPENVINO_SEQUENCE, OPENVINO_CELL)
# Of the palette of Okabe and Ito, told apart also by those who see fewer colours; the letter is always there, too.
AXIS_COLOURS = {"T": "#0072b2", "N": "#e69f00", "D": "#cc79a7", "I": "#009e73", "H": "#d55e00"}
GATE_COLOURS = {"i": "#0072b2", "o": "#e69f00", "f": "#cc79a7", "c": "#009e73"}
GATE_COLOURS |= {"z": "#0072b2", "r": "#e69f00", "h": "#009e73"}
WIDTH, ROW, BOX, LABEL = 340, 30, 24, 110
FONT = "font-family='ui-sans-serif, system-ui, sans-serif' font-size='13'"


def _svg(height: float, title: str, parts: Iterable[str]) -> str:
    """A drawing with its description for those who do not see it."""
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:g}' role='img' "
        f"aria-label={quoteattr(title)} {FONT} fill='currentColor'>"
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' {more}>{escape(text)}</text>"


def _box(x: float, y: float, width: float, text: str, colour: str, *, faint: bool = False, size: int = 13) -> str:
    """A block: its colour as a frame and a light filling, on which text of either theme is read."""
    opacity = 0.12 if faint else 0.35
    rectangle = (
        f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{BOX}' rx='3' fill='{colour}' "
        f"fill-opacity='{opacity}' stroke='{colour}' stroke-width='1.5'/>"
    )
    return rectangle + _text(x + width / 2, y + 17, text, anchor="middle", more=f"font-size='{size}'")


def axes_drawing(convention: Convention) -> str:
    """The axes of what a call takes and gives, outermost first."""
    parts, told = [], []
    arguments = ("X", "initial_h", "Y", "Y_h")
    for k, argument in enumerate(arguments):
        y, name = k * ROW + 4, convention.name_of(argument)
        axes = convention.axes_of(argument)
        if argument == "Y" and convention.axes["sequence_lens"] == "":
            parts.append(_text(0, y + 17, "no Y: a cell is one step", more="opacity='0.75'"))
            continue
        told.append(f"{name} is [{', '.join(axes)}]")
        parts.append(_text(0, y + 17, name))
        parts += [_box(LABEL + j * (BOX + 12), y, BOX + 6, axis, AXIS_COLOURS[axis]) for j, axis in enumerate(axes)]
    return _svg(len(arguments) * ROW + 4, f"{convention.name}: {'; '.join(told)}", parts)


def gates_drawing(cell: str, sides: Sequence[tuple[str, Convention]]) -> str:
    """The blocks of rows of W and R in several conventions, a line from each gate to itself."""
    count = len(CELLS[cell].gates)
    column, top = WIDTH / len(sides), 24
    width = min(column - 50, 110)
    parts, told = [], []
    for k, (name, convention) in enumerate(sides):
        x, order = k * column + (column - width) / 2, convention.gate_order(cell)
        told.append(f"{name}: {', '.join(order)}")
        parts.append(_text(x + width / 2, 14, name, anchor="middle", more="font-weight='600'"))
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
    return _svg(top + count * ROW, f"W and R of {cell}, {rows}. {'; '.join(told)}", parts)


def bias_drawing(op: RecurrentOp, sides: Sequence[tuple[str, Convention]]) -> str:
    """B as a row of blocks in each convention, as wide as it is long."""
    parts, told = [], []
    longest = max(len(bias_blocks(op, convention)) for _, convention in sides)
    width = min((WIDTH - 2) / longest, 60)
    size = 13 if width > 45 else 11
    for k, (name, convention) in enumerate(sides):
        blocks, y = bias_blocks(op, convention), k * 54 + 20
        (*_, length) = weight_axes(op, convention)["B"]
        told.append(f"{name}: {', '.join(blocks)}")
        parts.append(_text(0, y - 7, f"{name}: {length}", more="font-weight='600'"))
        parts += [
            _box(1 + j * width, y, width - 3, block, GATE_COLOURS[block[-1]], faint=block.startswith("Rb"), size=size)
            for j, block in enumerate(blocks)
        ]
    return _svg(len(sides) * 54 - 6, f"Blocks of B of {op.cell}. {'; '.join(told)}", parts)


def peepholes_drawing(sides: Sequence[tuple[str, Convention]]) -> str:
    """P of an LSTM, or that there is none."""
    parts, told = [], []
    for k, (name, convention) in enumerate(sides):
        y = k * 54 + 20
        parts.append(_text(0, y - 7, name, more="font-weight='600'"))
        told.append(f"{name}: {', '.join(convention.peepholes) or 'none'}")
        if not convention.peepholes:
            parts.append(_text(0, y + 17, "no P", more="opacity='0.75'"))
        parts += [_box(1 + j * 60, y, 57, f"P_{one}", GATE_COLOURS[one]) for j, one in enumerate(convention.peepholes)]
    return _svg(len(sides) * 54 - 6, f"Blocks of P of LSTM. {'; '.join(told)}", parts)


def legend() -> str:
    """What the letters of axes mean."""
    parts = []
    for k, (axis, name) in enumerate(AXIS_NAMES.items()):
        x, y = (k % 2) * WIDTH / 2, (k // 2) * ROW + 2
        parts += [_box(x + 1, y, BOX + 6, axis, AXIS_COLOURS[axis]), _text(x + BOX + 16, y + 17, name)]
    rows = -(-len(AXIS_NAMES) // 2)
    return _svg(rows * ROW, "; ".join(f"{axis} is {name}" for axis, name in AXIS_NAMES.items()), parts)


def groups() -> dict[str, dict[str, str]]:
    """{file name without its end: {caption: SVG}}: what stands side by side on a page."""
    onnx, ir = ("ONNX", ONNX_LAYOUTS[0]), ("OpenVINO", OPENVINO_SEQUENCE)
    torch, keras = ("PyTorch", TORCH), ("Keras", KERAS)
    reset_after = RecurrentOp("GRU", 1, linear_before_reset=True)
    return {
        "axes_legend": {"Axes": legend()},
        "axes": {one.name: axes_drawing(one) for one in CONVENTIONS},
        "axes_weights": {one.name: axes_drawing(one) for one in (TORCH, TORCH_BATCH_FIRST, KERAS)},
        "gates": {cell: gates_drawing(cell, [onnx, ir]) for cell in CELLS},
        "gates_weights": {cell: gates_drawing(cell, [torch, onnx, keras]) for cell in ("LSTM", "GRU")},
        "bias": {
            **{cell: bias_drawing(RecurrentOp(cell, 1), [onnx, ir]) for cell in CELLS},
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
    """Each group into an .html file, for a page to include."""
    for name, drawings in groups().items():
        figures = (
            f"<figure><figcaption>{escape(caption)}</figcaption>\n{drawing}</figure>\n"
            for caption, drawing in drawings.items()
        )
        text = f'<div class="drawings">\n{"".join(figures)}</div>\n'
        (folder / f"drawing_{name}.html").write_text(text, encoding="utf-8")
