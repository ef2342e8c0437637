"""Reads of files within limits, and the length of messages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyrnnx import ArgumentError
from pyrnnx._internal.files import open_regular, read_regular


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    fstat = os.fstat

    def grow(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        path.write_bytes(path.read_bytes() + b"d")
        return status

    monkeypatch.setattr(os, "fstat", grow)
    with pytest.raises(ArgumentError, match=r"^test: .*/file' cannot be read \(it grew while it was read\)"):
        read_regular("test", path, most=10, expected="a file")


def test_a_file_of_more_bytes_than_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with open_regular("test", path, most=3, expected="a file") as file:
        assert file.read() == b"abc"
    with pytest.raises(ArgumentError, match="it has 3 bytes, more than the 2 allowed"):
        open_regular("test", path, most=2, expected="a file")


def test_a_long_message_is_shortened() -> None:
    message = str(ArgumentError("begin" + "x" * 10**6 + "end"))
    assert len(message) < 4500
    assert message.startswith("beginx")
    assert message.endswith("xend")
