"""External data: inside the model's folder, of the tensor's size, and within the memory limit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import SOUND_INPUT, simple_model, sound
from rows import each_row

from pyrnnx import ArgumentError, FormatError, set_memory_limit
from pyrnnx.frontends.onnx import read_model
from pyrnnx.onnxruntime import InferenceSession

node = helper.make_node
X = SOUND_INPUT


def external(tmp_path: Path) -> Path:
    """Return a model whose one weight is in a file of its folder."""
    path = tmp_path / "folder" / "model.onnx"
    path.parent.mkdir()
    onnx.save(sound(), os.fspath(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (path.parent / "weights.bin").is_file()
    return path


def edited(path: Path, data_type: int | None = None, **changes: str) -> onnx.ModelProto:
    model = onnx.load(os.fspath(path), load_external_data=False)
    tensor = model.graph.initializer[0]
    tensor.data_type = tensor.data_type if data_type is None else data_type
    for entry in tensor.external_data:
        entry.value = changes.pop(entry.key, entry.value)
    for key, value in changes.items():
        tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return model


@each_row("link", [False, True])
def test_weights_are_read_once(tmp_path: Path, link: bool) -> None:
    path = external(tmp_path)
    if link:  # within the folder
        (path.parent / "weights.bin").rename(path.parent / "other.bin")
        (path.parent / "weights.bin").symlink_to("other.bin")
    model = read_model(path)
    (path.parent / "weights.bin").unlink()
    np.testing.assert_array_equal(model(X)["y"], X)


OUTSIDE = ("../weights.bin", "/weights.bin", "", "sub/../../weights.bin", "C:\\weights.bin", "a\0b")
ENTRIES: list[tuple[dict[str, Any], str]] = [
    *[({"location": location}, "which|expected a file in the model's") for location in OUTSIDE],
    ({"location": "x" * 3000}, "tensor 'a' is in the file 'xxx"),
    ({"data_type": 999}, "tensor 'a' .*its element type is 999, which is unknown"),
    ({"data_type": onnx.TensorProto.STRING}, "tensor 'a' .*STRING; expected one of a fixed"),
    *[({"offset": value}, "tensor 'a'") for value in ("-4", "1000")],
    *[({"length": value}, "tensor 'a'") for value in ("1000", "x", "20")],
]


@each_row(("changes", "words"), ENTRIES)
def test_rejected_entries(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = external(tmp_path)
    if changes.get("location") in OUTSIDE:
        (path.parent / "weights.bin").rename(tmp_path / "weights.bin")
    edited(path, **changes)
    with pytest.raises(FormatError, match=words):
        read_model(path)


def link_outside(path: Path) -> None:
    path.rename(path.parents[1] / "weights.bin")
    path.symlink_to(path.parents[1] / "weights.bin")


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (Path.unlink, "tensor 'a' is in the file 'weights.bin', which does not exist in "),
    "short": (lambda path: path.write_bytes(b"abc"), "tensor 'a' .* from byte 0 on for 24 bytes; it has 3"),
    "outside": (link_outside, "tensor 'a'"),
    "a loop": (link_to_itself, "tensor 'a'"),
    "a pipe": (pipe, "or is no regular file"),
}


@each_row(("change", "words"), FILES.values(), ids=FILES)
def test_rejected_files(tmp_path: Path, change: Callable[[Path], Any], words: str) -> None:
    path = external(tmp_path)
    change(path.parent / "weights.bin")
    with pytest.raises(FormatError, match=words):
        read_model(path)


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = external(tmp_path)
    edited(path, location="weights.bim")
    path.write_bytes(path.read_bytes().replace(b"weights.bim", b"weights.bi\xff"))
    with pytest.raises(FormatError, match=r"a name in UTF-8|not an ONNX model"):  # older protobuf rejects the file
        read_model(path)


def test_without_a_path(tmp_path: Path) -> None:
    path = external(tmp_path)
    for source in (path.read_bytes(), edited(path)):
        with pytest.raises(FormatError, match="expected a path to the model"):
            read_model(source)


def sharing(path: Path, count: int, size: int) -> None:
    """Write a model of many tensors that are each a whole file, which takes no room on the disk."""
    model = sound()
    with (path.parent / "shared.bin").open("wb") as file:
        file.truncate(size)
    for k in range(count):
        tensor = model.graph.initializer.add(name=f"t{k}", data_type=1, dims=[size // 4], data_location=1)
        tensor.external_data.add(key="location", value="shared.bin")
    path.write_bytes(model.SerializeToString())


def test_beyond_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    set_memory_limit(8 * 2**20)
    for count, size in ((1000, 2**20), (1, 100 * 2**30)):
        sharing(path, count, size)
        with pytest.raises(ArgumentError, match=r"its external data takes \d+ bytes; expected at most 8388608"):
            read_model(path)
    sharing(path, 8, 2**20)
    read_model(path)


def test_the_drop_in_reads_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Conv that may become a product, and a Constant: other data of that name is in the current folder."""
    W, x = np.ones((64, 8, 8), np.float32), np.ones((1, 8, 8), np.float32)
    constant = node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(np.full(64, 3, np.float32), "k"))
    model = simple_model(
        [node("Conv", ["x", "W"], ["c"]), constant, node("Add", ["c", "k"], ["y"])], {"x": x}, ["y"], {"W": W}
    )
    for dim, size in zip(model.graph.input[0].type.tensor_type.shape.dim, x.shape, strict=True):
        dim.dim_value = size
    path = tmp_path / "model.onnx"
    external = {"location": "w.bin", "size_threshold": 0, "convert_attribute": True}
    onnx.save(model, os.fspath(path), save_as_external_data=True, **external)  # type: ignore[arg-type]
    other = tmp_path / "other"
    other.mkdir()
    (other / "w.bin").write_bytes(bytes((tmp_path / "w.bin").stat().st_size))
    monkeypatch.chdir(other)
    for results in (read_model(path)(x).values(), InferenceSession(path).run(None, {"x": x})):
        np.testing.assert_array_equal(next(iter(results))[0, :, 0], 64 + 3)
