"""Headers of .npy files, which are checked before NumPy allocates what they declare, and .npz files."""

import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx.errors import FormatError


def shape_of_npy(file: Any, size: int) -> tuple[int, ...]:
    """Read the header of an .npy file of `size` bytes, and return its shape."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise FormatError("it is an array of Python objects; expected numbers")
    if min(shape, default=0) < 0:  # old versions of NumPy accept this
        raise FormatError(f"its shape {shape} has a size below 0")
    declared, available = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared > available:
        raise FormatError(f"it has {available} bytes of values; its header declares {declared}")
    return shape


def write_npz(file: Any, arrays: Mapping[str, Any]) -> None:
    """Write an uncompressed .npz file. `numpy.savez` is of no use: it reserves names such as "file"."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
