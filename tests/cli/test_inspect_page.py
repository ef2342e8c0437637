"""`pyrnnx inspect --html`: a page of its own, with a drawing of the layers and the tables of the command."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
from command import pyrnnx
from rows import each_row
from two_layers import two_layers

EXAMPLES = Path(__file__).parents[2] / "examples"
# The file, and parts of its drawing.
PAGES = {
    "ONNX": ("small_rnn.onnx", ["<b>RNN</b>", "4 → 8", "[seq_length, batch_size, 4]", "Y_h", "[2, batch_size, 8]"]),
    "IR": ("small_model.xml", ["<b>sequence_lengths</b>", "[batch_size, 2, 8]", "sequence_lens"]),
    "layer": ("small_rnn.xml", ["<b>RNNSequence-5</b>", "<b>Ho</b>", "[batch_size, 2, 8]"]),
}


@each_row(("name", "parts"), PAGES.values(), ids=PAGES)
def test_page(name: str, parts: list[str], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    done = pyrnnx("inspect", str(EXAMPLES / name), "--html", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    drawing, _, table = path.read_text(encoding="utf-8").partition("<pre>")
    assert [part for part in parts if part not in drawing] == []
    assert [line for line in done.stdout.splitlines() if line.strip(" ─") and line.split()[0] not in table] == []
    assert re.findall(r"https?://|src=|href=|@import|<script", drawing + table) == []


def test_names_are_escaped(tmp_path: Path) -> None:
    model = two_layers("LSTM")
    next(node for node in model.graph.node if node.op_type == "LSTM").name = "<b>&amp;\x1b{0}"
    onnx.save(model, tmp_path / "m.onnx")
    assert pyrnnx("inspect", str(tmp_path / "m.onnx"), "--html", str(tmp_path / "m.html")).returncode == 0
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;&amp;amp;" in page
    assert "\x1b" not in page
    assert page.count("<b>LSTM</b>") == 2
