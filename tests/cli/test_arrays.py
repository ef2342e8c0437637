"""Broken and malicious files of arrays: each is an error in one line that names the file."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from rows import each_row

import pyrnnx
from pyrnnx import ArgumentError
from pyrnnx.cli.arrays import read_npy, read_npz
from pyrnnx.scoring.sources.arrays import NpySource

EXPECTED = "expected an .np[yz] file"


def npy(header: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header.encode("latin1") + b"\n" + data


def described(descr: str = "'<f4'", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


def npz(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> str:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return str(path)


BROKEN = {
    "no header": b"\x93NUMPY\x01\x00",
    "version": b"\x93NUMPY\x09\x00" + bytes(100),
    "text": npy("{'descr': ("),
    "brackets": npy("(" * 300),
    "unknown type": npy(described("'<q9'")),
    "negative": npy(described(shape="(-1,)")),
    "cut": npy(described(), bytes(7)),
    "huge": npy(described(shape="(1000000, 1000000)"), bytes(8)),
    "beyond 64 bits": npy(described(shape=f"({10**30},)"), bytes(8)),
    "objects": npy(described("'|O'"), b"cos\nsystem\n(S'false'\ntR."),
    "a pickle": b"\x80\x04K\x01.",
}


@each_row("name", BROKEN)
def test_broken(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(BROKEN[name])
    with pytest.raises(ArgumentError, match=rf"^run: .*x.npy' cannot be read \(.+\); {EXPECTED}, without objects$"):
        read_npy("run", str(tmp_path / "x.npy"))
    archive = npz(tmp_path / "x.npz", {"X.npy": BROKEN[name]})
    with pytest.raises(ArgumentError, match=rf"^run: .*x.npz' cannot be read \(.+\); {EXPECTED}, without objects$"):
        read_npz("run", archive)


def test_a_small_file_of_many_bytes(tmp_path: Path) -> None:
    """Unpacked, it is more than the limit."""
    file = io.BytesIO()
    np.save(file, np.zeros(10**6, np.int8))
    path = npz(tmp_path / "x.npz", {"X.npy": file.getvalue(), "Z.npy": b"broken"})
    assert Path(path).stat().st_size < 10_000
    before = pyrnnx.get_memory_limit()
    pyrnnx.set_memory_limit(10**5)
    try:
        with pytest.raises(ArgumentError, match=r"its arrays take 10\d+ bytes, more than the 100000 allowed"):
            read_npz("run", path)
    finally:
        pyrnnx.set_memory_limit(before)


def test_a_head_of_python_2(tmp_path: Path) -> None:
    """NumPy warns about it."""
    array = tmp_path / "x.npy"
    np.save(array, np.ones((3, 2), np.float32))
    array.write_bytes(array.read_bytes().replace(b"(3, 2)", b"(3L,2)"))
    np.testing.assert_array_equal(read_npy("run", str(array)), np.ones((3, 2)))
    [values] = NpySource(str(tmp_path)).read(NpySource(str(tmp_path)).items().places)
    np.testing.assert_array_equal(values, np.ones((3, 2)))
