"""Plots of the figures in benchmarks/README.md as SVG, in the colours of the page that includes them.

`python docs/figures.py` writes the plot in README.md, `docs/static/speed.svg`.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import matplotlib as mpl
from tables import Row, read_tables

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import MultipleLocator

PEERS = ("pyrnnx", "ONNX Runtime", "OpenVINO", "PyTorch")
# Contrast of at least 3:1 with white and with black; the lines have different markers too.
COLOURS = dict(zip(PEERS, ("#d55e00", "#0072b2", "#9a6ad6", "#b8860b"), strict=True))
OTHERS = "#808080"  # the other libraries, if one is emphasized
MARKERS = dict(zip(PEERS, "os^D", strict=True))
TEXT, GRID = "#010203", "#040506"  # placeholders: `_inline` replaces them by the text colour of the page


def _panel(height: float = 3.4) -> tuple[Any, Any]:
    """Return a figure with one frame, as wide as the screen of a telephone."""
    figure, axes = plt.subplots(figsize=(4, height), layout="constrained")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_axisbelow(True)
    return figure, axes


def _bars(labels: Sequence[str], numbers: Sequence[str], label: str, height: float, colours: Sequence[str]) -> Any:
    values = [float(number) for number in numbers]
    figure, axes = _panel(height)
    axes.barh(labels[::-1], values[::-1], color=colours[::-1], height=0.7)
    for place, (value, number) in enumerate(zip(values[::-1], numbers[::-1], strict=True)):
        axes.text(value + max(values) * 0.02, place, number, va="center", fontsize=8)
    axes.set_xlim(0, max(values) * 1.15)
    axes.set_xlabel(label)
    axes.grid(axis="x")
    return figure


def ratio_bars(rows: Sequence[Row]) -> Any:
    """Plot the ratio for each shape; 1 is the fastest peer."""
    figure = _bars(
        [row["T,N,I,H"] for row in rows],
        [row["ratio"] for row in rows],
        "time of the fastest peer over that of pyrnnx",
        4.0,
        [COLOURS["pyrnnx"]] * len(rows),
    )
    figure.axes[0].axvline(1, color=TEXT, linewidth=1.2)
    return figure


def _size(row: Row) -> int:
    return int(row["T,N,I,H"].split(",")[3])


def time_by_size(rows: Sequence[Row]) -> Any:
    """Plot the time of one step against H for each library, with logarithmic axes."""
    figure, axes = _panel()
    for peer in PEERS:
        if points := [(_size(row), 1000 * float(row[f"{peer} ms"])) for row in rows if row[f"{peer} ms"]]:
            axes.plot(*zip(*points, strict=True), color=COLOURS[peer], marker=MARKERS[peer], markersize=5, label=peer)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([_size(row) for row in rows], [str(_size(row)) for row in rows])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_xlabel("H = hidden_size")
    axes.set_ylabel("µs for one step of one row")
    axes.grid()
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    return figure


def memory_bars(rows: Sequence[Row]) -> Any:
    """Plot the memory of one long call, without its result."""
    libraries = [row["library"] for row in rows]
    colours = [COLOURS["pyrnnx"] if library == "pyrnnx" else OTHERS for library in libraries]
    return _bars(libraries, [row["beyond Y MB"] for row in rows], "MB without Y", 2.0, colours)


def _by_cell(rows: Sequence[Row]) -> dict[str, list[Row]]:
    cells = dict.fromkeys(row["cell"] for row in rows)
    return {cell: [row for row in rows if row["cell"] == cell] for cell in cells}


def _numbers(rows: Sequence[Row], column: str) -> str:
    """Return the numbers of a plot as text for screen readers."""
    return "; ".join(f"{row.get('T,N,I,H') or row['library']}: {row[column]}" for row in rows)


def plots(recorded: Mapping[str, Sequence[Sequence[Row]]]) -> dict[str, dict[str, tuple[str, Any]]]:
    """Return {file name: {caption: (description, figure)}} for the recorded tables."""
    shapes, streaming, memory = (
        recorded[heading][0] for heading in ("Shapes, one thread", "Streaming, one thread", "Memory")
    )
    return {
        "ratios": {
            cell: (f"Ratio to the fastest peer by T,N,I,H. {_numbers(rows, 'ratio')}", ratio_bars(rows))
            for cell, rows in _by_cell(shapes).items()
        },
        "streaming": {
            cell: (
                f"Milliseconds of pyrnnx for one step by T,N,I,H: {_numbers(rows, 'pyrnnx ms')}. Of ONNX Runtime: "
                f"{_numbers(rows, 'ONNX Runtime ms')}",
                time_by_size(rows),
            )
            for cell, rows in _by_cell(streaming).items()
        },
        "memory": {"Memory without the result": (f"MB: {_numbers(memory, 'beyond Y MB')}", memory_bars(memory))},
    }


def _inline(figure: Any, prefix: str, words: str) -> str:
    """Return a figure as SVG for a page: in its colours, with unique ids and a description."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    plt.close(figure)
    text = file.getvalue()
    text = text[text.index("<svg") :].replace(TEXT, "currentColor").replace(GRID, "currentColor")
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\1{prefix}-", text)
    text = re.sub(r' (width|height)="[0-9.]+pt"', "", text, count=2)
    return text.replace("<svg", f'<svg role="img" aria-label={quoteattr(words)}', 1)


