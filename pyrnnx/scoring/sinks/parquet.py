"""Parts as Parquet files: "name", "index", and each output as a column of lists: of [T, D, H] lists of lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.scoring.packages import import_pyarrow
from pyrnnx.scoring.sinks.columns import Columns

_MOST = 2**31 - 1  # elements of a list array with offsets of 32 bits


def write(path: Path, columns: Columns) -> None:
    """A new file of one row group."""
    pa = import_pyarrow()
    found = {"name": pa.array(columns.names.tolist(), pa.string()), "index": pa.array(columns.indices)}
    for name, values in columns.values.items():
        found[name] = _nested(values)
        if name in columns.offsets:
            offsets = columns.offsets[name]
            wide = int(offsets[-1]) > _MOST
            made = pa.LargeListArray if wide else pa.ListArray
            found[name] = made.from_arrays(offsets.astype(np.int64 if wide else np.int32), found[name])
    # Floats of a network have no two alike: dictionaries and statistics of them are in vain.
    pa.parquet.write_table(
        pa.table(found),
        path,
        use_dictionary=False,
        write_statistics=["index"],
        row_group_size=max(1, len(columns.names)),
    )


def _nested(values: AnyArray) -> Any:
    """[n, a, b] as n lists of a lists of b numbers."""
    pa = import_pyarrow()
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    for place in range(values.ndim - 1, 0, -1):
        width = values.shape[place]
        if width:
            flat = pa.FixedSizeListArray.from_arrays(flat, width)
        else:  # no number of elements tells how many lists without any there are
            count = int(np.prod(values.shape[:place]))
            flat = pa.FixedSizeListArray.from_buffers(pa.list_(flat.type, 0), count, [None], children=[flat])
    return flat
