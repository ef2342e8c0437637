"""Every broken IR, and every wrong call of a model, is a PyrnnxError that names the layer and the mistake."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from openvino_layers import GOOD, rejected
from openvino_nets import H, I, N, T, edges, layer, net, parameter, result
from rows import each_row

from pyrnnx import PyrnnxError, load
from pyrnnx.frontends.openvino import read_layer, read_model, read_net
from pyrnnx.frontends.openvino.ir.xml import LARGEST_FILE

XML, BIN = nets.lstm_net()
LSTM = "LSTMSequence 'lstm' (id 8)"


def edge(a: str, p: Any, b: str, q: Any) -> str:
    return f'<edge from-layer="{a}" from-port="{p}" to-layer="{b}" to-port="{q}"/>'


FILES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "an ONNX model": (b"\x08\x0a\x12\x06pyrnnx" + bytes(30), ("not well-formed XML",)),
    "a layer": ('<layer id="0"/>', ("<layer>", "expected <net>")),
    "no version": (XML.replace('version="11"', ""), ("no version", "10 or 11")),
    **{
        f"version {version!r}": (XML.replace('version="11"', f'version="{version}"'), (repr(version), "10 or 11"))
        for version in ("9", "", "11.0")
    },
    "no layers": ('<net name="a" version="11"><edges/></net>', ("no <layers>",)),
}  # fmt: skip


@each_row(("xml", "words"), FILES.values(), ids=FILES)
def test_bad_files(xml: Any, words: tuple[str, ...], tmp_path: Path) -> None:
    rejected(lambda: read_model(xml, BIN), "read_model", *words)
    if isinstance(xml, bytes) and xml:
        (tmp_path / "model.xml").write_bytes(xml)
        rejected(lambda: load(tmp_path / "model.xml"), "model.xml", "load: ", *words)


def test_paths(tmp_path: Path) -> None:
    rejected(lambda: read_model("absent.xml"), "read_model", "absent.xml", "cannot be read")
    path = tmp_path / "large.xml"
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
        file.write(b"<net>")
    rejected(lambda: load(path), f"it has {LARGEST_FILE + 1} bytes, more than the {LARGEST_FILE} allowed")


NO_FILES: dict[str, Callable[[Path], None]] = {
    "fifo": lambda path: os.mkfifo(path, 0o600),
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@each_row("how", NO_FILES.values(), ids=NO_FILES)
@each_row("suffix", [".xml", ".bin"])
def test_files_that_are_not_regular(suffix: str, how: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(XML)
    wrong = tmp_path / f"wrong{suffix}"
    try:
        how(wrong)
    except (AttributeError, OSError) as error:
        pytest.skip(f"there is none here ({error})")
    rejected(lambda: read_model(wrong) if suffix == ".xml" else read_model(path, wrong), f"wrong{suffix}' cannot be")


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    for text in (XML.replace('from-layer="8"', 'from-layer="88"'), "<net", "<net/>"):
        path.write_text(text)
        for read in list[Any]((load, read_model, read_net, lambda path: read_model(str(path)))):
            rejected(lambda read=read: read(path), str(path))  # type: ignore[misc]
    path.write_text(GOOD.replace('hidden_size="6"', ""))
    for reader in (load, read_layer):
        rejected(lambda reader=reader: reader(path), str(path), "hidden_size is missing")  # type: ignore[misc]


def test_a_product_of_nothing() -> None:
    """A model without layers says why there are none, for which it looks at the weights of products."""
    product = layer(5, "product", "MatMul", {"transpose_a": "false", "transpose_b": "false"})
    layers = [parameter(0, "x", "2,3", (2, 3)), product, result(1, "y", (2, 3))]
    assert list(read_model(net(layers, edges("0.0 1.0"))).layers) == []


CHANGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "layer without an id": ('id="7" name="relu"', 'name="relu"', ("ReLU 'relu' has no id",)),
    "layer without a type": (' type="ReLU"', "", ("layer without a type 'relu' (id 7)", "no type")),
    "id that stands twice": ('id="7" name="relu"', 'id="8" name="relu"',
        ("id 8 occurs twice", "ReLU 'relu' (id 8)", LSTM)),
    "Parameter with an input": ('<data shape="1..8,?,4" element_type="f32"/>',
        '<data shape="1..8,?,4" element_type="f32"/><input><port id="9"/></input>',
        ("Parameter 'X' (id 0): 1 input ports and 1 output ports", "0 inputs and 1 output")),
    "unknown element type of a Parameter": ('element_type="f32"/><output><port id="0" precision="FP32" names="X">',
        'element_type="f31"/><output><port id="0" precision="FP32" names="X">',
        ("Parameter 'X' (id 0)", "'f31' is unknown")),
    "port id twice": ('<port id="1" precision="FP32" names="x">', '<port id="x">', ("ReLU 'relu' (id 7)", "'x'")),
    "edge from a missing layer": (edge("0", 0, "7", 0), edge("77", 0, "7", 0), ("layer '77'", "does not exist")),
    "edge from a missing port": (edge("0", 0, "7", 0), edge("0", 1, "7", 0),
        ("Parameter 'X' (id 0)", "output port '1'", "has 0")),
    "edge to a missing port": (edge("0", 0, "7", 0), edge("0", 0, "7", 5),
        ("ReLU 'relu' (id 7)", "input port '5'", "has 0")),
    "edge from a layer without outputs": (edge("0", 0, "7", 0), edge("9", 0, "7", 0),
        ("Result 'Y/sink_port_0' (id 9)", "the layer has none")),
    "edge without a layer": (edge("0", 0, "7", 0), '<edge from-port="0" to-layer="7" to-port="0"/>',
        ("no from-layer",)),
    "two edges into one port": (edge("1", 0, "8", 1), edge("1", 0, "8", 1) + edge("2", 0, "8", 1),
        (LSTM, "two edges", "input port 1")),
    "input without an edge": (edge("1", 0, "8", 1), "", (LSTM, "no edge", "input port 1")),
    "layer that feeds itself": (edge("0", 0, "7", 0), edge("7", 1, "7", 0),
        ("cycle", "ReLU 'relu' (id 7) -> ReLU 'relu' (id 7)")),
    "cycle of two": (edge("0", 0, "7", 0), edge("8", 7, "7", 0), ("cycle", f"{LSTM} -> ReLU 'relu' (id 7) -> {LSTM}")),
}  # fmt: skip


@each_row(("old", "new", "words"), CHANGES.values(), ids=CHANGES)
def test_bad_nets(old: str, new: str, words: tuple[str, ...]) -> None:
    assert old in XML
    rejected(lambda: read_model(XML.replace(old, new, 1), BIN), *words)


def test_bad_calls() -> None:
    model, arrays = read_model(XML, BIN), nets.lstm_inputs()
    rejected(lambda: model(arrays, outputs=["nothing"]), "IR 'small'", "'nothing'", "Y, Ho, Co")
    rejected(lambda: model(arrays, outputs="Y"), "outputs is 'Y'", "sequence of names")
    rejected(lambda: model(*arrays.values(), 1), "IR 'small'", "5 arrays", "X, H, C, lengths")
    arrays["X"] = np.zeros((9, T, I), np.float32)
    rejected(lambda: model(arrays), "IR 'small'", "'X'", "(9, 5, 4)", "[1..8, ?, 4]")


NOT_RUN = {
    "Loop": ("opset5", "it has no <body>"),
    "AUGRUCell": ("ie_internal_opset", "attention"),
    "NoSuchThing": ("opset1", "not translated"),
    "GRUSequence": ("opset1", "expected opset5 or later"),
}


@each_row(("kind", "version", "words"), [(k, *v) for k, v in NOT_RUN.items()], ids=NOT_RUN)
def test_what_is_not_run_can_be_read(kind: str, version: str, words: str) -> None:
    """In place of the ReLU: the recurrent layer runs, a call names the culprit."""
    pytest.importorskip("onnx")
    text = re.sub(r'type="ReLU" version="\w+"', f'type="{kind}" version="{version}"', XML)
    model = read_model(text, BIN)
    arrays = nets.lstm_inputs()
    outputs = model.layers["lstm"](*arrays.values())
    assert outputs[0].shape == (N, 1, T, H)
    with pytest.raises(PyrnnxError, match=rf"{kind} 'relu' \(id 7\).*{words}"):
        model(arrays)
