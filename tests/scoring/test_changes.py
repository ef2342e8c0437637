"""Recordings that are replaced by others of the same size during a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scoring_data import PART, lstm, sequences, write_npy

import pyrnnx
from pyrnnx import PyrnnxError

ITEMS = sequences()
LAST = len(ITEMS) - 1


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_npy(tmp_path / "in", ITEMS)


def run(source: Path, progress: Callable[[int, int], None], **options: Any) -> Any:
    return pyrnnx.score(lstm(), source, source.parent / "out", workers=0, memory=PART, progress=progress, **options)


def _with_its_time(new: Path, old: Path) -> None:
    times = old.stat()
    old.write_bytes(new.read_bytes())
    os.utime(old, ns=(times.st_atime_ns, times.st_mtime_ns))


REPLACED: dict[str, Callable[[Path, Path], object]] = {
    "by a new file": os.replace,
    "in place": lambda new, old: old.write_bytes(new.read_bytes()),
    "in place, with the time kept": _with_its_time,
}


@pytest.mark.parametrize("way", REPLACED)
@pytest.mark.parametrize("when", ["before its part is read", "after its part is read"])
def test_a_recording_that_is_replaced(way: str, when: str, source: Path) -> None:
    """The run is not complete under the fingerprint of the recording before."""
    new, old = source.parent / "new.npy", source / f"{LAST:03}.npy"
    np.save(new, -ITEMS[LAST])

    def progress(done: int, total: int) -> None:
        if new.exists() and done == (total if when.startswith("after") else 0):
            REPLACED[way](new, old)
            new.unlink(missing_ok=True)

    with pytest.raises(PyrnnxError, match=rf"item '{old.name}': its file has changed since it was listed"):
        run(source, progress)
    assert not json.loads((source.parent / "out" / "manifest.json").read_text())["complete"]


def test_a_zarr_array_that_is_described_anew(tmp_path: Path) -> None:
    """The fingerprint of zarr contains only the descriptions."""
    zarr = pytest.importorskip("zarr")
    array = zarr.open_array(str(tmp_path / "in"), mode="w", shape=(3, 4, 5), dtype="f4", chunks=(1, 4, 5))
    array[...] = 1

    def progress(done: int, total: int) -> None:
        if done == total:
            array.attrs["changed"] = True

    with pytest.raises(PyrnnxError, match="has changed since it was listed"):
        run(tmp_path / "in", progress)
