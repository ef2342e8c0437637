"""Parts as Parquet files with the columns "name", "index", and each output as lists: nested ones for [T, D, H]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.scoring.packages import import_pyarrow

OFFSETS = ".offsets"  # appended to the name of an output
_MOST = 2**31 - 1  # elements of a list array with offsets of 32 bits


def write(path: Path, arrays: dict[str, AnyArray]) -> None:
    """Write a new file of one row group."""
    pa = import_pyarrow()
    # Names of files need not be Unicode, which Parquet needs.
    names = [name.encode("utf-8", "replace").decode() for name in arrays["name"].tolist()]
    columns = {"name": pa.array(names, pa.string()), "index": pa.array(arrays["index"])}
    for name, values in arrays.items():
        if name in columns or name.removesuffix(OFFSETS) in arrays.keys() - {name}:
            continue
        columns[name] = _nested(values)
        if (offsets := arrays.get(f"{name}{OFFSETS}")) is not None:
            wide = int(offsets[-1]) > _MOST
            cls = pa.LargeListArray if wide else pa.ListArray
            columns[name] = cls.from_arrays(offsets.astype(np.int64 if wide else np.int32), columns[name])
    # Outputs of a network hardly repeat: dictionaries and statistics would only cost space.
    rows = max(1, len(names))
    pa.parquet.write_table(
        pa.table(columns), path, use_dictionary=False, write_statistics=["index"], row_group_size=rows
    )


def _nested(values: AnyArray) -> Any:
    """Return an array [n, a, b] as n lists of a lists of b numbers."""
    pa = import_pyarrow()
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    for axis in range(values.ndim - 1, 0, -1):
        width = values.shape[axis]
        if width:
            flat = pa.FixedSizeListArray.from_arrays(flat, width)
        else:  # `from_arrays` cannot derive the number of empty lists from no elements
            count = int(np.prod(values.shape[:axis]))
            flat = pa.FixedSizeListArray.from_buffers(pa.list_(flat.type, 0), count, [None], children=[flat])
    return flat