def speed_plot(recorded: Mapping[str, Sequence[Sequence[Row]]]) -> Any:
    """Return the plot in README.md: mean ratio to the fastest peer, by cell and number of threads."""
    figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained", facecolor="white")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="#dddddd")
    threads = {"one thread": ("#f0a773", 0.2), "two threads": (COLOURS["pyrnnx"], -0.2)}
    for label, (colour, offset) in threads.items():
        cells = _by_cell(recorded[f"Shapes, {label}"][0])
        means = [math.exp(sum(math.log(float(row["ratio"])) for row in rows) / len(rows)) for rows in cells.values()]
        places = [place + offset for place in range(len(cells))][::-1]
        axes.barh(places, means, 0.38, color=colour, label=f"pyrnnx, {label}")
        for place, mean in zip(places, means, strict=True):
            axes.text(mean + 0.03, place, f"{mean:.2f}", va="center", fontsize=9)
        axes.set_yticks(range(len(cells)), [cell.removesuffix(" lbr=0") for cell in cells][::-1])
    axes.axvline(1, color="#0072b2", linewidth=2, label="fastest of ONNX Runtime, OpenVINO, PyTorch")
    axes.set_xlim(0)
    axes.xaxis.set_major_locator(MultipleLocator(0.5))
    axes.set_xlabel("speed of one layer, geometric mean of 14 shapes each (higher is faster)")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure


STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pyrnnx",
    "font.size": 9,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), TEXT),
    "grid.color": GRID,
    "grid.alpha": 0.2,
}


def write(folder: Path, path: Path) -> None:
    """Write plots to .html files, which pages include."""
    recorded = read_tables(path)
    with mpl.rc_context(STYLE):
        for name, panels in plots(recorded).items():
            shown = [
                f"<figure><figcaption>{escape(caption)}</figcaption>\n{_inline(figure, f'{name}-{k}', words)}</figure>"
                for k, (caption, (words, figure)) in enumerate(panels.items())
            ]
            text = '<div class="drawings">\n' + "\n".join(shown) + "\n</div>\n"
            (folder / f"plot_{name}.html").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    ROOT = Path(__file__).parents[1]
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pyrnnx", "font.size": 9}):
        speed_plot(read_tables(ROOT / "benchmarks/README.md")).savefig(
            ROOT / "docs/static/speed.svg", metadata={"Date": None, "Creator": None}
        )
