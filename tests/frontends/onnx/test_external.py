"""External data: within the model's folder, of the tensor's size, and not of any amount."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model

from pyrnnx import ArgumentError, FormatError, get_memory_limit, set_memory_limit
from pyrnnx.frontends.onnx import read_model

node = helper.make_node
X = np.ones((2, 3), np.float32)


def sound() -> onnx.ModelProto:
    nodes = [node("Neg", ["x"], ["u"], name="first"), node("Add", ["u", "a"], ["y"], name="second")]
    return simple_model(nodes, {"x": X}, ["y"], {"a": X * 2})


def external(tmp_path: Path) -> Path:
    """A model whose one weight is in a file beside it; another is in a branch, with its own file."""
    path = tmp_path / "folder" / "model.onnx"
    path.parent.mkdir()
    onnx.save(sound(), os.fspath(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (path.parent / "weights.bin").is_file()
    return path


def edited(path: Path, **changes: str) -> onnx.ModelProto:
    model = onnx.load(os.fspath(path), load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = changes.pop(entry.key, entry.value)
    for key, value in changes.items():
        model.graph.initializer[0].external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return model


def test_external_data(tmp_path: Path) -> None:
    path = external(tmp_path)
    model = read_model(path)
    (path.parent / "weights.bin").unlink()
    np.testing.assert_array_equal(model(X)["y"], X)


def test_external_data_is_missing(tmp_path: Path) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").unlink()
    with pytest.raises(FormatError, match=r"tensor 'a' is in the file 'weights.bin', which does not exist in "):
        read_model(path)


def test_external_data_is_short(tmp_path: Path) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").write_bytes(b"abc")
    with pytest.raises(FormatError, match=r"tensor 'a' .* from byte 0 on for 24 bytes; it has 3"):
        read_model(path)


@pytest.mark.parametrize(
    ("element", "words"),
    [(999, "its element type is 999, which is unknown"), (onnx.TensorProto.STRING, "STRING; expected one of a fixed")],
)
def test_external_data_of_no_size(tmp_path: Path, element: int, words: str) -> None:
    path = external(tmp_path)
    model = edited(path)
    model.graph.initializer[0].data_type = element
    path.write_bytes(model.SerializeToString())
    with pytest.raises(FormatError, match=f"tensor 'a' .*{words}"):
        read_model(path)


@pytest.mark.parametrize(
    "location", ["../weights.bin", "/weights.bin", "", "sub/../../weights.bin", "C:\\weights.bin", "a\0b", "x" * 5000]
)
def test_external_data_leaves_the_folder(tmp_path: Path, location: str) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").rename(tmp_path / "weights.bin")
    edited(path, location=location)
    with pytest.raises(FormatError, match="expected a file in the model's folder"):
        read_model(path)


def test_external_data_in_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = external(tmp_path)
    edited(path, location="weights.bim")
    path.write_bytes(path.read_bytes().replace(b"weights.bim", b"weights.bi\xff"))
    with pytest.raises(FormatError, match=r"not UTF-8|not an ONNX model"):  # older protobuf rejects the file
        read_model(path)


def test_external_data_by_a_link(tmp_path: Path) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").rename(tmp_path / "weights.bin")
    (path.parent / "weights.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(FormatError, match="tensor 'a'"):
        read_model(path)


def test_external_data_in_names_that_no_file_has(tmp_path: Path) -> None:
    path = external(tmp_path)
    edited(path, location="x" * 3000)
    with pytest.raises(FormatError, match="tensor 'a' is in the file 'xxx") as caught:
        read_model(path)
    assert len(str(caught.value)) < 2000


def test_external_data_in_what_is_no_file(tmp_path: Path) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").unlink()
    os.mkfifo(path.parent / "weights.bin")
    with pytest.raises(FormatError, match="or is no regular file"):
        read_model(path)
    (path.parent / "weights.bin").unlink()
    (path.parent / "weights.bin").symlink_to(path.parent / "weights.bin")
    with pytest.raises(FormatError, match="tensor 'a'"):
        read_model(path)


def test_external_data_by_a_link_within_the_folder(tmp_path: Path) -> None:
    path = external(tmp_path)
    (path.parent / "weights.bin").rename(path.parent / "other.bin")
    (path.parent / "weights.bin").symlink_to("other.bin")
    np.testing.assert_array_equal(read_model(path)(X)["y"], X)


def sharing(path: Path, count: int, size: int) -> None:
    """Many tensors that are each a whole file, which takes no room on the disk."""
    model = sound()
    with (path.parent / "shared.bin").open("wb") as file:
        file.truncate(size)
    for k in range(count):
        tensor = model.graph.initializer.add(name=f"t{k}", data_type=1, dims=[size // 4], data_location=1)
        tensor.external_data.add(key="location", value="shared.bin")
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(("count", "size"), [(10_000, 2**20), (1, 100 * 2**30)])
def test_external_data_beyond_the_limit(tmp_path: Path, count: int, size: int) -> None:
    before = get_memory_limit()
    set_memory_limit(8 * 2**20)
    try:
        sharing(tmp_path / "model.onnx", count, size)
        with pytest.raises(ArgumentError, match=r"its external data takes \d+ bytes; expected at most 8388608"):
            read_model(tmp_path / "model.onnx")
        sharing(tmp_path / "model.onnx", 8, 2**20)
        read_model(tmp_path / "model.onnx")
    finally:
        set_memory_limit(before)


@pytest.mark.parametrize(
    "changes", [{"offset": "-4"}, {"offset": "1000"}, {"length": "1000"}, {"length": "x"}, {"length": "20"}]
)
def test_external_data_out_of_its_file(tmp_path: Path, changes: dict[str, str]) -> None:
    path = external(tmp_path)
    edited(path, **changes)
    with pytest.raises(FormatError, match="tensor 'a'"):
        read_model(path)


def test_external_data_without_a_path(tmp_path: Path) -> None:
    path = external(tmp_path)
    for source in (path.read_bytes(), edited(path)):
        with pytest.raises(FormatError, match="expected a path to the model"):
            read_model(source)
