"""Atomic writes: a file is complete, or it does not exist."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrnnx import ArgumentError
from pyrnnx._internal.writing import check_report, check_writable, renamed, write_files


def test_the_name_of_a_temporary_file_is_not_shown(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "m.onnx"
    with pytest.raises(ArgumentError, match=r"missing/m\.onnx' cannot be written") as caught:
        write_files("test", {target: [b"abc"]})
    assert ".tmp" not in str(caught.value)


def test_a_file_stays_when_writing_fails(tmp_path: Path) -> None:
    """And the error names the file, not the temporary one."""
    path = tmp_path / "file"
    path.write_bytes(b"good")

    def pieces() -> Iterator[bytes]:
        yield b"ba"
        raise OSError(28, "No space left on device", str(tmp_path / ".beside.tmp"))

    with pytest.raises(ArgumentError, match=r"^test: .*/file' cannot be written \(No space left on device\)$"):
        write_files("test", {path: pieces()})
    assert path.read_bytes() == b"good"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="links and permissions")
def test_a_replaced_file_keeps_its_links_and_permissions(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to("file")
    write_files("test", {link: lambda file: file.write(b"new")})
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_to_itself_stays(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(ArgumentError, match=r"^report: .*a' cannot be written \(it is a link to itself\)$"):
        write_files("report", {tmp_path / "a": [b"x"]})
    assert (tmp_path / "a").is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_what_is_no_file_is_not_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reasons = {
        "pipe": "a pipe, socket or device",
        "link": "a pipe, socket or device",
        ".": "a folder",
        "a/b": "not exist",
    }
    for name, words in reasons.items():
        for function in (check_writable, lambda label, path: write_files(label, {path: [b"x"]})):
            with pytest.raises(ArgumentError, match=f"^test: .* cannot be written .*{words}"):
                function("test", tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.parametrize("name", ["m.onnx", "m.XML", "m.bin"])
def test_a_report_does_not_replace_a_model(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=f"^test: --json: .*{name}' has the suffix of a model; expected"):
        check_report("test: --json", tmp_path / name)
    check_report("test: --json", tmp_path / "m.json")


def test_a_folder_replaces_one_that_has_files(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / folder.name).touch()
    with renamed({new: old}):
        pass
    assert [path.name for path in old.iterdir()] == ["new"]
    assert not new.exists()


def test_nothing_temporary_is_left_after_an_error(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    (folder / "inside").touch()
    file.touch()
    with pytest.raises(IsADirectoryError), renamed({folder: tmp_path / "a", file: tmp_path / "b"}):
        folder.write_text("")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_rename_names_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if another file was written last; no temporary file is left."""

    def replace(source: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link", str(source), None, str(target))

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(ArgumentError, match=r"/m\.bin' cannot be written \(Invalid cross-device link\)$"):
        write_files("test", {tmp_path / "m.bin": [b"a"], tmp_path / "m.xml": [b"b"]})
    assert list(tmp_path.iterdir()) == []
