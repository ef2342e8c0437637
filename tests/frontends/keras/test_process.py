"""Weights of .keras files on which HDF5 loops or crashes: a separate process reads them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from keras_files import LSTM, good_config, good_groups, groups, weights_file, write
from rows import each_row

from pyrnnx import FormatError, PyrnnxError
from pyrnnx.frontends.keras import from_file, process

h5py: Any = pytest.importorskip("h5py")


def keras_file(folder: Path, contents: bytes | None = None) -> Path:
    return write(folder / "a.keras", good_config(), weights_file(good_groups()) if contents is None else contents)


def endless() -> bytes:
    """The free space behind the names of groups, of which the size has one altered byte: libhdf5 looks there for more
    names, and never gets to the end."""
    contents = bytearray(weights_file(good_groups()))
    heap = contents.find(b"GCOL")
    size = contents.index((0xFC0).to_bytes(8, "little"), heap)
    contents[size + 1] = 0
    return bytes(contents)


@pytest.mark.e2e
def test_a_file_that_is_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "SECONDS", 3.0)
    path, started = keras_file(tmp_path, endless()), time.monotonic()
    with pytest.raises(FormatError, match=r"a\.keras: LSTM 'first': the weights are .*damaged \(") as caught:
        from_file(path)
    assert time.monotonic() - started < 60
    assert "\n" not in str(caught.value)


DAMAGED = r"LSTM 'first': the weights are damaged \(HDF5 "
UNREADABLE = "LSTM 'first': the weights cannot be read"
ANSWER = "import io, numpy; from pyrnnx._internal.child_process import serve; serve(lambda message: "
OBJECTS = "[file := io.BytesIO(), numpy.save(file, numpy.array([None]), allow_pickle=True)] and b'A' + file.getvalue())"
PROGRAMS: list[tuple[str, type[PyrnnxError], str]] = [
    ("while True: pass", FormatError, rf"{DAMAGED}did not finish in 1 s\)"),
    ("import os; os.abort()", FormatError, rf"{DAMAGED}crashed on them, exit status -?\d+\)"),
    ("raise RuntimeError", PyrnnxError, "the Python process that reads the weights failed"),
    ("", FormatError, rf"{DAMAGED}crashed on them, exit status 0\)"),
    ("print('text' * 9)", FormatError, rf"{DAMAGED}crashed on them, exit status 0\)"),
    (f"{ANSWER}b'')", FormatError, UNREADABLE),
    (f"{ANSWER}{OBJECTS}", FormatError, UNREADABLE),
]


@pytest.mark.e2e
@each_row(("program", "error", "message"), PROGRAMS)
def test_processes_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, error: type[PyrnnxError], message: str
) -> None:
    monkeypatch.setattr(process, "_PROGRAM", program)
    monkeypatch.setattr(process, "SECONDS", 1.0 if "while" in program else 60.0)
    with pytest.raises(error, match=message) as caught:
        from_file(keras_file(tmp_path))
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("executable", [None, "", "/none/python"])
def test_no_process_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str | None) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(PyrnnxError, match=r"a\.keras: .* (sys.executable is not a Python|in another process)"):
        from_file(keras_file(tmp_path))


def test_a_process_reads_and_rejects(tmp_path: Path) -> None:
    """Keras stores bfloat16 as two bytes without a meaning."""
    arrays, path = [array.astype(ml_dtypes.bfloat16) for array in LSTM.weights], tmp_path / "weights.h5"
    path.write_bytes(weights_file({"layers/lstm": ("first", []), "layers/lstm/cell": ("cell", [])}))
    with h5py.File(path, "r+") as file:
        for k, array in enumerate(arrays):
            file[f"layers/lstm/cell/vars/{k}"] = array.view("V2")
            file[f"layers/lstm/cell/vars/{k}"].attrs["dtype"] = "bfloat16"
    (layer,) = from_file(keras_file(tmp_path, path.read_bytes())).layers
    np.testing.assert_array_equal(layer.weights["R"][0], arrays[1], strict=True)
    with pytest.raises(FormatError, match=r"a\.keras: LSTM 'first': 'layers' has no weights of 'first'"):
        from_file(keras_file(tmp_path, weights_file(groups(LSTM, "other", "layers/lstm"))))


def test_h5py_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = keras_file(tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(PyrnnxError, match=r"needs the package h5py; `python -m pip install \"pyrnnx\[keras\]\"`"):
        from_file(path)
