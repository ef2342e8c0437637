"""Files that are not regular, too large, or change while a model is in use."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from openvino_layers import GOOD
from rows import each_row

from pyrnnx import FormatError, PyrnnxError, get_memory_limit, load, set_memory_limit
from pyrnnx.frontends.openvino import read_layer, read_model, read_net, to_onnx
from pyrnnx.frontends.openvino.ir.xml import LARGEST_FILE

XML, BIN = nets.lstm_net()


def save(folder: Path) -> Path:
    path = folder / "model.xml"
    path.write_text(XML)
    path.with_suffix(".bin").write_bytes(BIN)
    return path


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"<net version='11'>")
        file.truncate(100 * 2**30)


NO_FILES: dict[str, Callable[[Path], None]] = {
    "fifo": lambda path: os.mkfifo(path, 0o600),
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}
NO_XML = {**NO_FILES, "100 GB": sparse}


def make(how: Callable[[Path], None], path: Path) -> None:
    try:
        how(path)
    except (AttributeError, OSError) as error:
        pytest.skip(f"there is none here ({error})")


@each_row("how", NO_XML.values(), ids=NO_XML)
@each_row("read", [load, read_model, read_net, read_layer], ids=lambda one: one.__name__)
def test_xml_that_is_no_file(read: Callable[[Path], Any], how: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    make(how, path)
    start = time.monotonic()
    with pytest.raises(PyrnnxError, match=r"model\.xml' cannot be read"):
        read(path)
    assert time.monotonic() - start < 5  # not one that waits, or reads 100 GB


@each_row("how", NO_FILES.values(), ids=NO_FILES)
@each_row("given", [False, True], ids=["beside the xml", "as weights="])
def test_bin_that_is_no_file(how: Callable[[Path], None], given: bool, tmp_path: Path) -> None:
    path = save(tmp_path)
    path.with_suffix(".bin").unlink()
    make(how, path.with_suffix(".bin"))
    for weights in (path.with_suffix(".bin"), str(path.with_suffix(".bin"))) if given else (None,):
        with pytest.raises(PyrnnxError, match=r"model\.bin' cannot be read"):
            read_model(path, weights)


def test_xml_of_the_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
        file.write(b"<net>")
    with pytest.raises(PyrnnxError, match=rf"it has {LARGEST_FILE + 1} bytes, more than the {LARGEST_FILE} allowed"):
        load(path)


def test_errors_name_the_file(tmp_path: Path) -> None:
    """Whatever is wrong, and wherever."""
    path = tmp_path / "model.xml"
    readers: list[Callable[[Path], Any]] = [load, read_model, read_net, lambda path: read_model(str(path))]
    for text in (XML.replace("LSTMSequence", "LSTMSequenc").replace('to-port="8"', 'to-port="99"'), "<net", "<net/>"):
        path.write_text(text.replace('from-layer="8"', 'from-layer="88"'))
        for read in readers:
            with pytest.raises(PyrnnxError) as caught:
                read(path)
            assert str(path) in str(caught.value)
    path.write_text(GOOD.replace('hidden_size="6"', ""))
    for read in (load, read_layer):
        with pytest.raises(PyrnnxError, match=r"hidden_size is missing") as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_bin_that_is_cut_short_later(tmp_path: Path) -> None:
    path = save(tmp_path)
    model = read_model(path)
    (W,) = (model.weights.constant(layer) for layer in model.net.layers if layer.name == "W")
    path.with_suffix(".bin").write_bytes(BIN[: len(BIN) // 2])
    np.testing.assert_array_equal(W, nets.weights()["W"])
    words = rf"ends at byte {len(BIN) // 2}.*it had {len(BIN)} bytes when it was opened"
    with pytest.raises(FormatError, match=rf"Const 'R' \(id 5\): .*model\.bin' {words}"):
        model.weights.constant(next(layer for layer in model.net.layers if layer.name == "R"))


def test_bin_is_closed_with_the_model(tmp_path: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("no list of open files here")
    path = save(tmp_path)

    def is_open() -> bool:
        links = [link for link in folder.iterdir() if link.is_symlink()]
        return any(os.path.realpath(link) == str(path.with_suffix(".bin").resolve()) for link in links)

    model = read_model(path)
    assert is_open()
    bound = model.layers["lstm"]
    del model
    gc.collect()
    assert not is_open()
    bound(*nets.lstm_inputs().values())


def test_file_that_cannot_be_read_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = read_model(save(tmp_path))

    def fails(*arguments: Any) -> bytes:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "pread", fails)
    with pytest.raises(FormatError, match=r"Const 'W' \(id 4\): .* cannot be read \(the disk is gone\)"):
        model.layers["lstm"]


def test_constant_beyond_the_memory_limit(tmp_path: Path) -> None:
    """Refused before anything is allocated, by the layer, the call and the export; allowed by who raises the limit."""
    pytest.importorskip("onnx")
    model, limit = read_model(save(tmp_path)), get_memory_limit()
    set_memory_limit(100)
    try:
        for act in (lambda: model.layers["lstm"], lambda: model(nets.lstm_inputs()), lambda: to_onnx(model)):
            with pytest.raises(PyrnnxError, match=r"Const 'W' \(id 4\): its 384 bytes exceed the limit of 100"):
                act()
    finally:
        set_memory_limit(limit)
    model.layers["lstm"](*nets.lstm_inputs().values())


def test_shapes_of_which_there_is_no_array() -> None:
    for shape in (f"0,{2**62},{2**62}", ",".join(["1"] * 65)):
        text = XML.replace("1, 24, 4", shape).replace("<dim>1</dim><dim>24</dim><dim>4</dim>", "")
        with pytest.raises(FormatError, match=r"Const 'W' \(id 4\): shape "):
            read_model(text, BIN)
