"""Parts as groups of one zarr group: the arrays "name", "index", each output, and "OUTPUT.offsets"."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from pyrnnx.scoring.packages import import_zarr
from pyrnnx.scoring.sinks.columns import Columns

GROUP = "zarr.json"  # in the folder of all parts
CHUNK = 2**23  # bytes of a chunk of an array, some: each is a file


def begin(folder: Path) -> None:
    """The group that the parts are in."""
    import_zarr().open_group(os.fspath(folder), mode="a", zarr_format=3)


def write(path: Path, columns: Columns) -> None:
    """A new group."""
    group = import_zarr().open_group(os.fspath(path), mode="w-", zarr_format=3)
    for name, array in columns.arrays().items():
        row = max(1, array.dtype.itemsize * int(np.prod(array.shape[1:])))
        chunks = (max(1, min(array.shape[0], CHUNK // row)), *(max(1, size) for size in array.shape[1:]))
        with warnings.catch_warnings():
            # Strings of fixed width have no specification yet in format 3; zarr reads what it wrote.
            warnings.simplefilter("ignore")
            made = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks)
        made[...] = array
