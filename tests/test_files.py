"""Files are read within limits, and messages about anything are of some length."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrnnx import ArgumentError
from pyrnnx.files import check_report, check_writable, open_regular, read_regular, write_files


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")

    def grow(head: bytes) -> None:
        assert head == b"abc"
        path.write_bytes(b"abcd")

    with pytest.raises(ArgumentError, match=r"^test: .*/file' cannot be read \(it grew while it was read\)"):
        read_regular("test", path, most=10, expected="a file", recognise=grow)


def test_a_file_of_more_bytes_than_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with open_regular("test", path, most=3, expected="a file") as file:
        assert file.read() == b"abc"
    with pytest.raises(ArgumentError, match="it has 3 bytes, more than the 2 allowed"):
        open_regular("test", path, most=2, expected="a file")


def test_the_name_of_a_temporary_file_is_not_told(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "m.onnx"
    with pytest.raises(ArgumentError, match=r"missing/m\.onnx' cannot be written") as caught:
        write_files("test", {target: [b"abc"]})
    assert ".tmp" not in str(caught.value)


def test_a_long_message_is_shortened() -> None:
    message = str(ArgumentError("begin" + "x" * 10**6 + "end"))
    assert len(message) < 4500
    assert message.startswith("beginx")
    assert message.endswith("xend")


def test_a_file_stays_when_writing_fails(tmp_path: Path) -> None:
    """And the error names it, not the one beside it."""
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_what_is_no_file_is_not_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    told = {"pipe": "a pipe, socket or device", "link": "a pipe, socket or device", ".": "a folder", "a/b": "not there"}
    for name, words in told.items():
        for function in (check_writable, lambda label, path: write_files(label, {path: [b"x"]})):
            with pytest.raises(ArgumentError, match=f"^test: .* cannot be written .*{words}"):
                function("test", tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.parametrize("name", ["m.onnx", "m.XML", "m.bin"])
def test_a_report_does_not_replace_a_model(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=f"^test: --json: .*{name}' is a model's name; expected another suffix"):
        check_report("test: --json", tmp_path / name)
    check_report("test: --json", tmp_path / "m.json")
