"""`pyrnnx inspect --html`: a page of its own, with a drawing of the layers."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import onnx
from command import pyrnnx
from rows import each_row
from two_layers import two_layers

EXAMPLES = Path(__file__).parents[2] / "examples"
SVG = "{http://www.w3.org/2000/svg}"

# The file, and lines of text in its drawing.
PAGES: dict[str, tuple[str, list[str]]] = {
    "ONNX": (
        "small_rnn.onnx",
        [
            "small_rnn",
            "RNN",
            "4 → 8",
            "h: 8 per row, from step to step",
            "X",
            "[seq_length, batch_size, 4] · model input",
            "sequence_lens",
            "Y_h",
            "[2, batch_size, 8] · model output",
        ],
    ),
    "IR": (
        "small_model.xml",
        [
            "X: small_rnn/transposed",
            "[batch_size, seq_length, 4] · from Transpose",
            "sequence_lengths: sequence_lens",
            "[batch_size] · model input",
            "Ho: small_rnn.1",
            "[batch_size, 2, 8] · to Transpose",
        ],
    ),
    "layer": ("small_rnn.xml", ["RNNSequence-5", "sequence_lengths", "[batch_size]", "H", "Ho", "[batch_size, 2, 8]"]),
}


def drawn(page: str) -> list[str]:
    """Return the lines of text of the drawing, which must be well formed."""
    (svg,) = re.findall("<svg.*</svg>", page, re.DOTALL)
    root = ElementTree.fromstring(svg)
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


@each_row(("name", "lines"), PAGES.values(), ids=PAGES)
def test_drawing(name: str, lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    done = pyrnnx("inspect", str(EXAMPLES / name), "--html", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    page = path.read_text(encoding="utf-8")
    assert [line for line in lines if line not in drawn(page)] == []
    table = page.partition("<pre>")[2]
    assert [line for line in done.stdout.splitlines() if line.strip(" ─") and line.split()[0] not in table] == []
    assert re.findall(r"https?://[^\"]*|src=|href=|@import|<script", page) == ["http://www.w3.org/2000/svg"]


def test_names_are_escaped_and_long_ones_shortened(tmp_path: Path) -> None:
    model = two_layers("LSTM")
    long = "<b>&amp;\x1b" + "n" * 200
    next(node for node in model.graph.node if node.op_type == "LSTM").name = long
    onnx.save(model, tmp_path / "m.onnx")
    assert pyrnnx("inspect", str(tmp_path / "m.onnx"), "--html", str(tmp_path / "m.html")).returncode == 0
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "\x1b" not in page
    lines = drawn(page)
    assert any(line.startswith("<b>") and "…" in line for line in lines)
    assert lines.count("LSTM") == 2
    assert any(re.fullmatch(r"\[.*\] · from .+", line) for line in lines)


def test_no_layers(tmp_path: Path) -> None:
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "none", [x], [y])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    assert pyrnnx("inspect", str(tmp_path / "m.onnx"), "--html", str(tmp_path / "m.html")).returncode == 0
    assert "<svg" not in (tmp_path / "m.html").read_text(encoding="utf-8")
