"""Parts as .npz files with the arrays "name", "index", each output, and "OUTPUT.offsets" if it has time steps."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from pyrnnx._internal.dtypes import AnyArray


def write(path: Path, arrays: dict[str, AnyArray]) -> None:
    """Write a new file, not compressed. `numpy.savez` is of no use: it reserves names such as "file"."""
    with zipfile.ZipFile(path, "x", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
