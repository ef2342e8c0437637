"""Drawing of the architecture page: the rooms of the package and their imports, from the sources."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pyrnnx

# Floors from top to bottom: {room: horizontal position}. Import contracts enforce this order.
FLOORS: tuple[Mapping[str, int], ...] = (
    {"cli": 320},
    {"bench": 240},
    {"testing": 170},
    {"comparison": 110, "scoring": 430},
    {"load": 320, "onnxruntime": 540},
    {"frontends.torch": 110, "frontends.openvino": 290, "frontends.keras": 540},
    {"frontends.onnx": 400},
    {"models": 320},
    {"stacks": 250},
    {"layers": 320},
    {"operator": 320},
    {"_kernels": 320, "reference": 110},
)
WIDTH, FLOOR, BOX, ROOM = 640, 62, 30, 150
FONT = "font-family='ui-sans-serif, system-ui, sans-serif' font-size='13'"


def imports() -> Mapping[str, set[str]]:
    """Return {room: rooms that its modules import}, late imports included."""
    rooms = {room for floor in FLOORS for room in floor}
    result: dict[str, set[str]] = defaultdict(set)
    folders = {Path(pyrnnx.__file__).parent: "", Path(pyrnnx.frontends.__path__[0]): "frontends."}
    for folder, prefix in folders.items():  # an editable install has the front-ends elsewhere
        for path in folder.rglob("*.py"):
            source = _room(prefix + ".".join(path.relative_to(folder).with_suffix("").parts), rooms)
            targets = {_room(name.removeprefix("pyrnnx."), rooms) for name in _imported(path)}
            if source:
                result[source] |= {target for target in targets if target not in (None, source)}
    return result


def _room(name: str, rooms: set[str]) -> str | None:
    return next((room for room in rooms if name == room or name.startswith(room + ".")), None)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pyrnnx"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("pyrnnx"))


def reduced(graph: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Return the arrows that no longer path implies, to keep the drawing readable."""

    def reached(room: str) -> set[str]:
        return {room}.union(*(reached(target) for target in graph.get(room, ())))

    return [
        (source, target)
        for source, targets in graph.items()
        for target in sorted(targets)
        if not any(target in reached(other) for other in targets - {target})
    ]


def drawing() -> str:
    """Return the drawing as SVG in the colours of the page."""
    places = {room: (x, FLOOR * level + BOX / 2 + 4) for level, floor in enumerate(FLOORS) for room, x in floor.items()}
    arrows = reduced(imports())
    parts = []
    for source, target in arrows:
        (x1, y1), (x2, y2) = places[source], places[target]
        bend = 0 if y2 - y1 <= FLOOR else (60 if x1 + x2 > WIDTH else -60)
        middle = f"{(x1 + x2) / 2 + bend:g},{(y1 + y2) / 2:g}"
        parts.append(
            f"<path d='M{x1:g},{y1 + BOX / 2:g} Q{middle} {x2:g},{y2 - BOX / 2 - 3:g}' fill='none' "
            "stroke='currentColor' stroke-opacity='0.5' marker-end='url(#rooms-arrow)'/>"
        )
    for room, (x, y) in places.items():
        frame = f"x='{x - ROOM / 2:g}' y='{y - BOX / 2:g}' width='{ROOM}' height='{BOX}' rx='4'"
        parts.append(
            f"<rect {frame} fill='var(--color-background-primary, white)'/>"  # covers arrows that pass the box
            f"<rect {frame} fill='#0072b2' fill-opacity='0.2' stroke='#0072b2'/>"
            f"<text x='{x:g}' y='{y + 4:g}' text-anchor='middle'>{escape(room)}</text>"
        )
    words = "; ".join(f"{source} imports {target}" for source, target in arrows)
    marker = (
        "<defs><marker id='rooms-arrow' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
        "orient='auto'><path d='M0,0 L8,4 L0,8 z' fill='currentColor'/></marker></defs>"
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {FLOOR * len(FLOORS) - 24}' role='img' "
        f"aria-label='{escape(words)}' {FONT} fill='currentColor'>{marker}{''.join(parts)}</svg>\n"
    )


def write(folder: Path) -> None:
    """Write the drawing for the architecture page."""
    (folder / "rooms.html").write_text(
        f'<div class="drawings">\n{re.sub(">(?=<)", ">" + chr(10), drawing())}</div>\n', "utf-8"
    )
