"""Files of a written model: allowed paths, and atomic writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from openvino_nodes import make_layer
from rows import each_row

from pyrnnx import PyrnnxError
from pyrnnx.errors import ArgumentError
from pyrnnx.frontends.openvino import BoundLayer, read_model, write_model

BAD_PATHS: dict[str, Any] = {
    "another suffix": "layer.bin",
    "upper case": "layer.XML",
    "no suffix": "layer",
    "nothing": "",
    "only a suffix": ".xml",
    "no such folder": "absent/layer.xml",
    "a folder": "folder.xml",
    "a folder in place of the .bin": "bin.xml",
    "NUL": "a\0.xml",
    "a long name": "x" * 300 + ".xml",
    "bytes": b"layer.xml",
    "a number": 3,
    "none": None,
}


@each_row("name", BAD_PATHS)
def test_paths(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("folder.xml", "bin.bin"):
        (tmp_path / folder).mkdir()
    with pytest.raises(PyrnnxError, match=r"^GRU 'a layer': (path is|'.*' cannot be written)"):
        write_model(make_layer(), BAD_PATHS[name])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin.bin", "folder.xml"]


def test_what_was_there_stays_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(make_layer(), str(tmp_path / "layer.xml"))
    assert path == tmp_path / "layer.xml"
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    real, calls = open, []

    def full(file: Any, mode: str = "r") -> Any:
        calls.append(file)
        if len(calls) == 2:
            raise OSError("no space left")
        return real(file, mode)

    monkeypatch.setattr("builtins.open", full)
    with pytest.raises(ArgumentError, match=r"cannot be written \(no space left\)"):
        write_model(make_layer("LSTM"), path)
    monkeypatch.undo()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    write_model(make_layer("LSTM"), path)
    assert isinstance(read_model(path).layers["a layer"], BoundLayer)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_files_are_readable_as_others_are(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    path = write_model(make_layer(), tmp_path / "layer.xml")
    modes = {file.stat().st_mode for file in (path, path.with_suffix(".bin"), tmp_path / "other")}
    assert len(modes) == 1
