"""Parts as .npz files: "name", "index", each output, and "OUTPUT.offsets" of those with time steps."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from pyrnnx.scoring.sinks.columns import Columns


def write(path: Path, columns: Columns) -> None:
    """A new file, not compressed. (`numpy.savez` has names of its own, such as "file", that no array can have.)"""
    with zipfile.ZipFile(path, "x", allowZip64=True) as archive:
        for name, array in columns.arrays().items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
