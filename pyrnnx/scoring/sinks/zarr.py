"""Parts as groups of one zarr group, with the arrays "name", "index", each output, and "OUTPUT.offsets"."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.scoring.packages import import_zarr

GROUP = "zarr.json"  # in the folder of all parts
CHUNK = 2**23  # approximate bytes of a chunk; each chunk is a file


def begin(folder: Path) -> None:
    """Create the group that contains the parts."""
    import_zarr().open_group(os.fspath(folder), mode="a", zarr_format=3)


def write(path: Path, arrays: dict[str, AnyArray]) -> None:
    """Write a new group."""
    group = import_zarr().open_group(os.fspath(path), mode="w-", zarr_format=3)
    for name, array in arrays.items():
        row = max(1, array.dtype.itemsize * int(np.prod(array.shape[1:])))
        chunks = (max(1, min(array.shape[0], CHUNK // row)), *(max(1, size) for size in array.shape[1:]))
        with warnings.catch_warnings():
            # Format 3 does not specify strings of fixed width yet, but zarr can read the ones that it writes.
            warnings.simplefilter("ignore")
            stored = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks)
        stored[...] = array
